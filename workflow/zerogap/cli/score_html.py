"""The page of `zerogap score --html`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from zerogap.cli.tables import score_table, strategy_label
from zerogap.io import atomic
from zerogap.reporting import score_page
from zerogap.scoring.score import Aligned, summary
from zerogap.scoring.texts import read_texts


def write_page(
    path: Path,
    metrics: pd.DataFrame,
    aligned: Aligned,
    files: Mapping[str, Path],
    provenance: Mapping[str, Any],
) -> None:
    """Write the page.

    Args:
        path: The page.
        metrics: The table of `zerogap.scoring.score.score`.
        aligned: The tables that were scored.
        files: Name → file, of ``clean`` and every strategy.
        provenance: Version, options and notes; the same as in the other outputs.
    """
    texts = {name: read_texts(file) for name, file in files.items()}
    scored = score_page.Scored(
        clean=aligned.clean,
        strategies={strategy_label(name): table for name, table in aligned.strategies.items()},
        texts={strategy_label(name): texts[name] for name in aligned.strategies},
        clean_texts=texts["clean"],
        leaked_known=aligned.leaked_known,
        bins=provenance["bins"],
    )
    options = ("bins", "confidence_level", "resample")
    table = score_table(
        summary(metrics, aligned), **{option: provenance[option] for option in options}
    )
    shown = ("zerogap", "extraction", *options, "n_resamples", "seed")
    footer = " · ".join(f"{name} {provenance[name]}" for name in shown)
    page = score_page.to_html(scored, table, files["clean"].name, provenance["notes"], footer)
    with atomic.replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
