"""All tables and figures of the report: inputs, function, caption and labels.

A new table is one entry here, one function that returns a `Table`, and one caption in
``workflow/report``. The rules `make_table` and `make_figure` and the targets ``table_<name>`` and
``figure_<name>`` follow from the entries.
"""

from collections.abc import Mapping
from dataclasses import dataclass

PAPER, BEYOND, VS_PAPER = "The paper's", "Beyond the paper", "Compared with the paper"
SECTIONS = (PAPER, VS_PAPER, BEYOND)  # in reading order
FIRST_PAGE_FIGURES = ("mechanism", "readout_variance")  # Figures 1 and 2


@dataclass(frozen=True)
class Entry:
    """A table or a figure.

    Attributes:
        name: Name of the files and of the target.
        function: What builds it, ``module:function`` below `zerogap.reporting`.
        arguments: Parameter of the function to its source (see `zerogap.reporting.sources`).
        label: Number in the paper, or a short name.
        shows: What it shows, in the report's overview.
        section: Heading in the report's overview.
        caption: File in ``workflow/report``.
        mem_mb: Memory of the job.
    """

    name: str
    function: str
    arguments: Mapping[str, str]
    label: str
    shows: str
    section: str
    caption: str
    mem_mb: int = 2000

    @property
    def title(self) -> str:
        """Heading: "Table 3: SA-PPG in every setting", without a number what it shows."""
        shows = self.shows[0].upper() + self.shows[1:]
        kind = "Figure" if self.function.startswith("figures.") else "Table"
        return f"{kind} {self.label}: {shows}" if self.label.isdigit() else shows

    @property
    def numbered_section(self) -> str:
        """The section with its number in reading order; Snakemake's report sorts by name."""
        return f"{SECTIONS.index(self.section) + 1}. {self.section}"


def _by_name(*entries: Entry) -> dict[str, Entry]:
    return {entry.name: entry for entry in entries}


_ALL_SETTINGS = {"values": "metrics", "labels": "labels"}
_PRIMARY_SETTING = {
    "values": "primary_metrics",
    "labels": "labels",
    "setting": "primary_setting",
}
# Of the tables that show the ablation; the others do not wait for its samples.
_ALL_SETTINGS_AND_ABLATION = _ALL_SETTINGS | {"values": "metrics_with_ablation"}
_PRIMARY_SETTING_AND_ABLATION = _PRIMARY_SETTING | {"values": "primary_metrics_with_ablation"}

TABLES = _by_name(
    Entry(
        name="main",
        function="tables.paper:main",
        arguments=_ALL_SETTINGS,
        label="3",
        shows="SA-PPG in every setting",
        section=PAPER,
        caption="table_main.rst",
    ),
    Entry(
        name="reversal",
        function="tables.paper:reversal",
        arguments=_PRIMARY_SETTING,
        label="1",
        shows="G-AP and SA-PPG of the same responses",
        section=PAPER,
        caption="table_reversal.rst",
    ),
    Entry(
        name="decomposition",
        function="tables.paper:decomposition",
        arguments=_PRIMARY_SETTING,
        label="2",
        shows="the metrics and their components",
        section=PAPER,
        caption="table_decomposition.rst",
    ),
    Entry(
        name="ablation",
        function="tables.paper:ablation",
        arguments=_PRIMARY_SETTING_AND_ABLATION,
        label="4",
        shows="ablation of RailCap",
        section=PAPER,
        caption="table_ablation.rst",
    ),
    Entry(
        name="inline_numbers",
        function="tables.inline_numbers:inline_numbers",
        arguments={"numbers": "inline_numbers"},
        label="text",
        shows="numbers quoted in the text",
        section=PAPER,
        caption="table_inline_numbers.rst",
    ),
    Entry(
        name="intervals",
        function="tables.beyond:intervals",
        arguments=_ALL_SETTINGS_AND_ABLATION,
        label="intervals",
        shows="metric values with intervals, paired differences",
        section=BEYOND,
        caption="table_intervals.rst",
    ),
    Entry(
        name="pairs",
        function="tables.beyond:pairs",
        arguments=_ALL_SETTINGS,
        label="pairs",
        shows="differences between all pairs of strategies",
        section=BEYOND,
        caption="table_pairs.rst",
    ),
    Entry(
        name="variants",
        function="tables.beyond:variants",
        arguments=_PRIMARY_SETTING_AND_ABLATION,
        label="variants",
        shows="TED and LNE-blocking with both choices that their sources leave open",
        section=BEYOND,
        caption="table_variants.rst",
    ),
    Entry(
        name="subsets",
        function="tables.beyond:subsets",
        arguments=_ALL_SETTINGS_AND_ABLATION,
        label="subsets",
        shows="leaked and unleaked questions separately",
        section=BEYOND,
        caption="table_subsets.rst",
    ),
    Entry(
        name="noise_floor",
        function="tables.beyond:noise_floor",
        arguments=_ALL_SETTINGS,
        label="noise floor",
        shows="two batches of the clean model",
        section=BEYOND,
        caption="table_noise_floor.rst",
    ),
    Entry(
        name="diagnostics",
        function="tables.diagnostics:diagnostics",
        arguments={"values": "diagnostics", "labels": "labels"},
        label="diagnostics",
        shows="steps on the rail, interventions, recovery rate",
        section=BEYOND,
        caption="table_diagnostics.rst",
        mem_mb=4000,
    ),
    Entry(
        name="extraction_agreement",
        function="tables.extraction:extraction_agreement",
        arguments={"agreements": "extraction_agreements", "labels": "labels"},
        label="extraction",
        shows="the same responses under every extraction rule",
        section=BEYOND,
        caption="table_extraction_agreement.rst",
        mem_mb=8000,
    ),
    Entry(
        name="cost",
        function="tables.cost:cost",
        arguments={"jobs": "job_costs", "labels": "labels"},
        label="cost",
        shows="tokens and seconds of trainings, decoding and samples",
        section=BEYOND,
        caption="table_cost.rst",
        mem_mb=8000,
    ),
    Entry(
        name="main_vs_paper",
        function="tables.compare:main_vs_paper",
        arguments=_ALL_SETTINGS | {"protocol_differences": "protocol_differences"},
        label="3",
        shows="SA-PPG: the paper and this run",
        section=VS_PAPER,
        caption="table_vs_paper.rst",
    ),
    *(
        Entry(
            name=f"{name}_vs_paper",
            function=f"tables.compare:{name}_vs_paper",
            arguments=arguments | {"protocol_differences": "primary_protocol_differences"},
            label=label,
            shows=f"{shows}: the paper and this run",
            section=VS_PAPER,
            caption="table_vs_paper.rst",
        )
        for name, label, shows, arguments in (
            ("reversal", "1", "G-AP and SA-PPG", _PRIMARY_SETTING),
            ("decomposition", "2", "metrics and components", _PRIMARY_SETTING),
            ("ablation", "4", "ablation of RailCap", _PRIMARY_SETTING_AND_ABLATION),
        )
    ),
)

FIGURES = _by_name(
    Entry(
        name="mechanism",
        function="figures.mechanism:plot_mechanism",
        arguments={"overlap": "overlap", "ranks": "ranks", "title": "title"},
        label="1",
        shows="overlap with the greedy trajectory, token ranks",
        section=PAPER,
        caption="figure_mechanism.rst",
    ),
    Entry(
        name="readout_variance",
        function="figures.readout_variance:plot_readout_variance",
        arguments={"batch1": "clean", "batch2": "clean_batch2", "title": "title"},
        label="2",
        shows="0/1 readout and solve probability of two batches",
        section=PAPER,
        caption="figure_readout_variance.rst",
    ),
    Entry(
        name="scatter",
        function="figures.scatter:plot_scatter",
        arguments={"clean": "clean", "strategies": "strategies", "title": "title"},
        label="scatter",
        shows="every question, clean model and strategy",
        section=BEYOND,
        caption="figure_scatter.rst",
    ),
    Entry(
        name="subsets",
        function="figures.subsets:plot_subsets",
        arguments={
            "metrics": "strategy_metrics",
            "names": "strategy_names",
            "title": "title",
        },
        label="subsets",
        shows="leaked and unleaked questions separately",
        section=BEYOND,
        caption="figure_subsets.rst",
    ),
    Entry(
        name="strata",
        function="figures.strata:plot_strata",
        arguments={
            "clean": "clean",
            "strategies": "strategies_and_all_zero",
            "bins": "bins",
            "title": "title",
        },
        label="strata",
        shows="gaps by the clean model's solve probability",
        section=BEYOND,
        caption="figure_strata.rst",
    ),
    Entry(
        name="sensitivity",
        function="figures.sensitivity:plot_sensitivity",
        arguments={"table": "sensitivity", "title": "title"},
        label="sensitivity",
        shows="SA-PPG against B and m",
        section=BEYOND,
        caption="figure_sensitivity.rst",
    ),
    Entry(
        name="diagnostics",
        function="figures.diagnostics:plot_diagnostics",
        arguments={"values": "diagnostics", "labels": "labels"},
        label="diagnostics",
        shows="steps on the rail, interventions, recovery rate",
        section=BEYOND,
        caption="figure_diagnostics.rst",
        mem_mb=4000,
    ),
    Entry(
        name="loss",
        function="figures.loss:plot_loss",
        arguments={"losses": "losses", "names": "model_and_variant_names"},
        label="loss",
        shows="training loss",
        section=BEYOND,
        caption="figure_loss.rst",
    ),
)
