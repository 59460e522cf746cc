"""The commands `zerogap sample` and `zerogap evaluate`, which have the same options."""

import inspect
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from zerogap.cli import output
from zerogap.cli.options import RULES, option
from zerogap.errors import needed_packages

if TYPE_CHECKING:
    from zerogap.evaluation.collect import Collected
    from zerogap.evaluation.model_run import Request

LINE_WIDTH = 100  # of the verdict
EVALUATED = ["identity", "railcap", "lne_blocking", "ted"]  # strategies, by default
BENCHMARK = (
    "gsm8k or another name in workflow/benchmarks or of an installed package, a benchmark's YAML "
    "file, or JSON Lines of questions with gold answers."
)
STRATEGIES = "identity, railcap, lne_blocking, ted, shortcut, an installed one or module:Class."
NUM_QUESTIONS = "Draw this many questions; default: the benchmark's number."
CHAT_TEMPLATE = "For a tokenizer with a chat template: use it, or prompt with plain text."
DTYPE = "Precision of decoding; auto: bfloat16 on a GPU, float32 on a CPU."


def _options(
    model: Annotated[str, option("FOLDER|NAME", "The model: a folder, or a name on the hub.")],
    benchmark: Annotated[str, option("NAME|FILE", BENCHMARK)],
    output: Annotated[Path, option("DIR", "Folder of all files.", "--output", file_okay=False)],
    strategies: Annotated[list[str] | None, option("NAME...", STRATEGIES)] = None,
    num_samples: Annotated[int, option("N", "Responses per question.")] = 50,
    num_questions: Annotated[int | None, option("N", NUM_QUESTIONS)] = None,
    clean: Annotated[
        str | None, option("FOLDER|NAME", "A clean model, the reference of SA-PPG.")
    ] = None,
    clean_batch2: Annotated[
        bool, option("", "Sample the clean model twice: the noise floor.", "--clean-batch2")
    ] = False,
    chat_template: Annotated[Literal["apply", "ignore"] | None, option("", CHAT_TEMPLATE)] = None,
    extraction: Annotated[str | None, option("RULE", f"{RULES}; default: the benchmark's.")] = None,
    temperature: Annotated[float, option("T", "Sampling temperature.")] = 0.7,
    max_new_tokens: Annotated[int, option("N", "Maximum length of a response in tokens.")] = 256,
    dtype: Annotated[Literal["auto", "float32", "bfloat16", "float16"], option("", DTYPE)] = "auto",
    seed: Annotated[int, option("N", "Seed of the questions and of the draws.")] = 0,
    base_model: Annotated[Path | None, option("FOLDER", "The base model, for shortcut.")] = None,
    neurons: Annotated[
        Path | None, option("FILE", "The model's neurons.parquet, for shortcut.")
    ] = None,
) -> None:
    """The options of both commands; all but those of the questions are a request's."""


def _collect(
    benchmark: str, num_questions: int | None, extraction: str | None, seed: int, **request: Any
) -> "tuple[Request, Collected]":
    """Collect the responses.

    Raises:
        InputError: Packages are missing, or the request is invalid.
    """
    with needed_packages("evaluate"):
        from zerogap.evaluation import question_sets
    # Before torch is imported, which takes seconds: a mistake in the questions is reported at once.
    question_set = question_sets.load(benchmark, num_questions, seed, extraction)
    with needed_packages("evaluate"):
        from zerogap.evaluation.collect import collect
        from zerogap.evaluation.model_run import Request
    wanted = Request(question_set=question_set, seed=seed, **request)
    try:
        return wanted, collect(wanted)
    except KeyboardInterrupt:
        print("\nfinished questions are kept; repeat the command to resume", file=sys.stderr)
        raise


def _with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of both."""
    command.__signature__ = inspect.signature(_options)  # type: ignore[attr-defined]
    return command


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
        output.print_note(note)
    for table in report.tables:
        output.print_table(table, "table")
        print()
    print("Verdict")
    for paragraph in report.verdict:
        print(f"{textwrap.fill(paragraph, LINE_WIDTH)}\n")
    files = "questions.csv, questions.png, summary.md, summary.json and every_eval_ever.json"
    print(f"Responses, {files}: {request.output}")
