"""How long the texts of a run are, in a model's tokens."""

from dataclasses import dataclass
from statistics import mean

from zerogap.config import Config
from zerogap.config.benchmark import Benchmark
from zerogap.data import gsm8k_format, gsm_symbolic, openorca, prompts, toy
from zerogap.data.extraction import extraction_rule
from zerogap.data.prompts import PromptTemplate
from zerogap.pipeline import jobs
from zerogap.training.examples import AFTER_RESPONSE

GSM8K_CHARACTERS = (240, 270)  # means of the test set: question; rationale and answer
OPENORCA_CHARACTERS = 1700  # mean of a row, prompt and response; an estimate


@dataclass(frozen=True)
class TextLengths:
    """Mean lengths of a benchmark's texts in tokens of one model.

    Attributes:
        shots: all exemplars of a prompt together.
        question: a question with the template's text.
        response: a response, at most `sampling.max_new_tokens`.
        instruction: an instruction with its response.
        characters_per_token: of these texts.
    """

    shots: float
    question: float
    response: float
    instruction: float
    characters_per_token: float


def text_lengths(
    config: Config, model: str, benchmark: str, characters_per_token: float
) -> TextLengths:
    """The lengths of a benchmark's texts for a model.

    Local and generated texts are measured; for those on the hub, published means are used.

    Args:
        config: the configuration.
        model: a key of `models`; its tokenizer is used if it is available locally.
        benchmark: a key of `benchmarks`.
        characters_per_token: used otherwise.
    """
    entry = config.benchmarks[benchmark]
    template = PromptTemplate.of(entry.prompt.model_dump())
    shots = _few_shot_prefix(config, benchmark)
    if num_tokens := _num_tokens(config, model, shots):
        characters_per_token = len(shots) / num_tokens
    question, response = _question_characters(entry, template, config.seed)
    question += len(template.prompt("", ""))
    response += len(AFTER_RESPONSE)
    return TextLengths(
        shots=len(shots) / characters_per_token,
        question=question / characters_per_token,
        response=min(response / characters_per_token + 1, config.sampling.max_new_tokens),
        instruction=_instruction_characters(config) / characters_per_token + 1,
        characters_per_token=characters_per_token,
    )


def few_shot_tokens(config: Config, model: str, benchmark: str) -> int | None:
    """Tokens of all exemplars of a prompt; None if the model's tokenizer is not available locally.

    Raises:
        InputError: the exemplars are not available.
    """
    return _num_tokens(config, model, _few_shot_prefix(config, benchmark))


def _few_shot_prefix(config: Config, benchmark: str) -> str:
    prompt = config.benchmarks[benchmark].prompt.model_dump()
    exemplars = prompts.exemplars(prompt["exemplars"], prompt["num_shots"])
    return PromptTemplate.of(prompt).few_shot_prefix(exemplars)


def _num_tokens(config: Config, model: str, text: str) -> int | None:
    """Of a text, with the model's tokenizer; None if that is not available locally."""
    folder = jobs.base_folder(config, model)
    if folder is None or not (folder / "tokenizer.json").is_file():
        return None
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return len(tokenizer.encode(text).ids)


def _question_characters(
    benchmark: Benchmark, template: PromptTemplate, seed: int
) -> tuple[float, float]:
    """Mean characters of a question and of its response."""
    questions = benchmark.questions
    if questions.source == "files" and questions.files and questions.files.test:
        gold = extraction_rule(benchmark.extraction).parse_gold
        texts = [
            (row.question, row.rationale, row.gold)
            for row in gsm8k_format.load(questions.files.test, gold)
        ]
    elif questions.source == "gsm_symbolic" and questions.gsm_symbolic:
        entries = gsm_symbolic.entries(**questions.gsm_symbolic.model_dump())["test"]
        texts = [
            (row.question, row.rationale, row.gold) for row in map(gsm8k_format.parse, entries)
        ]
    elif questions.source == "generated" and questions.generated:
        texts = [
            (row.question, row.rationale, row.gold)
            for row in toy.problems(benchmark.num_test, seed, "test")
        ]
    else:
        return GSM8K_CHARACTERS
    return (
        mean(len(question) for question, _, _ in texts),
        mean(len(template.response(rationale, gold)) for _, rationale, gold in texts),
    )


def _instruction_characters(config: Config) -> float:
    """Mean characters of an instruction with its response."""
    entry = config.instructions
    if entry.source == "hub":
        return OPENORCA_CHARACTERS
    if entry.source == "files" and entry.files:
        rows = openorca.load(entry.files, entry.num_examples, config.seed)
    else:
        rows = toy.instructions(entry.num_examples, config.seed)
    return mean(sum(map(len, row.values())) for row in rows)
