"""What an evaluation shows: tables, the verdict, and files for a reader next to the responses."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

import zerogap
from zerogap.analysis.one_question import spans
from zerogap.evaluation.card import MAX_STYLE_AUC, SCORE, SIGNALS, Card, card
from zerogap.evaluation.collect import SETTINGS, Collected, Sides
from zerogap.evaluation.model_run import Request
from zerogap.evaluation.strategies import CLEAN, IDENTITY
from zerogap.evaluation.summary import Summary, summarise
from zerogap.evaluation.verdict import LABELS, verdict
from zerogap.io import atomic, parquet
from zerogap.io.provenance import provenance
from zerogap.reporting.record import (
    Evaluation,
    generation_config,
    model_card_section,
    write_record,
)
from zerogap.reporting.render import Cell, Column, Row, Table, provenance_line
from zerogap.reporting.report_card import Suspect
from zerogap.reporting.report_card import write as write_page
from zerogap.reporting.score import score_table
from zerogap.scoring import inputs
from zerogap.scoring import score as scoring

QUESTIONS, SUMMARY, SECTION, PAGE = "questions.csv", "summary.json", "summary.md", "report.html"
RECORD = "every_eval_ever.json"
DECIMALS = 2
OVERLAP = {"rouge_l": "ROUGE-L", "peakedness": "Peakedness"}
COLUMNS = {"solve_mean": "Solved", "drop": "Drop"} | OVERLAP
FORMULA = re.compile(r"\s*[=@+-](?![0-9.,/]+$)")  # not a signed number
MAX_QUESTIONS, MAX_RESPONSES = 10, 3  # on the page; all questions are in questions.csv
SUSPECT_COLUMNS = ("question_id", "question", "gold", "greedy_correct", "control", "flagged")
RAIL_N = 4  # tokens that must match, as in RailCap


class Report(NamedTuple):
    """What is printed: tables by strategy, of signals and, with a clean model, of `zerogap score`.

    The notes are what a reader of the comparison with the clean model should know.
    """

    tables: list[Table]
    verdict: list[str]
    notes: tuple[str, ...]


def write_report(request: Request, models: Sequence[Sides]) -> Report:
    """Summarise an evaluation; write its files for a reader into its folder.

    `models` has the responses of the model, then those of each reference.
    """
    questions, folder, collected = request.question_set.questions, request.output, models[0][0]
    summary = summarise(questions, collected)
    title = f"{Path(request.model).name} on {Path(request.question_set.name).name}"
    answered = answer_note({"greedy": collected.greedy, **collected.samples})
    tables = [strategy_table(summary, title, request.num_samples, answered)]
    values = _values(tables[0], len(questions))
    report_card = _card(request, summary, models)
    if report_card:
        tables.insert(0, signal_table(report_card, title))
        if report_card.is_comparable:
            values = pd.concat([values, _inflation(report_card)])
    metrics: pd.DataFrame | None = None
    notes: tuple[str, ...] = ()
    if CLEAN in collected.files:
        loaded = {name: inputs.load(path) for name, path in collected.files.items()}
        aligned = scoring.align(loaded.pop(CLEAN), loaded)
        metrics = scoring.score(aligned, collected.files[CLEAN].name)
        notes = (*aligned.notes, *scoring.strata_notes(aligned.clean))
        compared = scoring.summary(metrics, aligned)
        tables.append(score_table(compared))
        values = pd.concat([values, compared[compared.metric != "solve_mean"]])
    said = verdict(report_card, metrics)
    _write_questions(folder / QUESTIONS, summary, report_card)
    _write_summary(folder, summary, report_card, metrics, said, notes)
    evaluation = Evaluation(
        benchmark=request.question_set.name,
        repository=request.question_set.repository,
        made_by={name: parquet.provenance(collected.files[name]) for name in collected.samples},
        num_responses={name: len(table) for name, table in collected.samples.items()},
        reference=request.clean,
    )
    write_record(folder / RECORD, values, evaluation)
    drawn = generation_config(evaluation.made_by[IDENTITY])
    settings = {
        "zerogap": zerogap.__version__, **drawn["generation_args"], **drawn["additional_details"]
    }  # fmt: skip
    heading = f"Report card: {title}"
    section = model_card_section(heading, tables, notes, ["### Verdict", *said], settings)
    with atomic.replacing(folder / SECTION) as path:
        path.write_text(section, encoding="utf-8")
    write_page(
        folder / PAGE,
        title=heading,
        paragraphs=said,
        tables=tables,
        signals={
            SIGNALS[name]: each
            for name, each in (report_card.values if report_card else {}).items()
        },
        suspects=_suspects(summary, report_card, collected) if report_card else [],
        notes=notes,
        footer=provenance_line(settings),
    )
    return Report(tables, said, notes)


def _card(request: Request, summary: Summary, models: Sequence[Sides]) -> Card | None:
    """The comparison with the controls, if there are any."""
    if request.controls is None:
        return None
    benchmark, controls = request.question_set.questions, request.controls.questions.questions
    sides = [
        (
            summary if side is models[0] else summarise(benchmark, side.benchmark),
            summarise(controls, side.controls),
        )
        for side in models
        if side.controls
    ]
    return card(sides, request.controls)


def _inflation(report_card: Card) -> pd.DataFrame:
    """The inflation of the score, in the columns of `zerogap.scoring.score.summary`."""
    columns = ["strategy", "metric", "label", "value", "ci_low", "ci_high"]
    row = (IDENTITY, "inflation", "Inflation", *report_card.inflation)
    table = pd.DataFrame([row], columns=columns)
    return table.assign(subset="all", n_questions=len(report_card.questions))


def _suspects(summary: Summary, report_card: Card, collected: Collected) -> list[Suspect]:
    """The most suspicious questions."""
    ranked = report_card.questions.sort_values("suspicion", ascending=False, kind="stable")
    rows = ranked.head(MAX_QUESTIONS).merge(summary.questions, on="question_id")
    rows = rows.merge(collected.greedy[["question_id", "token_ids", "text"]], on="question_id")
    responses = dict(list(collected.samples[IDENTITY].groupby("question_id")))
    suspects = []
    for row in rows.to_dict("records"):
        shown = responses[row["question_id"]].head(MAX_RESPONSES)
        tokens = list(map(int, row["token_ids"]))
        suspects.append(
            Suspect(
                **{name: row[name] for name in SUSPECT_COLUMNS},
                greedy=row["text"],
                solved=row[IDENTITY],
                responses=[
                    (bool(right), spans(collected.tokenizer, tokens, list(map(int, ids)), RAIL_N))
                    for ids, right in zip(shown.token_ids, shown.correct, strict=True)
                ],
            )
        )
    return suspects


def answer_note(responses: Mapping[str, pd.DataFrame]) -> str:
    """How many responses of each table are empty or have no answer by the extraction rule."""
    counts = [
        f"{LABELS.strategy(name)} {(table.text.str.strip() == '').sum()} and "
        f"{table.answer.isna().sum()} of {len(table)}"
        for name, table in responses.items()
    ]
    return f"Responses that are empty, and that have no answer: {', '.join(counts)}."


def signal_table(report_card: Card, title: str) -> Table:
    """One row per signal: benchmark, controls, and what sets them apart."""
    rows = [
        Row(
            name,
            SIGNALS[name],
            (
                *(Cell(*signal.difference), Cell(text=f"{signal.p:.4f}")),
                *(Cell(signal.benchmark), Cell(signal.controls), Cell(signal.auc)),
            ),
        )
        for name, signal in report_card.signals.items()
    ]
    columns = {
        "difference": "Difference",
        "p": "p",
        "benchmark": "Benchmark",
        "controls": "Controls",
        "auc": "AUC",
    }
    pairs = "each with a control of its own, " if report_card.paired else ""
    references = ", all but drops minus the references' mean" if report_card.num_references else ""
    return Table(
        label="tab:signals",
        caption=(
            f"{title}: {len(report_card.questions)} questions, {pairs}against "
            f"{report_card.num_controls} controls ({report_card.name}){references}, with 95% "
            "bootstrap intervals over questions."
        ),
        index_label="Signal",
        columns=tuple(Column(key, label) for key, label in columns.items()),
        rows=tuple(rows),
        notes=(
            "AUC: how often a question of the benchmark has a larger value than a control. p: "
            "one-sided, of a permutation test; the verdict rests on "
            f"{SIGNALS[SCORE]} alone. Likelihoods are in nats per "
            "token.",
            "The texts of the questions alone tell the two apart with an AUC of "
            f"{report_card.style_auc:.2f}; above {MAX_STYLE_AUC:.2f} there is no verdict.",
        ),
        decimals=DECIMALS,
        intervals=True,
    )


def strategy_table(summary: Summary, title: str, num_samples: int, answered: str) -> Table:
    """One row per strategy; `answered` is a note on the responses without an answer."""
    solved_greedily = int(summary.questions.greedy_correct.sum())
    notes = [
        "Drop: Identity's solve probability minus the strategy's.",
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
        cells = (
            *(Cell(*row.solve_mean), Cell(*(row.drop or ()))),
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


def _write_questions(path: Path, summary: Summary, report_card: Card | None) -> None:
    table = summary.questions
    if report_card:
        table = table.merge(report_card.questions, how="left", on="question_id")
    with atomic.replacing(path) as temporary:
        table.map(_not_a_formula).to_csv(temporary, index=False)


def _write_summary(
    folder: Path,
    summary: Summary,
    report_card: Card | None,
    metrics: pd.DataFrame | None,
    said: list[str],
    notes: tuple[str, ...],
) -> None:
    values: dict[str, Any] = {
        "strategies": {name: vars(row) for name, row in summary.strategies.items()},
        "num_questions": len(summary.questions),
        "num_cut_off": summary.num_cut_off,
        "verdict": said,
        "provenance": provenance(**json.loads((folder / SETTINGS).read_text())),
    }
    if report_card:
        values |= {
            "controls": report_card.name,
            "num_controls": report_card.num_controls,
            "style_auc": report_card.style_auc,
            "signals": {name: row._asdict() for name, row in report_card.signals.items()},
        }
    if report_card and report_card.is_comparable:
        values |= {
            "p": report_card.p,
            "inflation": report_card.inflation,
            "memorised_share": report_card.share,
            "flagged": list(report_card.questions.question_id[report_card.questions.flagged]),
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
