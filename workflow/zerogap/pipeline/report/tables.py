"""All tables of a run: what each is made of; tables.yaml has their words.

A new table is one entry in both and one function that returns a `Table`. The target
``table_<name>`` follows from the entry.
"""

from functools import partial
from pathlib import Path

from zerogap.pipeline.report import sources
from zerogap.pipeline.report.entry import Source, entries, made_of
from zerogap.pipeline.report.protocol import PRIMARY_PROTOCOL_DIFFERENCES, PROTOCOL_DIFFERENCES
from zerogap.pipeline.report.sources import (
    LABELS,
    METRICS,
    METRICS_AND_ABLATION,
    PRIMARY_METRICS,
    PRIMARY_METRICS_AND_ABLATION,
    PRIMARY_SETTING,
)
from zerogap.reporting.render import Table
from zerogap.reporting.tables import paper, supplementary
from zerogap.reporting.tables.paper import vs_paper

_SOURCES: dict[str, Source[Table]] = {
    "main": made_of(paper.main, METRICS, LABELS),
    "reversal": made_of(paper.reversal, PRIMARY_METRICS, LABELS, PRIMARY_SETTING),
    "decomposition": made_of(paper.decomposition, PRIMARY_METRICS, LABELS, PRIMARY_SETTING),
    "ablation": made_of(paper.ablation, PRIMARY_METRICS_AND_ABLATION, LABELS, PRIMARY_SETTING),
    "inline_numbers": made_of(paper.inline_numbers, sources.INLINE_NUMBERS),
    "intervals": made_of(supplementary.intervals, METRICS_AND_ABLATION, LABELS),
    "pairs": made_of(supplementary.pairs, METRICS, LABELS),
    "strata": made_of(supplementary.strata, sources.VALUES_BY_BINS, LABELS),
    "subsets": made_of(supplementary.subsets, METRICS_AND_ABLATION, LABELS),
    "diagnostics": made_of(supplementary.diagnostics, sources.DIAGNOSTICS, LABELS),
    "extraction_agreement": made_of(supplementary.extraction_agreement, sources.EXTRACTION, LABELS),
    "cost": made_of(supplementary.cost, sources.JOB_COSTS, LABELS),
    "main_vs_paper": made_of(
        partial(vs_paper, paper.main, "Table 3"), PROTOCOL_DIFFERENCES, METRICS, LABELS
    ),
    **{
        f"{name}_vs_paper": made_of(
            partial(vs_paper, build, f"Table {number}"),
            PRIMARY_PROTOCOL_DIFFERENCES,
            metrics,
            LABELS,
            PRIMARY_SETTING,
        )
        for name, build, metrics, number in (
            ("reversal", paper.reversal, PRIMARY_METRICS, 1),
            ("decomposition", paper.decomposition, PRIMARY_METRICS, 2),
            ("ablation", paper.ablation, PRIMARY_METRICS_AND_ABLATION, 4),
        )
    },
    "memorisation": made_of(supplementary.memorisation, sources.MEMORISATION, LABELS),
}
TABLES = entries(Path(__file__).with_suffix(".yaml"), _SOURCES)
