"""Make the tables and figures of an unfinished run from what exists, and list what is missing.

A setting without its metrics (one strategy failed, or is still being sampled) is evaluated from the
solve counts that exist. A missing strategy is then a dash, or a row that is left out.
"""

import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from script_helpers import run
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.io.provenance import provenance
from zerogap.metrics.evaluate import evaluate, rows_about
from zerogap.metrics.same_questions import with_leaked_of
from zerogap.pipeline.report.figures import FIGURES
from zerogap.pipeline.report.sources import read_clean
from zerogap.pipeline.report.tables import TABLES
from zerogap.reporting.figures import style
from zerogap.reporting.render import Table, save

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

PARTIAL = "Partial table of an unfinished run; missing.txt lists what is missing."


def main(job: "Snakemake") -> None:
    """Write tables, figures and `missing.txt`, which goes to the log and to the terminal too."""
    params, folder = job.params, Path(job.params.folder)
    shutil.rmtree(folder, ignore_errors=True)  # of an earlier state of the run
    for name in ("metrics", "tables", "figures"):
        (folder / name).mkdir(parents=True)
    recorded, missing = provenance(**params.metadata), []
    substitutes: dict[str, str | None] = {}
    for number, setting in enumerate(params.settings):
        if not Path(setting["metrics"]).exists():
            paths = [*setting["clean"].values(), *setting["strategies"].values()]
            missing += [f"{path}: does not exist" for path in paths if not Path(path).exists()]
            path = folder / f"metrics/{number}.parquet"
            made = write_metrics(setting, path, params.options, recorded)
            substitutes[setting["metrics"]] = str(path) if made else None
    for kind, entries, sources in (
        ("table", TABLES, params.tables),
        ("figure", FIGURES, params.figures),
    ):
        for name, entry in entries.items():
            located, prefix = substituted(sources[name], substitutes), folder / f"{kind}s" / name
            try:
                built = entry.source.read(located)
            except InputError as error:
                missing.append(f"{kind} {name}: not made; {error}")
                continue
            if isinstance(built, Table):
                if located != sources[name]:
                    built = replace(built, caption=f"{PARTIAL} {built.caption}")
                title = entry.title("Table")
                save(built.of_run(title, params.scale_note, params.scale), prefix, recorded)
            else:
                style.save(built, prefix)
    text = "\n".join([f"partial report in {folder}", *dict.fromkeys(missing)]) + "\n"
    for path in (folder / "missing.txt", Path(job.log[0])):
        path.write_text(text)
    sys.stderr.write(text)


def write_metrics(
    setting: Mapping[str, Any], path: Path, options: Mapping[str, Any], recorded: Mapping[str, Any]
) -> bool:
    """Evaluate the strategies of a setting that have solve counts; False if there are none."""
    counts = {name: file for name, file in setting["strategies"].items() if Path(file).exists()}
    names = setting["only"] or list(counts)
    if counts.keys().isdisjoint(names) or not all(
        Path(file).exists() for file in setting["clean"].values()
    ):
        return False
    questions = parquet.read(setting["clean"]["questions"], "questions")
    solve = {
        name: with_leaked_of(questions, parquet.read(file, "solve"))
        for name, file in counts.items()
    }
    clean = read_clean(setting["clean"])
    table = evaluate(setting["model"], setting["benchmark"], clean, solve, **options)
    parquet.write(path, rows_about(table, names), "metrics", recorded)
    return True


def substituted(located: Any, substitutes: Mapping[str, str | None]) -> Any:
    """Where a source is, with other files for some of its files, or without them."""
    if isinstance(located, Mapping):
        return {key: substituted(part, substitutes) for key, part in located.items()}
    if isinstance(located, list):
        parts = [part for part in located if not is_gone(part, substitutes)]
        return [substituted(part, substitutes) for part in parts]
    return substitutes.get(located, located) if isinstance(located, str) else located


def is_gone(part: Any, substitutes: Mapping[str, str | None]) -> bool:
    """Whether a part is a file for which there is no other one."""
    return isinstance(part, str) and substitutes.get(part, part) is None


if __name__ == "__main__":
    run(lambda: main(snakemake))  # noqa: F821 (Snakemake defines it)
