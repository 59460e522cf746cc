"""The numbers of an evaluation as tables."""

from zerogap.evaluation.strategies import IDENTITY
from zerogap.evaluation.summary import COLLAPSE, RAILCAP, Interval, StrategySummary, Summary
from zerogap.reporting.labels import Labels
from zerogap.reporting.render import Cell, Column, Row, Table, optional_float

DECIMALS = 2
MAX_QUESTIONS = 10  # in a printed table; all are in questions.csv
LABELS = Labels()


def strategy_table(summary: Summary, title: str, num_samples: int) -> Table:
    """One row per strategy.

    Args:
        summary: the numbers.
        title: the setting.
        num_samples: responses per question.
    """
    solved_greedily = int(summary.questions.greedy_correct.sum())
    notes = [
        f"Drop: Identity's solve probability minus the strategy's. Collapsed: questions that drop "
        f"by {COLLAPSE} or more, of those that Identity solves with {COLLAPSE} or more.",
        "ROUGE-L and peakedness: overlap of the responses with the model's greedy trajectory; "
        "peakedness is the share that nearly repeats it (edit distance at most 5 %).",
        f"The greedy responses solve {solved_greedily} of the {len(summary.questions)} questions.",
    ]
    if summary.num_cut_off:
        notes.append(
            f"{summary.num_cut_off} greedy responses reach the length limit and are cut off; "
            "if their answers are missing, raise --max-new-tokens."
        )
    return Table(
        label="tab:evaluation",
        caption=(
            f"{title}: solve probabilities on {len(summary.questions)} questions, {num_samples} "
            f"responses each, with 95% bootstrap intervals over questions."
        ),
        index_label="Strategy",
        columns=(
            Column("solve_mean", "Solved"),
            Column("drop", "Drop"),
            Column("collapsed", "Collapsed"),
            Column("rouge_l", "ROUGE-L"),
            Column("peakedness", "Peakedness"),
        ),
        rows=tuple(
            Row(name, LABELS.strategy(name), _strategy_cells(strategy, summary.num_solvable))
            for name, strategy in summary.strategies.items()
        ),
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
    return Table(
        label="tab:questions",
        caption=(
            f"Solve probability per question, the largest drop under {LABELS.strategy(ranked_by)} "
            f"first.{rest} questions.csv has all."
        ),
        index_label="Question",
        columns=(
            Column("greedy_correct", "Greedy"),
            *(Column(name, LABELS.strategy(name)) for name in summary.strategies),
            Column("rouge_l", "ROUGE-L"),
            Column("peakedness", "Peakedness"),
        ),
        rows=tuple(
            Row(
                question["question_id"],
                question["question_id"],
                (
                    Cell(text="right" if question["greedy_correct"] else "wrong"),
                    *(
                        Cell(optional_float(question[name]))
                        for name in (*summary.strategies, "rouge_l", "peakedness")
                    ),
                ),
            )
            for question in shown.to_dict("records")
        ),
        notes=("ROUGE-L and peakedness are those of Identity's responses.",),
        decimals=DECIMALS,
    )


def _strategy_cells(strategy: StrategySummary, num_solvable: int) -> tuple[Cell, ...]:
    collapsed = Cell()
    if strategy.num_collapsed is not None:
        collapsed = Cell(text=f"{strategy.num_collapsed} of {num_solvable}")
    return (
        _cell(strategy.solve_mean),
        Cell() if strategy.drop is None else _cell(strategy.drop),
        collapsed,
        Cell(optional_float(strategy.rouge_l)),
        _cell(strategy.peakedness),
    )


def _cell(value: Interval) -> Cell:
    number, low, high = map(optional_float, value)
    return Cell(number, low, high)
