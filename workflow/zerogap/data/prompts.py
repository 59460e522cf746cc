"""The few-shot prompt, the same in training and in evaluation (paper §5.1)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from zerogap.data import toy
from zerogap.data.extraction import ExtractionRule
from zerogap.data.questions import Question
from zerogap.errors import InputError
from zerogap.io.text_files import json_lines, read_text
from zerogap.plugins import package_file

Exemplar = dict[str, str]  # question, target


@dataclass(frozen=True)
class PromptTemplate:
    """How a benchmark writes its questions and answers; the defaults are those of GSM8K."""

    template: str = "Q: {question}\nA:"  # the space that follows is part of the target
    target: str = " {rationale} The answer is {answer}."
    separator: str = "\n\n"  # after each exemplar

    @classmethod
    def of(cls, prompt: Mapping[str, Any]) -> "PromptTemplate":
        """The template of a benchmark's `prompt` section; its other keys are ignored."""
        return cls(**{key: prompt[key] for key in cls.__dataclass_fields__})

    def few_shot_prefix(self, exemplars: Sequence[Mapping[str, str]]) -> str:
        """The text before each question, which ends with the separator.

        The exemplars have `question` and `target`, the target without its leading space.
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


def check_targets(
    questions: Sequence[Question],
    template: PromptTemplate,
    stop: Iterable[str],
    rule: ExtractionRule,
) -> None:
    """Check that responses as they are trained are graded as correct, cut at the stop strings.

    Raises:
        InputError: half of them or more are not, or the rule is a function that fails.
    """
    lost = []
    for question in questions:
        text = template.response(question.rationale, question.gold)
        cut = text[: min((text.find(each) for each in stop if each in text), default=None)]
        if not rule.grade(cut, question.gold).correct:
            lost.append((question.gold, cut))
    if 2 * len(lost) >= len(questions):
        gold, text = lost[0]
        raise InputError(
            f"the rule '{rule.name}' does not find the answer {gold} in {text!r}; change "
            "prompt.target, stop or extraction"
        )


DEFAULT_TEMPLATE = PromptTemplate()


def exemplars(source: str | Sequence[Exemplar], num_shots: int) -> list[Exemplar]:
    """The first exemplars of a source.

    The source is "toy", the project's own; "lm_eval", the eight of its task gsm8k_cot, read from
    the installed package; a JSON Lines file of exemplars; or the exemplars themselves.

    Raises:
        InputError: fewer exist, lm_eval is not installed, or a line of the file is not an exemplar.
    """
    if source == "lm_eval":
        available = _lm_eval_exemplars()
    elif source == "toy":
        available = toy.exemplars()
    elif isinstance(source, str):
        lines = json_lines(Path(source), read_text(Path(source)), _parse_exemplar)
        available = [exemplar for _, exemplar in lines]
    else:
        available = list(source)
    if num_shots > len(available):
        raise InputError(
            f"prompt.num_shots must be at most {len(available)}, the number of exemplars "
            f"(got {num_shots})"
        )
    return available[:num_shots]


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
    task = yaml.load(path.read_bytes(), _Loader)  # noqa: S506
    samples = task["fewshot_config"]["samples"]
    return [{key: shot[key] for key in ("question", "target")} for shot in samples]
