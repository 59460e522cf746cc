"""The built-in strategies by name, and what the workflow needs to know about each of them.

This module loads no torch, so a configuration can be checked without it. A strategy from outside
needs no entry here: an installed package names it in the entry points `zerogap.strategies`, or a
configuration names its class as `package.module:Class`.
"""

from dataclasses import dataclass

from zerogap.plugins import installed


@dataclass(frozen=True)
class BuiltIn:
    """One built-in strategy.

    Attributes:
        target: where its class is defined, `module:Class`.
        label: the paper's name for it.
        needs_base_model: it decodes with the base model and a `neurons` file (config key
            `needs_base_model`).
        filters_responses: it draws no responses but filters those of another strategy (config key
            `filter_of`).
        acts_on_rail: it acts where a response is on the rail, and nowhere else.
        runs_in_vllm: vLLM can sample under it as well as our engine (docs/railcap.md#vllm).
    """

    target: str
    label: str
    needs_base_model: bool = False
    filters_responses: bool = False
    acts_on_rail: bool = False
    runs_in_vllm: bool = False


ENTRY_POINTS = "zerogap.strategies"
BUILT_IN: dict[str, BuiltIn] = {  # the paper's, in the order of its Table 3
    "identity": BuiltIn("zerogap.strategies.identity:Identity", "Identity", runs_in_vllm=True),
    "ted": BuiltIn("zerogap.strategies.ted:TED", "TED", filters_responses=True),
    "shortcut": BuiltIn("zerogap.strategies.shortcut:Shortcut", "Shortcut", needs_base_model=True),
    "lne_blocking": BuiltIn(
        "zerogap.strategies.lne_blocking:LNEBlocking", "LNE-blocking", runs_in_vllm=True
    ),
    "railcap": BuiltIn(
        "zerogap.strategies.railcap:RailCap", "RailCap", acts_on_rail=True, runs_in_vllm=True
    ),
}


def names() -> tuple[str, ...]:
    """The names of the built-in strategies and of those of installed packages."""
    return *BUILT_IN, *sorted(installed(ENTRY_POINTS).keys() - BUILT_IN)


def target_of(name: str) -> str:
    """Where the class of a strategy is defined: that of a known name, or the name itself."""
    if name in BUILT_IN:
        return BUILT_IN[name].target
    return name if ":" in name else installed(ENTRY_POINTS).get(name, name)


RAIL_N = 4  # n-gram threshold of the rail, unless a strategy has its own (paper, section 5.1)
ALL_ZERO = "all_zero"  # a `solve` table made from the clean model's, with no response correct
# Names and labels of what the tables show next to strategies.
NOT_STRATEGIES = {
    "clean": "Clean model",
    "clean_batch2": "Clean model, second batch",
    ALL_ZERO: "All-Zero",
}
NOISE_FLOOR = "Noise floor"  # the second batch in the paper's tables
