"""What commands share: the options of evaluate and sample, and the packages of the extras."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from zerogap.errors import InputError

Model = Annotated[
    str, typer.Option(metavar="FOLDER|NAME", help="The model: a folder, or a name on the hub.")
]
Benchmark = Annotated[
    str,
    typer.Option(
        metavar="NAME|FILE",
        help="gsm8k or another name in workflow/benchmarks, a benchmark's YAML file, or JSON Lines "
        "of questions with gold answers.",
    ),
]
Strategies = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME...",
        help="identity, railcap, lne_blocking, ted, shortcut or package.module:Class.",
    ),
]
OutputFolder = Annotated[
    Path, typer.Option("--output", metavar="DIR", file_okay=False, help="Folder of all files.")
]
NumSamples = Annotated[int, typer.Option(metavar="N", help="Responses per question.")]
NumQuestions = Annotated[
    int | None,
    typer.Option(metavar="N", help="Draw this many questions; default: the benchmark's number."),
]
BaseModel = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="The base model, for shortcut.")
]
Neurons = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The model's neurons.parquet, for shortcut.")
]
Clean = Annotated[
    str | None,
    typer.Option(metavar="FOLDER|NAME", help="A clean model, the reference of SA-PPG."),
]
CleanBatch2 = Annotated[
    bool, typer.Option("--clean-batch2", help="Sample the clean model twice: the noise floor.")
]
ChatTemplate = Annotated[
    Literal["apply", "ignore"] | None,
    typer.Option(help="For a tokenizer with a chat template: use it, or prompt with plain text."),
]
Extraction = Annotated[
    str | None,
    typer.Option(
        metavar="RULE",
        help="Rule that finds the answer of a response: numeric, gsm8k/strict-match, "
        "gsm8k_cot/strict-match, flexible-extract, math-verify or package.module:function, or "
        "thinking/RULE for reasoning models; default: the benchmark's.",
    ),
]
Temperature = Annotated[float, typer.Option(metavar="T", help="Sampling temperature.")]
MaxNewTokens = Annotated[
    int, typer.Option(metavar="N", help="Maximum length of a response in tokens.")
]
Dtype = Annotated[
    Literal["auto", "float32", "bfloat16", "float16"],
    typer.Option(help="Precision of decoding; auto: bfloat16 on a GPU, float32 on a CPU."),
]
SamplingSeed = Annotated[
    int, typer.Option("--seed", metavar="N", help="Seed of the questions and of the draws.")
]


@contextmanager
def needed_packages(extras: str, user: str = "this command") -> Iterator[None]:
    """Turn a missing package into one line that says what to install.

    Args:
        extras: of this package, separated by commas.
        user: what needs the packages.

    Raises:
        InputError: a package is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise InputError(
            f"{user} needs {error.name}, which is not installed; install it with pip install "
            f"'/path/to/zerogap[{extras}]'"
        ) from error
