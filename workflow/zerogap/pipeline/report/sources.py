"""What tables and figures are made of: the metrics, solve counts and other tables of a run."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pandas as pd

from zerogap.analysis.diagnostics import diagnostics
from zerogap.analysis.extraction_agreement import COLUMNS, agreement
from zerogap.analysis.inline_numbers import inline_numbers
from zerogap.analysis.memorisation import memorisation
from zerogap.analysis.strata import values_by_bins
from zerogap.config import Config
from zerogap.config.models import StrategyEntry
from zerogap.data.extraction import extraction_rule
from zerogap.errors import InputError
from zerogap.pipeline import jobs, targets
from zerogap.pipeline.report.entry import File, Source, file, made_of, read, read_all, value
from zerogap.reporting.claims import RunResults
from zerogap.reporting.metric_table import Labels, MetricTable
from zerogap.reporting.render import Cell
from zerogap.reporting.tables.supplementary import JOB_COLUMNS
from zerogap.strategies.registry import ALL_ZERO, NOT_STRATEGIES, RAIL_N

# What the jobs that generate responses make: the contract of the file.
_RESPONSES = {
    "decode_greedy": "greedy",
    "sample_responses": "samples",
    "measure_recovery": "recovery",
}


# Names and values of the configuration.


def _primary(config: Config) -> tuple[str, str]:
    return config.primary_setting.model, config.primary_setting.benchmark


def _title(config: Config) -> str:
    model, benchmark = _primary(config)
    return f"{config.models[model].label} × {config.benchmarks[benchmark].label}"


def _is_variant(entry: StrategyEntry) -> bool:
    """Whether an entry of the ablation is RailCap with another n or suppression."""
    return entry.class_name == "railcap" and "successor" not in entry.parameters


def _table_4_rows(config: Config) -> dict[str, str]:
    """Table 4's rows: RailCap itself, named by its n, among the ablation's; caps before bans."""
    # Other variants, and RailCap's other reading, are in a table of their own.
    rows = {
        name: (entry.label, entry.parameters)
        for name, entry in config.ablation.items()
        if _is_variant(entry)
    }
    if railcap := config.strategies.get("railcap"):
        ban = ", ban" if railcap.parameters.get("suppression") == "ban" else ""
        rows["railcap"] = (f"n={railcap.parameters.get('n', RAIL_N)}{ban}", railcap.parameters)

    def position(name: str) -> tuple[bool, int]:
        parameters = rows[name][1]
        return parameters.get("suppression", "cap") != "cap", parameters.get("n", RAIL_N)

    # RailCap itself is last, and replaces a variant with its parameters.
    kept = {position(name): name for name in rows}
    return {name: rows[name][0] for _, name in sorted(kept.items())}


def _names(config: Config) -> dict[str, dict[str, str]]:
    """Names of models, benchmarks, clean variants, strategies and Table 4's rows."""
    benchmarks = {name: entry.label for name, entry in config.benchmarks.items()}
    clean_variants = {
        config.clean_variant(owner): f"{benchmarks[owner]}, clean"
        for owner in config.question_owners
    }
    configurations = _table_4_rows(config)
    variants = {
        name: f"RailCap, {entry.label}" if _is_variant(entry) else entry.label
        for name, entry in config.ablation.items()
    }
    strategies = {name: entry.label for name, entry in config.strategies.items()}
    return {
        "models": {name: model.label for name, model in config.models.items()},
        "benchmarks": benchmarks | clean_variants,
        "strategies": strategies | NOT_STRATEGIES | variants,
        "configurations": configurations,
    }


def _bootstrap(config: Config) -> dict[str, Any]:
    return config.metrics.model_dump(exclude={"bins"}) | {"seed": config.seed}


LABELS = Source(_names, lambda names: Labels(**names))
TITLE = value(_title)
BINS = value(lambda config: config.metrics.bins)
PRIMARY_SETTING: Source[tuple[str, str]] = Source(lambda config: list(_primary(config)), tuple)


# Files of a run, and the metrics of settings.


def _file(config: Config, model: str, variant: str, name: str, contract: str = "") -> File:
    """A file of a model's variant, by default of the contract that is its name."""
    path = f"{config.results}/{model}/{variant}/{name}.parquet"
    return file(path, contract or name.rpartition("/")[2])


def _clean_file(config: Config, model: str, benchmark: str, name: str) -> File:
    return _file(config, model, config.clean_variant(benchmark), name)


def _clean_solve(config: Config, model: str, benchmark: str, batch: str) -> File:
    """The counts of a clean model, with the leaked questions of a benchmark."""
    solve = _clean_file(config, model, benchmark, f"cells/{batch}/solve")
    return {**solve, "questions": targets.questions(config, benchmark)}


def _settings(config: Config) -> list[tuple[str, str]]:
    return [(model, benchmark) for model in config.models for benchmark in config.benchmarks]


def _metrics(*, primary: bool = False, ablation: bool = False) -> Source[MetricTable]:
    def locate(config: Config) -> list[File]:
        settings = [_primary(config)] if primary else _settings(config)
        files = [_file(config, *setting, "metrics") for setting in settings]
        if ablation and config.ablation:
            files.append(_file(config, *_primary(config), "ablation_metrics", "metrics"))
        return files

    return Source(locate, lambda files: MetricTable(map(read, files)))


# The tables that show the ablation have a source of their own: the others do not wait for it.
METRICS, METRICS_AND_ABLATION = _metrics(), _metrics(ablation=True)
PRIMARY_METRICS = _metrics(primary=True)
PRIMARY_METRICS_AND_ABLATION = _metrics(primary=True, ablation=True)


# Tables of the primary setting.


def _cells(config: Config, model: str, benchmark: str, *others: str) -> dict[str, File]:
    """The counts of the compared strategies by key, without the ablation, and of others."""
    names = (*config.strategies, *others)
    return {name: _file(config, model, benchmark, f"cells/{name}/solve") for name in names}


def _strategies(*others: str) -> Source[dict[str, pd.DataFrame]]:
    """These counts by label, in the primary setting."""
    return made_of(
        lambda files, labels: {labels.strategy(key): read(file) for key, file in files.items()},
        value(lambda config: _cells(config, *_primary(config), *others)),
        LABELS,
    )


def _primary_table(name: str) -> Source[pd.DataFrame]:
    return Source(lambda config: _file(config, *_primary(config), name), read)


def _clean_batch(batch: str) -> Source[pd.DataFrame]:
    return Source(lambda config: _clean_solve(config, *_primary(config), batch), read)


CLEAN, CLEAN_BATCH2 = _clean_batch("batch1"), _clean_batch("batch2")
STRATEGIES, STRATEGIES_AND_ALL_ZERO = _strategies(), _strategies(ALL_ZERO)
OVERLAP, RANKS = _primary_table("overlap"), _primary_table("ranks")
INLINE_NUMBERS = Source(
    lambda config: {
        "clean": CLEAN.locate(config),
        "clean_batch2": CLEAN_BATCH2.locate(config),
        "strategies": _cells(config, *_primary(config)),
        "ranks": RANKS.locate(config),
        "bins": config.metrics.bins,
        **_bootstrap(config),
    },
    lambda located: inline_numbers(**read_all(located)),
)


# Every contaminated model, or every model.


def _of_each_setting(
    analyse: Callable[..., pd.DataFrame],
    locate: Callable[[Config, str, str], dict[str, Any]],
    settings: Callable[[Config], list[tuple[str, str]]] = _settings,
) -> Source[pd.DataFrame]:
    """What a function makes of the clean model and the files and values of each setting."""

    def located(config: Config, model: str, benchmark: str) -> list[dict[str, Any]]:
        clean = {"clean": _clean_solve(config, model, benchmark, "batch1")}
        return [{"model": model, "benchmark": benchmark}, clean | locate(config, model, benchmark)]

    return Source(
        lambda config: [located(config, *setting) for setting in settings(config)],
        lambda parts: pd.concat(
            (_analysed(analyse, files, **place) for place, files in parts), ignore_index=True
        ),
    )


def _analysed(
    analyse: Callable[..., pd.DataFrame], files: dict[str, Any], model: str, benchmark: str
) -> pd.DataFrame:
    """The rows of a setting, which an error names."""
    try:
        return analyse(**read_all(files)).assign(model=model, benchmark=benchmark)
    except InputError as error:
        raise InputError(f"{model}/{benchmark}: {error}") from error


MEMORISATION = _of_each_setting(
    memorisation,
    lambda config, model, benchmark: {
        "identity": _file(config, model, benchmark, "cells/identity/solve"),
        "overlap": _file(config, model, benchmark, "overlap"),
        "clean_overlap": _clean_file(config, model, benchmark, "overlap"),
        **_bootstrap(config),
    },
)
VALUES_BY_BINS = _of_each_setting(
    values_by_bins,
    lambda config, model, benchmark: {
        "strategies": _cells(config, model, benchmark, ALL_ZERO)
        | {"clean_batch2": _clean_solve(config, model, benchmark, "batch2")},
        "bins": config.metrics.bins,
    },
)
DIAGNOSTICS = _of_each_setting(
    diagnostics,
    lambda config, model, benchmark: {
        "rail": _file(config, model, benchmark, "rail"),
        "recovery": _clean_file(config, model, benchmark, "recovery"),
        "clean_batch2": _clean_solve(config, model, benchmark, "batch2"),
        **_bootstrap(config),
    },
    lambda config: [(model, name) for name in config.benchmarks for model in config.models],
)


def _numbers(
    inline: pd.DataFrame, checks: pd.DataFrame, setting: tuple[str, str]
) -> dict[str, Cell]:
    """Numbers of the primary setting by key: those of the text, and of the memorisation check."""
    numbers = {
        row["key"]: Cell(row["value"], row["ci_low"], row["ci_high"])
        for row in inline.to_dict("records")
    }
    for row in checks.to_dict("records"):
        if (row["model"], row["benchmark"]) == setting:
            for name in ("rouge_leaked", "rouge_unleaked", "excess"):
                numbers[name] = Cell(row[name], row[f"{name}_ci_low"], row[f"{name}_ci_high"])
    return numbers


RESULTS = made_of(
    lambda metrics, numbers, labels, of_run: RunResults(
        metrics=metrics, numbers=numbers, labels=labels, **of_run
    ),
    METRICS_AND_ABLATION,
    made_of(_numbers, INLINE_NUMBERS, MEMORISATION, PRIMARY_SETTING),
    LABELS,
    value(
        lambda config: {
            "setting": _primary(config),
            "paraphrase_of": config.paraphrase_of,
            "rail_n": jobs.rail_thresholds(config).get("railcap"),
        }
    ),
)


# Every response.


def _locate_extraction(config: Config) -> list[dict[str, Any]]:
    """Per owner of questions: its responses by strategy, the clean model's first batch included."""
    owners = []
    for owner in config.question_owners:
        files = [_clean_file(config, m, owner, "cells/batch1/samples") for m in config.models]
        samples = {"clean": files}
        for model, benchmark in _settings(config):
            if config.owner_of(benchmark) == owner:
                for strategy in jobs.compared_strategies(config, model, benchmark):
                    made = _file(config, model, benchmark, f"cells/{strategy}/samples")
                    samples.setdefault(strategy, []).append(made)
        owners.append(
            {
                "label": config.benchmarks[owner].label,
                "extraction": config.benchmarks[owner].extraction,
                "questions": file(targets.questions(config, owner), "questions"),
                "samples": samples,
            }
        )
    return owners


def _extraction(owners: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    rows = []
    for owner in owners:
        questions, rule = read(owner["questions"]), extraction_rule(owner["extraction"])
        gold = dict(zip(questions["question_id"], questions["gold"], strict=True))
        for strategy, files in owner["samples"].items():
            row = {"benchmark": owner["label"], "run_rule": rule.name, "strategy": strategy}
            rows.append(row | agreement((read(file, COLUMNS) for file in files), gold, rule))
    return pd.DataFrame(rows)


def _locate_costs(config: Config) -> list[dict[str, Any]]:
    """Timings are not paths: a job must not run again because its timing is lost."""
    return [
        {
            "model": timed.job.model,
            "variant": timed.job.variant,
            "name": timed.job.cell or timed.job.rule,
            "output": file(timed.output, _RESPONSES.get(timed.job.rule, "")),
            "timings": timed.timings,
        }
        for timed in (*targets.preparation_jobs(config), *targets.timed_jobs(config))
    ]


def _costs(jobs: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    rows = []
    for job in jobs:
        responses, tokens = None, None
        if job["output"]["contract"]:
            table = read(job["output"], ["token_ids"])
            responses, tokens = len(table), int(table["token_ids"].map(len).sum())
        seconds = targets.seconds(job["timings"])
        rows.append((job["model"], job["variant"], job["name"], responses, tokens, seconds))
    return pd.DataFrame(rows, columns=JOB_COLUMNS)


EXTRACTION = Source(_locate_extraction, _extraction)
JOB_COSTS = Source(_locate_costs, _costs)
SAMPLES = value(lambda config: [owner["samples"] for owner in _locate_extraction(config)])
