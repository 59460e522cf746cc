"""The command line: `zerogap score` reads responses, `zerogap plan` says what a run will cost.

No torch is loaded.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import zerogap
from zerogap.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    import rich.table

    from zerogap.reporting.render import Table

FORMATS = ("table", "md", "csv", "json", "tex")
ROOT = Path(__file__).parents[2]  # of the checkout
OUTPUTS = (".csv", ".parquet")
PLOTS = (".png", ".svg", ".pdf")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; bad input gives one line on stderr and the exit status 2."""
    args = _parser().parse_args(argv)
    try:
        args.run(args)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader had enough, as in `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (InputError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="zerogap", description="Contamination-mitigation evaluation of language models."
    )
    parser.add_argument("--version", action="version", version=f"zerogap {zerogap.__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    _add_score(commands)
    _add_plan(commands)
    return parser


def _add_score(commands: Any) -> None:
    score = commands.add_parser(
        "score",
        help="read strategies' responses against a clean model's",
        description=(
            "Read strategies' responses against a clean model's: SA-PPG and its siblings with "
            "intervals. Files are our solve or samples Parquet, JSON Lines, CSV or sample logs of "
            "lm-evaluation-harness, recognised by content (docs/score.md)."
        ),
    )
    score.add_argument(
        "strategies", nargs="+", metavar="[NAME=]FILE", help="a strategy's responses"
    )
    score.add_argument("--clean", type=Path, required=True, help="the clean model's: the reference")
    score.add_argument("--clean-batch2", type=Path, help="a second batch of it: the noise floor")
    score.add_argument("--leaked", type=Path, help="ids of the leaked questions, one a line")
    score.add_argument("--filter", help="which filter of lm_eval logs to read (default: the first)")
    score.add_argument(
        "--extraction",
        default="numeric",
        metavar="RULE",
        help="finds the answer of a response: numeric (default), strict-match, flexible-extract or "
        "package.module:function",
    )
    score.add_argument("--bins", type=_positive, default=50, help="strata (default: 50)")
    score.add_argument(
        "--replicates", type=_positive, default=2000, help="of the bootstrap (default: 2000)"
    )
    score.add_argument(
        "--over",
        choices=("questions", "samples"),
        default="questions",
        help="what the bootstrap draws anew: other questions of the kind (default), or other "
        "responses to these questions",
    )
    score.add_argument("--level", type=_share, default=0.95, help="of intervals (default: 0.95)")
    score.add_argument("--seed", type=int, default=0, help="of the bootstrap (default: 0)")
    score.add_argument("--format", choices=FORMATS, default="table", help="of what is printed")
    score.add_argument(
        "--output", type=_file(OUTPUTS), metavar="FILE", help="all readings, .csv or .parquet"
    )
    score.add_argument(
        "--plot", type=_file(PLOTS), metavar="FILE", help="gaps by stratum, .png, .svg or .pdf"
    )
    score.set_defaults(run=_score)


def _add_plan(commands: Any) -> None:
    plan = commands.add_parser(
        "plan",
        help="jobs, tokens, GPU hours and disk of a run, before it is started",
        description=(
            "Jobs, tokens, GPU hours and disk of every stage of a run. Rates are tokens a second "
            "on one device, of a 7B model or, as MODEL=RATE, of one model; the defaults are "
            "estimates (docs/planning.md)."
        ),
    )
    plan.add_argument(
        "--config",
        nargs="+",
        type=Path,
        default=[ROOT / "config.yaml"],
        metavar="FILE",
        help="a configuration and its overlays (default: the paper's)",
    )
    for kind, meaning in {
        "training": "LoRA training, prompts included",
        "sampling": "sampling, generated tokens",
        "greedy": "one greedy response of every question, generated tokens",
        "prefill": "prompts, and responses that are only scored",
    }.items():
        plan.add_argument(
            f"--{kind}", nargs="+", type=_rate, default=[], metavar="[MODEL=]RATE", help=meaning
        )
    plan.add_argument(
        "--characters-per-token",
        type=_above_zero,
        default=3.0,
        metavar="NUMBER",
        help="where a model's tokenizer is not here yet (default: 3.0, GSM8K's under Llama-2's)",
    )
    plan.add_argument("--format", choices=FORMATS, default="table", help="of what is printed")
    plan.set_defaults(run=_plan)


def _score(args: argparse.Namespace) -> None:
    from zerogap.scoring import inputs, score  # not for --help: pandas takes half a second

    paths = _named(args.strategies)
    if args.clean_batch2:
        paths[score.BATCH2] = args.clean_batch2
    clean = inputs.load(args.clean, args.filter, args.extraction)
    files = {name: inputs.load(path, args.filter, args.extraction) for name, path in paths.items()}
    if args.filter and not any(file.kind == inputs.LM_EVAL for file in (clean, *files.values())):
        raise InputError("--filter: none of the files is an lm_eval log; leave it out")
    leaked = inputs.leaked_questions(args.leaked) if args.leaked else None
    aligned = score.align(clean, files, leaked)
    bootstrap = {
        "n_resamples": args.replicates, "confidence_level": args.level, "seed": args.seed,
        "resample": args.over,
    }  # fmt: skip
    metrics = score.score(aligned, args.clean.name, bins=args.bins, **bootstrap)

    table = score.summary(metrics, aligned, bins=args.bins, level=args.level, over=args.over)
    facts = {
        "zerogap": zerogap.__version__,
        "files": {name: str(path) for name, path in {"clean": args.clean, **paths}.items()},
        "extraction": args.extraction,
        "bins": args.bins,
        **bootstrap,
        "notes": list(aligned.notes),
    }
    if args.output:
        _write(args.output, metrics, facts)
    if args.plot:
        _plot(args.plot, aligned.clean, aligned.strategies, args.bins)
    for note in aligned.notes:
        print(f"note: {note}", file=sys.stderr)
    _print(table, args.format, metrics, facts)


def _plan(args: argparse.Namespace) -> None:
    from zerogap import config as configuration
    from zerogap.pipeline import planning
    from zerogap.pipeline.model_sizes import model_size
    from zerogap.pipeline.plan_table import plan_table

    config = configuration.load(args.config)
    by_kind = {kind: dict(getattr(args, kind)) for kind in planning.DEFAULT_RATES}
    for kind, by_model in by_kind.items():
        for model in by_model:
            if model and model not in config.models:
                raise InputError(
                    f"--{kind}: '{model}' is not a model of the configuration "
                    f"({', '.join(config.models)})"
                )
    rates = planning.Rates(**by_kind)
    sizes = {model: model_size(config, model) for model in config.models}
    plan = planning.plan(config, sizes, rates, args.characters_per_token)
    if args.format == "json":
        print(json.dumps({"run": config.run, "stages": plan.to_dict("records")}, indent=1))
    else:
        _print_table(plan_table(plan, config, sizes, rates), args.format)


def _named(given: Sequence[str]) -> dict[str, Path]:
    """NAME=FILE, or FILE under its own name; a file whose name holds an '=' is a file."""
    paths: dict[str, Path] = {}
    for text in given:
        name, mark, file = text.partition("=")
        if not mark or Path(text).exists():
            name, file = Path(text).stem, text
        if not name or name in ("clean", "clean_batch2"):
            raise InputError(f"{text}: a strategy cannot be called {name!r}; give NAME=FILE")
        if name in paths:
            raise InputError(
                f"{text}: {paths[name]} is called {name!r} as well; tell them apart by NAME=FILE"
            )
        paths[name] = Path(file)
    return paths


def _write(path: Path, metrics: "pd.DataFrame", facts: dict[str, Any]) -> None:
    from zerogap.io import parquet

    if path.suffix == ".parquet":
        parquet.write(path, metrics, "metrics", facts)
    else:
        with parquet.atomic(path) as temporary:
            metrics.to_csv(temporary, index=False)


def _plot(
    path: Path, clean: "pd.DataFrame", strategies: dict[str, "pd.DataFrame"], bins: int
) -> None:
    from zerogap.scoring import score

    try:
        from zerogap.reporting.figures.strata import plot_strata
        from zerogap.reporting.figures.style import write
    except ModuleNotFoundError as error:
        raise InputError(f"--plot: {error.name} is needed; pip install matplotlib") from error

    shown = {score.BATCH2_SHOWN if k == score.BATCH2 else k: s for k, s in strategies.items()}
    title = f"Gap to the clean model by its solve probability ({len(clean)} questions)"
    write(plot_strata(clean, shown, title, bins, min(10, bins)), path)


def _print(table: "Table", form: str, metrics: "pd.DataFrame", facts: dict[str, Any]) -> None:
    if form == "json":
        import pandas as pd

        # NaN is no JSON.
        rows = metrics.astype(object).where(pd.notna(metrics), None).to_dict("records")
        print(json.dumps({**facts, "readings": rows}, indent=1, ensure_ascii=False))
    else:
        _print_table(table, form)


def _print_table(table: "Table", form: str) -> None:
    from zerogap.reporting import render

    if form == "table":
        _print_rich(table)
    else:
        to_text = {"md": render.to_markdown, "csv": render.to_csv, "tex": render.to_latex}
        print(to_text[form](table), end="")


def _print_rich(table: "Table") -> None:
    from rich.console import Console
    from rich.text import Text

    # A file or a pipe has no width: rows must not break there.
    console = Console() if sys.stdout.isatty() else Console(width=200)
    shown = _rich(table, len(table.columns))
    endless = console.options.update(max_width=10_000)
    wide = console.measure(shown, options=endless).maximum > console.width
    if wide and any(cell.low is not None for row in table.rows for cell in row.cells):
        shown = _rich(table, 1)
        table = replace(table, notes=(*table.notes, "More intervals: a wider window, or --output."))
    console.print(Text(table.caption))
    console.print(shown)
    for note in table.notes:
        console.print(Text(note))


def _rich(table: "Table", with_interval: int) -> "rich.table.Table":
    """The table for a terminal, with intervals under the readings of the first columns."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True)
    shown.add_column(table.index_label, min_width=len(table.index_label))
    for column in table.columns:
        shown.add_column(column.title.replace(" − ", " −\n"), justify="right", no_wrap=True)
    section = ""
    for row in table.rows:
        if row.section != section:
            section = row.section
            shown.add_section()
            shown.add_row(Text(section, style="italic"))
        cells = []
        for k, cell in enumerate(row.cells):
            interval = cell.format_interval(table.decimals) if k < with_interval else ""
            cells.append(
                Text.assemble(
                    (cell.format(table.decimals), "bold green" if cell.bold else ""),
                    (f"\n{interval}" if interval else "", "dim"),
                )
            )
        shown.add_row(Text(row.name), *cells)
    return shown


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def _rate(text: str) -> tuple[str, float]:
    """An argparse type: RATE or MODEL=RATE, as (model or "", rate)."""
    model, _, number = text.rpartition("=")
    return model, _above_zero(number)


def _above_zero(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return value


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 0 and 1")
    return value


def _file(suffixes: Sequence[str]) -> Any:
    """An argparse type: a path that ends in one of the suffixes, found out before the work."""

    def parse(text: str) -> Path:
        if Path(text).suffix not in suffixes:
            raise argparse.ArgumentTypeError(f"{text!r} does not end in {' or '.join(suffixes)}")
        return Path(text)

    return parse
