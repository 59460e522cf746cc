"""The commands `zerogap sample` and `zerogap evaluate`, which have the same options."""

import inspect
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Option

from zerogap.cli import output
from zerogap.cli.score import EXTRACTION
from zerogap.errors import needed_packages

if TYPE_CHECKING:
    from zerogap.evaluation.collect import Collected, Request

LINE_WIDTH = 100  # of the verdict
EVALUATED = ["identity", "railcap", "lne_blocking", "ted"]  # strategies, by default


def _options(
    model: Annotated[
        str, Option(metavar="FOLDER|NAME", help="The model: a folder, or a name on the hub.")
    ],
    benchmark: Annotated[
        str,
        Option(
            metavar="NAME|FILE",
            help="gsm8k or another name in workflow/benchmarks, a benchmark's YAML file, or JSON "
            "Lines of questions with gold answers.",
        ),
    ],
    output: Annotated[Path, Option(metavar="DIR", file_okay=False, help="Folder of all files.")],
    strategies: Annotated[
        list[str] | None,
        Option(
            metavar="NAME...",
            help="identity, railcap, lne_blocking, ted, shortcut or package.module:Class.",
        ),
    ] = None,
    num_samples: Annotated[int, Option(metavar="N", help="Responses per question.")] = 50,
    num_questions: Annotated[
        int | None,
        Option(metavar="N", help="Draw this many questions; default: the benchmark's number."),
    ] = None,
    clean: Annotated[
        str | None,
        Option(metavar="FOLDER|NAME", help="A clean model, the reference of SA-PPG."),
    ] = None,
    clean_batch2: Annotated[
        bool, Option("--clean-batch2", help="Sample the clean model twice: the noise floor.")
    ] = False,
    chat_template: Annotated[
        Literal["apply", "ignore"] | None,
        Option(help="For a tokenizer with a chat template: use it, or prompt with plain text."),
    ] = None,
    extraction: Annotated[
        str | None, Option(metavar="RULE", help=f"{EXTRACTION}; default: the benchmark's.")
    ] = None,
    temperature: Annotated[float, Option(metavar="T", help="Sampling temperature.")] = 0.7,
    max_new_tokens: Annotated[
        int, Option(metavar="N", help="Maximum length of a response in tokens.")
    ] = 256,
    dtype: Annotated[
        Literal["auto", "float32", "bfloat16", "float16"],
        Option(help="Precision of decoding; auto: bfloat16 on a GPU, float32 on a CPU."),
    ] = "auto",
    seed: Annotated[int, Option(metavar="N", help="Seed of the questions and of the draws.")] = 0,
    base_model: Annotated[
        Path | None, Option(metavar="FOLDER", help="The base model, for shortcut.")
    ] = None,
    neurons: Annotated[
        Path | None, Option(metavar="FILE", help="The model's neurons.parquet, for shortcut.")
    ] = None,
) -> None:
    """The options of both commands."""


def _with_options(command: Callable[..., None]) -> Callable[..., None]:
    command.__signature__ = inspect.signature(_options)  # type: ignore[attr-defined]
    return command


def _collect(
    benchmark: str, num_questions: int | None, extraction: str | None, **arguments: Any
) -> "tuple[Request, Collected]":
    """Collect the responses; the other arguments are those of a request.

    Raises:
        InputError: Packages are missing, or the request is invalid.
    """
    with needed_packages("evaluate"):
        from zerogap.evaluation import question_sets
    # Before torch is imported, which takes seconds: a mistake in the questions is reported at once.
    asked = question_sets.load(benchmark, num_questions, arguments["seed"], extraction)
    with needed_packages("evaluate"):
        from zerogap.evaluation import collect as evaluation
    request = evaluation.Request(question_set=asked, **arguments)
    try:
        return request, evaluation.collect(request)
    except KeyboardInterrupt:
        print("\nfinished questions are kept; repeat the command to resume", file=sys.stderr)
        raise


@_with_options
def sample(**arguments: Any) -> None:
    """Sample a model's responses under one or several strategies (default: identity).

    The greedy trajectories and the responses under each strategy are Parquet files in --output,
    which `zerogap score` accepts. An interrupted command resumes when it is repeated. `zerogap
    evaluate` with the same options continues with these files (docs/evaluate.md).
    """
    arguments["strategies"] = arguments["strategies"] or ["identity"]
    _, collected = _collect(**arguments)
    for path in collected.files.values():
        print(path)


@_with_options
def evaluate(**arguments: Any) -> None:
    """Show how far a model's score rests on its own greedy trajectory.

    Decodes the model greedily, samples it under the strategies (default: identity, railcap,
    lne_blocking, ted) and prints solve probabilities, drops from Identity, overlap with the greedy
    trajectory and a verdict in words. All responses, a plot and the numbers per question are files
    in --output. An interrupted command resumes when it is repeated (docs/evaluate.md).
    """
    arguments["strategies"] = arguments["strategies"] or EVALUATED
    request, collected = _collect(**arguments)
    from zerogap.evaluation.report import write_report

    report = write_report(request, collected)
    for note in report.notes:
        print(f"note: {note}", file=sys.stderr)
    for table in report.tables:
        output.print_table(table, "table")
        print()
    print("Verdict")
    for paragraph in report.verdict:
        print(f"{textwrap.fill(paragraph, LINE_WIDTH)}\n")
    print(f"Responses, questions.csv, questions.png, summary.md and summary.json: {request.output}")
