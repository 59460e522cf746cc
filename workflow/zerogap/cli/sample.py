"""The command `zerogap sample`."""

import sys
from typing import TYPE_CHECKING, Any

from zerogap.cli import options
from zerogap.cli.options import needed_packages

if TYPE_CHECKING:
    from zerogap.evaluation.collect import Collected
    from zerogap.evaluation.question_sets import QuestionSet


def sample(
    model: options.Model,
    benchmark: options.Benchmark,
    output: options.OutputFolder,
    strategies: options.Strategies = None,
    num_samples: options.NumSamples = 50,
    num_questions: options.NumQuestions = None,
    chat_template: options.ChatTemplate = None,
    extraction: options.Extraction = None,
    temperature: options.Temperature = 0.7,
    max_new_tokens: options.MaxNewTokens = 256,
    dtype: options.Dtype = "auto",
    seed: options.SamplingSeed = 0,
    base_model: options.BaseModel = None,
    neurons: options.Neurons = None,
) -> None:
    """Sample a model's responses under one or several strategies (default: identity).

    The greedy trajectories and the responses under each strategy are Parquet files in --output,
    which `zerogap score` accepts. An interrupted command resumes when it is repeated. `zerogap
    evaluate` with the same options continues with these files (docs/evaluate.md).
    """
    collected = collect(
        model=model,
        question_set=load_questions(benchmark, num_questions, seed, extraction),
        strategies=strategies or ["identity"],
        output=output,
        num_samples=num_samples,
        base_model=base_model,
        neurons=neurons,
        chat_template=chat_template,
        temperature=temperature,
        max_new_tokens=max_new_tokens,
        dtype=dtype,
        seed=seed,
    )
    for path in collected.files.values():
        print(path)


def load_questions(
    benchmark: str, num_questions: int | None, seed: int, extraction: str | None
) -> "QuestionSet":
    """Load the questions: a mistake in them is reported before torch, which takes seconds.

    Raises:
        InputError: packages are missing, or see :func:`zerogap.evaluation.question_sets.load`.
    """
    with needed_packages("evaluate"):
        from zerogap.evaluation import question_sets
    return question_sets.load(benchmark, num_questions, seed, extraction)


def collect(**request: Any) -> "Collected":
    """Collect the responses to a :class:`zerogap.evaluation.collect.Request`.

    Raises:
        InputError: packages are missing, or the request is invalid.
    """
    with needed_packages("evaluate"):  # imported late: torch takes seconds
        from zerogap.evaluation import collect as evaluation
    try:
        return evaluation.collect(evaluation.Request(**request))
    except KeyboardInterrupt:
        print("\nfinished questions are kept; repeat the command to resume", file=sys.stderr)
        raise
