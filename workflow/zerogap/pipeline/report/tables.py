"""All tables of a run: what each is made of, and how it is presented.

A new table is one entry here and one function that returns a `Table`. The target ``table_<name>``
follows from the entry.
"""

from zerogap.pipeline.report import sources
from zerogap.pipeline.report.entry import CHECKS, PAPER, VS_PAPER, Entry, made_of
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
from zerogap.reporting.tables import paper, run, supplementary
from zerogap.reporting.tables.paper import main_vs_paper, of_one_setting
from zerogap.reporting.tables.run import diagnostics

_VS_PAPER_CAPTION = """
    Each value of this run next to the published one. If this run follows the paper's protocol, the
    difference and its interval are shown: an interval that contains 0 is compatible with the
    published number (it does not cover training seeds). Otherwise compare the order of the rows and
    the signs, not the numbers. A dash is a value that the paper does not give.
"""

TABLES: dict[str, Entry[Table]] = {
    "main": Entry(
        made_of(paper.main, METRICS, LABELS),
        "SA-PPG in every setting",
        """
        SA-PPG of each strategy in every setting (benchmark × model); reference: the clean model
        M_cl of the benchmark. Lower is better. Before calling two rows different, look at the
        interval of their paired difference in the table “intervals”, not at whether their own
        intervals overlap.
        """,
        number="3",
        section=PAPER,
    ),
    "reversal": Entry(
        made_of(paper.reversal, PRIMARY_METRICS, LABELS, PRIMARY_SETTING),
        "G-AP and SA-PPG of the same responses",
        """
        G-AP compares two accuracies, with one 0/1 mark per question; SA-PPG compares the solve
        probabilities of the same responses question by question, and gives every level of the clean
        model's solve probability the same weight. A strategy that is best only under G-AP has
        errors that cancel. Reference: the clean model M_cl.
        """,
        number="1",
        section=PAPER,
    ),
    "decomposition": Entry(
        made_of(paper.decomposition, PRIMARY_METRICS, LABELS, PRIMARY_SETTING),
        "the metrics and their components",
        """
        The aggregates and their components. Δ⁺: under-suppression (remaining contamination), Δ⁻:
        over-suppression (damage); A-PPG = Δ⁺ + Δ⁻ and G-APP = |Δ⁺ − Δ⁻|, which vanishes if both are
        equal although hardly any question is restored. All-Zero is an artificial strategy that
        fails every question: if the clean model is weak, it does well under equal weights (A-PPG),
        which SA-PPG is designed to expose.
        """,
        number="2",
        section=PAPER,
    ),
    "ablation": Entry(
        made_of(paper.ablation, PRIMARY_METRICS_AND_ABLATION, LABELS, PRIMARY_SETTING),
        "ablation of RailCap",
        """
        The n-gram threshold n, with the cap at the runner-up, and a hard ban of the rail token
        instead of the cap. S-Δ⁺ and S-Δ⁻ are the positive and negative parts of the gaps, averaged
        over strata like SA-PPG, to which they add up. With a small n, RailCap takes a few shared
        tokens for a return to the greedy trajectory and intervenes often. Bold row name: the
        configuration of the other tables.
        """,
        number="4",
        section=PAPER,
    ),
    "inline_numbers": Entry(
        made_of(paper.inline_numbers, sources.INLINE_NUMBERS),
        "numbers quoted in the text",
        """
        The numbers quoted in the paper's text, with bootstrap intervals over questions, next to the
        published values. A ratio whose denominator is close to 0 has a wide interval.
        """,
        section=PAPER,
    ),
    "intervals": Entry(
        made_of(supplementary.intervals, METRICS_AND_ABLATION, LABELS),
        "metric values with intervals, paired differences",
        """
        Metric values with bootstrap intervals over questions. Differences are paired: both
        strategies are evaluated on the same resampled questions; below zero, the strategy of the
        row is better. If you compare many differences, rely on those with a †. Corrected: SA-PPG
        minus the bias due to finitely many samples. The second batch of the clean model is the
        noise floor: the value that a perfect restoration would have. No samples: the share of
        questions that TED leaves without a response; it counts them as unsolved. “TED, empty
        unfiltered” takes all responses of such a question, “LNE-blocking, nearest” rounds the
        number of blocked steps to the nearest, and “RailCap, first successor” takes the first
        occurrence of an n-gram that the trajectory repeats: the other choices that their sources
        leave open.
        """,
    ),
    "pairs": Entry(
        made_of(supplementary.pairs, METRICS, LABELS),
        "differences between all pairs of strategies",
        """
        Paired differences in SA-PPG between all pairs of strategies; below zero, the first one is
        closer to the clean model. This pair alone: the interval of one difference, for a comparison
        that you had in mind before you saw the results. Among all pairs: wider intervals that cover
        all pairs of a setting together, the second batch of the clean model included (max-T over
        the same bootstrap resamples), if you look for whichever strategies differ; if all were
        equally good, one or more of them would exclude 0 in about 5 % of runs (up to 7 % with 80 to
        100 questions).
        """,
    ),
    "subsets": Entry(
        made_of(supplementary.subsets, METRICS_AND_ABLATION, LABELS),
        "leaked and unleaked questions separately",
        """
        Leaked and unleaked questions separately: mean solve probability, every metric, and the
        components that add up to A-PPG and SA-PPG. Δ⁺ on leaked questions is remaining
        contamination; Δ⁻ on unleaked questions is damage to questions that did not leak. Strata are
        formed within the subset, so the two values do not average to that of Table 3.
        """,
    ),
    "diagnostics": Entry(
        made_of(diagnostics, sources.DIAGNOSTICS, LABELS),
        "steps on the rail, interventions, recovery rate",
        """
        How responses relate to the greedy trajectory. A response is on the rail where its last n
        tokens (4 unless RailCap's n differs) occur in the trajectory of the model that it was
        sampled from; the trajectory's next token is the rail token. RailCap intervenes at these
        steps. Kinds of the rail token: digit (it contains one), operator (signs of arithmetic),
        space, end, and word (everything else). Rail token drawn: how often a response follows the
        rail, for RailCap in spite of the cap. Entropies are in nats. Recovery rate: responses of
        the clean model follow its greedy trajectory up to one random step, take the runner-up there
        and are sampled from then on; the share of correct ones is divided by the solve probability,
        on questions that the clean model solves. The greedy beginning may itself change how often a
        response is correct, so the rate can exceed 1.
        """,
    ),
    "extraction_agreement": Entry(
        made_of(run.extraction_agreement, sources.EXTRACTION, LABELS),
        "the same responses under every extraction rule",
        """
        The same responses under every rule of answer extraction, all settings together: how many
        give an answer, how many are correct, and how often a rule gives the same mark as this run's
        rule. If the last is close to 1, the results do not depend on the rule. strict-match of
        gsm8k (the number after "####") and of gsm8k_cot (after "The answer is") and
        flexible-extract (the last number) are the filters of the same names in lm_eval.
        """,
    ),
    "cost": Entry(
        made_of(run.cost, sources.JOB_COSTS, LABELS),
        "tokens and seconds of trainings, decoding and samples",
        """
        Responses, generated tokens (without prompts) and wall-clock seconds, loading included, of
        every training, decoding and sampling job, and their totals. Pretraining and paraphrasing by
        a local model are not included. Jobs that ran at the same time each count in full; of a
        resumed job, only the last attempt. TED samples no responses of its own. The preparation of
        a base model counts in every run that shares it.
        """,
    ),
    "main_vs_paper": Entry(
        made_of(main_vs_paper, METRICS, LABELS, PROTOCOL_DIFFERENCES),
        "SA-PPG: the paper and this run",
        _VS_PAPER_CAPTION,
        number="3",
        section=VS_PAPER,
    ),
    **{
        f"{name}_vs_paper": Entry(
            made_of(
                of_one_setting(build, f"Table {number}"),
                metrics,
                LABELS,
                PRIMARY_SETTING,
                PRIMARY_PROTOCOL_DIFFERENCES,
            ),
            f"{shows}: the paper and this run",
            _VS_PAPER_CAPTION,
            number=number,
            section=VS_PAPER,
        )
        for name, build, metrics, number, shows in (
            ("reversal", paper.reversal, PRIMARY_METRICS, "1", "G-AP and SA-PPG"),
            ("decomposition", paper.decomposition, PRIMARY_METRICS, "2", "metrics and components"),
            ("ablation", paper.ablation, PRIMARY_METRICS_AND_ABLATION, "4", "ablation of RailCap"),
        )
    },
    "memorisation": Entry(
        made_of(run.memorisation, sources.MEMORISATION, LABELS),
        "whether the models memorised the leaked questions",
        """
        Did the contaminated models memorise the leaked questions? Solved: mean solve probability.
        Inflation: its increase on leaked questions minus that on unleaked ones. ROUGE-L: mean
        overlap of a response with the model's own greedy response. Collapse: its difference between
        leaked and unleaked questions. Excess: its difference from the clean model's overlap with
        its own greedy responses, on unleaked questions. Verbatim: the share of leaked responses
        that repeat the greedy response. Where neither inflation nor collapse is present, the
        results of the strategies say nothing about mitigation.
        """,
        section=CHECKS,
    ),
}
