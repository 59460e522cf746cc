"""Questions with fresh numbers: controls in GSM8K's format that cannot have leaked.

The calculator annotations of an answer and the equations in its text are a small program. Its
inputs are the numbers of the question that it uses. Fresh inputs are drawn, the program runs again,
and both texts get the new numbers: one old value becomes one new value wherever it occurs. Numbers
in words, and what words imply (60 for hours), stay. An entry for which this may be wrong has no
fresh numbers. Of several draws the one is taken whose calculations are most like the original ones.
"""

import ast
import math
import operator
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import chain, islice, pairwise
from typing import NamedTuple

from zerogap.data.answers import DIGITS
from zerogap.data.gsm8k_format import Entry
from zerogap.data.paraphrases.validation import read_numbers

_MAX_DRAWS = 1000
_NUM_MATCHES = 60  # draws that are possible, of which the best match is taken
# What easier numbers and easier calculations count, relative to harder ones: many questions only
# allow harder ones. With these values GSM8K's means stay (docs/evaluate.md#plan).
_EASIER_NUMBERS, _EASIER_WORK = 0.55, 0.65
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
_PERIOD = (
    r"(?:days?|hours?|minutes|weeks|months) (?:an?|per|each|every|in an?|of the) \w+"
    r"|(?:days|cups|ounces|pints|calories) (?:in|to) (?:an?|the|one|each) \w+"
)
_THINGS = "leg|wheel|eye|arm|wing|side|finger|teeth|string|stripe|bill|coin|quarter|degree|tall"
# Changes of these would be wrong or odd: parts of words, times, ratios, units, years, coins, sizes.
_FIXED = re.compile(
    rf"(?:{DIGITS})(?!x[ \d.$(]|(?:mph|k[mg]|[cm]m|oz|lbs?|m?[lg])\b)[a-z_]"
    rf"|(?:{DIGITS})(?::\d+| ?[ap]\.?m\b| ?o'?clock|[- ](?:\w+ )?(?:{_PERIOD}|(?:{_THINGS})s?\b))"
    rf"|\b(?:equals?|equal to|same as|hours? and|feet|foot) (?:{DIGITS})"
    r"|\b(?:in|since|until|by|year|of) (?:1[5-9]|20)\d\d\b",
    re.I,
)
_QUOTIENT = re.compile(rf"(?:(?:{DIGITS}) )?(?:{DIGITS})/(?:{DIGITS})")
_IMPLIED = {
    r"\b(?:week|month|quarter)": (4, 52),
    r"\b(?:day|daily|week)": (7,),
    r"\b(?:month|year|annual|dozen|inch|deck)": (12, 30, 52, 365),
    r"\b(?:hour|minute|second)": (60, 3600),
    r"\b(?:percent|cents|meter|penn)|%": (100, Fraction(1, 100)),
}
_SHARE = re.compile(rf"({DIGITS}) ?(?:%|percent|¢|cents?\b)")
_AN = re.compile(r"(?<=\ban )\$?(?:8|1[18](?:,?\d{3})*(?!\d))|(?<=\ba )\$?(?!8|1[18]\b)\d", re.I)


def with_fresh_numbers(entry: Entry, rng: random.Random) -> Entry | None:
    """The same question with other numbers and its answer, or None if its calculations forbid it.

    The answer has calculator annotations, in OpenAI's GSM8K format.
    """
    program = _program(entry["question"], *entry["answer"].rpartition("####")[::2])
    if program is None:
        return None
    draws = (_run(program, rng) for _ in range(_MAX_DRAWS))
    alike = (new for new in draws if new and _alike(program, new))
    matches = islice(alike, _NUM_MATCHES)
    for new in sorted(matches, key=lambda new: _mismatch(program, new)):
        question, answer = (_rewritten(entry[key], new) for key in ("question", "answer"))
        if question and answer:
            return {"question": question, "answer": answer}
    return None


class _Side(NamedTuple):
    """One side of an equation: an expression over the variables n0, n1, … of old values."""

    tree: ast.expr
    numbers: list[Fraction]


class _Program(NamedTuple):
    equations: list[list[_Side]]
    inputs: dict[Fraction, list[Fraction]]  # old value → candidates
    shares: dict[Fraction, Fraction]  # .2 → 20 of 20% or 20 cents
    constants: set[Fraction]
    gold: Fraction
    work: tuple[int, int]  # see `_work`


def _program(question: str, rationale: str, gold: str) -> _Program | None:
    """The calculations of an answer, if they explain all of its numbers."""
    plain = _ANNOTATION.sub("", rationale)
    equations = _equations(rationale, plain)
    if not equations or equations[-1][-1].numbers != _numbers(gold):
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
            if isinstance(side.tree, ast.Name):
                results |= set(side.numbers) - asked - used
            else:
                used |= set(side.numbers) - results
    sources = [n for digits in _SHARE.findall(question) for n in _numbers(digits)]
    shares = {source / 100: source for source in sources if source / 100 in used - asked}
    used |= set(shares.values())
    written = set(_numbers(rationale))
    if not written | used <= asked | results | implied | shares.keys():
        return None
    sides = [found.rpartition("=")[0] for found in _ANNOTATION.findall(rationale)]
    uses, mentions = Counter(_numbers(" ".join(sides))), Counter(_numbers(question))
    # "3 cookies, one of each kind"; "3 cats: Tim, 3 pounds heavier than Tom, …"
    counts = {n for n in asked & used if n < 10 and uses[n] != mentions[n]}
    operands = asked.union(*(side.numbers for sides in equations for side in sides[:-1]))
    patterns = ((_FIXED, f"{question}\n{plain}"), (_QUOTIENT, question))
    fixed = {
        n for pattern, text in patterns for m in pattern.finditer(text) for n in _numbers(m[0])
    }
    fixed = (fixed | counts | words | implied & operands) & (written | asked)
    if asked - used - fixed - {1}:  # "12 pens: 3 red, 5 blue and 4 green ones"
        return None
    inputs = {old: new for old in sorted(used & asked - fixed) if (new := _candidates(old))}
    if not inputs:
        return None
    constants = (asked | used | fixed | {Fraction(0), Fraction(1)}) - inputs.keys() - shares.keys()
    same = {n: n for side in chain.from_iterable(equations) for n in side.numbers}
    work = _work(equations, same)
    return _Program(equations, inputs, shares, constants, _numbers(gold)[0], work)


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
        is_true = len({_value(*side) for side in sides}) == 1 < len(sides)
    except (SyntaxError, ValueError, ZeroDivisionError):
        return None
    return sides if is_true and isinstance(sides[-1].tree, ast.Name) else None


def _value(node: ast.expr, numbers: Sequence[Fraction]) -> Fraction:
    """The value of an expression over n0, n1, … for these numbers."""
    match node:
        case ast.BinOp(left, operation, right) if type(operation) in _OPERATIONS:
            return _OPERATIONS[type(operation)](_value(left, numbers), _value(right, numbers))
        case ast.Name(name):
            return numbers[int(name[1:])]
        case ast.Constant(100):
            return Fraction(100)
    raise ValueError(ast.unparse(node))


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


def _candidates(old: Fraction) -> list[Fraction]:
    """Numbers of half to twice the size that are as round.

    0, 1, 2, 10, 20, … have none, and 1, 10, … are none: no others make calculations as easy.
    """
    core = int(str(int(old * 10**4)).rstrip("0") or 0)
    return [
        new * old / core
        for new in range((core + 1) // 2, 2 * core + 1)
        if core > 2 and new != core and str(new).rstrip("0") != "1"
    ]


def _run(program: _Program, rng: random.Random) -> dict[Fraction, Fraction] | None:
    """Old value → new value for a draw; None if an old value would have two new ones."""
    new = {constant: constant for constant in program.constants}
    for old, candidates in program.inputs.items():
        new[old] = rng.choices(candidates, [1 / float(number) for number in candidates])[0]
    new |= {share: new[source] / 100 for share, source in program.shares.items()}
    for first, *others in program.equations:
        try:
            value = _value(first.tree, [new[old] for old in first.numbers])
            for side in others:
                if isinstance(side.tree, ast.Name):
                    new.setdefault(side.numbers[0], value)
                if _value(side.tree, [new[old] for old in side.numbers]) != value:
                    return None
        except ZeroDivisionError:
            return None
    return new


def _alike(program: _Program, new: Mapping[Fraction, Fraction]) -> bool:
    """Whether the answer changes, all numbers keep their order, and new ones are like old ones.

    They are whole or not, and have half to twice the size. As 0 and 1 stay, none becomes 0, 1 or
    negative.
    """
    return (
        new[program.gold] != program.gold
        and all(new[a] < new[b] for a, b in pairwise(sorted(new)))
        and all(
            old <= 2 * value <= 4 * old and (old.denominator == 1) == (value.denominator == 1)
            for old, value in new.items()
        )
    )


def _mismatch(program: _Program, new: Mapping[Fraction, Fraction]) -> float:
    """How much the numbers differ in size and in digits, and the calculations in work."""
    cost = 0.0
    for old, value in new.items():
        if old:
            digits = len(_digits(value)) - len(_digits(old))
            harder = math.log(value / old), 2 * digits
            cost += sum(max(by, -_EASIER_NUMBERS * by) for by in harder)
    more = (
        now - then for now, then in zip(_work(program.equations, new), program.work, strict=True)
    )
    return cost + sum(max(by, -_EASIER_WORK * by) for by in more)


def _work(
    equations: Sequence[Sequence[_Side]], new: Mapping[Fraction, Fraction]
) -> tuple[int, int]:
    """The carries of all sums and differences, and the products of digits of other operations."""
    carries = products = 0
    for side in chain.from_iterable(equations):
        numbers = [new[old] for old in side.numbers]
        for node in ast.walk(side.tree):
            if isinstance(node, ast.BinOp):
                a, b, c = (_digits(_value(part, numbers)) for part in (node.left, node.right, node))
                if isinstance(node.op, ast.Sub | ast.Div):  # a - b = c is c + b = a
                    a, c = c, a
                if isinstance(node.op, ast.Add | ast.Sub):
                    carries += (sum(a) + sum(b) - sum(c)) // 9
                else:
                    products += len(a) * len(b)
    return carries, products


def _digits(value: Fraction) -> list[int]:
    """The significant digits, with up to four decimals."""
    return [int(digit) for digit in str(round(abs(value) * 10**4)).strip("0")]


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
