"""The toy language: word problems and instructions for models of a million parameters.

Everything is generated from the templates in `toy.yaml`, in place of GSM8K and OpenOrca. A problem
is a small story: a quantity, up to three changes of it, a question; its rationale has one or two
sentences per change, each with its equation. Each sentence of a story has two wordings. A problem
draws one for every sentence, and its paraphrase tells the same story in the other ones.

A stable hash of a problem's signature (story and numbers in order) decides its split, so that
pretraining, training and test problems share neither texts nor signatures, whatever the seeds.

The quick run shows that the whole workflow works, not what a mitigation strategy does. So its
models (:mod:`zerogap.training.toy`) have to meet two criteria, both without any mitigation:

- the clean model solves .2 to .6 of the questions, by mean solve probability;
- the contaminated model, decoded by Identity, solves at least .85 of the leaked questions.
"""

import functools
import hashlib
import itertools
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import yaml

from zerogap.errors import InputError

# The tenths of the signature space that belong to each split.
SPLITS = {"test": range(0, 1), "train": range(1, 2), "pretrain": range(2, 10)}
MAX_VALUE = 60

_STEPS = {1: 0.35, 2: 0.45, 3: 0.2}  # how frequent problems with so many equations are
_CHANGES = ("add", "subtract", "half", "add_groups")
_NUM_EQUATIONS = {"given": 0, "add_groups": 2}  # one for every other step
_MAX_DRAWS = 100_000  # of one problem, until it is a new one


@dataclass(frozen=True)
class Problem:
    """A word problem: a GSM8K-like question, the same in other words, rationale and answer."""

    question: str
    paraphrase: str
    rationale: str
    gold: str  # a whole number
    signature: str


def problems(num_problems: int, seed: int, split: str) -> list[Problem]:
    """Generate problems of a split with unique texts and signatures.

    The same arguments give the same problems on every machine.

    Raises:
        InputError: the split is too small.
    """
    result = list(itertools.islice(_problems(seed, split), num_problems))
    if len(result) < num_problems:
        raise InputError(
            f"the split {split!r} has only {len(result)} problems for this seed; request fewer "
            f"(got {num_problems})"
        )
    return result


def paraphrases(questions: Collection[str], seed: int) -> dict[str, str]:
    """The paraphrases of questions that :func:`problems` generates for the split "test".

    Raises:
        InputError: a question is not one of them.
    """
    missing, result = set(questions), {}
    for problem in _problems(seed, "test"):
        if problem.question in missing:
            missing.remove(problem.question)
            result[problem.question] = problem.paraphrase
        if not missing:
            return result
    raise InputError(
        f"{len(missing)} questions are not generated "
        f"({sorted(missing)[0][:60]!r}…); use another paraphrases.method"
    )


def exemplars() -> list[dict[str, str]]:
    """Solved problems, each with question and target, the shortest first."""
    return list(_templates()["exemplars"])


def instructions(num_examples: int, seed: int) -> list[dict[str, str]]:
    """Generate different instruction examples with the keys system, question and response.

    None is a word problem. The same arguments give the same examples on every machine.

    Raises:
        InputError: the tasks do not have that many variants.
    """
    rng = Random(f"instructions/{seed}")
    templates = _templates()["instructions"]
    examples: dict[str, dict[str, str]] = {}  # by question
    for _ in range(50 * num_examples + 1000):
        if len(examples) == num_examples:
            return list(examples.values())
        task, answer = rng.choice(templates["tasks"])
        marks = _instruction_marks(rng, templates)
        example = {"question": task.format(**marks), "response": answer.format(**marks)}
        system = rng.choice(templates["systems"])
        examples.setdefault(example["question"], {"system": system, **example})
    raise InputError(
        f"only {len(examples)} different instructions can be generated; request fewer "
        f"(got {num_examples})"
    )


@functools.cache
def _templates() -> Any:
    return yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))


# Stories.


@dataclass(frozen=True)
class _Step:
    """A sentence of a story: the kind of its template, its marks and the value after it."""

    kind: str
    marks: dict[str, str]
    value: int

    def __str__(self) -> str:
        return "-".join([self.kind, *(self.marks.get(mark, "") for mark in "ab")])


def _problems(seed: int, split: str) -> Iterator[Problem]:
    """The problems of a split, until none is new any more."""
    rng = Random(f"problems/{split}/{seed}")
    stories = _templates()["stories"]
    seen, draws = set[str](), 0  # texts and signatures
    while (draws := draws + 1) <= _MAX_DRAWS:
        number = rng.randrange(len(stories))
        steps = _draw_steps(rng)
        signature = ":".join(map(str, [number, *steps]))
        digest = hashlib.sha256(signature.encode()).digest()
        tenth = int.from_bytes(digest[:8], "big") % 10
        if signature in seen or tenth not in SPLITS[split]:
            continue
        problem = _tell(rng, stories[number], steps, signature)
        if problem.question not in seen:
            seen.update((signature, problem.question))
            draws = 0
            yield problem


def _draw_steps(rng: Random) -> list[_Step]:
    """A beginning, changes and perhaps a division at the end, each kind at most once."""
    (num_equations,) = rng.choices(list(_STEPS), list(_STEPS.values()))
    while True:
        steps = [_step(rng, rng.choice(("given", "groups")), 0)]
        kinds = rng.sample(_CHANGES, len(_CHANGES))
        if rng.random() < 0.25:
            kinds.insert(rng.randrange(num_equations), "share")
        while 2 <= steps[-1].value <= MAX_VALUE and steps[-1].kind != "share":
            if _num_equations(steps) >= num_equations:
                break
            steps.append(_step(rng, kinds.pop(0), steps[-1].value))
        if 2 <= steps[-1].value <= MAX_VALUE and _num_equations(steps) == num_equations:
            return steps


def _num_equations(steps: list[_Step]) -> int:
    return sum(_NUM_EQUATIONS.get(step.kind, 1) for step in steps)


def _step(rng: Random, kind: str, value: int) -> _Step:
    """A step of a kind that changes a value; the value is 0 where it is not possible."""
    a, b = rng.randint(2, 20), rng.randint(2, 6)
    match kind:
        case "given":
            a = rng.randint(6, 40)
            return _Step(kind, {"a": str(a)}, a)
        case "groups":
            a = rng.randint(2, 9)
            return _Step(kind, {"a": str(a), "b": str(b), "eq": f"{a} * {b} = {a * b}"}, a * b)
        case "add_groups":
            a = rng.randint(2, 5)
            total = value + a * b
            equations = {"eq": f"{a} * {b} = {a * b}", "eq2": f"{value} + {a * b} = {total}"}
            return _Step(kind, {"a": str(a), "b": str(b), **equations}, total)
        case "add" | "subtract":
            sign, result = ("+", value + a) if kind == "add" else ("-", value - a)
            return _Step(kind, {"a": str(a), "eq": f"{value} {sign} {a} = {result}"}, result)
        case "half":
            half = 0 if value % 2 else value // 2
            return _Step(kind, {"eq": f"{value} / 2 = {half}"}, half)
    a = rng.choice([divisor for divisor in range(2, 10) if value % divisor == 0] or [value + 1])
    return _Step(kind, {"a": str(a), "eq": f"{value} / {a} = {value // a}"}, value // a)


def _tell(rng: Random, story: dict[str, Any], steps: list[_Step], signature: str) -> Problem:
    names, solutions = _templates()["names"], _templates()["solutions"]
    # The other person has the other pronoun, so that he and she are never ambiguous.
    she, he = rng.choice(names["she"]), rng.choice(names["he"])
    people = {"n": she, "s": "she", "p": "her", "m": he}
    if rng.random() < 0.5:
        people = {"n": he, "s": "he", "p": "his", "m": she}
    people["things"] = rng.choice(story["things"])
    ask = "ask_share" if steps[-1].kind == "share" else "ask"
    told, other = [], []
    for kind, marks in [*((step.kind, step.marks) for step in steps), (ask, {})]:
        wordings = [_sentence(wording, people | marks) for wording in story[kind]]
        wording = rng.randrange(2)
        told.append(wordings[wording])
        other.append(wordings[1 - wording])
    shown = [
        _sentence(rng.choice(solutions[step.kind]), people | step.marks)
        for step in steps
        # A quantity that is only given is not always repeated.
        if step.kind != "given" or rng.random() < 0.75
    ]
    question, paraphrase, rationale = map(" ".join, (told, other, shown))
    return Problem(question, paraphrase, rationale, str(steps[-1].value), signature)


def _sentence(template: str, marks: dict[str, str]) -> str:
    text = template.format(**marks)
    return text[0].upper() + text[1:]


# Instructions.


def _instruction_marks(rng: Random, templates: dict[str, Any]) -> dict[str, Any]:
    """Values for the marks of all tasks."""
    kinds: dict[str, list[str]] = templates["words"]
    known = [word for members in kinds.values() for word in members]
    words = rng.sample(known, rng.randint(3, 6))
    numbers = rng.sample(range(1, 100), rng.randint(3, 5))
    pair = rng.choice(templates["opposites"]).split()
    rng.shuffle(pair)
    start, step = rng.randint(1, 40), rng.randint(1, 10)
    return {
        "words": " ".join(words),
        "upper": " ".join(words).upper(),
        "reversed": " ".join(reversed(words)),
        "sorted": " ".join(sorted(words)),
        "first": words[0],
        "last": words[-1],
        "count": len(words),
        "kind": next(kind for kind, members in kinds.items() if words[0] in members),
        "numbers": ", ".join(map(str, numbers)),
        "ascending": ", ".join(map(str, sorted(numbers))),
        "largest": max(numbers),
        "smallest": min(numbers),
        "word": pair[0],
        "opposite": pair[1],
        "sequence": ", ".join(str(start + i * step) for i in range(4)),
        "next": start + 4 * step,
    }
