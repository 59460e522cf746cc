"""Where the sources of tables and figures are, and which values of the configuration they need.

`zerogap.reporting.sources` reads them. Every `Path` in a source is an input file of the job. The
jobs get strings instead: Snakemake pickles what it hands to a job, and a job in a conda environment
may have another Python version, which cannot read a pickled path.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from zerogap.config import Benchmark, Config, ModelEntry
from zerogap.pipeline import jobs, targets
from zerogap.reporting.catalog import Entry
from zerogap.reporting.labels import Labels
from zerogap.strategies.registry import BUILT_IN, RAIL_N

# Of GSM8K's own files (zerogap.data.gsm8k_format.fingerprint).
GSM8K_SHA256 = "d966d67c8d0e8c83b63418e85d0caf04e6c703ad8bfdf012f3ae35742734ec95"

# Contracts of the jobs that generate responses.
_CONTRACTS = {
    "decode_greedy": "greedy",
    "sample_responses": "samples",
    "measure_recovery": "recovery",
}


def entry_values(config: Config, entry: Entry) -> dict[str, Any]:
    """The sources of a table or figure, by name."""
    return {
        source: source_value(config, source) for source in dict.fromkeys(entry.arguments.values())
    }


def all_values(config: Config, entries: Iterable[Entry]) -> dict[str, Any]:
    """The sources of several tables or figures, by name."""
    return {
        source: value for entry in entries for source, value in entry_values(config, entry).items()
    }


def entry_files(config: Config, entry: Entry) -> list[str]:
    """The input files of a table or figure, without duplicates."""
    files = [path for source in entry.arguments.values() for path in source_files(config, source)]
    return list(dict.fromkeys(files))


def files_by_entry(config: Config, entries: Mapping[str, Entry]) -> dict[str, list[str]]:
    """The input files of several tables or figures, by its name."""
    return {name: entry_files(config, entry) for name, entry in entries.items()}


def source_value(config: Config, source: str) -> Any:
    """The paths and values of a source."""
    return _with_text_paths(SOURCES[source](config))


def source_files(config: Config, source: str) -> list[str]:
    """The files of a source, without duplicates."""
    return list(dict.fromkeys(_paths(SOURCES[source](config))))


def scale_sentence(config: Config) -> str:
    """One sentence on the size of the run, for the notes of every table."""
    questions = ", ".join(
        f"{benchmark.label} with N = {benchmark.num_test} questions "
        f"({benchmark.num_leaked} leaked) and {_counted(benchmark.prompt.num_shots, 'shot')}"
        for name, benchmark in config.benchmarks.items()
        if benchmark.questions_of is None
    )
    models = "; ".join(
        f"{model.label} from {model.base}{_preparation(config, model)}"
        for model in config.models.values()
    )
    return (
        f"Run “{config.run}”: {questions}; m = {config.sampling.num_samples} samples per "
        f"question, B = {config.metrics.bins} strata; "
        f"{_counted(len(config.benchmarks), 'benchmark')}; "
        f"{_counted(len(config.models), 'model')}: {models}."
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _preparation(config: Config, model: ModelEntry) -> str:
    if model.preparation is None:
        return ""
    benchmark = config.benchmarks[model.preparation.benchmark]
    text = f"trained on {benchmark.num_preparation} other questions of {benchmark.label} before "
    text += "the run"
    if screening := model.preparation.screening:
        text += f"; only questions that it solves in at least one of {screening.num_samples} "
        text += "responses are used"
    return f" ({text})"


def setting_files(config: Config) -> list[dict[str, Any]]:
    """Per file of metrics, the ablation's included: what it is computed from.

    `strategies` are the solve counts by name. `only` names those whose rows the file has; empty
    for all.
    """
    entries = []
    for model in config.models:
        for benchmark in config.benchmarks:
            folder = _results(config) / model / benchmark
            setting = {
                "model": model,
                "benchmark": benchmark,
                "clean": _with_text_paths(_clean(config, model, benchmark, "batch1")),
            }
            entries.append(
                {
                    **setting,
                    "metrics": str(folder / "metrics.parquet"),
                    "strategies": targets.solve_tables(config, model, benchmark),
                    "only": [],
                }
            )
            if names := jobs.ablation(config, model, benchmark):
                entries.append(
                    {
                        **setting,
                        "metrics": str(folder / "ablation_metrics.parquet"),
                        "strategies": targets.ablation_tables(config, model, benchmark),
                        "only": names,
                    }
                )
    return entries


def _labels(config: Config) -> dict[str, dict[str, str]]:
    """Names of models, benchmarks, clean variants, strategies and Table 4's rows."""
    benchmarks = {name: entry.label for name, entry in config.benchmarks.items()}
    clean_variants = {
        config.clean_variant(owner): f"{benchmarks[owner]}, clean"
        for owner in config.question_owners
    }
    return {
        "models": {name: model.label for name, model in config.models.items()},
        "benchmarks": benchmarks | clean_variants,
        "strategies": {name: entry.label for name, entry in config.strategies.items()},
        "configurations": _configurations(config),
    }


def _metrics_files(config: Config) -> list[Path]:
    """The metrics of every setting."""
    return [
        _results(config) / model / benchmark / "metrics.parquet"
        for model in config.models
        for benchmark in config.benchmarks
    ]


def _ablation_files(config: Config) -> list[Path]:
    """The metrics of the ablation, if there is one."""
    return [_primary_file("ablation_metrics.parquet")(config)] if config.ablation else []


def _memorisation(config: Config) -> dict[str, Any]:
    """The tables of every contaminated model that the memorisation check reads."""
    models = [
        {
            "model": model,
            "benchmark": benchmark,
            "clean": _clean(config, model, benchmark, "batch1"),
            "identity": _results(config) / model / benchmark / "cells/identity/solve.parquet",
            "overlap": _results(config) / model / benchmark / "overlap.parquet",
            "clean_overlap": Path(targets.clean_folder(config, model, benchmark))
            / "overlap.parquet",
        }
        for model in config.models
        for benchmark in config.benchmarks
    ]
    return {"models": models, "options": config.memorisation.model_dump() | _bootstrap(config)}


def _diagnostics(config: Config) -> dict[str, Any]:
    """The tables of every setting that the diagnostics are computed from."""
    settings = [
        {
            "model": model,
            "benchmark": benchmark,
            "rail": _results(config) / model / benchmark / "rail.parquet",
            "recovery": Path(targets.clean_folder(config, model, benchmark)) / "recovery.parquet",
            "clean": _clean(config, model, benchmark, "batch1"),
            "clean_batch2": _clean(config, model, benchmark, "batch2"),
        }
        for benchmark in config.benchmarks
        for model in config.models
    ]
    return {"settings": settings, "options": _bootstrap(config)}


def _paths(values: Any) -> Iterator[str]:
    if isinstance(values, Path):
        yield str(values)
    elif isinstance(values, Mapping):
        for value in values.values():
            yield from _paths(value)
    elif isinstance(values, list):
        for value in values:
            yield from _paths(value)


def _with_text_paths(values: Any) -> Any:
    if isinstance(values, Path):
        return str(values)
    if isinstance(values, Mapping):
        return {key: _with_text_paths(value) for key, value in values.items()}
    if isinstance(values, list):
        return [_with_text_paths(value) for value in values]
    return values


def _results(config: Config) -> Path:
    return Path(targets.results(config))


def _primary(config: Config) -> tuple[str, str]:
    return config.primary_setting.model, config.primary_setting.benchmark


def _primary_file(name: str) -> Callable[[Config], Path]:
    return lambda config: _results(config).joinpath(*_primary(config), name)


def _title(config: Config) -> str:
    model, benchmark = _primary(config)
    return f"{config.models[model].label} × {config.benchmarks[benchmark].label}"


def _bootstrap(config: Config) -> dict[str, Any]:
    return config.metrics.model_dump(exclude={"bins"}) | {"seed": config.seed}


def _configurations(config: Config) -> dict[str, str]:
    """Table 4's rows: RailCap itself, named by its n, among the ablation's; caps before bans."""
    # The baselines' variants are in a table of their own.
    baselines = {name for name, built_in in BUILT_IN.items() if not built_in.acts_on_rail}
    rows = {
        name: (entry.label, entry.parameters)
        for name, entry in config.ablation.items()
        if entry.class_name not in baselines
    }
    if railcap := config.strategies.get("railcap"):
        rows["railcap"] = (f"n={railcap.parameters.get('n', RAIL_N)}", railcap.parameters)

    def position(name: str) -> tuple[bool, int]:
        parameters = rows[name][1]
        return parameters.get("suppression", "cap") != "cap", parameters.get("n", RAIL_N)

    return {name: rows[name][0] for name in sorted(rows, key=position)}


def _clean(config: Config, model: str, benchmark: str, batch: str) -> dict[str, Path]:
    """The counts of a clean model, and the questions that say which of them are leaked."""
    return {
        "questions": _results(config) / "data" / benchmark / "questions.parquet",
        "solve": Path(targets.clean_folder(config, model, benchmark))
        / "cells"
        / batch
        / "solve.parquet",
    }


def _clean_batch(batch: str) -> Callable[[Config], dict[str, Path]]:
    return lambda config: _clean(config, *_primary(config), batch)


def _strategies(config: Config) -> dict[str, Path]:
    """Counts of the primary setting's strategies, by key, without the ablation."""
    folder = _results(config).joinpath(*_primary(config), "cells")
    return {name: folder / name / "solve.parquet" for name in config.strategies}


def _strategy_names(config: Config) -> dict[str, str]:
    return dict(Labels.from_mapping(_labels(config)).strategies)


def _named_strategies(config: Config) -> dict[str, Path]:
    """Counts of the primary setting's strategies, by the name to show."""
    names = _strategy_names(config)
    return {names[key]: path for key, path in _strategies(config).items()}


def _named_strategies_and_all_zero(config: Config) -> dict[str, Path]:
    all_zero = _primary_file("cells/all_zero/solve.parquet")(config)
    return _named_strategies(config) | {_strategy_names(config)["all_zero"]: all_zero}


def _strategy_metrics(config: Config) -> dict[str, Any]:
    return {
        "metrics": _primary_file("metrics.parquet")(config),
        "strategies": ["clean", "clean_batch2", *config.strategies, "all_zero"],
    }


def _inline_numbers(config: Config) -> dict[str, Any]:
    return {
        "clean": _clean_batch("batch1")(config),
        "clean_batch2": _clean_batch("batch2")(config),
        "strategies": _strategies(config),
        "ranks": _primary_file("ranks.parquet")(config),
        "options": config.metrics.model_dump() | {"seed": config.seed},
    }


def _sensitivity(config: Config) -> dict[str, Any]:
    return {
        "clean": _clean_batch("batch1")(config),
        "strategies": _named_strategies_and_all_zero(config),
        "options": {"bins": config.metrics.bins, "seed": config.seed},
    }


def _other_questions(benchmark: Benchmark) -> str:
    """What a benchmark's questions are known to be instead of GSM8K's; empty if nothing is."""
    questions = benchmark.questions
    if questions.source in ("generated", "gsm_symbolic"):
        return "generated"
    if questions.source == "hub" and questions.hub and questions.hub.sha256 != GSM8K_SHA256:
        return f"of {questions.hub.repository}"
    return ""


def _protocol(config: Config, models: list[str], benchmarks: list[str]) -> dict[str, Any]:
    """The values that decide whether settings can be compared with the paper (published.csv)."""
    names = dict.fromkeys(map(config.owner_of, benchmarks))
    owners = [config.benchmarks[name] for name in names]
    trainings = [config.training.clean, config.training.contaminated]
    questions = [_other_questions(owner) for owner in owners]
    return {
        "questions": ", ".join(filter(None, dict.fromkeys(questions))),
        "question_files": [
            {
                "train": _results(config) / f"data/{name}/train.jsonl",
                "test": _results(config) / f"data/{name}/test.jsonl",
                "sha256": owner.questions.hub.sha256 if owner.questions.hub else None,
            }
            for name, owner in zip(names, owners, strict=True)
            if owner.questions.source == "files"
        ],
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


def _extraction_agreements(config: Config) -> list[dict[str, Any]]:
    """Per owner of questions: its responses by strategy, the clean model's first batch included."""
    owners = []
    for owner in config.question_owners:
        variant = config.clean_variant(owner)
        clean = [
            _results(config) / m / variant / "cells/batch1/samples.parquet" for m in config.models
        ]
        samples = {"clean": clean}
        for model in config.models:
            for benchmark in config.benchmarks:
                if config.owner_of(benchmark) == owner:
                    folder = _results(config) / model / benchmark / "cells"
                    for strategy in jobs.compared_strategies(config, model, benchmark):
                        path = folder / strategy / "samples.parquet"
                        samples.setdefault(strategy, []).append(path)
        owners.append(
            {
                "label": config.benchmarks[owner].label,
                "extraction": config.benchmarks[owner].extraction,
                "questions": _results(config) / "data" / owner / "questions.parquet",
                "samples": samples,
            }
        )
    return owners


def _sample_files(config: Config) -> list[Path]:
    return [
        path
        for owner in _extraction_agreements(config)
        for paths in owner["samples"].values()
        for path in paths
    ]


def _job_costs(config: Config) -> list[dict[str, Any]]:
    """Timings are not paths: a job must not run again because its timing is lost."""
    return [
        {
            "model": timed.job.model,
            "variant": timed.job.variant,
            "name": timed.job.cell or timed.job.rule,
            "output": Path(timed.output),
            "contract": _CONTRACTS.get(timed.job.rule),
            "timings": timed.timings,
        }
        for timed in (*targets.preparation_jobs(config), *targets.timed_jobs(config))
    ]


def _losses(config: Config) -> list[Path]:
    return [
        _results(config) / model / variant / "loss.tsv"
        for model in config.models
        for variant in config.variants
    ]


SOURCES: dict[str, Callable[[Config], Any]] = {
    "labels": _labels,
    "strategy_names": _strategy_names,
    "model_and_variant_names": lambda config: (
        _labels(config)["models"] | _labels(config)["benchmarks"]
    ),
    "title": _title,
    "bins": lambda config: config.metrics.bins,
    "primary_setting": lambda config: list(_primary(config)),
    "metrics": _metrics_files,
    "metrics_with_ablation": lambda config: [*_metrics_files(config), *_ablation_files(config)],
    "primary_metrics": lambda config: [_primary_file("metrics.parquet")(config)],
    "primary_metrics_with_ablation": lambda config: [
        _primary_file("metrics.parquet")(config),
        *_ablation_files(config),
    ],
    "strategy_metrics": _strategy_metrics,
    "clean": _clean_batch("batch1"),
    "clean_batch2": _clean_batch("batch2"),
    "strategies": _named_strategies,
    "strategies_and_all_zero": _named_strategies_and_all_zero,
    "overlap": _primary_file("overlap.parquet"),
    "ranks": _primary_file("ranks.parquet"),
    "losses": _losses,
    "inline_numbers": _inline_numbers,
    "diagnostics": _diagnostics,
    "sensitivity": _sensitivity,
    "protocol_differences": lambda config: _protocol(
        config, list(config.models), list(config.benchmarks)
    ),
    "primary_protocol_differences": lambda config: _protocol(
        config, *([name] for name in _primary(config))
    ),
    "extraction_agreements": _extraction_agreements,
    "samples": _sample_files,
    "job_costs": _job_costs,
    "memorisation": _memorisation,
}
