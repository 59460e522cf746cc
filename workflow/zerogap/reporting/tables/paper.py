"""Tables 1 to 4 of the paper, and the numbers in its text.

Rows, columns and their order are the paper's. A run with a second batch of the clean model has one
more row, the noise floor.
"""

from dataclasses import replace

import pandas as pd

from zerogap.errors import InputError
from zerogap.reporting.labels import Labels
from zerogap.reporting.metric_table import MetricTable
from zerogap.reporting.render import Cell, Column, Row, Table, optional_float
from zerogap.reporting.tables.rows import (
    NOISE_FLOOR,
    bold_best,
    columns_of,
    metric_row,
    strategy_names,
    strategy_rows,
)

Setting = tuple[str, str]  # (model, benchmark)


def reversal(values: MetricTable, labels: Labels, setting: Setting) -> Table:
    """Table 1: G-AP and SA-PPG of the same responses.

    Raises:
        InputError: The setting has no metric values.
    """
    _check_setting(values, setting)
    columns = columns_of({"g_ap": "G-AP", "sa_ppg": "SA-PPG"})
    order = ["identity", "lne_blocking", "shortcut", "ted", "railcap"]
    names = strategy_names(values, labels, [setting], order) | NOISE_FLOOR
    return bold_best(
        Table(
            label="tab:reversal",
            caption=(
                "G-AP (one 0/1 mark per question) and SA-PPG of the same responses. "
                f"Setting: {labels.setting(*setting)}; reference: the clean model M_cl."
            ),
            index_label="",
            columns=columns,
            rows=strategy_rows(values, setting, names, columns),
        )
    )


def decomposition(values: MetricTable, labels: Labels, setting: Setting) -> Table:
    """Table 2: what cancels in G-APP, and what equal weights hide.

    Raises:
        InputError: The setting has no metric values.
    """
    _check_setting(values, setting)
    columns = columns_of(
        {
            "delta_plus": "Δ⁺",
            "delta_minus": "Δ⁻",
            "g_app": "G-APP",
            "a_ppg": "A-PPG",
            "sa_ppg": "SA-PPG",
        }
    )
    order = ["identity", "lne_blocking", "shortcut", "ted", "all_zero", "railcap"]
    names = strategy_names(values, labels, [setting], order) | NOISE_FLOOR
    return Table(
        label="tab:decomp",
        caption=(
            "The aggregates and their components. Δ⁺: under-suppression (remaining "
            "contamination), Δ⁻: over-suppression (damage); A-PPG = Δ⁺ + Δ⁻ and "
            "G-APP = |Δ⁺ − Δ⁻|. All-Zero is an artificial strategy that fails every question. "
            f"Setting: {labels.setting(*setting)}."
        ),
        index_label="",
        columns=columns,
        rows=strategy_rows(values, setting, names, columns),
    )


def main(values: MetricTable, labels: Labels) -> Table:
    """Table 3: SA-PPG of every strategy in every setting."""
    settings = values.settings(labels)
    order = ["identity", "ted", "shortcut", "lne_blocking", "railcap"]
    rows: list[Row] = []
    names = strategy_names(values, labels, settings, order) | NOISE_FLOOR
    for strategy, name in names.items():
        cells = [values.get(*setting, strategy, "sa_ppg") for setting in settings]
        rows += metric_row(strategy, name, cells)
    columns = tuple(
        Column(
            f"{benchmark}/{model}",
            labels.models.get(model, model),
            group=labels.benchmarks.get(benchmark, benchmark),
        )
        for model, benchmark in settings
    )
    return bold_best(
        Table(
            label="tab:main",
            caption=(
                "SA-PPG of each strategy in every setting (benchmark × model); reference: the "
                "clean model M_cl of the benchmark. Lower is better."
            ),
            index_label="Method",
            columns=columns,
            rows=tuple(rows),
        )
    )


def ablation(values: MetricTable, labels: Labels, setting: Setting) -> Table:
    """Table 4: the n-gram threshold and the form of suppression.

    Raises:
        InputError: The setting has no metric values.
    """
    _check_setting(values, setting)
    columns = columns_of({"s_delta_plus": "S-Δ⁺", "s_delta_minus": "S-Δ⁻", "sa_ppg": "SA-PPG"})
    names = {
        "identity": labels.strategies["identity"],
        **labels.configurations,
        "all_zero": labels.strategies["all_zero"],
        **NOISE_FLOOR,
    }
    table = bold_best(
        Table(
            label="tab:ablation",
            caption=(
                f"Ablation of RailCap on {labels.setting(*setting)}: the n-gram threshold n, with "
                "the cap at the runner-up, and a hard ban of the rail token instead of the cap. "
                "S-Δ⁺ and S-Δ⁻ are the positive and negative parts of the gaps, averaged over "
                "strata like SA-PPG, to which they add up. Bold row name: the configuration of the "
                "other tables."
            ),
            index_label="Config",
            columns=columns,
            rows=strategy_rows(values, setting, names, columns),
        )
    )
    rows = tuple(replace(row, bold=row.key == "railcap") for row in table.rows)
    return replace(table, rows=rows)


def inline_numbers(numbers: pd.DataFrame) -> Table:
    """The numbers in the text: this run's value, the published one, and where the paper has it.

    Args:
        numbers: As `zerogap.analysis.inline_numbers` returns it.
    """
    rows = [
        Row(
            row["key"],
            row["quantity"],
            (
                Cell(row["value"], optional_float(row["ci_low"]), optional_float(row["ci_high"])),
                Cell(text=row["printed"]),
                Cell(text=row["place"]),
            ),
        )
        for row in numbers.to_dict("records")
    ]
    return Table(
        label="tab:inline-numbers",
        caption=(
            "The numbers quoted in the paper's text, with bootstrap intervals over questions, "
            "next to the published values."
        ),
        index_label="Quantity",
        columns=(
            Column("value", "this run"),
            Column("paper", "paper", align="l"),
            Column("place", "section", align="l"),
        ),
        rows=tuple(rows),
        decimals=3,
        intervals=True,
    )


def _check_setting(values: MetricTable, setting: Setting) -> None:
    if not values.strategies(*setting):
        raise InputError(
            f"setting {'/'.join(setting)}: no metric values; check primary_setting in the config"
        )
