"""Score files of responses: the readings of every strategy against a clean model's, as a table."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pandas as pd

from zerogap.errors import InputError
from zerogap.metrics.evaluate import evaluate
from zerogap.reporting.metric_table import MetricTable
from zerogap.reporting.render import Cell, Column, Row, Table
from zerogap.reporting.tables.rows import difference_notes
from zerogap.scoring.inputs import Loaded

BATCH2 = "clean_batch2"
BATCH2_SHOWN = "clean, batch 2"
_DECIMALS = 3
_NAMED = 5  # how many questions an error names


@dataclass(frozen=True)
class Aligned:
    """`solve` tables of the same questions in the clean file's order.

    `leaked_known` is false where nobody said which questions leaked (the column is then False);
    `without_first` names the tables whose first responses are unknown (likewise).
    """

    clean: pd.DataFrame
    strategies: dict[str, pd.DataFrame]
    leaked_known: bool
    without_first: frozenset[str]
    notes: tuple[str, ...]


def align(
    clean: Loaded, strategies: Mapping[str, Loaded], leaked: list[str] | None = None
) -> Aligned:
    """Bring the files together.

    Args:
        clean: the reference.
        strategies: name → file; the clean model's second batch goes in as ``clean_batch2``.
        leaked: ids of the leaked questions; None: as the files' own columns say, if any has one.

    Raises:
        InputError: a file without some of the clean one's questions or with others, a clean
            question without responses, a leaked question that the clean file does not have, or
            files that disagree on what leaked. The message counts the questions and names some.
    """
    files = {"clean": clean, **strategies}
    tables = {name: file.counts.set_index("question_id") for name, file in files.items()}
    questions = tables["clean"].index
    for name, file in strategies.items():
        _same_questions(questions, tables[name].index, file, clean)
    empty = questions[tables["clean"]["n_samples"] == 0]
    if len(empty):
        raise InputError(
            f"{clean.path}: {_some(empty)} without responses; the clean model is the reference and "
            "needs at least one on every question"
        )

    flags = _leaked(files, tables, leaked)
    without_first = frozenset(n for n, table in tables.items() if "first_correct" not in table)
    solve = {}
    for name, table in tables.items():
        table = table.reindex(questions)
        table["leaked"] = False if flags is None else flags
        if name in without_first:
            table["first_correct"] = False
        solve[name] = table.reset_index()
    notes = [note for file in files.values() for note in file.notes]
    notes += _sample_notes(files)
    for name, file in strategies.items():
        if "doc_hash" in tables["clean"] and "doc_hash" in tables[name]:
            same = tables[name]["doc_hash"].reindex(questions) == tables["clean"]["doc_hash"]
            if len(differ := questions[~same]):
                notes.append(
                    f"{file.path}: {_some(differ)} with another document than in {clean.path} "
                    "(doc_hash); are both of the same task?"
                )
    if without_first:
        names = ", ".join(str(files[name].path) for name in files if name in without_first)
        notes.append(
            f"{names}: no first_correct beside the counts, so G-AP, which looks at one response a "
            "question, is left out"
        )
    return Aligned(solve.pop("clean"), solve, flags is not None, without_first, tuple(notes))


def score(
    aligned: Aligned,
    benchmark: str,
    *,
    bins: int,
    n_resamples: int,
    confidence_level: float,
    seed: int,
    resample: str = "questions",
) -> pd.DataFrame:
    """A `metrics` table of every strategy (see `zerogap.metrics.evaluate.evaluate`).

    What the files do not tell is left out: the subsets where the leaked questions are unknown, and
    G-AP where first responses are. The model's name is ``responses``.
    """
    table = evaluate(
        "responses",
        benchmark,
        aligned.clean,
        aligned.strategies,
        bins=bins,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
        seed=seed,
        resample=resample,
    )
    if not aligned.leaked_known:
        table = table[table["subset"] == "all"]
    metric, _, reference = zip(*(name.partition("_vs_") for name in table["metric"]), strict=True)
    unknown = aligned.without_first
    blind = table["strategy"].isin(unknown) | pd.Series(reference, table.index).isin(unknown)
    if "clean" in unknown:
        blind |= True
    return table[~(blind & (pd.Series(metric, table.index) == "g_ap"))].reset_index(drop=True)


def summary(
    metrics: pd.DataFrame, aligned: Aligned, *, bins: int, level: float, over: str = "questions"
) -> Table:
    """The main readings with intervals, a row a strategy, a section a subset.

    Bold is the lowest SA-PPG; Identity, which is no strategy, does not compete.
    """
    looked_up = MetricTable([metrics])
    setting = tuple(metrics.iloc[0][["model", "benchmark"]])
    columns = [
        Column("sa_ppg", "SA-PPG"),
        Column("s_delta_plus", "S-Δ⁺"),
        Column("s_delta_minus", "S-Δ⁻"),
        Column("a_ppg", "A-PPG"),
        Column("g_app", "G-APP"),
        Column("g_ap", "G-AP"),
        Column("solve_mean", "Solved"),
    ]
    if "identity" in aligned.strategies:
        columns.insert(1, Column("sa_ppg_vs_identity", "SA-PPG − Identity's"))
    names = {name: name for name in aligned.strategies if name != BATCH2}
    if BATCH2 in aligned.strategies:
        names[BATCH2] = BATCH2_SHOWN
    names["clean"] = "clean"
    subsets = list(dict.fromkeys(metrics["subset"]))
    sizes = {
        "all": len(aligned.clean),
        "leaked": int(aligned.clean["leaked"].sum()),
        "unleaked": int((~aligned.clean["leaked"]).sum()),
    }
    rows = []
    for subset in subsets:
        cells = {
            key: [looked_up.get(*setting, key, column.key, subset) for column in columns]
            for key in names
        }
        competing = {
            key: round(own[0].value, _DECIMALS)
            for key, own in cells.items()
            if key not in ("clean", BATCH2, "identity")
        }
        for key, own in cells.items():
            own = [cell or Cell() for cell in own]
            best = key in competing and competing[key] == min(competing.values())
            own[0] = replace(own[0], bold=best)
            section = f"{subset} ({sizes[subset]})" if len(subsets) > 1 else ""
            rows.append(Row(key, names[key], tuple(own), section))
    filled = [k for k in range(len(columns)) if any(row.cells[k].value is not None for row in rows)]
    floor = "The clean model's batch 2 is the noise floor: what a perfect restoration reads."
    return Table(
        label="tab:score",
        caption=(
            f"Distance from the clean model on {sizes['all']} questions, lower is better, with "
            f"{level * 100:g}% bootstrap intervals over {over}; {bins} strata. S-Δ⁺: "
            "contamination that remains; S-Δ⁻: damage; Solved: mean solve probability."
        ),
        index_label="Strategy",
        columns=tuple(columns[k] for k in filled),
        rows=tuple(
            Row(row.key, row.name, tuple(row.cells[k] for k in filled), row.section) for row in rows
        ),
        notes=(*((floor,) if BATCH2 in names else ()), *difference_notes(columns, rows)),
        decimals=_DECIMALS,
        intervals=True,
        size="scriptsize",
        column_gap="4pt",
    )


def _same_questions(expected: pd.Index, found: pd.Index, file: Loaded, clean: Loaded) -> None:
    missing, unknown = (
        expected.difference(found, sort=False),
        found.difference(expected, sort=False),
    )
    if len(missing) == len(expected):
        raise InputError(
            f"{file.path}: no question in common with {clean.path}, which covers others (here "
            f"{_some(found)}; there {_some(expected)}); give files of the same questions"
        )
    if len(missing):
        raise InputError(
            f"{file.path}: {_some(missing)} of {clean.path} missing; add them, and where a "
            "strategy left no response, give counts with n_correct 0 and n_samples 0"
        )
    if len(unknown):
        raise InputError(
            f"{file.path}: {_some(unknown)} not in {clean.path}; take them out, or add the clean "
            "model's responses to them"
        )


def _leaked(
    files: Mapping[str, Loaded], tables: Mapping[str, pd.DataFrame], given: list[str] | None
) -> pd.Series | None:
    """Which questions leaked, by question, or None where nothing says so."""
    questions = tables["clean"].index
    if given is not None:
        if len(unknown := pd.Index(given).difference(questions, sort=False)):
            raise InputError(
                f"leaked: {_some(unknown)} not in {files['clean'].path}; correct the ids"
            )
        return pd.Series(questions.isin(given), questions)
    knowing = [name for name, table in tables.items() if "leaked" in table]
    if not knowing:
        return None
    flags = tables[knowing[0]]["leaked"].reindex(questions)
    for name in knowing[1:]:
        differ = questions[tables[name]["leaked"].reindex(questions) != flags]
        if len(differ):
            raise InputError(
                f"{files[name].path}: leaked differs from {files[knowing[0]].path} on "
                f"{_some(differ)}; mend one of them or say it with --leaked"
            )
    return flags


def _sample_notes(files: Mapping[str, Loaded]) -> list[str]:
    """Numbers of responses that differ, within a file or between files."""
    notes, sizes = [], {}
    for file in files.values():
        low, high = file.counts["n_samples"].min(), file.counts["n_samples"].max()
        if low != high:
            notes.append(f"{file.path}: {low} to {high} responses a question")
        sizes[str(file.path)] = int(file.counts["n_samples"].median())
    if len(set(sizes.values())) > 1:
        shown = ", ".join(f"{path} {m}" for path, m in sizes.items())
        notes.append(
            f"responses a question differ between the files (medians: {shown}); the fewer there "
            "are, the higher |gap| reads by chance"
        )
    return notes


def _some(questions: pd.Index) -> str:
    """'3 questions (a, b, c)', the first few of them."""
    shown = ", ".join(str(question) for question in questions[:_NAMED])
    more = ", …" if len(questions) > _NAMED else ""
    return f"{len(questions)} question{'s' * (len(questions) != 1)} ({shown}{more})"
