"""What a model is asked: questions with gold answers and their prompt, from a name or a file."""

import contextlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from zerogap.config import load_benchmark
from zerogap.config.files import PACKAGE
from zerogap.config.load import ENTRY_POINTS
from zerogap.data import gsm8k_format, question_sources
from zerogap.data.extraction import ExtractionRule, extraction_rule
from zerogap.data.prompts import Exemplar, PromptTemplate, exemplars
from zerogap.data.questions import Question, questions_digest, split_test_questions
from zerogap.errors import InputError, first_line
from zerogap.io.hub import connection_error
from zerogap.io.text_files import printable
from zerogap.plugins import installed

HUB_SECONDS = 10  # within which the hub answers
BENCHMARKS = PACKAGE / "benchmarks"  # a link to workflow/benchmarks, of which a wheel has a copy
COLUMNS = ["question_id", "question", "rationale", "gold", "answer"]
GENERATORS = ("generated", "gsm_symbolic")  # sources that make questions
# Where the test split of a data set is as a file, for those who cannot load it from the hub.
DOWNLOADS = {
    "openai/gsm8k": "https://github.com/openai/grade-school-math "
    "(grade_school_math/data/test.jsonl)"
}


@dataclass(frozen=True)
class QuestionSet:
    """The questions of an evaluation and how they are asked.

    `name` is the benchmark as it was given; `questions` has the columns `COLUMNS`: the rationale is
    empty where it is not known, and the answer is the whole text of the data set;
    `repository` is their data set on the Hugging Face Hub, None if they are from elsewhere;
    `generator` is the `questions` section of a benchmark that makes its questions.
    """

    name: str
    questions: pd.DataFrame
    template: PromptTemplate
    exemplars: list[Exemplar]
    rule: ExtractionRule
    stop: list[str]
    repository: str | None = None
    generator: Mapping[str, Any] | None = None

    @property
    def digest(self) -> str:
        """As of :func:`zerogap.data.questions.questions_digest`."""
        return questions_digest(self.questions)


def load(
    benchmark: str,
    num_questions: int | None,
    seed: int,
    extraction: str | None,
    at_most: int | None = None,
) -> QuestionSet:
    """Load the questions of a benchmark.

    Args:
        benchmark: the name of a file in `workflow/benchmarks` or of an installed package's
            benchmark, a benchmark's YAML file, or JSON Lines of questions with gold answers, which
            are asked as GSM8K is.
        num_questions: how many are drawn; None for as many as the benchmark's `num_test`, or all
            questions of a JSON Lines file.
        seed: draws them.
        extraction: the rule that extracts answers; None for the benchmark's.
        at_most: how many are drawn at most if `num_questions` is None.

    Raises:
        InputError: the benchmark is unknown, its file is not valid, its questions are not on this
            machine and cannot be downloaded, or there are fewer than `num_questions`.
    """
    is_list = Path(benchmark).suffix in (".jsonl", ".json")
    settings = load_benchmark(BENCHMARKS / "gsm8k.yaml" if is_list else _benchmark_file(benchmark))
    rule = extraction_rule(extraction or settings.extraction)
    repository = generator = None
    if is_list:
        questions = from_file(benchmark, rule, num_questions, seed, at_most)
    else:
        source = settings.questions.model_dump()
        entries = _test_entries(benchmark, source, seed, rule)
        default = min(settings.num_test, at_most or settings.num_test)
        questions = _draw(entries, num_questions, default, seed)
        repository = source["hub"]["repository"] if source["source"] == "hub" else None
        generator = source if source["source"] in GENERATORS else None
    prompt = settings.prompt.model_dump()
    shots, stop = exemplars(prompt["exemplars"], prompt["num_shots"]), list(settings.stop)
    template = PromptTemplate.of(prompt)
    return QuestionSet(benchmark, questions, template, shots, rule, stop, repository, generator)


def from_file(
    path: str,
    rule: ExtractionRule,
    num_questions: int | None = None,
    seed: int = 0,
    at_most: int | None = None,
) -> pd.DataFrame:
    """Draw questions of a JSON Lines file, which may have ids of their own; as :func:`load`."""
    lines = gsm8k_format.read(path, rule.parse_gold, rationales=False)
    ids = _own_ids({line: entry for line, (entry, _) in lines.items()}, path)
    default = min(len(lines), at_most or len(lines))
    return _draw(list(lines.values()), num_questions, default, seed, ids)


def _own_ids(entries: Mapping[int, Mapping[str, object]], path: str) -> list[str]:
    """The own ids of questions, given by their lines; none if no question has one."""
    values = {line: entry.get("question_id", entry.get("id")) for line, entry in entries.items()}
    if all(value is None for value in values.values()):
        return []
    lines: dict[str, int] = {}
    for line, value in values.items():
        name = str(value).strip()
        is_id = isinstance(value, str | int) and not isinstance(value, bool)
        if value is None:
            problem = "has no id; give all or none"
        elif not is_id or not name or printable(name, keep="") != name:
            problem = f"has the id {value!r}; give a text or a whole number"
        elif name in lines:
            problem = f"has the id {name!r} of line {lines[name]}; give every question its own"
        else:
            lines[name] = line
            continue
        raise InputError(f"{path}, line {line}: the question {problem}")
    return list(lines)


def _benchmark_file(benchmark: str) -> Path | str:
    """A benchmark's file, or its name in an installed package."""
    if Path(benchmark).suffix in (".yaml", ".yml"):
        return Path(benchmark)
    shipped = {file.stem: file for file in BENCHMARKS.glob("*.yaml")}
    outside = installed(ENTRY_POINTS)
    if benchmark not in shipped.keys() | outside.keys():
        raise InputError(
            f"--benchmark: '{benchmark}' is unknown; give a benchmark's YAML file, a JSON Lines "
            f"file of questions, or one of {', '.join(sorted(shipped.keys() | outside.keys()))}"
        )
    return shipped.get(benchmark, benchmark)


def _test_entries(
    name: str, source: Mapping[str, Any], seed: int, rule: ExtractionRule
) -> list[tuple[Mapping[str, object], Question]]:
    """All test questions of a benchmark, from its section `questions`."""
    if source["source"] == "files":
        path = source["files"]["test"]
        return list(gsm8k_format.read(path, rule.parse_gold, rationales=False).values())
    unreachable = ""
    try:
        if source["source"] == "hub":
            unreachable = _use_cache_if_unreachable()
        with contextlib.redirect_stdout(sys.stderr):
            entries = question_sources.fetch(source, seed, rule.parse_gold)["test"]
    except (InputError, ModuleNotFoundError) as error:
        if source["source"] != "hub":
            raise
        repository = source["hub"]["repository"]
        place = DOWNLOADS.get(repository, f"https://huggingface.co/datasets/{repository}")
        raise InputError(
            f"{name}: {unreachable or error}; or download the questions from {place} and give the "
            "file: --benchmark test.jsonl"
        ) from error
    return [(entry, gsm8k_format.parse(entry, rule.parse_gold)) for entry in entries]


def _use_cache_if_unreachable() -> str:
    """Why the hub does not answer, or "".

    The hub's libraries would try for half a minute before they look into their cache or fail.
    """
    import datasets
    import huggingface_hub
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return ""
    try:
        huggingface_hub.get_session().head(constants.ENDPOINT, timeout=HUB_SECONDS)
    except connection_error() as error:
        constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True
        return (
            f"{constants.ENDPOINT} does not answer ({first_line(error)}), and the questions are "
            "not in the cache on this machine; check network and proxy"
        )
    return ""


def _draw(
    entries: Sequence[tuple[Mapping[str, object], Question]],
    requested: int | None,
    default: int,
    seed: int,
    ids: Sequence[str] = (),
) -> pd.DataFrame:
    """Draw the requested number of questions, or the benchmark's default; `ids` are their own."""
    num_questions = default if requested is None else requested
    if not 1 <= num_questions <= len(entries):
        name = "num_test" if requested is None else "--num-questions"
        raise InputError(
            f"{name} must be from 1 to {len(entries)}, the number of questions "
            f"(got {num_questions})"
        )
    table = split_test_questions([question for _, question in entries], num_questions, 0, seed)
    positions = table["question_id"].str.removeprefix("test-").astype(int)
    table["answer"] = [str(entries[position][0].get("answer", "")) for position in positions]
    if ids:
        table["question_id"] = [ids[position] for position in positions]
    return table[COLUMNS]
