"""The command `zerogap score`."""

import importlib
import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import zerogap
from zerogap.cli.options import ConfidenceLevel, Extraction, File, Filter, option
from zerogap.cli.output import Format, OutputFormat, print_json, print_note, print_table, records
from zerogap.errors import InputError, needed_packages
from zerogap.io import atomic
from zerogap.io.text_files import write_json_lines

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
    "questions, of which there must be several."
)


def score(
    strategies: Annotated[
        list[str], typer.Argument(metavar="[NAME=]FILE", help="Responses of a strategy.")
    ],
    clean: Annotated[Path, option("FILE", "Responses of the clean model, the reference.")],
    clean_batch2: Annotated[
        File, option("FILE", "A second batch of the clean model: the noise floor.")
    ] = None,
    leaked: Annotated[File, option("FILE", "Ids of the leaked questions, one per line.")] = None,
    filter_name: Filter = None,
    extraction: Extraction = None,
    bins: Annotated[int, option("N", "Number of strata.", min=1, max=MAX_BINS)] = 50,
    resamples: Annotated[
        int, option("N", "Number of bootstrap resamples.", min=100, max=MAX_RESAMPLES)
    ] = 2000,
    resample: Annotated[Literal["questions", "samples"], option("", RESAMPLE)] = "questions",
    confidence_level: ConfidenceLevel = 0.95,
    seed: Annotated[int, option("N", "Seed of the bootstrap.", min=0)] = 0,
    output_format: Format = "table",
    output: Annotated[File, option("FILE", "Write all metric values, .csv or .parquet.")] = None,
    disagreements: Annotated[
        File, option("FILE", "List the responses on which extraction rules disagree, .jsonl.")
    ] = None,
    plot: Annotated[File, option("FILE", "Plot the gaps by stratum, .png, .svg or .pdf.")] = None,
    html: Annotated[
        File, option("FILE", "Write a page with tables, plots and every question, .html.")
    ] = None,
    record: Annotated[
        File, option("FILE", "Write the table as a record of Every Eval Ever, .json.")
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
    named = {
        "--output": output, "--disagreements": disagreements, "--plot": plot, "--html": html,
        "--record": record,
    }  # fmt: skip
    outputs = {name: path for name, path in named.items() if path}
    paths = _files_to_read(paths, leaked, outputs)
    from zerogap.scoring import inputs  # imported late: --help does not need pandas, half a second

    files = inputs.load_all(
        paths,
        filter_name=filter_name,
        extraction=extraction,
        list_disagreements=disagreements is not None,
        with_texts=html is not None,
    )
    if disagreements:
        _write_disagreements(disagreements, files)
    settings = {
        "bins": bins, "n_resamples": resamples, "confidence_level": confidence_level,
        "seed": seed, "resample": resample,
    }  # fmt: skip
    leaked_ids = inputs.leaked_questions(leaked) if leaked else None
    _score(files, leaked_ids, extraction, settings, outputs, output_format)


def _files_to_read(
    paths: dict[str, Path], leaked: Path | None, outputs: dict[str, Path]
) -> dict[str, Path]:
    """The files of responses, for folders the log in them; every output can be written."""
    for name, path in outputs.items():
        if path.suffix not in SUFFIXES[name]:
            raise InputError(f"{name} must end in {' or '.join(SUFFIXES[name])} (got {path})")
    if "--plot" in outputs:
        with needed_packages("reporting", "--plot"):
            importlib.import_module("matplotlib")
    from zerogap.scoring.log_files import one_log  # imported late, as pandas

    paths = {name: one_log(path) for name, path in paths.items()}
    if paths.get("clean_batch2") == paths["clean"]:
        raise InputError("--clean-batch2: is the file of --clean; give responses of another batch")
    used = [*paths.values(), *([leaked] if leaked else [])]
    for path in outputs.values():
        atomic.output_file(path, used)
        used.append(path)
    return paths


def _write_disagreements(path: Path, files: "dict[str, inputs.Loaded]") -> None:
    """List the responses on which the rules disagree, of files whose responses were scored here."""
    graded = [file.disagreements for file in files.values() if file.disagreements is not None]
    if not graded:
        raise InputError(
            "--disagreements: every file says which responses are correct; name a rule with "
            "--extraction to score them"
        )
    rows = list(itertools.chain(*graded))
    write_json_lines(path, rows)
    print_note(f"{path}: {len(rows)} responses on which rules disagree")


def _score(
    files: "dict[str, inputs.Loaded]",
    leaked: list[str] | None,
    extraction: str | None,
    settings: dict[str, Any],
    outputs: dict[str, Path],
    output_format: OutputFormat,
) -> None:
    """Write the outputs that are asked for, and print the table."""
    from zerogap.io import parquet
    from zerogap.reporting import score as report
    from zerogap.reporting.record import model_card_section
    from zerogap.scoring import score as scoring

    strategies = {name: file for name, file in files.items() if name != "clean"}
    aligned = scoring.align(files["clean"], strategies, leaked)
    metrics = scoring.score(aligned, files["clean"].path.name, **settings)
    notes = [*aligned.notes, *scoring.strata_notes(aligned.clean, settings["bins"])]
    provenance = {
        "zerogap": zerogap.__version__,
        "files": {name: str(file.path) for name, file in files.items()},
        "extraction": extraction or "marks, else numeric",
        **settings,
        "notes": notes,
    }
    if (path := outputs.get("--output")) and path.suffix == ".parquet":
        parquet.write(path, metrics, "metrics", provenance)
    elif path:
        atomic.write_text(path, metrics.to_csv(index=False))
    if path := outputs.get("--plot"):
        _plot(path, aligned, settings["bins"])
    summary = scoring.summary(metrics, aligned)
    units = scoring.UNITS[scoring.unit_column(aligned.clean)]
    drawn = units if settings["resample"] == "questions" else "samples"
    shown = {"drawn": drawn} | {name: settings[name] for name in ("bins", "confidence_level")}
    table = report.score_table(summary, **shown)
    if path := outputs.get("--html"):
        report.write(path, table, aligned, files, provenance)
    if path := outputs.get("--record"):
        n_resamples = {"n_resamples": settings["n_resamples"]}
        _write_record(path, summary, files, aligned, shown | n_resamples)
    for note in notes:
        print_note(note)
    if output_format == "json":
        print_json({**provenance, "metrics": records(metrics)})
    elif output_format == "md":
        meaning = [report.ASSUMPTION]
        print(model_card_section(report.TITLE, [table], notes, meaning, provenance), end="")
    else:
        print_table(table, output_format)


def _write_record(
    path: Path,
    summary: "pd.DataFrame",
    files: "dict[str, inputs.Loaded]",
    aligned: "Aligned",
    options: dict[str, Any],
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
        **options,
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
            path = Path(argument)
            name = path.name if path.is_dir() else Path(argument.removesuffix(".gz")).stem
            file = argument
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
    from zerogap.reporting.figures import plot_strata, write
    from zerogap.reporting.score import strategy_label

    strategies = {strategy_label(name): table for name, table in aligned.strategies.items()}
    n_questions = len(aligned.clean)
    title = f"Gap to the clean model by its solve probability ({n_questions} questions)"
    write(plot_strata(aligned.clean, strategies, title, bins), path)
