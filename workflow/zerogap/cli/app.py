"""The application: its commands, and errors in one line."""

import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

import zerogap
from zerogap.cli.compare import compare
from zerogap.cli.evaluate import evaluate, sample
from zerogap.cli.score import score
from zerogap.cli.show import show
from zerogap.cli.workflow import plan, rehearse, run
from zerogap.errors import InputError
from zerogap.io.text_files import printable

# Options with several values: `--config a.yaml b.yaml` is `--config a.yaml --config b.yaml`.
MULTIPLE_VALUES = ("--config", "--rate", "--models", "--reference", "--strategies", "--with")
INTERRUPTED = 130  # 128 + SIGINT, as shells report it
RESUMES = "130 interrupted (repeat the command to resume)"
# Command → an example, and its exit statuses other than 0 for success and 2 for invalid input.
COMMANDS: dict[Callable[..., Any], tuple[str, ...]] = {
    evaluate: ("FOLDER --benchmark gsm8k --num-questions 100 --output out", RESUMES),
    sample: ("FOLDER --benchmark questions.jsonl --output out", RESUMES),
    score: ("--clean clean.jsonl identity.jsonl railcap=railcap.csv",),
    compare: ("checkpoint-1.eval checkpoint-2.eval",),
    plan: ("--config config.yaml --rate sampling=3000",),
    rehearse: ("--models llama2", "1 a stage failed"),
    run: ("table_main --profile quick --with mine.yaml", "1 Snakemake failed"),
    show: ("test-0000 --run quick",),
}
PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True}  # to another program


def lm_eval(context: typer.Context) -> None:
    """Run lm-evaluation-harness with the model type `zerogap`; takes the arguments of lm_eval.

    zerogap lm-eval --model zerogap --model_args pretrained=MODEL,strategy=railcap,n=4
    --tasks gsm8k_cot --log_samples --output_path logs (docs/railcap.md#lm-evaluation-harness)
    """
    try:  # imported late: the other commands do without it
        from zerogap.integrations import harness
    except ModuleNotFoundError as error:
        raise InputError(
            f"zerogap lm-eval needs lm-evaluation-harness ({error}); install it as in "
            "docs/railcap.md#lm-evaluation-harness"
        ) from error
    if {"-h", "--help"} & set(context.args):
        print(textwrap.dedent(f"    {lm_eval.__doc__}"))
    harness.run(context.args)


app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command, (example, *statuses) in COMMANDS.items():
    exits = ", ".join(("0 success", "2 invalid input (one line)", *statuses))
    epilog = f"Example:\n\nzerogap {command.__name__} {example}\n\nExit status: {exits}."
    app.command(epilog=epilog)(command)
app.command("lm-eval", add_help_option=False, context_settings=PASSED_ON)(lm_eval)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: command line without the program; None for that of the process.

    Returns:
        The exit status; invalid input prints one line to standard error and gives 2, and an
        interruption 130.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        _check_words(arguments)
        status = app(repeat_options(arguments), prog_name="zerogap", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed the pipe, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (KeyboardInterrupt, typer.Abort):
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except typer.TyperException as error:
        print(f"error: {printable(error.format_message())}", file=sys.stderr)
        return 2
    except (InputError, OSError) as error:
        print(f"error: {printable(str(error))}", file=sys.stderr)
        return 2
    return int(status or 0)


def _check_words(arguments: Sequence[str]) -> None:
    """Reject names that are empty, or that a terminal would obey or not show.

    Other programs' arguments are theirs.

    Raises:
        InputError: an argument is such a name.
    """
    if arguments[:1] in (["lm-eval"], ["run"]):
        return
    for argument in arguments:
        if not argument.strip() or argument.endswith("="):  # would be the working directory
            raise InputError(f"{argument or repr(argument)}: has no value; give one")
        if (shown := printable(argument, keep="")) != argument:
            raise InputError(f"{shown}: has a control or invisible character; rename it")


def repeat_options(arguments: Sequence[str]) -> list[str]:
    """Write options with several values once per value, as typer expects them."""
    repeated: list[str] = []
    option = ""
    for position, argument in enumerate(arguments):
        if argument == "--":  # the rest is for another program
            return [*repeated, *arguments[position:]]
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


Version = Annotated[
    bool,
    typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version."),
]


@app.callback()
def _options(version: Version = False) -> None:
    """Contamination-mitigation evaluation of language models."""
