"""What an evaluation shows: tables, the verdict, and files for a reader next to the responses."""

import dataclasses
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

import zerogap
from zerogap.evaluation.collect import SETTINGS, Collected
from zerogap.evaluation.model_run import Request
from zerogap.evaluation.strategies import CLEAN, IDENTITY, RAILCAP
from zerogap.evaluation.summary import COLLAPSE, Summary, summarise
from zerogap.evaluation.verdict import LABELS, verdict
from zerogap.io import atomic, parquet
from zerogap.io.provenance import provenance
from zerogap.reporting import figures
from zerogap.reporting.record import (
    Evaluation,
    generation_config,
    model_card_section,
    write_record,
)
from zerogap.reporting.render import Cell, Column, Row, Table
from zerogap.reporting.score import score_table
from zerogap.scoring import inputs
from zerogap.scoring import score as scoring

QUESTIONS, SUMMARY, PAGE, PLOT = "questions.csv", "summary.json", "summary.md", "questions.png"
RECORD = "every_eval_ever.json"
DECIMALS = 2
OVERLAP = {"rouge_l": "ROUGE-L", "peakedness": "Peakedness"}
COLUMNS = {"solve_mean": "Solved", "drop": "Drop", "collapsed": "Collapsed"} | OVERLAP
FORMULA = re.compile(r"\s*[=@+-](?![0-9.,/]+$)")  # not a signed number
MAX_QUESTIONS = 10  # in a printed table; all are in questions.csv


class Report(NamedTuple):
    """What is printed: tables by strategy, by question and, with a clean model, of `zerogap score`.

    The notes are what a reader of the comparison with the clean model should know.
    """

    tables: list[Table]
    verdict: list[str]
    notes: tuple[str, ...]


def write_report(request: Request, collected: Collected) -> Report:
    """Summarise an evaluation; write questions, summary and plot into its folder."""
    questions, folder = request.question_set.questions, request.output
    summary = summarise(questions, collected.greedy, collected.samples)
    title = f"{Path(request.model).name} on {Path(request.question_set.name).name}"
    answered = answer_note({"greedy": collected.greedy, **collected.samples})
    by_strategy = strategy_table(summary, title, request.num_samples, answered)
    values = _values(by_strategy, len(questions))
    distances: list[Table] = []
    metrics: pd.DataFrame | None = None
    notes: tuple[str, ...] = ()
    if CLEAN in collected.files:
        loaded = {name: inputs.load(path) for name, path in collected.files.items()}
        aligned = scoring.align(loaded.pop(CLEAN), loaded)
        metrics = scoring.score(aligned, collected.files[CLEAN].name)
        notes = (*aligned.notes, *scoring.strata_notes(aligned.clean))
        compared = scoring.summary(metrics, aligned)
        distances = [score_table(compared)]
        values = pd.concat([values, compared[compared.metric != "solve_mean"]])
    said = verdict(summary, metrics)
    with atomic.replacing(folder / QUESTIONS) as path:
        summary.questions.map(_not_a_formula).to_csv(path, index=False)
    _write_summary(folder, summary, metrics, said, notes)
    solved = {name: summary.questions[name].to_numpy() for name in summary.strategies}
    others = {LABELS.strategy(name): solved[name] for name in solved if name != IDENTITY}
    figure = figures.plot_questions(
        solved[IDENTITY], others, request.num_samples, "Identity", title
    )
    figures.write(figure, folder / PLOT)
    evaluation = Evaluation(
        benchmark=request.question_set.name,
        repository=request.question_set.repository,
        made_by={name: parquet.provenance(collected.files[name]) for name in collected.samples},
        num_responses={name: len(table) for name, table in collected.samples.items()},
        reference=request.clean,
    )
    write_record(folder / RECORD, values, evaluation)
    drawn = generation_config(evaluation.made_by[IDENTITY])
    card = model_card_section(
        f"Signs of memorisation: {title}",
        [by_strategy, *distances],
        notes,
        ["### Verdict", *said],
        {"zerogap": zerogap.__version__, **drawn["generation_args"], **drawn["additional_details"]},
    )
    with atomic.replacing(folder / PAGE) as path:
        path.write_text(card, encoding="utf-8")
    return Report([by_strategy, question_table(summary), *distances], said, notes)


def answer_note(responses: Mapping[str, pd.DataFrame]) -> str:
    """How many responses of each table are empty or have no answer by the extraction rule."""
    counts = [
        f"{LABELS.strategy(name)} {(table.text.str.strip() == '').sum()} and "
        f"{table.answer.isna().sum()} of {len(table)}"
        for name, table in responses.items()
    ]
    return f"Responses that are empty, and that have no answer: {', '.join(counts)}."


def strategy_table(summary: Summary, title: str, num_samples: int, answered: str) -> Table:
    """One row per strategy; `answered` is a note on the responses without an answer."""
    solved_greedily = int(summary.questions.greedy_correct.sum())
    notes = [
        f"Drop: Identity's solve probability minus the strategy's. Collapsed: questions that drop "
        f"by {COLLAPSE} or more, of those that Identity solves with {COLLAPSE} or more.",
        "ROUGE-L and peakedness: overlap of the responses with the model's greedy trajectory; "
        "peakedness is the share that nearly repeats it (edit distance at most 5 %).",
        f"The greedy responses solve {solved_greedily} of the {len(summary.questions)} questions.",
        answered,
    ]
    if summary.num_cut_off:
        notes.append(
            f"{summary.num_cut_off} greedy responses reach the length limit and are cut off; "
            "if their answers are missing, raise --max-new-tokens."
        )
    rows = []
    for name, row in summary.strategies.items():
        collapsed = "" if row.drop is None else f"{row.num_collapsed} of {summary.num_solvable}"
        cells = (
            *(Cell(*row.solve_mean), Cell(*(row.drop or ())), Cell(text=collapsed)),
            *(Cell(row.rouge_l), Cell(*row.peakedness)),
        )
        rows.append(Row(name, LABELS.strategy(name), cells))
    return Table(
        label="tab:evaluation",
        caption=(
            f"{title}: solve probabilities on {len(summary.questions)} questions, {num_samples} "
            f"responses each, with 95% bootstrap intervals over questions."
        ),
        index_label="Strategy",
        columns=tuple(Column(key, title) for key, title in COLUMNS.items()),
        rows=tuple(rows),
        notes=tuple(notes),
        decimals=DECIMALS,
        intervals=True,
    )


def question_table(summary: Summary) -> Table:
    """The questions that drop most, under RailCap or else the first strategy after Identity."""
    others = [name for name in summary.strategies if name != IDENTITY]
    ranked_by = RAILCAP if RAILCAP in others else (others or [IDENTITY])[0]
    column = f"drop_{ranked_by}" if others else ranked_by
    questions = summary.questions.sort_values(column, ascending=False, kind="stable")
    shown = questions.head(MAX_QUESTIONS)
    rest = f" {len(shown)} of {len(questions)} questions are shown;" * (len(shown) < len(questions))
    columns = [
        *(Column(name, LABELS.strategy(name)) for name in summary.strategies),
        *(Column(key, title) for key, title in OVERLAP.items()),
    ]
    rows = []
    for question in shown.to_dict("records"):
        greedy = Cell(text="right" if question["greedy_correct"] else "wrong")
        numbers = [Cell(question[column.key]) for column in columns]
        name = question["question_id"]
        rows.append(Row(name, name, (greedy, *numbers)))
    return Table(
        label="tab:questions",
        caption=(
            f"Solve probability per question, the largest drop under {LABELS.strategy(ranked_by)} "
            f"first.{rest} questions.csv has all."
        ),
        index_label="Question",
        columns=(Column("greedy_correct", "Greedy"), *columns),
        rows=tuple(rows),
        notes=("ROUGE-L and peakedness are those of Identity's responses.",),
        decimals=DECIMALS,
    )


def _values(table: Table, num_questions: int) -> pd.DataFrame:
    """The numbers of a table by strategy, in the columns of `zerogap.scoring.score.summary`."""
    rows = [
        (row.key, column.key, column.title, cell.value, cell.low, cell.high)
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
        if cell.is_number
    ]
    columns = ["strategy", "metric", "label", "value", "ci_low", "ci_high"]
    return pd.DataFrame(rows, columns=columns).assign(subset="all", n_questions=num_questions)


def _write_summary(
    folder: Path,
    summary: Summary,
    metrics: pd.DataFrame | None,
    said: list[str],
    notes: tuple[str, ...],
) -> None:
    numbers = dataclasses.asdict(summary)
    values: dict[str, Any] = {
        "strategies": numbers.pop("strategies"),
        "num_questions": len(numbers.pop("questions")),
        **numbers,
        "verdict": said,
        "provenance": provenance(**json.loads((folder / SETTINGS).read_text())),
    }
    if metrics is not None:
        values |= {"metrics": metrics.to_dict("records"), "notes": notes}
    with atomic.replacing(folder / SUMMARY) as path:
        text = json.dumps(_without_nan(values), indent=1, ensure_ascii=False)
        path.write_text(f"{text}\n", encoding="utf-8")


def _not_a_formula(value: Any) -> Any:
    """A value of a CSV file, with ' before a text that a spreadsheet would take for a formula."""
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value


def _without_nan(value: Any) -> Any:
    """The value with None for NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if value != value else value
