"""Make the tables and figures of an unfinished run from what exists, and list what is missing."""

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from script_helpers import run
from zerogap.io.provenance import provenance
from zerogap.reporting.catalog import FIGURES, TABLES
from zerogap.reporting.figures import style
from zerogap.reporting.labels import Labels
from zerogap.reporting.partial import read_unfinished, uses_metrics
from zerogap.reporting.render import save
from zerogap.reporting.sources import build

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake


CLAIMS = "claims: not made; a verdict needs every cell (snakemake check_claims)"


def main(job: "Snakemake") -> None:
    """Write tables, figures and `missing.txt`, which goes to the log and to the terminal too."""
    params = job.params
    labels = Labels.from_mapping(params.sources["labels"])
    unfinished = read_unfinished(params.settings, params.options, tuple(params.setting), labels)
    cells = unfinished.missing_lines()
    summary = f"{len(cells)} of {unfinished.num_cells} cells are missing"

    folder = Path(params.folder)
    shutil.rmtree(folder, ignore_errors=True)  # of an earlier state of the run
    for name in ("tables", "figures"):
        (folder / name).mkdir(parents=True)
    notes, recorded = [], provenance(**params.metadata)
    for name, files in params.table_files.items():
        entry = TABLES[name]
        if uses_metrics(entry):
            table = unfinished.table(entry, params.sources)
        elif absent := _absent(files):
            notes.append(f"table {name}: not made; {absent}")
            continue
        else:
            table = build(entry, params.sources)
        table = table.of_run(entry.title, params.scale_note, params.scale)
        save(table, folder / "tables" / name, recorded)
    for name, files in params.figure_files.items():
        if absent := _absent(files):
            notes.append(f"figure {name}: not made; {absent}")
        else:
            style.save(build(FIGURES[name], params.sources), folder / "figures" / name)
    if cells or notes:
        notes.append(CLAIMS)

    text = "\n".join([f"partial report in {folder}: {summary}", *cells, *notes])
    (folder / "missing.txt").write_text(f"{text}\n")
    Path(job.log[0]).write_text(f"{text}\n")
    print(text, file=sys.stderr)


def _absent(paths: list[str]) -> str:
    """What does not exist, as a sentence; empty if everything does."""
    absent = [path for path in paths if not Path(path).exists()]
    if not absent:
        return ""
    others = f" and {len(absent) - 1} other(s) do not exist" if absent[1:] else " does not exist"
    return f"{absent[0]}{others}"


if __name__ == "__main__":
    run(lambda: main(snakemake))  # noqa: F821 (Snakemake defines it)
