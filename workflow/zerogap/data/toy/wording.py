"""Varied wordings of a generated rationale: the same steps, told in one of many ways.

The plain rationales (:mod:`zerogap.data.toy.word_problems`) write every equation in one notation.
Here it is written in one of five, and rationales open, close and repeat results in several ways, as
in text that people write. No wording changes a number or the order of the steps.
"""

import itertools
import re
from collections.abc import Sequence
from random import Random

_EQUATION = re.compile(
    r"(?P<x>\d+) (?P<sign>[-+*/]) (?P<y>\d+) = (?P<result>\d+)(?: (?P<noun>[a-z]+s|feet)\b)?"
)
_WORDS = {"+": "plus", "-": "minus", "*": "times", "/": "divided by"}
_GERUNDS = {
    "+": ("Adding {y} to {x}", "Putting {x} and {y} together"),
    "-": ("Taking {y} from {x}", "Subtracting {y} from {x}"),
    "*": ("Multiplying {x} by {y}", "Taking {x} {y} times"),
    "/": ("Dividing {x} by {y}", "Splitting {x} into {y} parts"),
}
# Fractions of the equations in each notation; one that does not fit is written plainly.
_NOTATIONS = {"plain": 0.35, "commuted": 0.15, "with_nouns": 0.15, "split": 0.1, "in_words": 0.25}

_OPENINGS = (
    "Let's solve this step by step.",
    "Let us work it out.",
    "We go through the story in order.",
    "Here is what happens.",
    "We need the last number.",
    "We take one step at a time.",
    "There is more than one step.",
    "First we look at the numbers.",
)
_FIRST_LEADS = ("First,", "To begin with,", "At the start,")
_LEADS = ("So", "Then", "Now", "Next,", "After that,", "This means", "We see that")
_REMARKS = (
    "So we have {value} now.",
    "The new number is {value}.",
    "We continue with {value}.",
    "That is {value} so far.",
    "This gives {value}.",
)
_CLOSINGS = (
    "So the last number is {value}.",
    "In the end it is {value}.",
    "We get {value}.",
    "That is what we need.",
    "And {value} is the result.",
)


def vary(steps: Sequence[str], capitalised: Sequence[str], rng: Random) -> str:
    """One wording of a rationale.

    Args:
        steps: the plain text of each step: sentences whose equations read '47 + 20 = 67'.
        capitalised: words that keep their capital in the middle of a sentence.
        rng: decides the wording.
    """
    sentences = [rng.choice(_OPENINGS)] if rng.random() < 0.5 else []
    value = ""
    for index, step in enumerate(steps):
        results = [match["result"] for match in _EQUATION.finditer(step)]
        sentences += _sentences(step, index == 0, capitalised, rng)
        value = results[-1] if results else value
        if results and index < len(steps) - 1 and rng.random() < 0.25:
            sentences.append(rng.choice(_REMARKS).format(value=value))
    if rng.random() < 0.4:
        sentences.append(rng.choice(_CLOSINGS).format(value=value))
    return " ".join(sentences)


def _sentences(step: str, first: bool, capitalised: Sequence[str], rng: Random) -> list[str]:
    """The sentences of one step, with its equations in words in front of them."""
    result: list[str] = []
    for sentence in re.split(r"(?<=\.) ", step):
        spoken: list[str] = []
        text = _notated(sentence, spoken, rng)
        if spoken and rng.random() < 0.5:
            text = f"{spoken.pop()[:-1]}, so {_continued(text, capitalised)}"
        elif rng.random() < 0.4:
            lead = rng.choice(_LEADS if result or not first else _FIRST_LEADS)
            text = f"{lead} {_continued(text, capitalised)}"
        result += [*spoken, text]
    return result


def _notated(sentence: str, spoken: list[str], rng: Random) -> str:
    """The sentence with its equations in other notations.

    Equations in words are sentences of their own. They are added to `spoken` and come before this
    sentence, so an equation may only be in words if those to its left are.
    """
    equations = itertools.count()
    return _EQUATION.sub(
        lambda match: _equation(match, spoken if next(equations) == len(spoken) else None, rng),
        sentence,
    )


def _continued(sentence: str, capitalised: Sequence[str]) -> str:
    """The sentence without its capital, unless a name has it."""
    return (
        sentence if sentence.startswith(tuple(capitalised)) else sentence[0].lower() + sentence[1:]
    )


def _equation(match: re.Match[str], spoken: list[str] | None, rng: Random) -> str:
    """An equation in one notation; its result alone if it was added in words to `spoken`."""
    x, sign, y, result, noun = match.group("x", "sign", "y", "result", "noun")
    after = f" {noun}" if noun else ""
    match rng.choices(list(_NOTATIONS), list(_NOTATIONS.values()))[0]:
        case "commuted" if sign in "+*":
            return f"{y} {sign} {x} = {result}{after}"
        case "with_nouns" if noun and sign in "+-":
            return f"{x} {noun} {sign} {y} {noun} = {result} {noun}"
        case "split" if parts := _split(int(x), sign, int(y)):
            return f"{x} {sign} {y} = {parts} = {result}{after}"
        case "in_words" if spoken is not None:
            spoken.append(_in_words(x, sign, y, result, rng))
            return f"{result}{after}"
    return f"{x} {sign} {y} = {result}{after}"


def _in_words(x: str, sign: str, y: str, result: str, rng: Random) -> str:
    if rng.random() < 0.5:
        return f"{x} {_WORDS[sign]} {y} is {result}."
    return f"{rng.choice(_GERUNDS[sign]).format(x=x, y=y)} gives {result}."


def _split(x: int, sign: str, y: int) -> str | None:
    """An intermediate form, with tens and ones apart; None if there is none."""
    if sign in "+-" and y > 10 and y % 10:
        tens, ones = y - y % 10, y % 10
        rest = x + tens if sign == "+" else x - tens
        return f"{rest} {sign} {ones}"
    if sign == "*" and x > 10 and x % 10:
        return f"{(x - x % 10) * y} + {x % 10 * y}"
    return None
