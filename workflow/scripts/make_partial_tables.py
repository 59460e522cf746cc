"""Make the tables of an unfinished run from what exists, and list what is missing."""

import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from script_helpers import run
from zerogap.io.provenance import provenance
from zerogap.reporting.catalog import TABLES
from zerogap.reporting.labels import Labels
from zerogap.reporting.partial import read_unfinished, uses_metrics
from zerogap.reporting.render import Table, save
from zerogap.reporting.sources import build

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake


def main(job: "Snakemake") -> None:
    """Write the tables and `missing.txt`, which goes to the log and to the terminal too."""
    params = job.params
    labels = Labels.from_mapping(params.sources["labels"])
    unfinished = read_unfinished(params.settings, params.options, tuple(params.setting), labels)
    lines = unfinished.missing_lines()
    summary = f"{len(lines)} of {unfinished.num_cells} cells are missing"

    folder = Path(params.folder)
    shutil.rmtree(folder, ignore_errors=True)  # tables of an earlier state of the run
    (folder / "tables").mkdir(parents=True)
    tables: dict[str, Table] = {}
    for name, entry in TABLES.items():
        if uses_metrics(entry):
            tables[name] = unfinished.table(entry, params.sources)
        elif absent := [path for path in params.files[name] if not Path(path).exists()]:
            lines.append(f"table {name}: not made; {_first(absent)}")
        else:
            tables[name] = build(entry, params.sources)
    _save(tables, folder, params.scale, params.metadata)

    text = "\n".join([f"partial tables in {folder}/tables: {summary}", *lines])
    (folder / "missing.txt").write_text(f"{text}\n")
    Path(job.log[0]).write_text(f"{text}\n")
    print(text, file=sys.stderr)


def _first(absent: list[str]) -> str:
    others = f" and {len(absent) - 1} other(s) do not exist" if absent[1:] else " does not exist"
    return f"{absent[0]}{others}"


def _save(
    tables: Mapping[str, Table], folder: Path, scale: str, metadata: Mapping[str, str]
) -> None:
    recorded = provenance(**metadata)
    for name, table in tables.items():
        table = replace(table, notes=(*table.notes, scale))
        save(table, folder / "tables" / name, recorded)


if __name__ == "__main__":
    run(lambda: main(snakemake))  # noqa: F821 (Snakemake defines it)
