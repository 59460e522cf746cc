"""The command `zerogap evaluate`."""

import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zerogap.cli import options
from zerogap.cli.options import needed_packages
from zerogap.cli.sample import collect, load_questions

if TYPE_CHECKING:
    from zerogap.evaluation.collect import Collected
    from zerogap.evaluation.comparison import CleanComparison
    from zerogap.evaluation.question_sets import QuestionSet
    from zerogap.reporting.render import Table

LINE_WIDTH = 100  # of the verdict

Clean = Annotated[
    str | None,
    typer.Option(metavar="FOLDER|NAME", help="A clean model, the reference of SA-PPG."),
]
CleanBatch2 = Annotated[
    bool, typer.Option("--clean-batch2", help="Sample the clean model twice: the noise floor.")
]


def evaluate(
    model: options.Model,
    benchmark: options.Benchmark,
    output: options.OutputFolder,
    strategies: options.Strategies = None,
    num_samples: options.NumSamples = 50,
    num_questions: options.NumQuestions = None,
    clean: Clean = None,
    clean_batch2: CleanBatch2 = False,
    chat_template: options.ChatTemplate = None,
    extraction: options.Extraction = None,
    temperature: options.Temperature = 0.7,
    max_new_tokens: options.MaxNewTokens = 256,
    dtype: options.Dtype = "auto",
    seed: options.SamplingSeed = 0,
    base_model: options.BaseModel = None,
    neurons: options.Neurons = None,
) -> None:
    """Show how far a model's score rests on its own greedy trajectory.

    Decodes the model greedily, samples it under the strategies (default: identity, railcap,
    lne_blocking, ted) and prints solve probabilities, drops from Identity, overlap with the greedy
    trajectory and a verdict in words. All responses, a plot and the numbers per question are files
    in --output. An interrupted command resumes when it is repeated (docs/evaluate.md).
    """
    question_set = load_questions(benchmark, num_questions, seed, extraction)
    with needed_packages("evaluate"):  # of the report, before hours of sampling
        import zerogap.evaluation.report  # noqa: F401
    collected = collect(
        model=model,
        question_set=question_set,
        strategies=strategies or options.DEFAULT_STRATEGIES,
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
    title = f"{Path(model).name} on {Path(benchmark).name}"
    _report(question_set, collected, output, title, num_samples)


def _report(
    question_set: "QuestionSet", collected: "Collected", folder: Path, title: str, num_samples: int
) -> None:
    """Write the report's files and print it."""
    from zerogap.evaluation import comparison, report, summary, tables, verdict

    numbers = summary.summarise(question_set.questions, collected.greedy, collected.samples)
    against_clean = comparison.compare_with_clean(collected.files)
    paragraphs = verdict.verdict(numbers, against_clean)
    shown = [
        tables.strategy_table(numbers, title, num_samples),
        tables.question_table(numbers),
        *_comparison_tables(against_clean),
    ]
    report.write(folder, numbers, against_clean, shown, paragraphs, title)
    for note in against_clean.notes if against_clean else ():
        print(f"note: {note}", file=sys.stderr)
    _print(shown, paragraphs, folder)


def _comparison_tables(against_clean: "CleanComparison | None") -> "list[Table]":
    """The table of `zerogap score`, if there is a clean model."""
    from zerogap.cli.tables import score_table
    from zerogap.evaluation.comparison import BINS, CONFIDENCE_LEVEL

    if against_clean is None:
        return []
    return [
        score_table(
            against_clean.summary,
            bins=BINS,
            confidence_level=CONFIDENCE_LEVEL,
            resample="questions",
        )
    ]


def _print(tables: "list[Table]", paragraphs: list[str], folder: Path) -> None:
    from zerogap.cli import output

    for table in tables:
        output.print_table(table, "table")
        print()
    print("Verdict")
    for paragraph in paragraphs:
        print(f"{textwrap.fill(paragraph, LINE_WIDTH)}\n")
    print(f"Responses, questions.csv, questions.png, summary.md and summary.json: {folder}")
