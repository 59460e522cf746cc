"""All tables of a run: what each is made of, and how it is presented.

A new table is one entry here and one function that returns a `Table`. The target ``table_<name>``
follows from the entry.
"""

from zerogap.pipeline.report import sources
from zerogap.pipeline.report.entry import BEYOND, CHECKS, PAPER, VS_PAPER, Entry
from zerogap.pipeline.report.protocol import PRIMARY_PROTOCOL_DIFFERENCES, PROTOCOL_DIFFERENCES
from zerogap.pipeline.report.source import made_of
from zerogap.pipeline.report.sources import (
    LABELS,
    METRICS,
    METRICS_AND_ABLATION,
    PRIMARY_METRICS,
    PRIMARY_METRICS_AND_ABLATION,
    PRIMARY_SETTING,
)
from zerogap.reporting.render import Table
from zerogap.reporting.tables import paper, run, supplementary
from zerogap.reporting.tables.compare import main_vs_paper, of_one_setting
from zerogap.reporting.tables.diagnostics import diagnostics

_VS_PAPER_CAPTION = """
    **This run and the paper.** Each value of this run next to the published one. If this run
    follows the paper's protocol, the difference and its interval are shown: an interval that
    contains 0 is compatible with the published number (it does not cover training seeds). Otherwise
    compare the order of the rows and the signs, not the numbers; a note below the table lists what
    differs. A dash is a value that the paper does not give.
"""

TABLES: dict[str, Entry[Table]] = {
    "main": Entry(
        made_of(paper.main, METRICS, LABELS),
        PAPER,
        "3",
        "SA-PPG in every setting",
        """
        **Table 3: SA-PPG of every strategy in every setting.** A column is one contaminated model,
        compared with the clean model of the same family. Before calling two rows different, look at
        the interval of their paired difference in the table *intervals*, not at whether their own
        intervals (small print) overlap.
        """,
    ),
    "reversal": Entry(
        made_of(paper.reversal, PRIMARY_METRICS, LABELS, PRIMARY_SETTING),
        PAPER,
        "1",
        "G-AP and SA-PPG of the same responses",
        """
        **Table 1: the same responses under two metrics.** G-AP compares two accuracies, with one
        response per question. SA-PPG compares solve probabilities question by question and gives
        every level of the clean model's solve probability the same weight. Check whether both
        columns rank the strategies in the same order: a strategy that is best only under G-AP has
        errors that cancel. Small print: bootstrap intervals.
        """,
    ),
    "decomposition": Entry(
        made_of(paper.decomposition, PRIMARY_METRICS, LABELS, PRIMARY_SETTING),
        PAPER,
        "2",
        "the metrics and their components",
        """
        **Table 2: where the gaps come from.** If remaining contamination (Δ⁺) and damage (Δ⁻) are
        equal, G-APP vanishes although hardly any question is restored. If the clean model is weak,
        All-Zero does well under equal weights (A-PPG); SA-PPG is designed to expose it.
        """,
    ),
    "ablation": Entry(
        made_of(paper.ablation, PRIMARY_METRICS_AND_ABLATION, LABELS, PRIMARY_SETTING),
        PAPER,
        "4",
        "ablation of RailCap",
        """
        **Table 4: ablation of RailCap.** With a small n, RailCap takes a few shared tokens for a
        return to the greedy trajectory and intervenes often. In the paper S-Δ⁺ (remaining
        contamination) is then low and S-Δ⁻ (damage) high; check whether this run shows the same.
        Identity and All-Zero are the two extremes.
        """,
    ),
    "inline_numbers": Entry(
        made_of(paper.inline_numbers, sources.INLINE_NUMBERS),
        PAPER,
        "text",
        "numbers quoted in the text",
        """
        **The numbers quoted in the paper's text.** How well each readout reproduces between two
        batches of one clean model, how many questions that model never solves, how often the clean
        model's token is the contaminated model's runner-up, and the ratios that the paper derives
        from its Table 2. A ratio whose denominator is close to 0 has a wide interval.
        """,
    ),
    "intervals": Entry(
        made_of(supplementary.intervals, METRICS_AND_ABLATION, LABELS),
        BEYOND,
        "intervals",
        "metric values with intervals, paired differences",
        """
        **Metric values with intervals (not in the paper).** In each bootstrap resample both
        strategies of a difference are evaluated on the same questions, so that a hard question
        counts for both. If the interval of a difference excludes 0, other questions of this kind
        would most likely show the same sign. If you compare many differences, rely on those with
        a †.
        """,
    ),
    "pairs": Entry(
        made_of(supplementary.pairs, METRICS, LABELS),
        BEYOND,
        "pairs",
        "differences between all pairs of strategies",
        """
        **Differences between all pairs of strategies (not in the paper).** Use the interval of
        *this pair alone* for a comparison that you had in mind before you saw the results. Use the
        wider interval *among all pairs* if you look for whichever strategies differ: if all were
        equally good, one or more of these intervals would exclude 0 in about 5 % of runs (up to 7 %
        with 80 to 100 questions).
        """,
    ),
    "variants": Entry(
        made_of(supplementary.variants, PRIMARY_METRICS_AND_ABLATION, LABELS, PRIMARY_SETTING),
        BEYOND,
        "variants",
        "TED and LNE-blocking with both choices that their sources leave open",
        """
        **What the baselines' sources leave open (not in the paper).** TED may drop every response
        of a question. The authors then count it as unsolved; the variant scores its unfiltered
        responses instead. If *No samples* is large, TED's headline value is mostly about these
        questions. The rounding of LNE-blocking's number of blocked steps is not documented.
        """,
    ),
    "subsets": Entry(
        made_of(supplementary.subsets, METRICS_AND_ABLATION, LABELS),
        BEYOND,
        "subsets",
        "leaked and unleaked questions separately",
        """
        **Leaked and unleaked questions separately (not in the paper).** On leaked questions a
        strategy should lower the solve probability to the clean model's; on unleaked ones it should
        change nothing. Δ⁺ on leaked questions is remaining contamination; Δ⁻ on unleaked questions
        is damage to questions that did not leak. SA-PPG forms its strata within each subset, so the
        two values do not average to that of Table 3.
        """,
    ),
    "noise_floor": Entry(
        made_of(supplementary.noise_floor, METRICS, LABELS),
        BEYOND,
        "noise floor",
        "two batches of the clean model",
        """
        **The noise floor (not in the paper).** A second batch of responses of the clean model,
        evaluated as if it were a strategy. With infinitely many samples every gap would be 0; with
        finitely many, every metric that takes absolute values is above 0. A strategy at this level
        cannot be distinguished from a perfect one. Mean and s.d. of G-AP show how much it depends
        on which single response it uses.
        """,
    ),
    "diagnostics": Entry(
        made_of(diagnostics, sources.DIAGNOSTICS, LABELS),
        BEYOND,
        "diagnostics",
        "steps on the rail, interventions, recovery rate",
        """
        **Diagnostics (not in the paper).** A response is on the rail where its last n tokens (4
        unless RailCap's n differs) occur in the greedy trajectory of the model that it was sampled
        from; the trajectory's next token is the rail token. RailCap intervenes at these steps. It
        is selective if responses to leaked questions are on the rail more often than others. Kinds
        of the rail token: *digit* (it contains one), *operator* (signs of arithmetic), *space*,
        *end*, and *word* (everything else). *Rail token drawn* is how often a response follows the
        rail, for RailCap in spite of the cap. The recovery rate belongs to the clean model: its
        responses follow the greedy trajectory up to one random step, take the runner-up there and
        are sampled from then on. Their share of correct answers is divided by the solve
        probability, on questions that the clean model solves. The greedy beginning may itself
        change how often a response is correct, so the rate can exceed 1.
        """,
        mem_mb=4000,
    ),
    "extraction_agreement": Entry(
        made_of(run.extraction_agreement, sources.EXTRACTION, LABELS),
        BEYOND,
        "extraction",
        "the same responses under every extraction rule",
        """
        **Does the rule of answer extraction matter? (not in the paper)** The same responses scored
        by this run's rule and by the others: how many give an answer, how many are correct, and how
        often a rule gives the same mark as this run's rule. If the last is close to 1, the results
        do not depend on the rule. *strict-match* of *gsm8k* (the number after "####") and of
        *gsm8k_cot* (after "The answer is") and *flexible-extract* (the last number) are the filters
        of the same names in lm_eval.
        """,
        mem_mb=8000,
    ),
    "cost": Entry(
        made_of(run.cost, sources.JOB_COSTS, LABELS),
        BEYOND,
        "cost",
        "tokens and seconds of trainings, decoding and samples",
        """
        **The cost of this run (not in the paper).** Trainings, greedy decoding, localisation of
        shortcut neurons, token ranks, the recovery rate, and every cell of samples; pretraining and
        paraphrasing by a local model are not included. Seconds are wall-clock seconds from
        Snakemake's benchmark files and include loading the model; for a job that was resumed, those
        of the last attempt. Jobs that ran in parallel each count, so the total exceeds the elapsed
        time. A cell with several shards is their sum. TED samples no responses of its own: it
        filters those of Identity.
        """,
        mem_mb=8000,
    ),
    "main_vs_paper": Entry(
        made_of(main_vs_paper, METRICS, LABELS, PROTOCOL_DIFFERENCES),
        VS_PAPER,
        "3",
        "SA-PPG: the paper and this run",
        _VS_PAPER_CAPTION,
    ),
    "reversal_vs_paper": Entry(
        made_of(
            of_one_setting(paper.reversal, "Table 1"),
            PRIMARY_METRICS,
            LABELS,
            PRIMARY_SETTING,
            PRIMARY_PROTOCOL_DIFFERENCES,
        ),
        VS_PAPER,
        "1",
        "G-AP and SA-PPG: the paper and this run",
        _VS_PAPER_CAPTION,
    ),
    "decomposition_vs_paper": Entry(
        made_of(
            of_one_setting(paper.decomposition, "Table 2"),
            PRIMARY_METRICS,
            LABELS,
            PRIMARY_SETTING,
            PRIMARY_PROTOCOL_DIFFERENCES,
        ),
        VS_PAPER,
        "2",
        "metrics and components: the paper and this run",
        _VS_PAPER_CAPTION,
    ),
    "ablation_vs_paper": Entry(
        made_of(
            of_one_setting(paper.ablation, "Table 4"),
            PRIMARY_METRICS_AND_ABLATION,
            LABELS,
            PRIMARY_SETTING,
            PRIMARY_PROTOCOL_DIFFERENCES,
        ),
        VS_PAPER,
        "4",
        "ablation of RailCap: the paper and this run",
        _VS_PAPER_CAPTION,
    ),
    "memorisation": Entry(
        made_of(run.memorisation, sources.MEMORISATION, LABELS),
        CHECKS,
        "memorisation",
        "whether the models memorised the leaked questions",
        """
        **Did the contaminated models memorise?** A contaminated model should solve leaked questions
        more often than the clean model does (inflation, in excess of the change on unleaked
        questions), and its responses to them should collapse onto its greedy response (ROUGE-L).
        *Memorised*: both signs are clear. *Weakly memorised*: one sign is missing or below its
        bound, or the ROUGE-L of unleaked questions exceeds its own bound. *Not memorised*: neither
        sign is present, and the results of the strategies on that model say nothing about
        mitigation.
        """,
    ),
}
