"""Score files of responses: the metrics of every strategy against a clean model, as tables."""

from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from zerogap.errors import InputError, listed
from zerogap.io.provenance import draws, engines
from zerogap.metrics.definitions import METRICS
from zerogap.metrics.evaluate import evaluate
from zerogap.metrics.gaps import strata
from zerogap.scoring.inputs import Loaded
from zerogap.scoring.response_file import shorten

BATCH2 = "clean_batch2"
MODEL = "responses"  # the column `model` of the metrics table
FEW_QUESTIONS = 5  # a stratum with fewer is nearly empty
# Of files to compare, these are equal: how responses were drawn, asked for and marked.
SETTINGS = (
    *("engine", "temperature", "top_p", "max_new_tokens", "dtype", "stop"),
    *("chat_template", "extraction"),
)
UNITS = {"question_id": "questions", "cluster": "clusters of questions"}  # column → what it names
MIN_QUESTIONS = 20  # or clusters; with fewer, bootstrap intervals may even have no width


@dataclass(frozen=True)
class Aligned:
    """`solve` tables of the same questions, in the order of the clean file.

    Attributes:
        clean: Table of the reference; with a column ``cluster`` if the files have one.
        leaked_known: Whether the leaked questions are known; if not, the column is False.
        without_first: Tables whose first responses are not known; their column is False.
        notes: What a reader of the results should know.
    """

    clean: pd.DataFrame
    strategies: dict[str, pd.DataFrame]
    leaked_known: bool
    without_first: frozenset[str]
    notes: tuple[str, ...]


def align(
    clean: Loaded, strategies: Mapping[str, Loaded], leaked: list[str] | None = None
) -> Aligned:
    """Align the files of strategies with the reference, by question.

    The clean model's second batch is the strategy ``clean_batch2``. Without ids of leaked
    questions, the files' own columns say which these are, if any has one.

    Raises:
        InputError: A file lacks questions of the clean file or has others, or has other gold
            answers, a leaked question is not in the clean file, or files disagree on leaked
            questions or clusters. The message counts the questions and names some.
    """
    files = {"clean": clean, **strategies}
    tables = {name: file.counts.set_index("question_id") for name, file in files.items()}
    questions = tables["clean"].index
    for file in strategies.values():
        _check_questions(clean, file)
    if leaked is None:
        flags = _shared_column(files.values(), "leaked", "fix one of the files or use --leaked")
    elif len(unknown := pd.Index(leaked).difference(questions, sort=False)):
        raise InputError(
            f"leaked: {_some(unknown)} not in {clean.path}; give its ids, one per line, no header"
        )
    else:
        flags = pd.Series(questions.isin(leaked), questions)
    clusters = _shared_column(files.values(), "cluster", "fix one of the files")
    without_first = frozenset(n for n, table in tables.items() if "first_correct" not in table)
    solve = {}
    for name, table in tables.items():
        table = table.reindex(questions)
        table["leaked"] = False if flags is None else flags
        if clusters is not None:
            table["cluster"] = clusters
        if name in without_first:
            table["first_correct"] = False
        solve[name] = table.reset_index()
    notes = (*notes_on_files(files), *_notes(files, without_first, solve["clean"]))
    clean_table = solve.pop("clean")
    return Aligned(clean_table, solve, flags is not None, without_first, notes)


def score(aligned: Aligned, benchmark: str, *, bins: int = 50, **options: Any) -> pd.DataFrame:
    """A `metrics` table of every strategy (see `zerogap.metrics.evaluate.evaluate`).

    Without known leaked questions, only the subset of all questions is given; without first
    responses, metrics that need them are left out. The model's name is ``responses``. Options are
    n_resamples, confidence_level, seed and resample.

    Raises:
        InputError: The clean file has a question without responses.
    """
    clean = aligned.clean.set_index("question_id")
    if len(empty := clean.index[clean["n_samples"] == 0]):
        raise InputError(
            f"{benchmark}: {_some(empty)} without responses; the clean model is the reference and "
            "needs at least one for every question"
        )
    table = evaluate(MODEL, benchmark, aligned.clean, aligned.strategies, bins=bins, **options)
    if not aligned.leaked_known:
        table = table[table["subset"] == "all"]
    names = table["metric"].str.partition("_vs_")
    of_first = names[0].map(lambda name: name in METRICS and METRICS[name].uses_first_response)
    unknown = table["strategy"].isin(aligned.without_first) | names[2].isin(aligned.without_first)
    unknown |= "clean" in aligned.without_first
    return table[~(of_first & unknown)].reset_index(drop=True)


def summary(metrics: pd.DataFrame, aligned: Aligned) -> pd.DataFrame:
    """The main metrics of the table of `score`, for printing.

    Returns:
        One row per subset, strategy and metric, in the order of sections, rows and columns of a
        printed table: the metrics that the registry shows, and after SA-PPG its difference from
        ``identity`` if there is such a strategy. Columns subset, n_questions, strategy, metric,
        label, value, ci_low, ci_high (NaN where there is none) and significant: whether the
        simultaneous interval of a difference excludes 0. Nothing is significant if a file has one
        response per question, whose solve probabilities are not estimates, or in a subset of fewer
        than MIN_QUESTIONS questions or clusters.
    """
    keys = ["subset", "strategy", "metric"]
    values = metrics.set_index(keys)[["value", "ci_low", "ci_high"]]
    labels = _summary_labels(aligned)
    strategies = sorted(aligned.strategies, key=lambda name: name == BATCH2)
    index = pd.MultiIndex.from_product(
        [list(metrics["subset"].unique()), [*strategies, "clean"], list(labels)], names=keys
    )
    table = values.reindex(index).reset_index()
    table = table[table["metric"].isin(table.loc[table["value"].notna(), "metric"])]
    metric = table["metric"]
    simultaneous = table[keys].assign(metric=metric.str.replace("_vs_", "_maxt_vs_"))
    ends = values.reindex(pd.MultiIndex.from_frame(simultaneous)).reset_index(drop=True)
    excludes_zero = ((ends["ci_low"] > 0) | (ends["ci_high"] < 0)).to_numpy()
    n_units = table["subset"].map(_subset_sizes(aligned.clean, unit_column(aligned.clean)))
    tables = (aligned.clean, *aligned.strategies.values())
    several_responses = all(_usual_number(each) > 1 for each in tables)
    return table.assign(
        n_questions=table["subset"].map(_subset_sizes(aligned.clean, "question_id")),
        label=metric.map(labels),
        significant=metric.str.contains("_vs_")
        & excludes_zero
        & (n_units >= MIN_QUESTIONS)
        & several_responses,
    ).reset_index(drop=True)


def _usual_number(counts: pd.DataFrame) -> float:
    """The median number of responses per question, where a strategy has left any."""
    numbers = counts["n_samples"]
    return float(numbers[numbers > 0].median())


def strata_notes(clean: pd.DataFrame, bins: int = 50) -> list[str]:
    """A note if most strata are nearly empty, or a third have one question (docs/metric.md)."""
    _, sizes = np.unique(strata(clean["n_correct"], clean["n_samples"], bins), return_counts=True)
    nearly_empty = int((sizes < FEW_QUESTIONS).sum())
    single = int((sizes == 1).sum())
    if bins == 1 or (nearly_empty <= len(sizes) / 2 and single < len(sizes) / 3):
        return []
    return [
        f"{nearly_empty} of the {len(sizes)} strata with questions have fewer than "
        f"{FEW_QUESTIONS}, {single} of them one; each weighs as much as a full one, so few "
        "questions decide SA-PPG, and it depends on their number: use more questions or fewer bins"
    ]


def _summary_labels(aligned: Aligned) -> dict[str, str]:
    """Metric → label, in the order of the columns."""
    labels = {}
    shown = [metric for metric in METRICS.values() if metric.summary_column]
    for metric in sorted(shown, key=lambda metric: metric.summary_column):
        labels[metric.name] = metric.label
        if metric.differences == "all" and "identity" in aligned.strategies:
            labels[f"{metric.name}_vs_identity"] = f"{metric.label} − Identity's"
    return labels


def _check_questions(clean: Loaded, file: Loaded) -> None:
    # First, since questions that two tools number from 0 and 1 seem to lack only one.
    if len(differing := _differing(clean, file, "gold")):
        raise InputError(
            f"{file.path}: {_some(differing)} with another gold answer than in {clean.path}; "
            "give files of the same task and numbering (lm_eval counts from 0, Inspect from 1)"
        )
    expected, questions = (pd.Index(each.counts["question_id"]) for each in (clean, file))
    missing = expected.difference(questions, sort=False)
    unknown = questions.difference(expected, sort=False)
    if len(missing) == len(expected):
        raise InputError(
            f"{file.path}: has no question in common with {clean.path} (here {_some(questions)}; "
            f"there {_some(expected)}); give files with the same questions"
        )
    if len(missing):
        raise InputError(
            f"{file.path}: {_some(missing)} of {clean.path} missing; add them. If a strategy "
            "dropped all responses to a question, give counts with n_correct 0 and n_samples 0"
        )
    if len(unknown):
        raise InputError(
            f"{file.path}: {_some(unknown)} not in {clean.path}; remove them, or add responses "
            "to them there"
        )
    made_by = [each.made_by.get("source") or each.made_by for each in (clean, file)]
    digests = {each.get("question_digest") for each in made_by} - {None}
    if len(digests) > 1:
        raise InputError(
            f"{file.path}: asks other questions than {clean.path} under the same ids; evaluate "
            "both models with one file of questions"
        )


def _shared_column(files: Collection[Loaded], column: str, fix: str) -> "pd.Series[Any] | None":
    """What the files that have a column say of each question; None if none has it."""
    having = [file for file in files if column in file.counts]
    for file in having[1:]:
        if len(differing := _differing(having[0], file, column)):
            raise InputError(
                f"{file.path}: {column} differs from {having[0].path} for {_some(differing)}; {fix}"
            )
    return having[0].counts.set_index("question_id")[column] if having else None


def unit_column(clean: pd.DataFrame) -> str:
    """The column of an aligned table that names what the bootstrap draws."""
    return "cluster" if "cluster" in clean else "question_id"


def _subset_sizes(clean: pd.DataFrame, unit: str) -> dict[str, int]:
    """How many questions, or clusters, each subset has."""
    leaked = clean["leaked"]
    subsets = {"all": leaked | True, "leaked": leaked, "unleaked": ~leaked}
    return {name: clean[rows][unit].nunique() for name, rows in subsets.items()}


def _notes(
    files: Mapping[str, Loaded], without_first: Set[str], aligned: pd.DataFrame
) -> Iterator[str]:
    """What a reader of the metrics should know of the files."""
    medians = {name: int(file.counts["n_samples"].median()) for name, file in files.items()}
    if len(set(medians.values())) > 1:
        shown = ", ".join(f"{name} {median}" for name, median in medians.items())
        yield (
            f"the number of responses per question differs between the files (medians: {shown}); "
            "the fewer there are, the more sampling noise adds to |gap|"
        )
    single = [str(file.path) for file in files.values() if _usual_number(file.counts) <= 1]
    if single:
        yield (
            f"{', '.join(single)}: one response per question, so a solve probability is 0 or 1, "
            "SA-PPG compares single answers, and no difference is marked †; sample several "
            "responses (the paper: 50; in lm_eval: the task's `repeats`)"
        )
    unit = unit_column(aligned)
    sizes, units = _subset_sizes(aligned, unit), UNITS[unit]
    for subset in sizes if sizes["all"] >= MIN_QUESTIONS else ["all"]:
        if 0 < sizes[subset] < MIN_QUESTIONS:
            yield (
                f"{sizes[subset]} {'' if subset == 'all' else subset + ' '}{units} are too few "
                "for intervals: they can be far too narrow, and nothing is marked as significant"
            )
    if not aligned["n_correct"].any():
        yield (
            f"{files['clean'].path}: THE CLEAN MODEL SOLVES NONE of the questions, so a strategy "
            "that solves none is at distance 0; check extraction rule, gold answers and length "
            "limit. No value is bold"
        )
    if without_first:
        paths = ", ".join(str(file.path) for name, file in files.items() if name in without_first)
        yield f"{paths}: counts without first_correct; G-AP, which needs one response, is left out"


def notes_on_files(files: Mapping[str, Loaded]) -> Iterator[str]:
    """What a reader should know of files that are compared: what differs between them."""
    for file in files.values():
        yield from file.notes
    for file in files.values():
        low, high = file.counts["n_samples"].min(), file.counts["n_samples"].max()
        if low != high:
            yield f"{file.path}: {low} to {high} responses per question"
    reference, *others = files.values()
    for file in others:
        if not any(len(_differing(reference, file, name)) for name in ("n_correct", "n_samples")):
            yield f"{file.path}: has the counts of {reference.path}; is it a copy?"
        if len(differing := _differing(reference, file, "doc_hash")):
            yield (
                f"{file.path}: {_some(differing)} with a different document than in "
                f"{reference.path} (doc_hash); are both from the same task?"
            )
    settings = {name: _settings(file) for name, file in files.items()}
    for setting in SETTINGS:
        origins: dict[str, list[str]] = {}
        for name, known in settings.items():
            if known.get(setting) not in (None, "", []):
                origins.setdefault(str(known[setting]), []).append(name)
        if len(origins) > 1:
            shown = "; ".join(f"{', '.join(names)}: {each}" for each, names in origins.items())
            yield (
                f"the responses were drawn or marked with different values of {setting} ({shown}), "
                "which is part of the gaps; make all files alike"
            )


def _settings(file: Loaded) -> dict[str, Any]:
    """What a file records of how its responses were drawn and marked."""
    drawn = next((each for each in draws(file.made_by) if "sampling" in each), {})
    known = {
        **drawn,
        **drawn.get("sampling", {}),
        "engine": ", ".join(sorted(engines(file.made_by))),
    }
    if file.disagreements is not None:  # marked here
        known.pop("extraction", None)
    return known


def _differing(first: Loaded, second: Loaded, column: str) -> pd.Index:
    """The questions whose values in a column both files know, and which differ."""
    tables = [file.counts.reindex(columns=["question_id", column]) for file in (first, second)]
    both = tables[0].merge(tables[1], on="question_id").dropna()
    return both[both[f"{column}_x"] != both[f"{column}_y"]].set_index("question_id").index


def _some(questions: pd.Index) -> str:
    """The number of questions and the first few of them: "3 questions (a, b, c)"."""
    shown = listed([shorten(str(question)) for question in questions])
    return f"{len(questions)} question{'s' * (len(questions) != 1)} ({shown})"
