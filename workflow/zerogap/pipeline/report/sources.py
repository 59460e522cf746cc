"""What tables and figures are made of: the metrics, solve counts and other tables of a run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from zerogap.analysis.diagnostics import diagnostics
from zerogap.analysis.extraction_agreement import COLUMNS, agreement
from zerogap.analysis.inline_numbers import inline_numbers
from zerogap.analysis.memorisation import memorisation
from zerogap.config import Config
from zerogap.data.extraction import extraction_rule
from zerogap.io import parquet
from zerogap.metrics.same_questions import with_leaked_of
from zerogap.pipeline import jobs, targets
from zerogap.pipeline.report.entry import Source, made_of, value
from zerogap.reporting.claim_checks import RunResults
from zerogap.reporting.metric_table import Labels, MetricTable
from zerogap.reporting.render import Cell, optional_float
from zerogap.reporting.tables.run import JOB_COLUMNS, OwnerAgreement
from zerogap.strategies.registry import ALL_ZERO, BUILT_IN, RAIL_N

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


def _table_4_rows(config: Config) -> dict[str, str]:
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


def _names(config: Config) -> dict[str, dict[str, str]]:
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
        "configurations": _table_4_rows(config),
    }


def _bootstrap(config: Config) -> dict[str, Any]:
    return config.metrics.model_dump(exclude={"bins"}) | {"seed": config.seed}


LABELS = Source(_names, Labels.from_mapping)
TITLE = value(_title)
BINS = value(lambda config: config.metrics.bins)
PRIMARY_SETTING: Source[tuple[str, str]] = Source(lambda config: list(_primary(config)), tuple)


# The metrics of settings.


def _file(config: Config, model: str, variant: str, name: str) -> Path:
    return Path(targets.results(config), model, variant, name)


def _cell(config: Config, model: str, variant: str, cell: str, name: str) -> Path:
    return Path(targets.cell_folder(config, model, variant, cell), f"{name}.parquet")


def _primary_file(name: str) -> Callable[[Config], Path]:
    return lambda config: _file(config, *_primary(config), name)


def _settings(config: Config) -> list[tuple[str, str]]:
    return [(model, benchmark) for model in config.models for benchmark in config.benchmarks]


def _metrics_files(config: Config) -> list[Path]:
    return [_file(config, *setting, "metrics.parquet") for setting in _settings(config)]


def _ablation_files(config: Config) -> list[Path]:
    return [_primary_file("ablation_metrics.parquet")(config)] if config.ablation else []


def _read_metrics(paths: Sequence[str]) -> MetricTable:
    return MetricTable(parquet.read(path, "metrics") for path in paths)


# The tables that show the ablation have a source of their own: the others do not wait for it.
METRICS = Source(_metrics_files, _read_metrics)
METRICS_AND_ABLATION = Source(
    lambda config: _metrics_files(config) + _ablation_files(config), _read_metrics
)
PRIMARY_METRICS = Source(lambda config: [_primary_file("metrics.parquet")(config)], _read_metrics)
PRIMARY_METRICS_AND_ABLATION = Source(
    lambda config: PRIMARY_METRICS.locate(config) + _ablation_files(config), _read_metrics
)


# Solve counts of the primary setting.


def _clean(config: Config, model: str, benchmark: str, batch: str) -> dict[str, Path]:
    """The counts of a clean model, and the questions that say which of them are leaked."""
    return {
        "questions": Path(targets.results(config), "data", benchmark, "questions.parquet"),
        "solve": _cell(config, model, config.clean_variant(benchmark), batch, "solve"),
    }


def read_clean(clean: Mapping[str, str]) -> pd.DataFrame:
    """A clean model's `solve` table, with the leaked questions of the benchmark."""
    questions = parquet.read(clean["questions"], "questions")
    return with_leaked_of(questions, parquet.read(clean["solve"], "solve"))


def _clean_batch(batch: str) -> Source[pd.DataFrame]:
    return Source(lambda config: _clean(config, *_primary(config), batch), read_clean)


def _solve_files(config: Config, *others: str) -> dict[str, Path]:
    """The counts of the compared strategies by key, without the ablation, and of others."""
    tables = targets.solve_tables(config, *_primary(config))
    return {name: Path(tables[name]) for name in (*config.strategies, *others)}


def _read_strategies(paths: Mapping[str, str]) -> dict[str, pd.DataFrame]:
    return {name: parquet.read(path, "solve") for name, path in paths.items()}


def _by_label(solve: Mapping[str, pd.DataFrame], labels: Labels) -> dict[str, pd.DataFrame]:
    return {labels.strategy(key): table for key, table in solve.items()}


CLEAN, CLEAN_BATCH2 = _clean_batch("batch1"), _clean_batch("batch2")
_SOLVE = Source(_solve_files, _read_strategies)
STRATEGIES = made_of(_by_label, _SOLVE, LABELS)
STRATEGIES_AND_ALL_ZERO = made_of(
    _by_label, Source(lambda config: _solve_files(config, ALL_ZERO), _read_strategies), LABELS
)
OVERLAP = Source(_primary_file("overlap.parquet"), partial(parquet.read, contract="overlap"))
RANKS = Source(_primary_file("ranks.parquet"), partial(parquet.read, contract="ranks"))
INLINE_NUMBERS = made_of(
    lambda clean, batch2, strategies, ranks, options: inline_numbers(
        clean, batch2, strategies, ranks, **options
    ),
    CLEAN,
    CLEAN_BATCH2,
    _SOLVE,
    RANKS,
    value(lambda config: config.metrics.model_dump() | {"seed": config.seed}),
)


# Every contaminated model, or every model.


def _locate_memorisation(config: Config) -> dict[str, Any]:
    models = [
        {
            "model": model,
            "benchmark": benchmark,
            "clean": _clean(config, model, benchmark, "batch1"),
            "identity": Path(targets.solve_tables(config, model, benchmark)["identity"]),
            "overlap": _file(config, model, benchmark, "overlap.parquet"),
            "clean_overlap": Path(
                targets.clean_folder(config, model, benchmark), "overlap.parquet"
            ),
        }
        for model, benchmark in _settings(config)
    ]
    return {"models": models, "options": _bootstrap(config)}


def _read_memorisation(located: Mapping[str, Any]) -> pd.DataFrame:
    rows = [
        memorisation(
            files["model"],
            files["benchmark"],
            read_clean(files["clean"]),
            parquet.read(files["identity"], "solve"),
            parquet.read(files["overlap"], "overlap"),
            parquet.read(files["clean_overlap"], "overlap"),
            **located["options"],
        )
        for files in located["models"]
    ]
    return pd.concat(rows, ignore_index=True)


def _locate_diagnostics(config: Config) -> dict[str, Any]:
    settings = [
        {
            "model": model,
            "benchmark": benchmark,
            "rail": _file(config, model, benchmark, "rail.parquet"),
            "recovery": Path(targets.clean_folder(config, model, benchmark), "recovery.parquet"),
            "clean": _clean(config, model, benchmark, "batch1"),
            "clean_batch2": _clean(config, model, benchmark, "batch2"),
        }
        for benchmark in config.benchmarks
        for model in config.models
    ]
    return {"settings": settings, "options": _bootstrap(config)}


def _read_diagnostics(located: Mapping[str, Any]) -> pd.DataFrame:
    tables = [
        diagnostics(
            parquet.read(setting["rail"], "rail"),
            parquet.read(setting["recovery"], "recovery"),
            read_clean(setting["clean"]),
            read_clean(setting["clean_batch2"]),
            **located["options"],
        ).assign(model=setting["model"], benchmark=setting["benchmark"])
        for setting in located["settings"]
    ]
    return pd.concat(tables, ignore_index=True)


def _results(
    metrics: MetricTable,
    inline: pd.DataFrame,
    checks: pd.DataFrame,
    labels: Labels,
    of_run: Mapping[str, Any],
) -> RunResults:
    """What the claims are about; the memorisation check is that of the primary setting."""
    setting = (of_run["setting"][0], of_run["setting"][1])
    numbers = {
        row["key"]: Cell(
            row["value"], optional_float(row["ci_low"]), optional_float(row["ci_high"])
        )
        for row in inline.to_dict("records")
    }
    for row in checks.to_dict("records"):
        if (row["model"], row["benchmark"]) == setting:
            for name in ("rouge_leaked", "rouge_unleaked", "excess"):
                numbers[name] = Cell(row[name], row[f"{name}_ci_low"], row[f"{name}_ci_high"])
    return RunResults(
        metrics, setting, numbers, of_run["paraphrase_of"], of_run["railcap_n"], labels
    )


MEMORISATION = Source(_locate_memorisation, _read_memorisation)
DIAGNOSTICS = Source(_locate_diagnostics, _read_diagnostics)
RESULTS = made_of(
    _results,
    METRICS_AND_ABLATION,
    INLINE_NUMBERS,
    MEMORISATION,
    LABELS,
    value(
        lambda config: {
            "setting": list(_primary(config)),
            "paraphrase_of": config.paraphrase_of,
            "railcap_n": jobs.rail_thresholds(config).get("railcap"),
        }
    ),
)


# Every response.


def _locate_extraction(config: Config) -> list[dict[str, Any]]:
    """Per owner of questions: its responses by strategy, the clean model's first batch included."""
    owners = []
    for owner in config.question_owners:
        clean = config.clean_variant(owner)
        files = [_cell(config, model, clean, "batch1", "samples") for model in config.models]
        samples = {"clean": files}
        for model, benchmark in _settings(config):
            if config.owner_of(benchmark) == owner:
                for strategy in jobs.compared_strategies(config, model, benchmark):
                    path = _cell(config, model, benchmark, strategy, "samples")
                    samples.setdefault(strategy, []).append(path)
        owners.append(
            {
                "label": config.benchmarks[owner].label,
                "extraction": config.benchmarks[owner].extraction,
                "questions": Path(targets.results(config), "data", owner, "questions.parquet"),
                "samples": samples,
            }
        )
    return owners


def _read_extraction(owners: Iterable[Mapping[str, Any]]) -> list[OwnerAgreement]:
    agreements = []
    for owner in owners:
        questions = parquet.read(owner["questions"], "questions")
        gold = dict(zip(questions["question_id"], questions["gold"], strict=True))
        rule = extraction_rule(owner["extraction"])
        fractions = {
            strategy: agreement(
                (parquet.read(path, "samples", COLUMNS) for path in paths), gold, rule
            )
            for strategy, paths in owner["samples"].items()
        }
        agreements.append(OwnerAgreement(owner["label"], rule.name, fractions))
    return agreements


def _locate_costs(config: Config) -> list[dict[str, Any]]:
    """Timings are not paths: a job must not run again because its timing is lost."""
    return [
        {
            "model": timed.job.model,
            "variant": timed.job.variant,
            "name": timed.job.cell or timed.job.rule,
            "output": Path(timed.output),
            "contract": _RESPONSES.get(timed.job.rule),
            "timings": timed.timings,
        }
        for timed in (*targets.preparation_jobs(config), *targets.timed_jobs(config))
    ]


def _read_costs(located: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    rows = []
    for job in located:
        responses, tokens = None, None
        if job["contract"] is not None:
            table = parquet.read(job["output"], job["contract"], ["token_ids"])
            responses, tokens = len(table), int(table["token_ids"].map(len).sum())
        seconds = targets.seconds(job["timings"])
        rows.append((job["model"], job["variant"], job["name"], responses, tokens, seconds))
    return pd.DataFrame(rows, columns=JOB_COLUMNS)


EXTRACTION = Source(_locate_extraction, _read_extraction)
JOB_COSTS = Source(_locate_costs, _read_costs)
SAMPLES = value(
    lambda config: [
        path
        for owner in _locate_extraction(config)
        for paths in owner["samples"].values()
        for path in paths
    ]
)
