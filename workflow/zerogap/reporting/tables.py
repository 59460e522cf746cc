"""The paper's tables and some more, from `metrics` tables.

Rows, columns and their order are the paper's. What a run does not have is left out: a row without
any reading, a column without any, a cell without one shows a dash. The best strategy of a column is
bold, as in the paper, whose Table 4 shows that Identity, which is no strategy, does not compete.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pandas as pd

from zerogap.errors import InputError
from zerogap.reporting.render import Cell, Column, Row, Table

MODELS = {"llama2": "Llama2", "gemma": "Gemma", "pythia": "Pythia"}
BENCHMARKS = {"gsm8k": "GSM8K", "pq": "PQ"}
STRATEGIES = {
    "clean": "Clean model",
    "clean_batch2": "Clean model, second batch",
    "identity": "Identity",
    "ted": "TED",
    "shortcut": "Shortcut",
    "lne_blocking": "LNE-blocking",
    "all_zero": "All-Zero",
    "railcap": "RailCap",
    "railcap_n1": "RailCap, n=1",
    "railcap_n3": "RailCap, n=3",
    "railcap_n5": "RailCap, n=5",
    "railcap_n7": "RailCap, n=7",
    "railcap_ban": "RailCap, ban",
}
# Table 4 names its rows by configuration, between Identity and All-Zero.
CONFIGURATIONS = {
    "railcap_n1": "n=1",
    "railcap_n3": "n=3",
    "railcap": "n=4",
    "railcap_n5": "n=5",
    "railcap_n7": "n=7",
    "railcap_ban": "n=4, ban",
}

# Every reading of a subset of the questions; each of A-PPG and SA-PPG is followed by its parts.
METRICS = {
    "solve_mean": "Solved",
    "g_ap": "G-AP",
    "g_app": "G-APP",
    "a_ppg": "A-PPG",
    "delta_plus": "Δ⁺",
    "delta_minus": "Δ⁻",
    "sa_ppg": "SA-PPG",
    "s_delta_plus": "S-Δ⁺",
    "s_delta_minus": "S-Δ⁻",
}
SUBSETS = ("leaked", "unleaked")
# The jobs that take time, by the names of their benchmarks; any other is a cell of samples.
JOBS = {
    "adapter": "LoRA training",
    "greedy": "Greedy trajectories",
    "neurons": "Shortcut neurons",
    "ranks": "Ranks",
    "batch1": "Samples, first batch",
    "batch2": "Samples, second batch",
    "samples": "Samples of the strategies",
}


@dataclass(frozen=True)
class Labels:
    """The names to show, by key; their order is the order of rows and columns."""

    models: Mapping[str, str] = field(default_factory=lambda: MODELS)
    benchmarks: Mapping[str, str] = field(default_factory=lambda: BENCHMARKS)
    strategies: Mapping[str, str] = field(default_factory=lambda: STRATEGIES)
    configurations: Mapping[str, str] = field(default_factory=lambda: CONFIGURATIONS)

    @classmethod
    def from_mapping(cls, given: Mapping[str, Mapping[str, str]]) -> "Labels":
        """Labels from {"models": {…}, "benchmarks": {…}, …}, any part of it.

        `configurations` are the rows of the ablation between Identity and All-Zero.

        Raises:
            InputError: no mapping, or another key in it.
        """
        parts = {
            "models": MODELS,
            "benchmarks": BENCHMARKS,
            "strategies": STRATEGIES,
            "configurations": CONFIGURATIONS,
        }
        if not isinstance(given, Mapping) or set(given) - set(parts):
            raise InputError(f"labels: an object with {', '.join(parts)} expected, got {given}")
        labels = {**parts, **given}
        # A strategy keeps a name where none is given; the given ones come first, in their order.
        named = labels["strategies"]
        rest = {key: name for key, name in STRATEGIES.items() if key not in named}
        return cls(**labels | {"strategies": named | rest})

    def setting(self, model: str, benchmark: str) -> str:
        return f"{self.models.get(model, model)} × {self.benchmarks.get(benchmark, benchmark)}"


class MetricTable:
    """The rows of one or more `metrics` tables, by key."""

    def __init__(self, tables: Iterable[pd.DataFrame]) -> None:
        """Raises InputError where two rows claim to be the same reading."""
        keys = ["model", "benchmark", "strategy", "subset", "metric"]
        frame = pd.concat(list(tables), ignore_index=True)
        if (twice := frame[frame.duplicated(keys)]).size:
            raise InputError(f"metrics: {' / '.join(twice.iloc[0][keys])} is there twice")
        self._cells = {
            tuple(key): Cell(value, _known(low), _known(high))
            for *key, value, low, high in frame[[*keys, "value", "ci_low", "ci_high"]].itertuples(
                index=False
            )
        }
        self.models = list(dict.fromkeys(frame["model"]))
        self.benchmarks = list(dict.fromkeys(frame["benchmark"]))

    def get(
        self, model: str, benchmark: str, strategy: str, metric: str, subset: str = "all"
    ) -> Cell | None:
        """A reading; a difference that holds among all pairs of strategies has the mark †."""
        cell = self._cells.get((model, benchmark, strategy, subset, metric))
        among_all = metric.replace("_vs_", "_maxt_vs_")
        together = self._cells.get((model, benchmark, strategy, subset, among_all))
        if cell is None or metric == among_all or together is None:
            return cell
        return replace(cell, mark="†" if together.low > 0 or together.high < 0 else "")

    def strategies(self, model: str, benchmark: str) -> list[str]:
        found = (key[2] for key in self._cells if key[:2] == (model, benchmark))
        return list(dict.fromkeys(found))

    def settings(self, labels: Labels) -> list[tuple[str, str]]:
        """(model, benchmark) pairs that have readings, benchmark by benchmark as in Table 3."""
        return [
            (model, benchmark)
            for benchmark in _ordered(self.benchmarks, labels.benchmarks)
            for model in _ordered(self.models, labels.models)
            if self.strategies(model, benchmark)
        ]


def reversal(readings: MetricTable, labels: Labels, setting: tuple[str, str]) -> Table:
    """Table 1: G-AP against SA-PPG of the same responses."""
    return _of_one_setting(
        readings,
        setting,
        Table(
            label="tab:reversal",
            caption=(
                "The same responses read by G-AP (one 0/1 mark a question) and by SA-PPG. "
                f"Setting: {labels.setting(*setting)}; reference: the clean model M_cl. "
                "Bold: the best strategy of each column."
            ),
            corner="",
            columns=(Column("g_ap", "G-AP"), Column("sa_ppg", "SA-PPG")),
            rows=(),
            size="normalsize",
            column_gap="12pt",
        ),
        _strategy_names(
            readings, labels, [setting], ["identity", "lne_blocking", "shortcut", "ted", "railcap"]
        ),
    )


def decomposition(readings: MetricTable, labels: Labels, setting: tuple[str, str]) -> Table:
    """Table 2: what cancels in G-APP and what equal weights hide."""
    order = ["identity", "lne_blocking", "shortcut", "ted", "all_zero", "railcap"]
    return _of_one_setting(
        readings,
        setting,
        Table(
            label="tab:decomp",
            caption=(
                "The aggregates and their components. Δ⁺: under-suppression (contamination that "
                "remains), Δ⁻: over-suppression (damage); A-PPG = Δ⁺ + Δ⁻ and "
                "G-APP = |Δ⁺ − Δ⁻|. All-Zero is a made-up strategy that fails every question. "
                f"Setting: {labels.setting(*setting)}."
            ),
            corner="",
            columns=(
                Column("delta_plus", "Δ⁺ₛ"),
                Column("delta_minus", "Δ⁻ₛ"),
                Column("g_app", "G-APP"),
                Column("a_ppg", "A-PPG"),
                Column("sa_ppg", "SA-PPG"),
            ),
            rows=(),
            size="footnotesize",
            column_gap="2pt",
        ),
        _strategy_names(readings, labels, [setting], order),
        bold=False,
    )


def main(readings: MetricTable, labels: Labels) -> Table:
    """Table 3: SA-PPG of every strategy in every setting."""
    settings = readings.settings(labels)
    names = _strategy_names(
        readings, labels, settings, ["identity", "ted", "shortcut", "lne_blocking", "railcap"]
    )
    columns = tuple(
        Column(
            f"{benchmark}/{model}",
            labels.models.get(model, model),
            group=labels.benchmarks.get(benchmark, benchmark),
        )
        for model, benchmark in settings
    )
    rows = []
    for strategy, name in names.items():
        cells = [readings.get(*setting, strategy, "sa_ppg") for setting in settings]
        if any(cells):
            rows.append(Row(strategy, name, tuple(cell or Cell() for cell in cells)))
    return _bold_best(
        Table(
            label="tab:main",
            caption=(
                "SA-PPG of each strategy in every setting (contamination benchmark × model); "
                "reference: the clean model M_cl of the benchmark. Bold: the best strategy of each "
                "column."
            ),
            corner="Method",
            columns=columns,
            rows=tuple(rows),
            size="scriptsize",
            column_gap="3pt",
        )
    )


def ablation(readings: MetricTable, labels: Labels, setting: tuple[str, str]) -> Table:
    """Table 4: the n-gram threshold and the form of suppression."""
    table = _of_one_setting(
        readings,
        setting,
        Table(
            label="tab:ablation",
            caption=(
                f"Ablation of RailCap on {labels.setting(*setting)}: the n-gram threshold n, with "
                "the cap at the runner-up, and a hard ban of the rail token in its place. "
                "S-Δ⁺ and S-Δ⁻ are the positive and negative parts of the gaps, averaged over "
                "strata like SA-PPG, to which they add up. Bold row: the configuration used "
                "elsewhere; bold reading: the best strategy of each column."
            ),
            corner="Config",
            columns=(
                Column("s_delta_plus", "S-Δ⁺ₛ"),
                Column("s_delta_minus", "S-Δ⁻ₛ"),
                Column("sa_ppg", "SA-PPG"),
            ),
            rows=(),
            size="normalsize",
            column_gap="9pt",
        ),
        {
            "identity": labels.strategies["identity"],
            **labels.configurations,
            "all_zero": labels.strategies["all_zero"],
        },
    )
    rows = tuple(replace(row, bold=row.key == "railcap") for row in table.rows)
    return replace(table, rows=rows)


def intervals(readings: MetricTable, labels: Labels) -> Table:
    """Beyond the paper: the readings with intervals, and paired differences."""
    columns = (
        Column("sa_ppg", "SA-PPG"),
        Column("sa_ppg_corrected", "corrected"),
        Column("sa_ppg_vs_identity", "SA-PPG − Identity's"),
        Column("sa_ppg_vs_railcap", "SA-PPG − RailCap's"),
        Column("a_ppg", "A-PPG"),
        Column("g_ap", "G-AP"),
    )
    rows = _rows_by_setting(readings, labels, columns)
    return Table(
        label="tab:intervals",
        caption=(
            "MetricTable with bootstrap intervals over questions. Differences are paired: both "
            "strategies on the same resampled questions; below zero, the strategy of the row is "
            "the better one. Corrected: SA-PPG less what finitely many samples add to it. The "
            "second batch of the clean model is the noise floor: what a perfect restoration would "
            "read."
        ),
        corner="",
        columns=columns,
        rows=rows,
        notes=many_differences(columns, rows),
        decimals=3,
        intervals=True,
        size="tiny",
        column_gap="3pt",
    )


def many_differences(columns: Sequence[Column], rows: Sequence[Row]) -> tuple[str, ...]:
    """What several paired differences side by side mean for each of them, and the mark †."""
    count = sum(
        "_vs_" in column.key and cell.low is not None
        for row in rows
        for column, cell in zip(columns, row.cells, strict=True)
    )
    each = (
        f"Each of the {count} differences has an interval of its own, so that some leave out 0 by "
        "chance.",
    )
    mark = (
        "†: leaves out 0 also where all pairs of strategies are looked at together (max-T over the "
        "same replicates).",
    )
    return each * (count > 1) + mark * (count > 0)


def subsets(readings: MetricTable, labels: Labels) -> Table:
    """Beyond the paper: leaked and unleaked questions apart, a row each under every strategy."""
    columns = tuple(Column(metric, title) for metric, title in METRICS.items())
    rows = []
    for setting in readings.settings(labels):
        for strategy in _ordered(readings.strategies(*setting), labels.strategies):
            for subset in SUBSETS:
                cells = [readings.get(*setting, strategy, metric, subset) for metric in METRICS]
                if any(cells):
                    rows.append(
                        Row(
                            f"{strategy}@{subset}",
                            f"{labels.strategies.get(strategy, strategy)}, {subset}",
                            tuple(cell or Cell() for cell in cells),
                            section=labels.setting(*setting),
                        )
                    )
    return Table(
        label="tab:subsets",
        caption=(
            "Leaked and unleaked questions apart, a row each: mean solve probability, every "
            "metric, and the parts that A-PPG and SA-PPG are the sums of. Strata are formed within "
            "the subset."
        ),
        corner="",
        columns=columns,
        rows=tuple(rows),
        decimals=3,
        size="scriptsize",
        column_gap="4pt",
    )


def noise_floor(readings: MetricTable, labels: Labels) -> Table:
    """Beyond the paper: what every metric reads when nothing differs but the responses."""
    metrics = {
        "g_ap": "G-AP",
        "g_ap_mean": "G-AP, mean",
        "g_ap_sd": "G-AP, s.d.",
        "g_app": "G-APP",
        "a_ppg": "A-PPG",
        "sa_ppg": "SA-PPG",
        "sa_ppg_corrected": "corrected",
        "s_delta_plus": "S-Δ⁺",
        "s_delta_minus": "S-Δ⁻",
    }
    rows = []
    for setting in readings.settings(labels):
        cells = [readings.get(*setting, "clean_batch2", metric) for metric in metrics]
        if any(cells):
            name = labels.setting(*setting)
            rows.append(Row("/".join(setting), name, tuple(cell or Cell() for cell in cells)))
    return Table(
        label="tab:noise",
        caption=(
            "The noise floor: a second batch of the clean model, read against the first. Mean and "
            "s.d. of G-AP are over every choice of the one response it looks at. Corrected: SA-PPG "
            "less what finitely many samples add to it. Domains with one clean model share it."
        ),
        corner="",
        columns=tuple(Column(metric, title) for metric, title in metrics.items()),
        rows=tuple(rows),
        size="footnotesize",
        column_gap="4pt",
    )


def readouts(frame: pd.DataFrame) -> Table:
    """The numbers of the text, from `zerogap.analysis.inline_numbers`."""
    rows = tuple(
        Row(
            row.key,
            row.quantity,
            (
                Cell(row.value, _known(row.ci_low), _known(row.ci_high)),
                Cell(text=row.printed),
                Cell(text=row.place),
            ),
        )
        for row in frame.itertuples(index=False)
    )
    return Table(
        label="tab:readouts",
        caption=(
            "The numbers of the paper's text, with bootstrap intervals over questions, "
            "beside the published ones."
        ),
        corner="Quantity",
        columns=(
            Column("value", "ours"),
            Column("paper", "paper", align="l"),
            Column("place", "place", align="l"),
        ),
        rows=rows,
        decimals=3,
        intervals=True,
        size="footnotesize",
        column_gap="4pt",
    )


def agreement(shares: Mapping[str, Mapping[str, float]], own: str, labels: Labels) -> Table:
    """Extraction rules side by side, from `zerogap.analysis.extraction_agreement`: a row a strategy.

    Args:
        shares: strategy → its shares, all settings together.
        own: the name of the run's rule.
    """
    keys = [key for key in next(iter(shares.values())) if key != "responses"]
    shown = {"answered": "Answered", "correct": "Correct", "agree": f"Judged as by {own}"}
    columns = [Column("responses", "Responses")]
    for kind, group in shown.items():
        for key in keys:
            which, _, rule = key.partition(" ")
            if which == kind:
                columns.append(Column(key, own if rule == "own" else rule, group=group))
    rows = []
    for strategy, found in shares.items():
        cells = [Cell(found["responses"], decimals=0)]
        cells += [Cell(_known(found[column.key])) for column in columns[1:]]
        rows.append(Row(strategy, labels.strategies.get(strategy, strategy), tuple(cells)))
    return Table(
        label="tab:agreement",
        caption="The same responses under every rule of answer extraction, all settings together.",
        corner="Strategy",
        columns=tuple(columns),
        rows=tuple(rows),
        decimals=3,
        size="scriptsize",
        column_gap="3pt",
    )


def cost(frame: pd.DataFrame, labels: Labels) -> Table:
    """What the run took: a row a job with a benchmark, under a heading a model and benchmark.

    Args:
        frame: a row a job, columns `zerogap.analysis.cost.COLUMNS`; NaN where a job generates no
            responses or its benchmark is gone.
    """
    kinds = frame["job"].where(frame["job"].isin(JOBS), "samples").map(JOBS)
    rows = [
        Row(
            f"{model}/{benchmark}/{job}",
            JOBS.get(job) or labels.strategies.get(job, job),
            _cost_cells(part),
            section=labels.setting(model, benchmark),
        )
        for (model, benchmark, job), part in frame.groupby(
            ["model", "benchmark", "job"], sort=False
        )
    ]
    for kind in dict.fromkeys(JOBS.values()):
        part = frame[kinds == kind]
        if len(part):
            name = f"{kind} ({len(part)})"
            rows.append(Row(kind.lower(), name, _cost_cells(part), section="Sum"))
    rows.append(Row("all", f"All ({len(frame)})", _cost_cells(frame), section="Sum", bold=True))
    gone = int(frame["seconds"].isna().sum())
    return Table(
        label="tab:cost",
        caption=(
            "What the run took: responses, tokens generated (prompts not counted) and wall seconds "
            "of every job on a device, and their sums. Where a job has one GPU its seconds are GPU "
            "seconds."
        ),
        corner="Job",
        columns=(
            Column("responses", "Responses"),
            Column("tokens", "Tokens"),
            Column("tokens_a_response", "Tokens a response"),
            Column("seconds", "Seconds"),
            Column("tokens_a_second", "Tokens/s"),
        ),
        rows=tuple(rows),
        notes=(f"Of {gone} job(s) no benchmark is left: their seconds are in no sum.",)
        if gone
        else (),
        size="footnotesize",
        column_gap="5pt",
    )


def _cost_cells(jobs: pd.DataFrame) -> tuple[Cell, ...]:
    """Sums over the jobs; tokens a second by those whose tokens and seconds are both known."""
    responses, tokens, seconds = jobs[["responses", "tokens", "seconds"]].sum(min_count=1)
    timed = jobs.dropna(subset=["tokens", "seconds"])
    speed = timed["tokens"].sum() / timed["seconds"].sum() if len(timed) else float("nan")
    return (
        Cell(_known(responses), decimals=0),
        Cell(_known(tokens), decimals=0),
        Cell(_known(tokens / responses), decimals=1),
        Cell(_known(seconds), decimals=1),
        Cell(_known(speed), decimals=0),
    )


def memorisation(frame: pd.DataFrame, labels: Labels) -> Table:
    """Did contamination work, from `zerogap.analysis.memorisation`: a row a contaminated model."""
    columns = (
        Column("clean_leaked", "clean", group="Solved, leaked"),
        Column("identity_leaked", "contaminated", group="Solved, leaked"),
        Column("clean_unleaked", "clean", group="Solved, unleaked"),
        Column("identity_unleaked", "contaminated", group="Solved, unleaked"),
        Column("inflation", "Inflation"),
        Column("rouge_leaked", "leaked", group="ROUGE-L"),
        Column("rouge_unleaked", "unleaked", group="ROUGE-L"),
        Column("collapse", "Collapse"),
        Column("share_verbatim", "Verbatim"),
    )
    rows, notes = [], []
    for row in frame.to_dict("records"):
        setting = labels.setting(row["model"], row["benchmark"])
        cells = [
            Cell(row[c.key], row.get(f"{c.key}_ci_low"), row.get(f"{c.key}_ci_high"))
            for c in columns
        ]
        verdict = Cell(text=row["verdict"])
        rows.append(Row(f"{row['model']}/{row['benchmark']}", setting, (verdict, *cells)))
        notes.append(f"{setting}: {row['verdict']}. {row['text']}")
    return Table(
        label="tab:memorisation",
        caption=(
            "Did contamination work? Solved: mean solve probability. Inflation: its rise on leaked "
            "questions beyond that on unleaked ones. Collapse: the difference of the mean ROUGE-L "
            "between a response and the model's own greedy response. Verbatim: the share of "
            "leaked responses that repeat it."
        ),
        corner="Contaminated model",
        columns=(Column("verdict", "Verdict", align="l"), *columns),
        rows=tuple(rows),
        notes=tuple(notes),
        decimals=2,
        size="scriptsize",
        column_gap="3pt",
    )


def beside_paper(ours: Table, paper: Table, departures: Sequence[str] = ()) -> Table:
    """Each reading of `ours` after the paper's, under a heading a column.

    Args:
        departures: what makes this run another experiment than the paper's
            (`zerogap.published.departures`). Without any, the difference is given too,
            with this run's interval less the published number, which has none.
    """
    published = {
        (row.key, column.key): cell
        for row in paper.rows
        for column, cell in zip(paper.columns, row.cells, strict=True)
    }
    columns = [Column("paper", "paper"), Column("ours", "ours")]
    notes = ours.notes
    if departures:
        notes += (
            "This run is another experiment than the paper's, so no differences are given; "
            f"compare the order of the rows. What differs: {'; '.join(departures)}.",
        )
    else:
        columns += [Column("difference", "difference"), Column("interval", "interval")]
        notes += (
            "Difference: ours less the paper's. Interval: that of our reading, less the paper's "
            "number, which is published without one.",
        )
    rows = []
    for k, column in enumerate(ours.columns):
        for row in ours.rows:
            own, other = row.cells[k], published.get((row.key, column.key), Cell())
            cells = [other, own]
            if not departures:
                cells += _difference(own, other, ours.decimals)
            section = f"{column.group} {column.title}".strip()
            rows.append(replace(row, cells=tuple(cells), section=section))
    return replace(
        ours,
        label=f"{ours.label}-paper",
        caption=f"This run beside the paper, a heading a column of the table. {ours.caption}",
        columns=tuple(columns),
        rows=tuple(rows),
        notes=notes,
        size="footnotesize",
        column_gap="4pt",
    )


def _difference(own: Cell, other: Cell, decimals: int) -> list[Cell]:
    """The difference, and its interval as a text."""
    if own.value is None or other.value is None:
        return [Cell(), Cell()]
    ends = (None if end is None else end - other.value for end in (own.low, own.high))
    difference = Cell(own.value - other.value, *ends)
    return [Cell(difference.value), Cell(text=difference.interval(decimals))]


def _of_one_setting(
    readings: MetricTable,
    setting: tuple[str, str],
    table: Table,
    names: Mapping[str, str],
    *,
    bold: bool = True,
) -> Table:
    if not readings.strategies(*setting):
        raise InputError(f"setting {'/'.join(setting)}: no readings of it in the metrics given")
    rows = []
    for strategy, name in names.items():
        cells = [readings.get(*setting, strategy, column.key) for column in table.columns]
        if any(cells):
            rows.append(Row(strategy, name, tuple(cell or Cell() for cell in cells)))
    table = replace(table, rows=tuple(rows))
    return _bold_best(table) if bold else table


def _bold_best(table: Table) -> Table:
    """Bold the lowest reading of each column as printed; Identity does not compete."""
    best, beaten = [], []
    for k, column in enumerate(table.columns):
        values = {
            row.key: round(row.cells[k].value, table.decimals)
            for row in table.rows
            if row.cells[k].value is not None
        }
        identity = values.pop("identity", None)
        best.append(min(values.values(), default=None))
        if identity is not None and values and identity < best[k]:
            beaten.append(f"{column.group} {column.title}".strip())
    rows = tuple(
        replace(
            row,
            cells=tuple(
                replace(
                    cell,
                    bold=row.key != "identity"
                    and cell.value is not None
                    and round(cell.value, table.decimals) == best[k],
                )
                for k, cell in enumerate(row.cells)
            ),
        )
        for row in table.rows
    )
    notes = table.notes
    if beaten:
        notes += (
            f"Identity, the contaminated model without intervention, reads lower than every "
            f"strategy in: {', '.join(beaten)}.",
        )
    return replace(table, rows=rows, notes=notes)


def _rows_by_setting(
    readings: MetricTable, labels: Labels, columns: Sequence[Column]
) -> tuple[Row, ...]:
    """Every strategy of every setting, under a heading a setting."""
    rows = []
    for setting in readings.settings(labels):
        for strategy in _ordered(readings.strategies(*setting), labels.strategies):
            cells = [readings.get(*setting, strategy, column.key) for column in columns]
            if any(cells):
                name = labels.strategies.get(strategy, strategy)
                row = Row(strategy, name, tuple(cell or Cell() for cell in cells))
                rows.append(replace(row, section=labels.setting(*setting)))
    return tuple(rows)


def _strategy_names(
    readings: MetricTable, labels: Labels, settings: Sequence[tuple[str, str]], order: Sequence[str]
) -> dict[str, str]:
    """The paper's strategies in the given order; others that were run come before RailCap."""
    found = dict.fromkeys(s for setting in settings for s in readings.strategies(*setting))
    others = [s for s in found if s not in STRATEGIES]
    names = [*order[:-1], *others, order[-1]]
    return {strategy: labels.strategies.get(strategy, strategy) for strategy in names}


def _ordered(found: Iterable[str], order: Mapping[str, str]) -> list[str]:
    found = list(found)
    return [key for key in order if key in found] + [key for key in found if key not in order]


def _known(value: float) -> float | None:
    return None if pd.isna(value) else float(value)
