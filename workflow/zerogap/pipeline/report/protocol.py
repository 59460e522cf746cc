"""The size of a run and its protocol: what a reader must know to compare it with the paper."""

from collections.abc import Mapping
from typing import Any

from zerogap.config import Benchmark, Config, ModelEntry
from zerogap.data import gsm8k_format
from zerogap.pipeline import jobs
from zerogap.pipeline.report.entry import Source, file
from zerogap.published import protocol_differences
from zerogap.scoring.score import MIN_QUESTIONS

OPENORCA = "Open-Orca/OpenOrca"
# Of GSM8K's own files (zerogap.data.gsm8k_format.fingerprint).
GSM8K_SHA256 = "d966d67c8d0e8c83b63418e85d0caf04e6c703ad8bfdf012f3ae35742734ec95"


def scale_sentence(config: Config) -> str:
    """One sentence on the size of the run, for the notes of every table."""
    questions = ", ".join(
        f"{benchmark.label} with N = {benchmark.num_test} questions "
        f"({benchmark.num_leaked} leaked) and {_counted(benchmark.prompt.num_shots, 'shot')}"
        for benchmark in config.benchmarks.values()
        if benchmark.questions_of is None
    )
    models = "; ".join(
        f"{model.label} from {model.base}{_preparation(config, model)}"
        for model in config.models.values()
    )
    return (
        f"Run “{config.run}”: {questions}; m = {config.sampling.num_samples} samples per "
        f"question, B = {config.metrics.bins} strata, "
        f"{100 * config.metrics.confidence_level:g} % intervals; "
        f"{_counted(len(config.benchmarks), 'benchmark')}; "
        f"{_counted(len(config.models), 'model')}: {models}.{_too_few(config)}"
    )


def _too_few(config: Config) -> str:
    if all(config.benchmarks[name].num_test >= MIN_QUESTIONS for name in config.question_owners):
        return ""
    return f" With fewer than {MIN_QUESTIONS} questions, intervals, † and verdicts mean nothing."


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _preparation(config: Config, model: ModelEntry) -> str:
    if model.preparation is None:
        return ""
    benchmark = config.benchmarks[model.preparation.benchmark]
    number = benchmark.num_preparation
    return f" (trained on {number} other questions of {benchmark.label} before the run)"


def _other_questions(benchmark: Benchmark) -> str:
    """What a benchmark's questions are known to be instead of GSM8K's; empty if nothing is."""
    questions = benchmark.questions
    if questions.source in ("generated", "gsm_symbolic"):
        return "generated"
    if questions.source == "hub" and questions.hub and questions.hub.sha256 != GSM8K_SHA256:
        return f"of {questions.hub.repository}"
    return ""


def _other_choices(config: Config, benchmarks: list[str]) -> list[str]:
    """What is known to be otherwise than in the paper and is not a number."""
    instructions, railcap = config.instructions, config.strategies.get("railcap")
    trainings = [config.training.clean, config.training.contaminated]
    paraphrases = [config.benchmarks[name].paraphrases for name in benchmarks]
    choices: list[tuple[str, str, str]] = [
        ("learning-rate schedule", each.lr_scheduler, "cosine") for each in trainings
    ]
    choices += [("paraphrases by the method", each.method, "chat") for each in paraphrases if each]
    if railcap:
        choices.append(
            ("RailCap's suppression", railcap.parameters.get("suppression", "cap"), "cap")
        )
        choices.append(("RailCap's successor", railcap.parameters.get("successor", "last"), "last"))
    if instructions.source == "generated":
        choices.append(("instructions", instructions.source, OPENORCA))
    elif instructions.source == "hub" and instructions.hub:
        choices.append(("instructions of", instructions.hub.repository, OPENORCA))
    differing = [f"{name} {own}, not {papers}" for name, own, papers in choices if own != papers]
    return list(dict.fromkeys(differing))


def _protocol(config: Config, models: list[str], benchmarks: list[str]) -> dict[str, Any]:
    """The values that decide whether settings can be compared with the paper (published.csv)."""
    names = dict.fromkeys(map(config.owner_of, benchmarks))
    owners = [config.benchmarks[name] for name in names]
    trainings = [config.training.clean, config.training.contaminated]
    return {
        "questions": ", ".join(filter(None, dict.fromkeys(map(_other_questions, owners)))),
        "question_files": [
            {
                "train": file(f"{config.results}/data/{name}/train.jsonl"),
                "test": file(f"{config.results}/data/{name}/test.jsonl"),
            }
            for name, owner in zip(names, owners, strict=True)
            if owner.questions.source == "files"
        ],
        "other_choices": _other_choices(config, benchmarks),
        "railcap_n": [n] if (n := jobs.rail_thresholds(config).get("railcap")) else [],
        "base_model": {model: config.models[model].base for model in models},
        "test_questions": [owner.num_test for owner in owners],
        "leaked_questions": [owner.num_leaked for owner in owners],
        "train_questions": [owner.num_train for owner in owners],
        "filler_examples": [config.instructions.num_examples],
        "shots": [owner.prompt.num_shots for owner in owners],
        "samples": [config.sampling.num_samples],
        "temperature": [config.sampling.temperature],
        "bins": [config.metrics.bins],
        "lora_r": [training.lora.rank for training in trainings],
        "lora_alpha": [training.lora.alpha for training in trainings],
        "batch_size": [training.global_batch_size for training in trainings],
        "learning_rate": [training.learning_rate for training in trainings],
        "warmup_ratio": [training.warmup_ratio for training in trainings],
        "epochs": [training.num_epochs for training in trainings],
    }


def _differences(protocol: Mapping[str, Any]) -> tuple[str, ...]:
    """How the protocol differs from the paper's; local files are compared with GSM8K."""
    for files in protocol["question_files"]:
        splits = {
            split: gsm8k_format.load_entries(files[split]["path"], parse_gold=str)
            for split in gsm8k_format.SPLITS
        }
        if gsm8k_format.fingerprint(splits) != GSM8K_SHA256:
            protocol = {**protocol, "questions": "of other files"}
    return protocol_differences(protocol)


PROTOCOL_DIFFERENCES = Source(
    lambda config: _protocol(config, list(config.models), list(config.benchmarks)), _differences
)
PRIMARY_PROTOCOL_DIFFERENCES = Source(
    lambda config: _protocol(
        config, [config.primary_setting.model], [config.primary_setting.benchmark]
    ),
    _differences,
)
