"""The application: its commands, and errors in one line."""

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

import zerogap
from zerogap.cli.lm_eval import lm_eval
from zerogap.cli.plan import plan
from zerogap.cli.rehearse import rehearse
from zerogap.cli.score import score
from zerogap.cli.show import show
from zerogap.errors import InputError

# Options with several values: `--config a.yaml b.yaml` is `--config a.yaml --config b.yaml`.
MULTIPLE_VALUES = ("--config", "--training", "--sampling", "--greedy", "--prefill", "--models")

PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True}  # to another program

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Contamination-mitigation evaluation of language models.",
)
app.command()(score)
app.command()(plan)
app.command()(rehearse)
app.command("lm-eval", add_help_option=False, context_settings=PASSED_ON)(lm_eval)
app.command()(show)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: Command line without the program; None for that of the process.

    Returns:
        The exit status; invalid input prints one line to standard error and gives 2.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        status = app(_repeat_options(arguments), prog_name="zerogap", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed the pipe, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except typer.TyperException as error:
        print(f"error: {error.format_message()}", file=sys.stderr)
        return 2
    except (InputError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return int(status or 0)


def _repeat_options(arguments: Sequence[str]) -> list[str]:
    """Write options with several values once per value, as typer expects them."""
    repeated: list[str] = []
    option = ""
    for argument in arguments:
        if argument.startswith("-"):
            option = argument if argument in MULTIPLE_VALUES else ""
        elif option and repeated[-1] != option:
            repeated.append(option)
        repeated.append(argument)
    return repeated


def _print_version(value: bool) -> None:
    if value:
        print(f"zerogap {zerogap.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Contamination-mitigation evaluation of language models."""
