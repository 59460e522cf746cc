"""What an evaluation shows: tables, the verdict, and files for a reader next to the responses."""

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

import zerogap
from zerogap.analysis.one_question import marked_texts
from zerogap.evaluation.card import MAX_STYLE_AUC, SCORE, SIGNALS, Card, compare
from zerogap.evaluation.collect import SETTINGS, Collected
from zerogap.evaluation.model_run import Request
from zerogap.evaluation.strategies import CLEAN, IDENTITY
from zerogap.evaluation.summary import Summary, summarise
from zerogap.evaluation.verdict import LABELS, verdict
from zerogap.io import parquet
from zerogap.io.provenance import provenance
from zerogap.reporting import report_card
from zerogap.reporting.record import (
    Evaluation,
    generation_config,
    model_card_section,
    write_record,
)
from zerogap.reporting.render import Cell, Table, provenance_line, save_texts
from zerogap.reporting.score import score_table
from zerogap.reporting.tables.rows import columns_of, record_rows
from zerogap.scoring import inputs
from zerogap.scoring import score as scoring
from zerogap.strategies.registry import RAIL_N

DECIMALS = 2
FORMULA = re.compile(r"\s*[=@+-](?![0-9.,/]+$)")  # not a signed number
MAX_QUESTIONS, MAX_RESPONSES = 10, 3  # on the page; all questions are in questions.csv


class Report(NamedTuple):
    """What is printed: tables by strategy, of signals and, with a clean model, of `zerogap score`.

    The notes are what a reader of the comparison with the clean model should know.
    """

    tables: list[Table]
    verdict: list[str]
    notes: tuple[str, ...]


def write_report(request: Request, models: Sequence[Sequence[Collected]]) -> Report:
    """Summarise an evaluation; write its files for a reader into its folder.

    `models` has the model's responses to the benchmark and to the controls, then those of each
    reference.
    """
    folder, collected = request.output, models[0][0]
    summaries = [[summarise(side) for side in sides] for sides in models]
    summary = summaries[0][0]
    card = compare(summaries, request.controls) if request.controls else None
    title = f"{Path(os.path.abspath(request.model)).name} on {Path(request.question_set.name).name}"
    by_strategy = strategy_table(summary, collected, title)
    tables = [signal_table(card, title), by_strategy] if card else [by_strategy]
    values = _values(by_strategy, len(summary.questions), card)
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
    report = Report(tables, verdict(card, metrics), notes)
    asked = {"chat_template": request.chat_template or "none"}
    evaluation = Evaluation(
        benchmark=request.question_set.name,
        repository=request.question_set.repository,
        made_by={
            name: parquet.provenance(collected.files[name]) | asked for name in collected.samples
        },
        num_responses={name: len(table) for name, table in collected.samples.items()},
        reference=request.clean,
    )
    write_record(folder / "every_eval_ever.json", values, evaluation)
    heading, said = f"Report card: {title}", ["### Verdict", *report.verdict]
    drawn = generation_config(evaluation.made_by[IDENTITY])
    settings = {"zerogap": zerogap.__version__} | drawn["generation_args"]
    settings |= drawn["additional_details"]
    page = report_card.page(
        title=heading,
        paragraphs=report.verdict,
        tables=tables,
        signals={SIGNALS[name]: sides for name, sides in card.values.items()} if card else {},
        suspects=_suspects(summary, card, collected) if card else [],
        notes=notes,
        footer=provenance_line(settings),
    )
    # The folder's settings; without the options that only another call had.
    settings_of_all = json.loads((folder / SETTINGS).read_text()).items()
    made_by = provenance(
        **{k: v for k, v in settings_of_all if getattr(request, k, "") is not None}
    )
    texts = {
        "questions.csv": _questions_csv(summary, card),
        "summary.json": _summary_json(summary, card, metrics, report, made_by),
        "summary.md": model_card_section(heading, tables, notes, said, settings),
        "report.html": page,
    }
    save_texts(f"{folder}/", texts)
    return report


def signal_table(card: Card, title: str) -> Table:
    """One row per signal: benchmark, controls, and what sets them apart."""
    titles = {"difference": "Difference", "p": "p"}
    titles |= {"benchmark": "Benchmark", "controls": "Controls", "auc": "AUC"}
    columns = columns_of(titles)
    rows = [
        {"key": name, "name": SIGNALS[name], **signal._asdict()}
        | {"difference": Cell(*signal.difference), "p": f"{signal.p:.4f}"}
        for name, signal in card.signals.items()
    ]
    pairs = "each with a control of its own, " if card.paired else ""
    references = ", all but drops minus the references' mean" if card.num_references else ""
    return Table(
        label="tab:signals",
        caption=(
            f"{title}: {len(card.questions)} questions, {pairs}against {card.num_controls} "
            f"controls ({card.name}){references}, with 95% bootstrap intervals over questions."
        ),
        index_label="Signal",
        columns=columns,
        rows=record_rows(rows, columns),
        notes=(
            "AUC: how often a question of the benchmark has a larger value than a control. p: "
            f"one-sided, of a permutation test; the verdict rests on {SIGNALS[SCORE]} alone. "
            "Likelihoods are in nats per token.",
            "The texts of the questions alone tell the two apart with an AUC of "
            f"{card.style_auc:.2f}; above {MAX_STYLE_AUC:.2f} there is no verdict.",
        ),
        decimals=DECIMALS,
        intervals=True,
    )


def strategy_table(summary: Summary, collected: Collected, title: str) -> Table:
    """One row per strategy."""
    num_questions, num_responses = len(summary.questions), len(collected.samples[IDENTITY])
    answered = [
        f"{LABELS.strategy(name)} {(table.text.str.strip() == '').sum()} and "
        f"{table.answer.isna().sum()} of {len(table)}"
        for name, table in {"greedy": collected.greedy, **collected.samples}.items()
    ]
    notes = [
        "Drop: Identity's solve probability minus the strategy's.",
        "ROUGE-L and peakedness: overlap of the responses with the model's greedy trajectory; "
        "peakedness is the share that nearly repeats it (edit distance at most 5 %).",
        f"The greedy responses solve {int(summary.questions.greedy_correct.sum())} of the "
        f"{num_questions} questions.",
        f"Responses that are empty, and that have no answer: {', '.join(answered)}.",
    ]
    if summary.num_cut_off:
        notes.append(
            f"{summary.num_cut_off} greedy responses reach the length limit and are cut off; "
            "if their answers are missing, raise --max-new-tokens."
        )
    columns = columns_of(
        {"solve_mean": "Solved", "drop": "Drop", "rouge_l": "ROUGE-L", "peakedness": "Peakedness"}
    )
    rows = [
        {"key": name, "name": LABELS.strategy(name)}
        | {"solve_mean": Cell(*row.solve_mean), "drop": Cell(*(row.drop or ()))}
        | {"rouge_l": row.rouge_l, "peakedness": Cell(*row.peakedness)}
        for name, row in summary.strategies.items()
    ]
    return Table(
        label="tab:evaluation",
        caption=(
            f"{title}: solve probabilities on {num_questions} questions, "
            f"{num_responses // num_questions} responses each, with 95% bootstrap intervals over "
            "questions."
        ),
        index_label="Strategy",
        columns=columns,
        rows=record_rows(rows, columns),
        notes=tuple(notes),
        decimals=DECIMALS,
        intervals=True,
    )


def _values(table: Table, num_questions: int, card: Card | None) -> pd.DataFrame:
    """The table and the inflation in the columns of `zerogap.scoring.score.summary`."""
    columns = ["strategy", "metric", "label", "value", "ci_low", "ci_high", "n_questions"]
    rows = [
        (row.key, column.key, column.title, cell.value, cell.low, cell.high, num_questions)
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
        if cell.is_number
    ]
    if card and card.is_comparable:
        rows.append((IDENTITY, "inflation", "Inflation", *card.inflation, len(card.questions)))
    return pd.DataFrame(rows, columns=columns).assign(subset="all")


def _suspects(summary: Summary, card: Card, collected: Collected) -> list[dict[Any, Any]]:
    """The most suspicious questions."""
    ranked = card.questions.sort_values("suspicion", ascending=False, kind="stable")
    rows = ranked.head(MAX_QUESTIONS).merge(summary.questions, on="question_id")
    greedy = collected.greedy.set_index("question_id")[["token_ids", "text"]]
    responses = dict(list(collected.samples[IDENTITY].groupby("question_id")))
    suspects = []
    for row in rows.to_dict("records"):
        samples = responses[row["question_id"]].head(MAX_RESPONSES)
        trajectory, text = greedy.loc[row["question_id"]]
        shown = marked_texts(collected.tokenizer, trajectory, samples, RAIL_N)
        suspects.append(row | {"greedy": text, "solved": row[IDENTITY], "responses": shown})
    return suspects


def _questions_csv(summary: Summary, card: Card | None) -> str:
    """Every question with its numbers, as CSV."""
    table = summary.questions
    if card:
        table = table.merge(card.questions, how="left", on="question_id")
    return str(table.map(_not_a_formula).to_csv(index=False))


def _not_a_formula(value: Any) -> Any:
    """A value of a CSV file, with ' before a text that a spreadsheet would take for a formula."""
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value


def _summary_json(
    summary: Summary,
    card: Card | None,
    metrics: pd.DataFrame | None,
    report: Report,
    made_by: dict[str, Any],
) -> str:
    """All numbers as JSON, with null for NaN."""
    values: dict[str, Any] = {
        "strategies": {name: vars(row) for name, row in summary.strategies.items()},
        "num_questions": len(summary.questions),
        "num_cut_off": summary.num_cut_off,
        "verdict": report.verdict,
        "provenance": made_by,
    }
    if card:
        values |= {
            "controls": card.name,
            "num_controls": card.num_controls,
            "style_auc": card.style_auc,
            "signals": {name: signal._asdict() for name, signal in card.signals.items()},
        }
    if card and card.is_comparable:
        values |= {
            "p": card.p,
            "inflation": card.inflation,
            "memorised_share": card.share,
            "flagged": list(card.questions.question_id[card.questions.flagged]),
        }
    if metrics is not None:
        values |= {"metrics": metrics.to_dict("records"), "notes": report.notes}
    values = json.loads(json.dumps(values), parse_constant=lambda _: None)
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"
