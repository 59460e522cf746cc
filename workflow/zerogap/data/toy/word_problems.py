"""Grade-school word problems, made by rule: the embedded stand-in for GSM8K.

A problem tells a small story (:mod:`zerogap.data.toy.situations`), needs one to four steps of integer
arithmetic with values of at most 150, and carries a rationale of about one sentence a step, each
with its equation. A stable hash of the problem's signature (situation and numbers in order)
decides its split, so that pretraining, training and test problems share neither text nor
situation+numbers, whatever the seeds.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from zerogap.data.toy.situations import BOYS, DISTRACTORS, GIRLS, SITUATIONS, THEN, Beat, Situation
from zerogap.errors import InputError

# Tenths of the signature space that each split owns.
SPLITS = {"test": range(0, 1), "train": range(1, 2), "pretrain": range(2, 10)}
STEP_SHARES = {1: 0.25, 2: 0.35, 3: 0.25, 4: 0.15}
DISTRACTOR_SHARE = 0.25
LARGEST = 150

_LEADS = ("so", "then", "now", "this means")
_PROPER = ("June", "July", "Sunday")  # template openings that stay capital after a lead


@dataclass(frozen=True)
class Problem:
    """A word problem; `gold` is the canonical answer, `steps` the number of equations."""

    question: str
    rationale: str
    gold: str
    steps: int
    situation: str
    signature: str


@dataclass(frozen=True)
class _Reckoning:
    numbers: tuple[int, ...]
    equations: tuple[tuple[int, str, int, int], ...]
    value: int


def problems(n: int, seed: int, split: str) -> list[Problem]:
    """Make `n` problems of the split ("pretrain", "train" or "test").

    Texts and signatures are unique within the call; the splits are disjoint in both. The same
    arguments give the same problems on every machine.

    Raises:
        InputError: the split is unknown, or `n` is more than the split holds.
    """
    if split not in SPLITS:
        raise InputError(f"split {split!r} is unknown; use one of {', '.join(SPLITS)}")
    rng = Random(f"problems/{split}/{seed}")
    shares = list(STEP_SHARES.values())
    made: list[Problem] = []
    taken: set[str] = set()
    while len(made) < n:
        steps = rng.choices(list(STEP_SHARES), shares)[0]
        for _ in range(20_000):
            story = _story(rng, steps)
            if story is None:
                continue
            situation, beats, reckonings = story
            numbers = "-".join(str(x) for r in reckonings for x in r.numbers)
            signature = f"{situation.name}:{numbers}"
            if signature in taken or _tenth(signature) not in SPLITS[split]:
                continue
            question, rationale = _tell(rng, situation, beats, reckonings)
            if question in taken:
                continue
            taken.update((signature, question))
            gold = str(reckonings[-1].value)
            made.append(Problem(question, rationale, gold, steps, situation.name, signature))
            break
        else:
            raise InputError(
                f"the split {split!r} has no more than {len(made)} problems for this seed, and "
                f"{n} were asked for; ask for fewer"
            )
    return made


def _tenth(signature: str) -> int:
    return int.from_bytes(hashlib.sha256(signature.encode()).digest()[:8], "big") % 10


# Arithmetic. An opener's function takes the generator alone, a move's the value so far as well;
# None where no fitting numbers exist.


def _chain(numbers: tuple[int, ...], *terms: tuple[int, str, int]) -> _Reckoning | None:
    equations = []
    for x, sign, y in terms:
        result = {"+": x + y, "-": x - y, "*": x * y, "/": x // y}[sign]
        if not 2 <= result <= LARGEST or (sign == "/" and x % y):
            return None
        equations.append((x, sign, y, result))
    return _Reckoning(numbers, tuple(equations), equations[-1][3])


def _given(rng: Random) -> _Reckoning:
    a = rng.randint(6, 60)
    return _Reckoning((a,), (), a)


def _sum(rng: Random) -> _Reckoning | None:
    a, b = rng.randint(3, 60), rng.randint(2, 60)
    return _chain((a, b), (a, "+", b))


def _difference(rng: Random) -> _Reckoning | None:
    a, b = rng.randint(8, 60), rng.randint(2, 50)
    return _chain((a, b), (a, "-", b))


def _times(rng: Random) -> _Reckoning | None:
    a, b = rng.randint(2, 12), rng.randint(2, 9)
    return _chain((a, b), (a, "*", b))


def _share(rng: Random) -> _Reckoning | None:
    b, quotient = rng.randint(2, 9), rng.randint(2, 15)
    return _chain((b * quotient, b), (b * quotient, "/", b))


def _compare(rng: Random) -> _Reckoning | None:
    a, factor = rng.randint(3, 30), rng.choice((2, 2, 3, 4, 5))
    return _chain((a, factor), (a, "*", factor))


def _compare_total(rng: Random) -> _Reckoning | None:
    a, factor = rng.randint(3, 30), rng.choice((2, 2, 3, 4))
    return _chain((a, factor), (a, "*", factor), (a, "+", a * factor))


def _half_total(rng: Random) -> _Reckoning | None:
    a = 2 * rng.randint(2, 40)
    return _chain((a,), (a, "/", 2), (a, "+", a // 2))


def _more(rng: Random) -> _Reckoning | None:
    a, b = rng.randint(3, 50), rng.randint(2, 30)
    return _chain((a, b), (a, "+", b), (a, "+", a + b))


def _less(rng: Random) -> _Reckoning | None:
    a, b = rng.randint(6, 60), rng.randint(2, 40)
    return _chain((a, b), (a, "-", b), (a, "+", a - b))


def _two_products(rng: Random) -> _Reckoning | None:
    a, b, c, d = (rng.randint(2, 9) for _ in range(4))
    return _chain((a, b, c, d), (a, "*", b), (c, "*", d), (a * b, "+", c * d))


def _perimeter(rng: Random) -> _Reckoning | None:
    a, b = rng.randint(4, 40), rng.randint(2, 30)
    return _chain((a, b), (a, "+", b), (a + b, "*", 2)) if a > b else None


def _add(rng: Random, value: int) -> _Reckoning | None:
    b = rng.randint(2, 60)
    return _chain((b,), (value, "+", b))


def _subtract(rng: Random, value: int) -> _Reckoning | None:
    b = rng.randint(2, 60)
    return _chain((b,), (value, "-", b))


def _multiply(rng: Random, value: int) -> _Reckoning | None:
    b = rng.randint(2, 9)
    return _chain((b,), (value, "*", b))


def _divide(rng: Random, value: int) -> _Reckoning | None:
    divisors = [b for b in range(2, 10) if value % b == 0]
    if not divisors:
        return None
    b = rng.choice(divisors)
    return _chain((b,), (value, "/", b))


def _half(rng: Random, value: int) -> _Reckoning | None:
    return _chain((), (value, "/", 2))


def _double(rng: Random, value: int) -> _Reckoning | None:
    return _chain((), (value, "*", 2))


def _add_groups(rng: Random, value: int) -> _Reckoning | None:
    b, c = rng.randint(2, 9), rng.randint(2, 9)
    return _chain((b, c), (b, "*", c), (value, "+", b * c))


def _subtract_groups(rng: Random, value: int) -> _Reckoning | None:
    b, c = rng.randint(2, 9), rng.randint(2, 9)
    return _chain((b, c), (b, "*", c), (value, "-", b * c))


def _from(rng: Random, value: int) -> _Reckoning | None:
    # Prices paid with, goals and page counts are round: a multiple of 5.
    b = 5 * rng.randint(value // 5 + 1, value // 5 + 12)
    return _chain((b,), (b, "-", value)) if b <= LARGEST else None


# op -> (number of equations, function)
_OPENERS: dict[str, tuple[int, Callable[[Random], _Reckoning | None]]] = {
    "given": (0, _given),
    "sum": (1, _sum),
    "difference": (1, _difference),
    "times": (1, _times),
    "share": (1, _share),
    "compare": (1, _compare),
    "compare_total": (2, _compare_total),
    "half_total": (2, _half_total),
    "more": (2, _more),
    "less": (2, _less),
    "perimeter": (2, _perimeter),
    "two_products": (3, _two_products),
}
_MOVES: dict[str, tuple[int, Callable[[Random, int], _Reckoning | None]]] = {
    "add": (1, _add),
    "subtract": (1, _subtract),
    "multiply": (1, _multiply),
    "divide": (1, _divide),
    "half": (1, _half),
    "double": (1, _double),
    "from": (1, _from),
    "add_groups": (2, _add_groups),
    "subtract_groups": (2, _subtract_groups),
}


def _story(rng: Random, steps: int) -> tuple[Situation, list[Beat], list[_Reckoning]] | None:
    """An opener and moves of `steps` equations together; None where the draw does not work out."""
    situation = rng.choice(SITUATIONS)
    opener = rng.choice(situation.openers)
    length, reckon = _OPENERS[opener.op]
    if length > steps or (opener.last and length < steps):
        return None
    first = reckon(rng)
    if first is None:
        return None
    beats, reckonings, left = [opener], [first], steps - length
    while left:
        fitting = [
            move
            for move in situation.moves
            if move not in beats
            and _MOVES[move.op][0] <= left
            and (not move.last or _MOVES[move.op][0] == left)
        ]
        if not fitting:
            return None
        move = rng.choice(fitting)
        length, change = _MOVES[move.op]
        reckoning = change(rng, reckonings[-1].value)
        if reckoning is None:
            return None
        beats.append(move)
        reckonings.append(reckoning)
        left -= length
    return situation, beats, reckonings


# Language.


class _Voice:
    """Fills the marks of one text; keeps names and pronouns apart from sentence to sentence."""

    def __init__(self, rng: Random, slots: dict[str, str], girl: bool) -> None:
        self.rng, self.slots = rng, slots
        self.he, self.him, self.his = ("she", "her", "her") if girl else ("he", "him", "his")
        self.named = False  # in an earlier sentence
        self.here = False  # in the present sentence

    def say(self, template: str, **numbers: object) -> str:
        """The template as one or more sentences, capitalised."""
        self.here = False
        chosen = _CHOICE.sub(lambda m: self.rng.choice(m[1].split("|")), template)
        text = _MARK.sub(lambda m: self._mark(m[1], numbers), chosen)
        self.named = self.named or self.here
        return _START.sub(lambda m: m[0].upper(), text)

    def _mark(self, mark: str, numbers: dict[str, object]) -> str:
        name = self.slots["n"]
        if mark in numbers:
            return str(numbers[mark])
        if mark == "n":
            self.here = True
            return name
        if mark == "then":
            return self.rng.choice(THEN)
        if mark in ("s", "o", "p"):
            # A pronoun needs a name before it, and a name twice in a sentence sounds wrong.
            by_name = not self.here and (not self.named or self.rng.random() < 0.3)
            self.here = True
            if by_name:
                return f"{name}'s" if mark == "p" else name
            return {"s": self.he, "o": self.him, "p": self.his}[mark]
        return self.slots[mark]


_CHOICE = re.compile(r"\[([^\]]*)\]")
_MARK = re.compile(r"\{(\w+)\}")
_START = re.compile(r"(?:^|(?<=[.?!] ))[a-z]")


def _tell(
    rng: Random, situation: Situation, beats: list[Beat], reckonings: list[_Reckoning]
) -> tuple[str, str]:
    """The question and the rationale."""
    girl = rng.random() < 0.5
    # The other person is of the other gender, so that he and she are never ambiguous.
    mine, others = (GIRLS, BOYS) if girl else (BOYS, GIRLS)
    slots = {"n": rng.choice(mine), "m": rng.choice(others)}
    for key, options in situation.slots.items():
        singular, _, plural = rng.choice(options).partition("/")
        slots[key] = singular
        slots[f"{key}s"] = plural
    marks = [_marks(r, "abcd" if i == 0 else "bcd") for i, r in enumerate(reckonings)]
    voice = _Voice(rng, slots, girl)
    sentences = [
        voice.say(rng.choice(beat.tells), **mark) for beat, mark in zip(beats, marks, strict=True)
    ]
    if rng.random() < DISTRACTOR_SHARE:
        place = rng.randint(1, len(sentences))
        aside = rng.choice(DISTRACTORS)
        # An age said in passing would contradict a story about ages.
        if situation.name != "ages" or "years old" not in aside:
            sentences.insert(place, voice.say(aside, d=rng.randint(3, 12)))
    sentences.append(voice.say(rng.choice(beats[-1].asks or situation.asks)))

    voice = _Voice(rng, slots, girl)
    steps: list[str] = []
    for beat, mark in zip(beats, marks, strict=True):
        # What is merely given is not always repeated.
        if "eq" in mark or rng.random() < 0.75:
            lead = bool(steps) and rng.random() < 0.4
            steps.append(voice.say(_show(rng, situation, beat, lead), **mark))
    return " ".join(sentences), " ".join(steps)


def _show(rng: Random, situation: Situation, beat: Beat, lead: bool) -> str:
    shape = 3 if beat.shows else rng.randrange(4)
    if shape == 0:
        return f"after {beat.why}, {situation.state}."
    if shape == 1:
        return f"{situation.state} after {beat.why}."
    if shape == 2:
        verb = "leaves" if beat.op in ("subtract", "half") else "makes"
        return f"that {verb} {{eq}} {situation.unit}."
    template = rng.choice(beat.shows or ("{state}.",)).replace("{state}", situation.state)
    if not lead or template.startswith("That"):
        return template
    if not template.startswith(_PROPER):
        template = template[0].lower() + template[1:]
    return f"{rng.choice(_LEADS)} {template}"


def _marks(reckoning: _Reckoning, letters: str) -> dict[str, object]:
    """What a beat's number marks, {times} and {eq}…{eq3} stand for."""
    equations = [f"{x} {sign} {y} = {result}" for x, sign, y, result in reckoning.equations]
    marks: dict[str, object] = dict(zip(("eq", "eq2", "eq3"), equations, strict=False))
    marks.update(zip(letters, reckoning.numbers, strict=False))
    if len(reckoning.numbers) == 2:
        factor = reckoning.numbers[1]
        marks["times"] = "twice" if factor == 2 else f"{factor} times"
    return marks
