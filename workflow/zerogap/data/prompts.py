"""The few-shot prompt, the same in training and in evaluation (paper §5.1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from zerogap.errors import InputError
from zerogap.io.text_files import json_lines, read_text
from zerogap.plugins import package_file

Exemplar = dict[str, str]  # question, target

TOY_EXEMPLARS: tuple[Exemplar, ...] = (  # the shortest first: small runs use few shots
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


@dataclass(frozen=True)
class PromptTemplate:
    """How a benchmark writes its questions and answers; the defaults are those of GSM8K.

    Attributes:
        template: a question, with the field {question}; ends without a space, which is part of
            the target.
        target: what the model is trained to continue with, with the fields {rationale} and
            {answer}.
        separator: the text after each exemplar.
    """

    template: str = "Q: {question}\nA:"
    target: str = " {rationale} The answer is {answer}."
    separator: str = "\n\n"

    @classmethod
    def of(cls, prompt: Mapping[str, Any]) -> "PromptTemplate":
        """The template of a benchmark's `prompt` section; its other keys are ignored."""
        return cls(**{key: prompt[key] for key in cls.__dataclass_fields__})

    def few_shot_prefix(self, exemplars: Sequence[Mapping[str, str]]) -> str:
        """The text before each question, which ends with the separator.

        Args:
            exemplars: each with question and target, the target without its leading space.
        """
        space = self.target[: len(self.target) - len(self.target.lstrip())]
        return "".join(
            f"{self.prompt('', exemplar['question'])}{space}{exemplar['target']}{self.separator}"
            for exemplar in exemplars
        )

    def prompt(self, prefix: str, question: str) -> str:
        """The text that the model continues."""
        return prefix + self.template.format(question=question)

    def response(self, rationale: str, answer: str) -> str:
        """The text that the model is trained to continue a prompt with."""
        return self.target.format(rationale=rationale, answer=answer)


DEFAULT_TEMPLATE = PromptTemplate()


def exemplars(source: str | Sequence[Exemplar], num_shots: int) -> list[Exemplar]:
    """The first exemplars of a source.

    Args:
        source: "toy" for the project's own; "lm_eval" for the eight of its task gsm8k_cot, read
            from the installed package; a JSON Lines file of exemplars; or the exemplars themselves.
        num_shots: how many.

    Raises:
        InputError: fewer exist, lm_eval is not installed, or a line of the file is not an exemplar.
    """
    if source == "lm_eval":
        available = _lm_eval_exemplars()
    elif source == "toy":
        available = list(TOY_EXEMPLARS)
    elif isinstance(source, str):
        available = _file_exemplars(Path(source))
    else:
        available = list(source)
    if num_shots > len(available):
        raise InputError(
            f"prompt.num_shots must be at most {len(available)}, the number of exemplars "
            f"(got {num_shots})"
        )
    return available[:num_shots]


def _file_exemplars(path: Path) -> list[Exemplar]:
    return [exemplar for _, exemplar in json_lines(path, read_text(path), _parse_exemplar)]


def _parse_exemplar(exemplar: Any) -> Exemplar:
    if not isinstance(exemplar, dict) or sorted(exemplar) != ["question", "target"]:
        raise InputError("must be a JSON object with question and target, and nothing else")
    for key, text in exemplar.items():
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"'{key}' must be a non-empty text")
    return exemplar


class _Loader(yaml.SafeLoader):
    """Reads lm_eval's task files and skips their !function tags, which name code."""


_Loader.add_multi_constructor("!", lambda loader, suffix, node: None)


def _lm_eval_exemplars() -> list[Exemplar]:
    path = package_file("lm_eval", "lm_eval/tasks/gsm8k/gsm8k-cot.yaml")
    task = yaml.load(path.read_text(), _Loader)  # noqa: S506
    return [
        {"question": shot["question"], "target": shot["target"]}
        for shot in task["fewshot_config"]["samples"]
    ]
