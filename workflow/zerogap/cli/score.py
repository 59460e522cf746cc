"""The command `zerogap score`."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import zerogap
from zerogap.cli.options import RULES, option
from zerogap.cli.output import (
    Format,
    OutputFormat,
    print_json,
    print_note,
    print_table,
    records,
)
from zerogap.errors import InputError, needed_packages
from zerogap.io import atomic

if TYPE_CHECKING:
    import pandas as pd

    from zerogap.scoring import inputs
    from zerogap.scoring.score import Aligned

SUFFIXES = {
    "--output": (".csv", ".parquet"),
    "--disagreements": (".jsonl",),
    "--plot": (".png", ".svg", ".pdf"),
    "--html": (".html",),
    "--record": (".json",),
}
RESERVED_NAMES = ("clean", "clean_batch2", "clean, batch 2")
# A spreadsheet would take a cell that starts with one of =+@- for a formula.
NAME = re.compile(r"[^\s=+@-](?:.*\S)?")
MAX_BINS, MAX_RESAMPLES = 1000, 100_000  # as in the configuration; more would fill the memory
RESAMPLE = (
    "What the bootstrap draws again: questions of the same kind, or responses to the same "
    "questions."
)


def score(
    strategies: Annotated[
        list[str], typer.Argument(metavar="[NAME=]FILE", help="Responses of a strategy.")
    ],
    clean: Annotated[Path, option("FILE", "Responses of the clean model, the reference.")],
    clean_batch2: Annotated[
        Path | None, option("FILE", "A second batch of the clean model: the noise floor.")
    ] = None,
    leaked: Annotated[
        Path | None, option("FILE", "Ids of the leaked questions, one per line.")
    ] = None,
    filter_name: Annotated[
        str | None,
        option("NAME", "Filter or scorer of logs to read; default: the first.", "--filter"),
    ] = None,
    extraction: Annotated[str, option("RULE", f"{RULES} (docs/score.md).")] = "numeric",
    bins: Annotated[int, option("N", "Number of strata.", min=1, max=MAX_BINS)] = 50,
    resamples: Annotated[
        int, option("N", "Number of bootstrap resamples.", min=100, max=MAX_RESAMPLES)
    ] = 2000,
    resample: Annotated[Literal["questions", "samples"], option("", RESAMPLE)] = "questions",
    confidence_level: Annotated[
        float, option("LEVEL", "Confidence level of the intervals.")
    ] = 0.95,
    seed: Annotated[int, option("N", "Seed of the bootstrap.", min=0)] = 0,
    output_format: Format = "table",
    output: Annotated[
        Path | None, option("FILE", "Write all metric values, .csv or .parquet.")
    ] = None,
    disagreements: Annotated[
        Path | None,
        option("FILE", "List the responses on which extraction rules disagree, .jsonl."),
    ] = None,
    plot: Annotated[
        Path | None, option("FILE", "Plot the gaps by stratum, .png, .svg or .pdf.")
    ] = None,
    html: Annotated[
        Path | None,
        option("FILE", "Write a page with tables, plots and every question, .html.", "--html"),
    ] = None,
    record: Annotated[
        Path | None, option("FILE", "Write the table as a record of Every Eval Ever, .json.")
    ] = None,
) -> None:
    """Compare strategies' responses with a clean model's: SA-PPG and other metrics with intervals.

    Files are Parquet, JSON Lines or CSV, or logs of Inspect, lm-evaluation-harness, lighteval and
    Every Eval Ever, recognised by content (docs/score.md).
    """
    if not 0 < confidence_level < 1:
        raise InputError(f"--confidence-level must be between 0 and 1 (got {confidence_level:g})")
    paths = {"clean": clean, **_named_paths(strategies)}
    if clean_batch2:
        paths["clean_batch2"] = clean_batch2
    outputs = {
        "--output": output, "--disagreements": disagreements, "--plot": plot, "--html": html,
        "--record": record,
    }  # fmt: skip
    paths = _files_to_read(paths, leaked, outputs)
    settings = {
        "bins": bins, "n_resamples": resamples, "confidence_level": confidence_level,
        "seed": seed, "resample": resample,
    }  # fmt: skip
    files = _load(paths, filter_name, extraction, disagreements, with_texts=html is not None)
    _score(files, leaked, {"extraction": extraction, **settings}, outputs, output_format)


def _files_to_read(
    paths: dict[str, Path], leaked: Path | None, outputs: dict[str, Path | None]
) -> dict[str, Path]:
    """The files of responses, for folders the log in them; every output can be written."""
    for name, path in outputs.items():
        if path and path.suffix not in SUFFIXES[name]:
            raise InputError(f"{name} must end in {' or '.join(SUFFIXES[name])} (got {path})")
    from zerogap.scoring.log_files import one_log  # imported late, as pandas below

    paths = {name: one_log(path) for name, path in paths.items()}
    if paths.get("clean_batch2") == paths["clean"]:
        raise InputError("--clean-batch2: is the file of --clean; give responses of another batch")
    used = [*paths.values(), *([leaked] if leaked else [])]
    for path in filter(None, outputs.values()):
        atomic.output_file(path, used)
        used.append(path)
    return paths


def _load(
    paths: dict[str, Path],
    filter_name: str | None,
    extraction: str,
    disagreements: Path | None,
    *,
    with_texts: bool,
) -> dict[str, "inputs.Loaded"]:
    """Read the files, and list the responses on which the rules disagree.

    Raises:
        InputError: A file is not valid, or an option applies to none of them.
    """
    # Imported late: pandas takes half a second, which --help does not need.
    from zerogap.scoring import inputs

    files = inputs.load_all(
        paths,
        filter_name=filter_name,
        extraction=extraction,
        list_disagreements=disagreements is not None,
        with_texts=with_texts,
    )
    if disagreements:
        # Of each file whose responses were scored here.
        graded = [file.disagreements for file in files.values() if file.disagreements is not None]
        if not graded:
            raise InputError(f"--disagreements: {inputs.ALL_MARKED}")
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for rows in graded for row in rows]
        with atomic.replacing(disagreements) as temporary:
            temporary.write_text("".join(lines), encoding="utf-8")
        print_note(f"{disagreements}: {len(lines)} responses on which rules disagree")
    return files


def _score(
    files: dict[str, "inputs.Loaded"],
    leaked: Path | None,
    settings: dict[str, Any],
    outputs: dict[str, Path | None],
    output_format: OutputFormat,
) -> None:
    """Write the outputs that are asked for, and print the table."""
    from zerogap.io import parquet
    from zerogap.reporting import score as report
    from zerogap.reporting.record import model_card_section
    from zerogap.scoring import inputs
    from zerogap.scoring import score as scoring

    paths = {name: file.path for name, file in files.items()}
    clean, *strategies = files
    ids = inputs.leaked_questions(leaked) if leaked else None
    aligned = scoring.align(files[clean], {name: files[name] for name in strategies}, ids)
    options = {name: value for name, value in settings.items() if name != "extraction"}
    metrics = scoring.score(aligned, paths[clean].name, **options)
    provenance = {
        "zerogap": zerogap.__version__,
        "files": {name: str(path) for name, path in paths.items()},
        **settings,
        "notes": [*aligned.notes, *scoring.strata_notes(aligned.clean, settings["bins"])],
    }
    if (path := outputs["--output"]) and path.suffix == ".parquet":
        parquet.write(path, metrics, "metrics", provenance)
    elif path:
        with atomic.replacing(path) as temporary:
            metrics.to_csv(temporary, index=False)
    if path := outputs["--plot"]:
        _plot(path, aligned, settings["bins"])
    if path := outputs["--html"]:
        report.write(path, metrics, aligned, files, provenance)
    summary = scoring.summary(metrics, aligned)
    if path := outputs["--record"]:
        _write_record(path, summary, files, aligned, settings)
    for note in provenance["notes"]:
        print_note(note)
    shown = {name: settings[name] for name in ("bins", "confidence_level", "resample")}
    table = report.score_table(summary, **shown)
    if output_format == "json":
        print_json({**provenance, "metrics": records(metrics)})
    elif output_format == "md":
        meaning = [report.ASSUMPTION]
        notes = provenance["notes"]
        print(model_card_section(report.TITLE, [table], notes, meaning, provenance), end="")
    else:
        print_table(table, output_format)


def _write_record(
    path: Path,
    summary: "pd.DataFrame",
    files: dict[str, "inputs.Loaded"],
    aligned: "Aligned",
    settings: dict[str, Any],
) -> None:
    from zerogap.reporting.record import Evaluation, write_record

    clean = files["clean"]
    evaluation = Evaluation(
        benchmark=clean.made_by.get("benchmark", clean.path.name),
        made_by={name: files[name].made_by for name in aligned.strategies},
        num_responses={
            name: int(table["n_samples"].sum()) for name, table in aligned.strategies.items()
        },
        reference=str(clean.path),
        drawn=summary["units"].iloc[0] if settings["resample"] == "questions" else "samples",
        **{name: settings[name] for name in ("bins", "n_resamples", "confidence_level")},
    )
    write_record(path, summary, evaluation)


def _named_paths(arguments: list[str]) -> dict[str, Path]:
    """Name → path, from NAME=FILE, or FILE under its own name.

    An argument with "=" that is an existing file is a file.

    Raises:
        InputError: A name is reserved or given twice.
    """
    paths: dict[str, Path] = {}
    for argument in arguments:
        name, separator, file = argument.partition("=")
        if not separator or Path(argument).exists():
            name, file = Path(argument).stem, argument
        if not NAME.fullmatch(name):
            raise InputError(
                f"{argument}: the name {name!r} is empty or starts with a space or one of =+@-; "
                "use NAME=FILE"
            )
        if name.casefold() in RESERVED_NAMES:
            raise InputError(
                f"{argument}: {name!r} is a reserved name; use NAME=FILE to rename the strategy"
            )
        if name in paths:
            raise InputError(
                f"{argument}: duplicate strategy name {name!r} (also {paths[name]}); use NAME=FILE "
                "to rename one of them"
            )
        paths[name] = Path(file)
    return paths


def _plot(path: Path, aligned: "Aligned", bins: int) -> None:
    from zerogap.reporting.score import strategy_label

    with needed_packages("reporting", "--plot"):
        from zerogap.reporting.figures import plot_strata, write

    strategies = {strategy_label(name): table for name, table in aligned.strategies.items()}
    n_questions = len(aligned.clean)
    title = f"Gap to the clean model by its solve probability ({n_questions} questions)"
    write(plot_strata(aligned.clean, strategies, title, bins), path)
