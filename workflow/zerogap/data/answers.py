"""The numeric answer of a response, and when two answers are the same.

Numbers are compared exactly, as decimals without a size limit: '18', '18.00', '$18', '18.' and
'+18' are the same number, '18,000' is 18000, and '5%' is 5. A stated answer (after 'The answer is'
or '####') may also be grouped by spaces, have an exponent or be a fraction: '18 000', '1.8e4' and
'36000/2' are 18000. Of 'The answer is 3 * 6 = 18', the answer is what the last '=' of the sentence
gives.
"""

import re
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from zerogap.errors import InputError

DIGITS = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+"
# A minus sign belongs to the number unless something before it can be subtracted from.
_SIGN = r"(?:(?<![\w.)])[-−])?(?:[$£€]\s?[-−]?)?"
_NUMBER = rf"{_SIGN}(?:{DIGITS})"
_SPACED = r"[0-9]{1,3}(?:[ \u00a0\u202f][0-9]{3})+(?![0-9])(?:\.[0-9]+)?"
_STATED = (
    rf"(?P<number>{_SIGN}(?:{_SPACED}|{DIGITS}))(?:e(?P<exponent>[-+]?[0-9]{{1,3}})(?![0-9]))?"
    r"(?:\s?/\s?(?P<denominator>[0-9]+(?![0-9.,]*[0-9])))?"
)
# A calculation up to the last "=" of its sentence. Periods and commas are part of numbers only.
_CALCULATION = r"\s*[$£€(−-]*[0-9](?:[^\n.,;]|[.,](?=[0-9]))*="
_OPERATION = r"\s?[-+−*/×÷x]\s?[0-9($]"  # "18 = 3 * 6" does not state 3
_THE_ANSWER_IS = re.compile(
    rf"\bthe answer is:?(?P<equals>{_CALCULATION})?\s*(?>{_STATED})(?(equals)(?!{_OPERATION}))",
    re.IGNORECASE,
)
_HASH = re.compile(rf"####\s*{_STATED}", re.IGNORECASE)
_ANY = re.compile(_NUMBER)
# In the reversed text: its last digit, and everything before that could be in the same number.
_REVERSED_END = re.compile(r"[0-9][0-9.,$£€\s−-]*")
_MAX_FRACTION_DIGITS = 4000  # Python converts no longer texts to integers
_NEXT_QUESTION = re.compile(r"\sQ:|\n\s*\nQuestion:")
_WHOLE = re.compile(r"([-+−]?)[$£€]?([-−]?)((?:[0-9][0-9,]*)?(?:\.[0-9]*)?)")


@dataclass(frozen=True)
class Extraction:
    """A response's answer and what found it.

    `answer` is a canonical number or None; `extractor` is "the_answer_is", "hash", "last_number"
    or, if the text has no number, "none". A stated fraction without a finite decimal (1/3) is not
    an answer.
    """

    answer: str | None
    extractor: str


def extract(text: str) -> Extraction:
    """The first 'The answer is …', else the first '#### …', else the last number.

    If what the answer is said to be is a calculation, its value is what the last '=' gives.
    A response that runs on into another question ("Q:", or "Question:" after an empty line) is
    read up to there, unless there is no number before it.
    """
    text = _without_next_question(text)
    for extractor, find in (("the_answer_is", _find_the_answer_is), ("hash", _HASH.search)):
        if match := find(text):
            parts = match.group("number", "exponent", "denominator")
            return Extraction(_stated_number(*parts), extractor)
    number = _last_number(text)
    if number:
        return Extraction(canonical(number), "last_number")
    return Extraction(None, "none")


# The three functions below look for plain texts first, because a file of responses has a million.


def _without_next_question(text: str) -> str:
    """The text up to the next question, if it has a number; else the whole text."""
    if "Q:" not in text and "Question:" not in text:
        return text
    response = _NEXT_QUESTION.split(text, maxsplit=1)[0]
    return response if _ANY.search(response) else text


def _find_the_answer_is(text: str) -> re.Match[str] | None:
    """The first 'The answer is …'."""
    if not text.isascii():  # re.IGNORECASE also takes ſ for s
        return _THE_ANSWER_IS.search(text)
    start = text.lower().find("the answer is")
    return None if start < 0 else _THE_ANSWER_IS.search(text, start)


def _last_number(text: str) -> str | None:
    """The last match of `_ANY`: numbers are read from the left, from where none can reach over."""
    end = _REVERSED_END.search(text[::-1])
    return _ANY.findall(text, len(text) - end.end())[-1] if end else None


@lru_cache(maxsize=2**16)  # answers repeat: a question has one gold answer and many responses
def canonical(text: str) -> str:
    """A number in its canonical spelling: no grouping, currency, percent, plus or extra zeros.

    Raises:
        InputError: the text is not a number.
    """
    bare = re.sub(r"\s", "", text).rstrip("%").rstrip(".")
    match = _WHOLE.fullmatch(bare)
    if not match or not re.search(r"[0-9]", match[3]):
        raise InputError(f"{text!r} is not a number")
    whole, _, fraction = match[3].replace(",", "").partition(".")
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    number = f"{whole}.{fraction}" if fraction else whole
    negative = (match[1] in ("-", "−")) != bool(match[2])
    return f"-{number}" if negative and number != "0" else number


def _stated_number(number: str, exponent: str | None, denominator: str | None) -> str | None:
    plain = canonical(number)
    if exponent:
        plain = canonical(f"{Decimal(plain).scaleb(int(exponent)):f}")
    if denominator is None:
        return plain
    if len(plain + denominator) > _MAX_FRACTION_DIGITS or not int(denominator):
        return None
    value = Fraction(plain) / int(denominator)
    if 10 ** value.denominator.bit_length() % value.denominator:
        return None
    with localcontext() as exact:
        exact.prec = len(str(value.numerator)) + 4 * len(str(value.denominator)) + 1
        return canonical(f"{Decimal(value.numerator) / value.denominator:f}")


def same(answer: str | None, gold: str) -> bool:
    """Whether the answer equals the gold answer; None never does.

    Raises:
        InputError: one of the texts is not a number.
    """
    return answer is not None and canonical(answer) == canonical(gold)
