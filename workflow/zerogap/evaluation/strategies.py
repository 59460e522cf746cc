"""The strategies of an evaluation, by name."""

from collections.abc import Sequence
from pathlib import Path

from zerogap.errors import InputError
from zerogap.strategies.base import Strategy, build
from zerogap.strategies.registry import BUILT_IN

IDENTITY = "identity"
CLEAN, CLEAN_BATCH2 = "clean", "clean_batch2"
# Names of other files, and columns of questions.csv.
RESERVED_NAMES = (
    *(CLEAN, CLEAN_BATCH2, "greedy", "likelihoods"),
    *("question_id", "question", "gold", "greedy_correct", "rouge_l", "peakedness"),
    *("gold_likelihood", "min_k", "control", "suspicion", "flagged"),
)


def named_strategies(
    names: Sequence[str], base_model: Path | None, neurons: Path | None
) -> dict[str, Strategy]:
    """Name → strategy with its default parameters; Identity comes first, even if it is not named.

    A name is a built-in one, an installed one or `package.module:Class`, which is called after its
    class. One text may hold several, separated by commas.

    Raises:
        InputError: a strategy is unknown, its name is taken, or it needs the base model and the
            neurons, which are not given.
    """
    classes = {IDENTITY: IDENTITY}
    for target in (name.strip() for text in names for name in text.split(",")):
        name = target.rpartition(":")[2]
        if name in RESERVED_NAMES or classes.setdefault(name, target) != target:
            raise InputError(
                f"--strategies: the name '{name}' is taken; rename the class of {target}"
            )
    for name, target in classes.items():
        needs_base_model = target in BUILT_IN and BUILT_IN[target].needs_base_model
        if needs_base_model and (base_model is None or neurons is None):
            raise InputError(
                f"--strategies: {name} needs the base model and the model's shortcut neurons; give "
                f"--base-model FOLDER and --neurons FILE (docs/evaluate.md), or leave {name} out"
            )
    return {name: build({"class": target}) for name, target in classes.items()}
