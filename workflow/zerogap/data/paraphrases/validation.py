"""What a valid paraphrase is, from whichever source.

Every number stays, in digits or words, no other number is added, and the wording changes. A
paraphrase may spell a number in another way, so a number has meanings, each of which says the same:
'50%' is 50 or 1/2, and 'two hundred and five' is 205, or 200 and 5.
"""

import re
from fractions import Fraction
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

from zerogap.data.answers import DIGITS

MAX_SIMILARITY = 0.75  # at least a quarter of the tokens must change
_MAX_LENGTH_RATIO = 3

_SOLUTION = re.compile(r"####|\bthe answer is\b|=|\bstep 1\b", re.I)


def problems_with(question: str, paraphrase: str) -> list[str]:
    """What is wrong with a paraphrase; empty if it is valid.

    100 and 'a hundred' are the same, and how often a number occurs does not matter.
    """
    if not paraphrase.strip():
        return ["empty"]
    problems = []
    if "\n" in paraphrase.strip():
        problems.append("more than one line")
    if missing := missing_numbers(question, paraphrase):
        problems.append(f"missing numbers: {', '.join(missing)}")
    if added := missing_numbers(paraphrase, question):
        problems.append(f"added numbers: {', '.join(added)}")
    if _SOLUTION.search(paraphrase) and not _SOLUTION.search(question):
        problems.append("contains a solution")
    if len(_tokens(paraphrase)) > _MAX_LENGTH_RATIO * len(_tokens(question)):
        problems.append("more than three times as long")
    if (value := similarity(question, paraphrase)) > MAX_SIMILARITY:
        problems.append(f"hardly reworded (similarity {value:.2f} > {MAX_SIMILARITY})")
    return problems


def similarity(a: str, b: str) -> float:
    """1 − token edit distance / longer length; 1 is equal.

    Tokens are lower-case words and numbers, and single letters of other alphabets.
    """
    return float(Levenshtein.normalized_similarity(_tokens(a), _tokens(b)))


def _tokens(text: str) -> list[str]:
    return re.findall(r"[a-z0-9']+|[^\W_]", text.lower())


# Numbers in digits and in words: 25, 'twenty-five', 'a dozen', 'half', 'twice'.

_SMALL_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
_DECADES = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = "third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
_SMALL = {word: value for value, word in enumerate(_SMALL_NUMBERS.split())}
_TENS = {word: 10 * i for i, word in enumerate(_DECADES.split(), start=2)}
_VALUES = _SMALL | _TENS | {"a": 1, "an": 1}
_SCALES = {"dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9}
_DENOMINATORS = {"half": 2, "quarter": 4} | {
    word: value for value, word in enumerate(_ORDINALS.split(), start=3)
}
_PLURALS = {"halves": 2} | {f"{word}s": value for word, value in _DENOMINATORS.items()}
_MULTIPLES = {"twice": 2, "thrice": 3} | {
    word + ending: value
    for word, value in (("doubl", 2), ("tripl", 3), ("quadrupl", 4))
    for ending in ("e", "ed", "es", "ing")
}
# Words that may stand for a number but often do not, so that they may come and go.
_OPTIONAL = {
    **dict.fromkeys(("a", "an", "one", "once", "single", "first"), (1,)),
    **dict.fromkeys(("both", "couple", "pair", "pairs", "second", "twins"), (2,)),
    **dict.fromkeys(("no", "none", "nothing", "never"), (0,)),
    **{word: (value, Fraction(1, value)) for word, value in _DENOMINATORS.items() if value > 2},
    **{"quarter": (25, Fraction(1, 4)), "quarters": (25,), "trio": (3,)},
    **dict.fromkeys(("halve", "halved", "halves", "halving"), (Fraction(1, 2),)),
}

_FRACTION = r"(?<![0-9./])[0-9]+/0*[1-9][0-9]*(?![0-9/])"
_TOKEN = re.compile(rf"{_FRACTION}|{DIGITS}|[a-z]+")
_PERCENT = re.compile(r"\s?(?:%|percent\b|per cent\b)")
_OF = re.compile(r" (?:of|as)\b")
_HALF = re.compile(rf"half(?![a-z])(?:[^a-z0-9]+(?:a[^a-z0-9]+)?({'|'.join(_SCALES)})(?![a-z]))?")
_NEXT_WORD = re.compile(r"[ -]([a-z]+)")
# The fraction of a mixed number: '2 1/2', 'two and a half', 'an hour and a half'.
_MIXED = re.compile(
    rf"[ -]({_FRACTION})|(?: [a-z]+)? and (?:an? |one )?(half|quarter|third)(?![a-z])"
)


def _cardinals() -> re.Pattern[str]:
    """Numbers in digits and words: '2,500', 'a hundred', 'two million six hundred and five'."""
    units = "|".join(word for word, value in _SMALL.items() if 0 < value < 10)
    words = rf"(?:{'|'.join(_TENS)})(?:[ -](?:{units})(?![a-z]))?|{'|'.join(_SMALL)}"
    below_100 = rf"(?:(?!{_FRACTION})(?:{DIGITS})|(?:{words})(?![a-z]))"

    def then(number: str) -> str:  # 'a hundred and one half' has no 101
        denominators = "|".join(_DENOMINATORS)
        return rf"(?:(?: and)?[ -](?>{number})(?![^a-z0-9]*(?:{denominators})(?![a-z])))?"

    hundreds = rf"(?:[ -]hundred(?![a-z]){then(below_100)})?"
    scale = rf"[ -](?:{'|'.join(_SCALES)})(?![a-z])"
    large = rf"(?:{scale})*[ -](?:thousand|million|billion)(?![a-z])(?:{scale})*"
    first = rf"(?:an?(?![a-z])|{below_100}){hundreds}"
    return re.compile(rf"{first}(?:{large}{then(below_100 + hundreds)})*(?:{scale})*")


_CARDINAL = _cardinals()
_AFTER_ONE = re.compile(rf"[^a-z0-9]*(?:{'|'.join([*_SCALES, *_DENOMINATORS])})(?![a-z])")


class Number(NamedTuple):
    """A number as it is written."""

    text: str
    meanings: tuple[frozenset[Fraction], ...]  # each is one way to say it
    required: bool = True  # unlike a word such as 'a' or 'pair', which may come and go


def missing_numbers(text: str, other: str) -> list[str]:
    """The numbers of a text that another one does not have, as they are written."""
    values = {
        value for number in read_numbers(other) for meaning in number.meanings for value in meaning
    }
    missing = [
        number.text
        for number in read_numbers(text)
        if number.required and not any(meaning <= values for meaning in number.meanings)
    ]
    return list(dict.fromkeys(missing))


def read_numbers(text: str) -> list[Number]:
    """The numbers of a text in their order."""
    text, position, numbers = text.lower(), 0, list[Number]()
    while token := _TOKEN.search(text, position):
        position = token.end()
        if number := _half(text, token) or _cardinal(text, token) or _other_word(text, token):
            numbers.append(number)
            position = token.start() + len(number.text)
    return numbers


def _number(
    text: str, first: re.Match[str], end: int, *meanings: set[Fraction], required: bool = True
) -> Number:
    return Number(text[first.start() : end], tuple(map(frozenset, meanings)), required)


def _half(text: str, token: re.Match[str]) -> Number | None:
    """'half', 'half a dozen'."""
    if match := _HALF.match(text, token.start()):
        return _number(text, token, match.end(), {Fraction(_SCALES.get(match[1], 1), 2)})
    return None


def _cardinal(text: str, token: re.Match[str]) -> Number | None:
    """A whole number or a decimal, with the fraction or the percent sign after it."""
    match = _CARDINAL.match(text, token.start())
    if not match:
        return None
    end, mixed = match.end(), _MIXED.match(text, match.end())
    if match[0] in ("a", "an", "one") and not mixed and not _AFTER_ONE.match(text, end):
        return None  # an article or a pronoun
    parts = _parts(match[0])
    value = sum(parts, Fraction())
    next_word = _NEXT_WORD.match(text, end)
    if next_word and (denominator := (_PLURALS if value > 1 else _DENOMINATORS).get(next_word[1])):
        return _word_fraction(text, token, next_word.end(), value, denominator)
    if mixed:
        part = Fraction(mixed[1] or Fraction(1, _DENOMINATORS[mixed[2]]))
        # '1 1/2' is not 1 and 1/2: any article would say the 1.
        apart = [{*parts, part}] if value > 1 else []
        return _number(text, token, mixed.end(), {value + part}, *apart)
    meanings = [{value}] if len(parts) == 1 else [{value}, set(parts)]
    if _PERCENT.match(text, end) and (value / 100).denominator > 1:
        meanings.append({value / 100})
    return _number(text, token, end, *meanings)


def _word_fraction(
    text: str, token: re.Match[str], end: int, value: Fraction, denominator: int
) -> Number:
    """'three quarters', which may be coins; 'a third', which may be an ordinal number."""
    meanings = [{value / denominator}]
    if denominator == 4 and value > 1:
        meanings.append({value})
    required = token[0] not in ("a", "an") or denominator == 2 or bool(_OF.match(text, end))
    if not required:
        meanings.append({Fraction(25 if denominator == 4 else denominator)})
    return _number(text, token, end, *meanings, required=required)


def _other_word(text: str, token: re.Match[str]) -> Number | None:
    """'twice', '3/4', and the words that may be numbers."""
    word = token[0]
    if word in _OPTIONAL:
        values = [{Fraction(value)} for value in _OPTIONAL[word]]
        return _number(text, token, token.end(), *values, required=False)
    if "/" in word or word in _MULTIPLES:
        return _number(text, token, token.end(), {Fraction(_MULTIPLES.get(word, word))})
    return None


def _parts(cardinal: str) -> list[Fraction]:
    """The parts of a number whose sum it is: 'two hundred and five' is 200 + 5.

    There are several parts where the words may also be several numbers.
    """
    parts, group = list[Fraction](), list[Fraction]()
    scale, previous = 1, ""
    for gap, word in re.findall(rf"(^|[ -])({DIGITS}|[a-z]+)", cardinal):
        if word in _SCALES:
            group = [sum(group) * Fraction(_SCALES[word])]
            scale *= _SCALES[word]
        elif word != "and":
            if scale >= 1000:
                parts, group = parts + group, []
            scale = 1
            value = Fraction(_VALUES[word] if word in _VALUES else word.replace(",", ""))
            if gap == "-" and previous in _TENS:
                group[-1] += value
            else:
                group.append(value)
        previous = word
    return parts + group
