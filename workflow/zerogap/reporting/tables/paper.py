"""Tables 1 to 4 of the paper: rows, columns and their order are the paper's.

A run with a second batch of the clean model has one more row, the noise floor.
"""

from dataclasses import replace

from zerogap.errors import InputError
from zerogap.reporting.labels import Labels
from zerogap.reporting.metric_table import MetricTable
from zerogap.reporting.render import Column, Row, Table
from zerogap.reporting.tables.rows import (
    NOISE_FLOOR,
    bold_best,
    fill_rows,
    metric_row,
    strategy_names,
)


def reversal(values: MetricTable, labels: Labels, setting: tuple[str, str]) -> Table:
    """Table 1: G-AP and SA-PPG of the same responses.

    Raises:
        InputError: The setting has no metric values.
    """
    _check_setting(values, setting)
    table = Table(
        label="tab:reversal",
        caption=(
            "G-AP (one 0/1 mark per question) and SA-PPG of the same responses. "
            f"Setting: {labels.setting(*setting)}; reference: the clean model M_cl."
        ),
        index_label="",
        columns=(Column("g_ap", "G-AP"), Column("sa_ppg", "SA-PPG")),
        rows=(),
        size="normalsize",
        column_gap="12pt",
    )
    order = ["identity", "lne_blocking", "shortcut", "ted", "railcap"]
    names = strategy_names(values, labels, [setting], order) | NOISE_FLOOR
    return bold_best(fill_rows(table, values, setting, names))


def decomposition(values: MetricTable, labels: Labels, setting: tuple[str, str]) -> Table:
    """Table 2: what cancels in G-APP, and what equal weights hide.

    Raises:
        InputError: The setting has no metric values.
    """
    _check_setting(values, setting)
    table = Table(
        label="tab:decomp",
        caption=(
            "The aggregates and their components. Δ⁺: under-suppression (remaining "
            "contamination), Δ⁻: over-suppression (damage); A-PPG = Δ⁺ + Δ⁻ and "
            "G-APP = |Δ⁺ − Δ⁻|. All-Zero is an artificial strategy that fails every question. "
            f"Setting: {labels.setting(*setting)}."
        ),
        index_label="",
        columns=(
            Column("delta_plus", "Δ⁺"),
            Column("delta_minus", "Δ⁻"),
            Column("g_app", "G-APP"),
            Column("a_ppg", "A-PPG"),
            Column("sa_ppg", "SA-PPG"),
        ),
        rows=(),
        size="footnotesize",
        column_gap="2pt",
    )
    order = ["identity", "lne_blocking", "shortcut", "ted", "all_zero", "railcap"]
    names = strategy_names(values, labels, [setting], order) | NOISE_FLOOR
    return fill_rows(table, values, setting, names)


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
            size="scriptsize",
            column_gap="3pt",
        )
    )


def ablation(values: MetricTable, labels: Labels, setting: tuple[str, str]) -> Table:
    """Table 4: the n-gram threshold and the form of suppression.

    Raises:
        InputError: The setting has no metric values.
    """
    _check_setting(values, setting)
    table = Table(
        label="tab:ablation",
        caption=(
            f"Ablation of RailCap on {labels.setting(*setting)}: the n-gram threshold n, with "
            "the cap at the runner-up, and a hard ban of the rail token instead of the cap. "
            "S-Δ⁺ and S-Δ⁻ are the positive and negative parts of the gaps, averaged over "
            "strata like SA-PPG, to which they add up. Bold row name: the configuration of the "
            "other tables."
        ),
        index_label="Config",
        columns=(
            Column("s_delta_plus", "S-Δ⁺"),
            Column("s_delta_minus", "S-Δ⁻"),
            Column("sa_ppg", "SA-PPG"),
        ),
        rows=(),
        size="normalsize",
        column_gap="9pt",
    )
    names = {
        "identity": labels.strategies["identity"],
        **labels.configurations,
        "all_zero": labels.strategies["all_zero"],
        **NOISE_FLOOR,
    }
    table = bold_best(fill_rows(table, values, setting, names))
    rows = tuple(replace(row, bold=row.key == "railcap") for row in table.rows)
    return replace(table, rows=rows)


def _check_setting(values: MetricTable, setting: tuple[str, str]) -> None:
    if not values.strategies(*setting):
        raise InputError(
            f"setting {'/'.join(setting)}: no metric values; check primary_setting in the config"
        )
