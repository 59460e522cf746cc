"""Questions with fresh numbers: controls in GSM8K's format that cannot have leaked.

The calculator annotations of an answer and the equations in its text are a small program. Its
inputs are the numbers of the question that it uses. Fresh inputs are drawn, the program runs again,
and both texts get the new numbers: one old value becomes one new value wherever it occurs. Numbers
in words, and what words imply (60 for hours), stay. An entry for which this may be wrong has no
fresh numbers.
"""

import ast
import operator
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from zerogap.data.answers import DIGITS
from zerogap.data.gsm8k_format import Entry
from zerogap.data.paraphrases.validation import read_numbers

_MAX_DRAWS = 300  # the first half keeps the order and the length of all numbers
_NUMBER = re.compile(DIGITS)
_ANNOTATION = re.compile(r"<<([^<>]*)>>")
_SIDE = r"[-−–+*/x×÷()$%., \d]+"
_EQUATION = re.compile(rf"{_SIDE}(?:={_SIDE})+")
_SIGNS = str.maketrans({"$": "", "x": "*", "×": "*", "÷": "/", "−": "-", "–": "-"})
_OPERATIONS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_PERIOD = r"(?:days?|hours?|minutes|weeks|months) (?:an?|per|each|every|in an?|of the) \w+"
_THINGS = "legs?|wheels?|eyes|arms|wings|sides?|fingers|strings|bills?|coins?|degrees"
# Changes of these would be wrong or odd: parts of words, times, ratios, years, days a week, coins.
_FIXED = re.compile(
    rf"(?:{DIGITS})(?!x[ \d.$(]|(?:mph|k[mg]|[cm]m|oz|lbs?|m?[lg])\b)[a-z_]"
    rf"|(?:{DIGITS})(?::\d+| ?[ap]\.?m\b| ?o'?clock|[- ](?:\w+ )?(?:{_PERIOD}|(?:{_THINGS})\b))"
    r"|\b(?:in|since|until|by|year|of) (?:1[5-9]|20)\d\d\b",
    re.I,
)
_QUOTIENT = re.compile(rf"(?:(?:{DIGITS}) )?(?:{DIGITS})/(?:{DIGITS})")
_IMPLIED = {
    r"\b(?:week|month|quarter)": (4, 52),
    r"\b(?:day|daily|week)": (7,),
    r"\b(?:month|year|annual|dozen|inch)": (12, 30, 52, 365),
    r"\b(?:hour|minute|second)": (60, 3600),
    r"\b(?:percent|cents|meter|penn)|%": (100, Fraction(1, 100)),
    r"\b(?:kilo|liter|meter)|k[mg]\b|ml\b": (1000,),
}
_SHARE = re.compile(rf"({DIGITS}) ?(%|percent|¢|cents?\b)")
_COMPARISON = re.compile(
    r"\b(?:least|most|whether|which|who|if|limit|over|exceeds?|until|maximum|minimum|afford"
    r"|better|cheap|low|high|large?|small|fast|slow|old|young|tall|long|short|few)(?:e?st|e?r)?\b",
    re.I,
)
_AN = re.compile(r"(?<=\ban )\$?(?:8|1[18](?:,?\d{3})*(?!\d))|(?<=\ba )\$?(?!8|1[18]\b)\d", re.I)


def with_fresh_numbers(entry: Entry, rng: random.Random) -> Entry | None:
    """The same question with other numbers and its answer, or None if its calculations forbid it.

    Args:
        entry: a question and an answer with calculator annotations, in OpenAI's GSM8K format.
        rng: draws the numbers; the same state gives the same entry.
    """
    program = _program(entry["question"], *entry["answer"].rpartition("####")[::2])
    if program is None:
        return None
    for draw in range(_MAX_DRAWS):
        new = _run(program, rng)
        if new and _alike(new, program.gold, draw < _MAX_DRAWS / 2, program.ordered):
            question, answer = (_rewritten(entry[key], new) for key in ("question", "answer"))
            if question and answer:
                return {"question": question, "answer": answer}
    return None


class _Side(NamedTuple):
    """One side of an equation: an expression over the variables n0, n1, … of old values."""

    tree: ast.expr
    numbers: list[Fraction]


class _Share(NamedTuple):
    """What 20% or 20 cents may be in a calculation: constant + factor × 20."""

    source: Fraction
    constant: Fraction
    factor: Fraction


class _Program(NamedTuple):
    equations: list[list[_Side]]
    inputs: dict[Fraction, list[Fraction]]  # old value → candidates
    shares: list[tuple[Fraction, _Share]]  # of old values
    constants: set[Fraction]
    gold: Fraction
    ordered: bool  # whether the answer may depend on which number is larger


def _program(question: str, rationale: str, gold: str) -> _Program | None:
    """The calculations of an answer, if they explain all of its numbers."""
    plain = _ANNOTATION.sub("", rationale)
    equations = _equations(rationale, plain)
    if not equations or [_value(equations[-1][-1])] != _numbers(gold):
        return None
    asked, words = set(_numbers(question)), _in_words(plain)
    implied = _in_words(question) | words | {Fraction(0), Fraction(1)}
    for pattern, values in _IMPLIED.items():
        if re.search(pattern, f"{question}\n{plain}", re.I):
            implied |= set(map(Fraction, values))
    used, results = set[Fraction](), set[Fraction]()
    for first, *others in equations:
        used |= set(first.numbers) - results
        for side in others:
            is_result = isinstance(side.tree, ast.Name)
            used |= set[Fraction]() if is_result else set(side.numbers) - results
            results |= set(side.numbers) - asked - used if is_result else set()
    shares = [pair for pair in _shares(question) if pair[0] in used - asked]
    shared = {old for old, _ in shares}
    used |= {share.source for _, share in shares}
    written = set(_numbers(rationale))
    if not written | used <= asked | results | implied | shared or min(results, default=0) < 0:
        return None
    sides = [found.rpartition("=")[0] for found in _ANNOTATION.findall(rationale)]
    uses, mentions = Counter(_numbers(" ".join(sides))), Counter(_numbers(question))
    counts = {n for n in asked if n < 10 and uses[n] > mentions[n]}  # "3 cookies, one of each kind"
    operands = asked.union(*(side.numbers for sides in equations for side in sides[:-1]))
    patterns = ((_FIXED, f"{question}\n{plain}"), (_QUOTIENT, question))
    fixed = {
        n for pattern, text in patterns for m in pattern.finditer(text) for n in _numbers(m[0])
    }
    fixed = (fixed | counts | words | implied & operands) & (written | asked)
    if asked - used - fixed - {1}:  # "12 pens: 3 red, 5 blue and 4 green ones"
        return None
    inputs = {old: _candidates(old, question) for old in sorted(used & asked - fixed)}
    inputs = {old: candidates for old, candidates in inputs.items() if candidates}
    if not inputs:
        return None
    constants = (asked | used | fixed) - inputs.keys() - shared
    ordered = bool(_COMPARISON.search(question))
    return _Program(equations, inputs, shares, constants, _numbers(gold)[0], ordered)


def _equations(rationale: str, plain: str) -> list[list[_Side]] | None:
    """The annotations, which must be true, and the other true equations, in their order."""
    found, removed = list[tuple[int, list[_Side]]](), 0
    for match in _ANNOTATION.finditer(rationale):
        if not (sides := _true_sides(match[1])):
            return None
        found.append((match.start() - removed, sides))
        removed += len(match[0])
    for match in _EQUATION.finditer(plain):
        if sides := _true_sides(match[0].strip(" .,x*/")):
            found.append((match.start() + match[0].rindex("=") + 1, sides))
    return [sides for _, sides in sorted(found, key=operator.itemgetter(0))]


def _true_sides(equation: str) -> list[_Side] | None:
    """The sides of an equation that ends in a number and is exactly true."""
    sides = []
    try:
        for text in equation.translate(_SIGNS).split("="):
            gaps = _NUMBER.split(text)
            code = gaps[0] + "".join(f"n{at}{gap}" for at, gap in enumerate(gaps[1:]))
            code = re.sub(r"(n\d+)%", r"(\1/100)", code).strip()
            sides.append(_Side(ast.parse(code, mode="eval").body, _numbers(text)))
        is_true = len({_value(side) for side in sides}) == 1 < len(sides)
    except (SyntaxError, ValueError, ZeroDivisionError):
        return None
    return sides if is_true and isinstance(sides[-1].tree, ast.Name) else None


def _value(side: _Side, new: Mapping[Fraction, Fraction] | None = None) -> Fraction:
    """The value of a side, with new values for the old ones."""

    def value(node: ast.expr) -> Fraction:
        match node:
            case ast.BinOp(left, operation, right) if type(operation) in _OPERATIONS:
                return _OPERATIONS[type(operation)](value(left), value(right))
            case ast.Name(name):
                number = side.numbers[int(name[1:])]
                return new[number] if new else number
            case ast.Constant(100):
                return Fraction(100)
        raise ValueError(ast.unparse(node))

    return value(side.tree)


def _shares(question: str) -> Iterable[tuple[Fraction, _Share]]:
    for digits, unit in set(_SHARE.findall(question)):
        source, hundredth = _numbers(digits)[0], Fraction(1, 100)
        shares = [_Share(source, Fraction(0), hundredth)]  # .2
        if unit in ("%", "percent"):
            shares += (_Share(source, Fraction(1), sign * hundredth) for sign in (-1, 1))
            shares += (_Share(source, Fraction(100), Fraction(sign)) for sign in (-1, 1))
        for share in shares:
            yield share.constant + share.factor * source, share


def _in_words(text: str) -> set[Fraction]:
    """The numbers that a text has in words, with the terms of its fractions."""
    found = set[Fraction]()
    for number in read_numbers(text):
        if not _NUMBER.search(number.text) and not number.text.startswith("second"):
            for value in frozenset().union(*number.meanings):
                found |= {value, Fraction(value.numerator), Fraction(value.denominator)}
    return found


def _numbers(text: str) -> list[Fraction]:
    return [Fraction(digits.replace(",", "")) for digits in _NUMBER.findall(text)]


def _candidates(old: Fraction, text: str) -> list[Fraction]:
    """Numbers of half to twice the size with as many digits and as round.

    0, 1, 10, 100, … have none and are none: they make calculations easier than others do.
    """
    spellings = [digits for digits in _NUMBER.findall(text) if _numbers(digits) == [old]]
    places = max(len(spelling.partition(".")[2]) for spelling in spellings)
    whole = int(old * 10**places)
    digits = str(whole).rstrip("0")
    core = int(digits or 0)
    return [
        Fraction(new * whole, core * 10**places)
        for new in range(max(2, (core + 1) // 2), min(2 * core, 10 ** len(digits) - 1) + 1)
        if core > 1
        and new != core
        and new * old != core
        and len(str(new)) == len(digits)
        and (core < 10 or (new % 10 and (new % 2, new % 5 == 0) == (core % 2, core % 5 == 0)))
    ]


def _run(program: _Program, rng: random.Random) -> dict[Fraction, Fraction] | None:
    """Old value → new value for a draw; None if an old value would have two new ones."""
    new = {constant: constant for constant in program.constants}
    for old, candidates in program.inputs.items():
        weights = [1 / float(candidate) for candidate in candidates]  # halved as often as doubled
        new[old] = rng.choices(candidates, weights)[0]
    for old, (source, constant, factor) in program.shares:
        value = constant + factor * new[source]
        if new.setdefault(old, value) != value:
            return None
    for first, *others in program.equations:
        try:
            value = _value(first, new)
            for side in others:
                if isinstance(side.tree, ast.Name):
                    new.setdefault(side.numbers[0], value)
                if _value(side, new) != value:
                    return None
        except ZeroDivisionError:
            return None
    return new


def _alike(new: Mapping[Fraction, Fraction], gold: Fraction, strict: bool, ordered: bool) -> bool:
    """Whether the answer changes, and new values are of the same kind as old ones.

    Whole, below 1, positive, and of up to three times the size; different ones stay different. In
    strict mode they also keep their order and their number of digits.
    """
    for old, value in new.items():
        if value != old and not (
            1 not in (old, value)
            and 0 < old <= 3 * value <= 9 * old
            and (old.denominator == 1) == (value.denominator == 1)
            and (old < 1) == (value < 1)
            and (len(str(int(old))) == len(str(int(value))) or not strict)
        ):
            return False
    values = [new[old] for old in sorted(new)]
    rising = all(a < b for a, b in pairwise(values)) or not (strict or ordered)
    return new[gold] != gold and rising and len(set(values)) == len(values)


def _rewritten(text: str, new: Mapping[Fraction, Fraction]) -> str | None:
    """The text with new numbers, spelled as the old ones; None if that is impossible."""

    def spelled(match: re.Match[str]) -> str:
        (old,), (_, _, decimals) = _numbers(match[0]), match[0].partition(".")
        scaled = new.get(old, old) * 10 ** len(decimals)
        odd = decimals and not decimals.endswith("0") and scaled % 10 == 0  # 2.5 → 3.0
        if old == new.get(old, old):
            return match[0]
        if scaled.denominator != 1 or odd:
            raise ValueError(match[0])
        whole, rest = divmod(int(scaled), 10 ** len(decimals))
        digits = f"{whole:,}" if "," in match[0] else str(whole) if match[0][0] != "." else ""
        return f"{digits}.{rest:0{len(decimals)}}" if decimals else digits

    try:
        fresh = _NUMBER.sub(spelled, text)
    except ValueError:
        return None
    return fresh if len(_AN.findall(fresh)) == len(_AN.findall(text)) else None
