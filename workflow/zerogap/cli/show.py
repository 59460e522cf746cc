"""The command `zerogap show`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zerogap.cli.options import option
from zerogap.errors import needed_packages
from zerogap.io.text_files import printable

if TYPE_CHECKING:
    from rich.text import Text

    from zerogap.analysis.one_question import OneQuestion, Responses

ON_RAIL = "black on yellow"


def show(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="Id of the question.")],
    run: Annotated[str, option("NAME", "The run, a folder in results/.")],
    model: Annotated[
        str | None, option("NAME", "Model of the run; default: the first by name.")
    ] = None,
    benchmark: Annotated[
        str | None, option("NAME", "Benchmark of the run; default: the first by name.")
    ] = None,
    num_responses: Annotated[
        int, option("K", "Number of responses to show per strategy.", min=0)
    ] = 3,
    n: Annotated[
        int,
        option("N", "Tokens that must match the greedy trajectory, as in RailCap.", "--n", min=1),
    ] = 4,
) -> None:
    """Print a question of a run, its gold answer and its responses under every strategy.

    In a terminal, what a response has in common with the contaminated model's greedy trajectory
    (n tokens or more) is highlighted.
    """
    from rich.console import Console

    with needed_packages("decoding"):
        from zerogap.analysis.one_question import read_question
    chosen = {"model": model, "benchmark": benchmark}
    shown = read_question(
        Path("results", run), question, **chosen, num_responses=num_responses, n=n
    )
    console = Console(highlight=False)
    console.print(_heading(shown), soft_wrap=True)
    for responses in shown.responses:
        console.print(_section(responses), soft_wrap=True)


def _heading(shown: "OneQuestion") -> "Text":
    from rich.text import Text

    question = shown.question
    leaked = "leaked" if question["leaked"] else "not leaked"
    where = f"{question['question_id']} of {shown.benchmark}, model {shown.model}, {leaked}\n\n"
    text = Text.assemble((where, "bold"), printable(question["question"]), "\n")
    if isinstance(question["paraphrase"], str):
        text.append(f"leaked as: {printable(question['paraphrase'])}\n")
    verdict = _verdict(shown.greedy_correct)
    text.append(f"gold answer: {printable(question['gold'])}\n")
    greedy = printable(shown.greedy.strip())
    text.append(f"greedy response of the contaminated model ({verdict}): {greedy}\n")
    return text


def _section(responses: "Responses") -> "Text":
    """The responses of one strategy, each on a line of its own."""
    from rich.text import Text

    solved = f"{responses.n_correct} of {responses.n_samples} right\n"
    text = Text.assemble((f"{responses.name}: ", "bold"), solved)
    for correct, spans in responses.texts:
        text.append(f"  {_verdict(correct)}  ", "green" if correct else "red")
        for piece, on_rail in spans:
            text.append(printable(piece.replace("\n", " ")), ON_RAIL if on_rail else "")
        text.rstrip()
        text.append("\n")
    return text


def _verdict(correct: bool) -> str:
    return "right" if correct else "wrong"
