"""Reads what tables and figures are made of: one reader per source that the catalogue names.

`zerogap.pipeline.report_sources` has the same names; it says where a source's files are and which
values of the configuration it needs.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import pandas as pd

from zerogap.analysis import cost, extraction_agreement
from zerogap.analysis.diagnostics import diagnostics
from zerogap.analysis.inline_numbers import inline_numbers
from zerogap.analysis.leaked_column import with_leaked_of
from zerogap.analysis.memorisation import memorisation
from zerogap.data import gsm8k_format
from zerogap.data.extraction import extraction_rule
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.metrics.sensitivity import sensitivity
from zerogap.published import protocol_differences
from zerogap.reporting.catalog import Entry
from zerogap.reporting.labels import Labels
from zerogap.reporting.metric_table import MetricTable
from zerogap.reporting.tables.extraction import OwnerAgreement

Values = Mapping[str, Any]


def build(entry: Entry, values: Values, prepared: Values | None = None) -> Any:
    """Build a table or figure.

    Args:
        entry: Its entry in the catalogue.
        values: Source to its paths and values.
        prepared: Source to what its reader would return, for sources that are read already.

    Returns:
        What the entry's function returns, a `Table` or a matplotlib figure.
    """
    prepared = prepared or {}
    arguments = {
        parameter: prepared[source] if source in prepared else READERS[source](values[source])
        for parameter, source in entry.arguments.items()
    }
    module, _, name = entry.function.partition(":")
    return getattr(import_module(f"zerogap.reporting.{module}"), name)(**arguments)


def read_clean(clean: Mapping[str, str]) -> pd.DataFrame:
    """A clean model's `solve` table, with the leaked questions of the benchmark."""
    questions = parquet.read(clean["questions"], "questions")
    return with_leaked_of(questions, parquet.read(clean["solve"], "solve"))


def read_memorisation(values: Values) -> pd.DataFrame:
    """The memorisation checks of all contaminated models."""
    rows = [
        memorisation(
            model["model"],
            model["benchmark"],
            read_clean(model["clean"]),
            parquet.read(model["identity"], "solve"),
            parquet.read(model["overlap"], "overlap"),
            parquet.read(model["clean_overlap"], "overlap"),
            **values["options"],
        )
        for model in values["models"]
    ]
    return pd.concat(rows, ignore_index=True)


def _unchanged(value: Any) -> Any:
    return value


def _table(contract: str) -> Callable[[str], pd.DataFrame]:
    return lambda path: parquet.read(path, contract)


def _metrics(paths: Sequence[str]) -> MetricTable:
    return MetricTable(parquet.read(path, "metrics") for path in paths)


def _strategy_metrics(values: Values) -> pd.DataFrame:
    """The rows of the given strategies, in their order."""
    by_strategy = parquet.read(values["metrics"], "metrics").set_index("strategy")
    return by_strategy.loc[list(values["strategies"])].reset_index()


def _strategies(paths: Mapping[str, str]) -> dict[str, pd.DataFrame]:
    return {name: parquet.read(path, "solve") for name, path in paths.items()}


def _inline_numbers(values: Values) -> pd.DataFrame:
    return inline_numbers(
        read_clean(values["clean"]),
        read_clean(values["clean_batch2"]),
        _strategies(values["strategies"]),
        parquet.read(values["ranks"], "ranks"),
        **values["options"],
    )


def _diagnostics(values: Values) -> pd.DataFrame:
    """The diagnostics of all settings."""
    tables = []
    for setting in values["settings"]:
        table = diagnostics(
            parquet.read(setting["rail"], "rail"),
            parquet.read(setting["recovery"], "recovery"),
            read_clean(setting["clean"]),
            read_clean(setting["clean_batch2"]),
            **values["options"],
        )
        tables.append(table.assign(model=setting["model"], benchmark=setting["benchmark"]))
    return pd.concat(tables, ignore_index=True)


def _sensitivity(values: Values) -> pd.DataFrame:
    strategies = _strategies(values["strategies"])
    return sensitivity(read_clean(values["clean"]), strategies, **values["options"])


def _extraction_agreements(owners: Sequence[Values]) -> list[OwnerAgreement]:
    """How often the extraction rules agree, per benchmark with questions of its own."""
    agreements = []
    for owner in owners:
        questions = parquet.read(owner["questions"], "questions")
        gold = dict(zip(questions["question_id"], questions["gold"], strict=True))
        run_rule = extraction_rule(owner["extraction"])
        fractions = {
            strategy: extraction_agreement.agreement(
                (parquet.read(path, "samples", extraction_agreement.COLUMNS) for path in paths),
                gold,
                run_rule,
            )
            for strategy, paths in owner["samples"].items()
        }
        agreements.append(OwnerAgreement(owner["label"], run_rule.name, fractions))
    return agreements


def _job_costs(jobs: Sequence[Values]) -> pd.DataFrame:
    rows = []
    for job in jobs:
        responses, tokens = None, None
        if job["contract"] is not None:
            table = parquet.read(job["output"], job["contract"], ["token_ids"])
            responses, tokens = len(table), cost.tokens(table)
        seconds = cost.seconds(job["timings"])
        rows.append((job["model"], job["variant"], job["name"], responses, tokens, seconds))
    return pd.DataFrame(rows, columns=cost.COLUMNS)


def _protocol_differences(protocol: Values) -> tuple[str, ...]:
    """How the protocol differs from the paper's; local files are compared with GSM8K."""
    protocol = dict(protocol)
    for files in protocol["question_files"]:
        splits = {
            split: gsm8k_format.load_entries(files[split], parse_gold=str)
            for split in gsm8k_format.SPLITS
        }
        if gsm8k_format.fingerprint(splits) != files["sha256"]:
            protocol["questions"] = "of other files"
    return protocol_differences(protocol)


def _losses(paths: Sequence[str]) -> pd.DataFrame:
    """The training losses of all variants.

    Raises:
        InputError: A file cannot be read.
    """
    tables = []
    for path in paths:
        try:
            tables.append(pd.read_csv(path, sep="\t"))
        except OSError as error:
            raise InputError(f"{path}: does not exist or is not readable") from error
    return pd.concat(tables, ignore_index=True)


READERS: dict[str, Callable[[Any], Any]] = {
    "labels": Labels.from_mapping,
    "strategy_names": _unchanged,
    "model_and_variant_names": _unchanged,
    "title": _unchanged,
    "bins": _unchanged,
    "primary_setting": tuple,
    "metrics": _metrics,
    "metrics_with_ablation": _metrics,
    "primary_metrics": _metrics,
    "primary_metrics_with_ablation": _metrics,
    "strategy_metrics": _strategy_metrics,
    "clean": read_clean,
    "clean_batch2": read_clean,
    "strategies": _strategies,
    "strategies_and_all_zero": _strategies,
    "overlap": _table("overlap"),
    "ranks": _table("ranks"),
    "losses": _losses,
    "inline_numbers": _inline_numbers,
    "diagnostics": _diagnostics,
    "sensitivity": _sensitivity,
    "protocol_differences": _protocol_differences,
    "primary_protocol_differences": _protocol_differences,
    "extraction_agreements": _extraction_agreements,
    "samples": _unchanged,
    "job_costs": _job_costs,
    "memorisation": read_memorisation,
}
