"""Questions of GSM-Symbolic: 85 templates in GSM8K's wording, filled with names and numbers.

The templates are the generators of the installed package reasoning-gym. They make one fixed data
set of a training and a test split; no two of its questions share template and numbers, so that a
test question differs from every training question in more than a name.
"""

import re
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

from zerogap.data.gsm8k_format import Entry
from zerogap.errors import InputError
from zerogap.plugins import package_file

BROKEN = {32, 35, 37, 61, 63, 65, 74, 76, 77, 79, 86, 87, 90, 97, 98}  # its `tasks_need_fix`
_MAX_DRAWS = 40  # of one template, until its numbers are new and its rationale is short enough
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")

Template = Callable[[Random, float], dict[str, Any]]


def entries(num_train: int, num_test: int, max_words: int | None) -> dict[str, list[Entry]]:
    """The data set: split → entries in OpenAI's GSM8K format.

    The questions of a split go through the templates in turn. A template that has no new numbers,
    or whose rationales all have more than `max_words`, is left out.

    Raises:
        InputError: reasoning-gym is not installed, or its templates have too few questions.
    """
    templates = _templates()
    used: set[tuple[str, ...]] = set()
    splits = {}
    for split, size in (("test", num_test), ("train", num_train)):
        rng = Random(f"gsm_symbolic/{split}")
        open_templates, drawn = list(templates), list[Entry]()
        while open_templates and len(drawn) < size:
            rng.shuffle(open_templates)
            for name in list(open_templates):
                entry = _new_entry(name, templates[name], rng, max_words, used)
                if entry is None:
                    open_templates.remove(name)
                else:
                    drawn.append(entry)
        if len(drawn) < size:
            raise InputError(
                f"GSM-Symbolic's templates have only {len(drawn)} {split} questions with these "
                f"settings; lower questions.gsm_symbolic.num_{split} (got {size})"
            )
        splits[split] = drawn[:size]
    return splits


def _new_entry(
    name: str, template: Template, rng: Random, max_words: int | None, used: set[tuple[str, ...]]
) -> Entry | None:
    """A question of a template with numbers that no earlier one has; None if no draw has any."""
    for _ in range(_MAX_DRAWS):
        example = template(rng, 1.0)
        question, answer = example["question"], example["metadata"]["answer_cot"]
        key = (name, *_NUMBER.findall(question))
        num_words = len(answer.rpartition("####")[0].split())
        if key not in used and (max_words is None or num_words <= max_words):
            used.add(key)
            return {"question": question, "answer": answer}
    return None


def _templates() -> dict[str, Template]:
    """Name → generator, in the order of their numbers, without the broken ones.

    Only the files needed are loaded: importing the package would import all of its tasks, with
    dependencies that are not installed.
    """
    folder = package_file("reasoning-gym", "reasoning_gym")
    _load("reasoning_gym.utils", folder / "utils.py")  # the generators import it by this name
    found: dict[str, Template] = {}
    for name in ("generators_00_49", "generators_50_99"):
        path = folder / f"arithmetic/gsm_symbolic/{name}.py"
        found |= vars(_load(f"reasoning_gym.{name}", path))
    names = [f"generate_{number}" for number in range(100) if number not in BROKEN]
    return {name: found[name] for name in names if name in found}


def _load(name: str, path: Path) -> ModuleType:
    """A module from its file, without importing the package that it is part of."""
    module = sys.modules[name] = ModuleType(name)
    SourceFileLoader(name, str(path)).exec_module(module)
    return module
