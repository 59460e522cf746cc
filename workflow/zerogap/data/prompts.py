"""The few-shot prompt, in training as in evaluation (paper §5.1)."""

import importlib.metadata

import yaml

from zerogap.errors import InputError

GENERATED = (  # the shortest first: few shots are asked for where time is short
    {
        "question": "Jill has 12 shells. She finds 5 more shells. How many shells are there now?",
        "target": "That makes 12 + 5 = 17 shells. The answer is 17.",
    },
    {
        "question": "Lou has 9 cards. Ann has twice as many cards as Lou. How many cards does Ann "
        "have?",
        "target": "Ann has 9 * 2 = 18 cards. The answer is 18.",
    },
    {
        "question": "Ron bakes 18 cookies. The family eats 4 cookies. Then 2 guests get the same "
        "number of cookies each. How many cookies go to each one?",
        "target": "After that 18 - 4 = 14 cookies are left. Each gets 14 / 2 = 7 cookies. "
        "The answer is 7.",
    },
    {
        "question": "Beth plants 6 flowers. Then Beth plants 3 rows, and each has 4 flowers. "
        "How many flowers are there now?",
        "target": "The rows have 3 * 4 = 12 flowers. Together that is 6 + 12 = 18 flowers. "
        "The answer is 18.",
    },
    {
        "question": "Meg reads 14 pages on Monday and 9 pages on Tuesday. Her book has 60 pages. "
        "How many pages are left for Meg to read?",
        "target": "Meg reads 14 + 9 = 23 pages. That leaves 60 - 23 = 37 pages. The answer is 37.",
    },
    {
        "question": "Hal sells 8 pies at 6 dollars each. After that, Hal pays 15 dollars for "
        "flour. How many dollars does Hal keep?",
        "target": "The pies bring 8 * 6 = 48 dollars. After the flour 48 - 15 = 33 dollars are "
        "left. The answer is 33.",
    },
    {
        "question": "A van brings 3 boxes of 8 lamps to a shop. Half of the lamps are sold. Then "
        "20 more lamps arrive. How many lamps does the shop have now?",
        "target": "The boxes hold 3 * 8 = 24 lamps. Half of them is 24 / 2 = 12 lamps. Now there "
        "are 12 + 20 = 32 lamps. The answer is 32.",
    },
    {
        "question": "Nell saves 5 dollars a week for 9 weeks. Gus has 12 dollars more than Nell. "
        "Together they buy a gift for 40 dollars. How many dollars are left?",
        "target": "Nell saves 5 * 9 = 45 dollars. Gus has 45 + 12 = 57 dollars. Together they "
        "have 45 + 57 = 102 dollars. The gift leaves 102 - 40 = 62 dollars. The answer is 62.",
    },
)


def exemplars(source: str, n: int) -> list[dict[str, str]]:
    """The first `n` exemplars, each with question and target.

    Args:
        source: "generated" for the project's own; "lm_eval" for the eight of its task gsm8k_cot,
            read from the installed package.

    Raises:
        InputError: fewer than `n` exist, or lm_eval is not installed.
    """
    found = list(GENERATED) if source == "generated" else _lm_eval()
    if n > len(found):
        raise InputError(f"config: prompt.shots is {n}; '{source}' has {len(found)} exemplars")
    return found[:n]


def few_shot_prefix(shots: list[dict[str, str]]) -> str:
    """The text before every question; ends with an empty line."""
    return "".join(f"Q: {shot['question']}\nA: {shot['target']}\n\n" for shot in shots)


def prompt(prefix: str, question: str) -> str:
    """What the model continues: no space after 'A:'."""
    return f"{prefix}Q: {question}\nA:"


def response(rationale: str, gold: str) -> str:
    """What the model is trained to continue with; starts with the space that `prompt` leaves."""
    return f" {rationale} The answer is {gold}."


class _Loader(yaml.SafeLoader):
    """Reads lm_eval's task files, whose !function tags name code that is not needed here."""


_Loader.add_multi_constructor("!", lambda loader, suffix, node: None)


def _lm_eval() -> list[dict[str, str]]:
    try:
        root = importlib.metadata.distribution("lm_eval").locate_file("lm_eval")
    except importlib.metadata.PackageNotFoundError as error:
        raise InputError("prompt.exemplars is lm_eval: install it (pip install lm-eval)") from error
    task = yaml.load((root / "tasks/gsm8k/gsm8k-cot.yaml").read_text(), _Loader)  # noqa: S506
    return [
        {"question": shot["question"], "target": shot["target"]}
        for shot in task["fewshot_config"]["samples"]
    ]
