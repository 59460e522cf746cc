"""The commands `zerogap sample` and `zerogap evaluate`, which have the same options."""

import inspect
import sys
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from zerogap.cli import options, output
from zerogap.cli.options import needed_packages

if TYPE_CHECKING:
    from zerogap.evaluation.collect import Collected, Request

LINE_WIDTH = 100  # of the verdict
EVALUATED = ["identity", "railcap", "lne_blocking", "ted"]  # strategies, by default


def _collect(
    model: options.Model,
    benchmark: options.Benchmark,
    output: options.OutputFolder,
    strategies: options.Strategies = None,
    num_samples: options.NumSamples = 50,
    num_questions: options.NumQuestions = None,
    clean: options.Clean = None,
    clean_batch2: options.CleanBatch2 = False,
    chat_template: options.ChatTemplate = None,
    extraction: options.Extraction = None,
    temperature: options.Temperature = 0.7,
    max_new_tokens: options.MaxNewTokens = 256,
    dtype: options.Dtype = "auto",
    seed: options.SamplingSeed = 0,
    base_model: options.BaseModel = None,
    neurons: options.Neurons = None,
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
        from zerogap.evaluation import collect as evaluation
    request = evaluation.Request(
        model=model,
        question_set=question_set,
        strategies=strategies or ["identity"],
        output=output,
        num_samples=num_samples,
        clean=clean,
        clean_batch2=clean_batch2,
        base_model=base_model,
        neurons=neurons,
        chat_template=chat_template,
        temperature=temperature,
        max_new_tokens=max_new_tokens,
        dtype=dtype,
        seed=seed,
    )
    try:
        return request, evaluation.collect(request)
    except KeyboardInterrupt:
        print("\nfinished questions are kept; repeat the command to resume", file=sys.stderr)
        raise


def _with_options_of_collect(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that it passes on to :func:`_collect`."""
    command.__signature__ = inspect.signature(_collect)  # type: ignore[attr-defined]
    return command


@_with_options_of_collect
def sample(**arguments: Any) -> None:
    """Sample a model's responses under one or several strategies (default: identity).

    The greedy trajectories and the responses under each strategy are Parquet files in --output,
    which `zerogap score` accepts. An interrupted command resumes when it is repeated. `zerogap
    evaluate` with the same options continues with these files (docs/evaluate.md).
    """
    _, collected = _collect(**arguments)
    for path in collected.files.values():
        print(path)


@_with_options_of_collect
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
