"""What a valid paraphrase is, from whichever source.

Every number stays, in digits or words, no other number is added, and the wording changes. A
paraphrase may spell a number in another way, so a number has meanings, each of which says the same:
'50%' is 50 or 1/2, and 'two hundred and five' is 205, or 200 and 5.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from rapidfuzz.distance import Levenshtein

from zerogap.data.answers import DIGITS

MAX_SIMILARITY = 0.75  # at least a quarter of the tokens must change
_MAX_LENGTH_RATIO = 3

_SOLUTION = re.compile(r"####|\bthe answer is\b|=|\bstep 1\b", re.I)


def problems_with(question: str, paraphrase: str) -> list[str]:
    """What is wrong with a paraphrase; empty if it is valid.

    A valid paraphrase is one line, has the numbers of the question and no others (100 and 'a
    hundred' are the same, and how often a number occurs does not matter), contains no solution, is
    at most three times as long, and has a :func:`similarity` of at most MAX_SIMILARITY.
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
    """1 − token edit distance / longer length, over lower-case words and numbers; 1 is equal."""
    return float(Levenshtein.normalized_similarity(_tokens(a), _tokens(b)))


def _tokens(text: str) -> list[str]:
    return re.findall(r"[a-z0-9']+", text.lower())


# Numbers in digits and in words: 25, 'twenty-five', 'a dozen', 'half', 'twice'.

_SMALL_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
_DECADES = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = "third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
_SMALL = {word: value for value, word in enumerate(_SMALL_NUMBERS.split())}
_TENS = {word: 10 * i for i, word in enumerate(_DECADES.split(), start=2)}
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
_UNIT_AND = re.compile(r" (?:[a-z]+ )?and (?=(?:an? |one )?(?:half|quarter|third)\b)")


@dataclass(frozen=True)
class Number:
    """A number as it is written.

    Each of the `meanings`, a set of values, is one way to say it. A number that is not `required`
    is a word such as 'a' or 'pair', which a paraphrase may add or drop.
    """

    text: str
    meanings: tuple[frozenset[Fraction], ...]
    required: bool = True


def read_numbers(text: str) -> list[Number]:
    """The numbers of a text in their order."""
    return _Reader(text.lower()).read()


def missing_numbers(text: str, other: str) -> list[str]:
    """The numbers of a text that another one does not have, as they are written.

    How often a number occurs does not matter.
    """
    values = {
        value for number in read_numbers(other) for meaning in number.meanings for value in meaning
    }
    missing = [
        number.text
        for number in read_numbers(text)
        if number.required and not any(meaning <= values for meaning in number.meanings)
    ]
    return list(dict.fromkeys(missing))


_Rule = Callable[[int], tuple[list[Fraction], int] | None]


class _Reader:
    """Reads a text from left to right; positions are indices into its tokens."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_TOKEN.finditer(text))

    def read(self) -> list[Number]:
        numbers: list[Number] = []
        position = 0
        rules: tuple[Callable[[int], tuple[Number, int] | None], ...] = (
            self._half,
            self._cardinal,
            self._other_word,
        )
        while position < len(self._tokens):
            for rule in rules:
                if found := rule(position):
                    number, position = found
                    numbers.append(number)
                    break
            else:
                position += 1
        return numbers

    def _half(self, start: int) -> tuple[Number, int] | None:
        """'half', 'half a dozen'."""
        if self._word(start) != "half":
            return None
        position = start + 1
        position += self._word(position) == "a" and self._word(position + 1) in _SCALES
        if scale := _SCALES.get(self._word(position)):
            return self._number(start, position + 1, {Fraction(scale, 2)}), position + 1
        return self._number(start, start + 1, {Fraction(1, 2)}), start + 1

    def _cardinal(self, start: int) -> tuple[Number, int] | None:
        """A whole number or a decimal, with the fraction or the percent sign after it."""
        first = self._whole(start)
        if first is None:
            return None
        parts, end = first
        value = sum(parts, Fraction())
        word = self._word(end)
        if self._joined(end):
            denominator = _PLURALS.get(word) if value > 1 else _DENOMINATORS.get(word)
            if denominator:
                return self._word_fraction(start, end, value, denominator)
        fraction = self._fraction_after(end)
        if fraction is not None:
            part, end = fraction
            # '1 1/2' is not 1 and 1/2: any article would say the 1.
            apart = [{*parts, part}] if value > 1 else []
            return self._number(start, end, {value + part}, *apart), end
        meanings = [{value}] if len(parts) == 1 else [{value}, set(parts)]
        percent = _PERCENT.match(self._text, self._tokens[end - 1].end())
        if percent and (value / 100).denominator > 1:
            meanings.append({value / 100})
        return self._number(start, end, *meanings), end

    def _word_fraction(
        self, start: int, end: int, value: Fraction, denominator: int
    ) -> tuple[Number, int]:
        """'three quarters', which may be coins; 'a third', which may be an ordinal number."""
        meanings = [{value / denominator}]
        required = True
        if denominator == 4 and value > 1:
            meanings.append({value})
        after = self._tokens[end].end()
        if self._word(start) in ("a", "an") and denominator > 2:
            required = bool(_OF.match(self._text, after))
            if not required:
                meanings += [{Fraction(25 if denominator == 4 else denominator)}]
        return self._number(start, end + 1, *meanings, required=required), end + 1

    def _other_word(self, start: int) -> tuple[Number, int] | None:
        """'twice', '3/4', and the words that may be numbers."""
        word = self._word(start)
        if "/" in word:
            return self._number(start, start + 1, {Fraction(word)}), start + 1
        if word in _MULTIPLES:
            return self._number(start, start + 1, {Fraction(_MULTIPLES[word])}), start + 1
        if word in _OPTIONAL:
            meanings = [{Fraction(value)} for value in _OPTIONAL[word]]
            return self._number(start, start + 1, *meanings, required=False), start + 1
        return None

    def _whole(self, start: int) -> tuple[list[Fraction], int] | None:
        """The parts of a number whose sum it is, and its end: 'two hundred and five' is 200 + 5.

        There are several parts where the words may also be several numbers.
        """
        first = self._below_thousand(start)
        if first is None:
            return None
        parts, position = first
        if self._word(start) in ("a", "an", "one") and position == start + 1:
            # A pronoun or an article, unless a scale or a fraction follows.
            follows = (*_SCALES, *_DENOMINATORS)
            if self._word(position) not in follows and not self._fraction_after(position):
                return None
        return self._with_thousands(parts, position)

    def _with_thousands(self, group: list[Fraction], position: int) -> tuple[list[Fraction], int]:
        """The number that begins with a group of digits or words: 'two', then ' million six'."""
        parts: list[Fraction] = []
        while True:
            scale = 1
            while self._joined(position) and self._word(position) in _SCALES:
                scale *= _SCALES[self._word(position)]
                position += 1
            parts += group if scale == 1 else [sum(group) * Fraction(scale)]
            rest = self._remainder(position, self._below_thousand) if scale >= 1000 else None
            if rest is None:
                return parts, position
            group, position = rest

    def _below_thousand(self, start: int) -> tuple[list[Fraction], int] | None:
        first = self._below_hundred(start)
        if first is None or self._word(first[1]) != "hundred" or not self._joined(first[1]):
            return first
        hundreds, position = [sum(first[0]) * Fraction(100)], first[1] + 1
        rest = self._remainder(position, self._below_hundred)
        return (hundreds + rest[0], rest[1]) if rest else (hundreds, position)

    def _remainder(self, position: int, read: _Rule) -> tuple[list[Fraction], int] | None:
        """What follows a hundred or a thousand, with or without 'and'."""
        if self._word(position) == "and" and self._gap(position) == " ":
            position += 1
        if self._word(position) in ("a", "an") or not self._joined(position):
            return None
        rest = read(position)
        # 'a hundred and one half'
        return None if rest is None or self._word(rest[1]) in _DENOMINATORS else rest

    def _below_hundred(self, start: int) -> tuple[list[Fraction], int] | None:
        word = self._word(start)
        if word in ("a", "an"):
            return [Fraction(1)], start + 1
        if word[:1] == "." or word[:1].isdigit():
            return None if "/" in word else ([Fraction(word.replace(",", ""))], start + 1)
        if word in _TENS:
            tens = Fraction(_TENS[word])
            unit = _SMALL.get(self._word(start + 1), 0)
            if 0 < unit < 10 and self._gap(start + 1) == "-":
                return [tens + unit], start + 2
            if 0 < unit < 10 and self._gap(start + 1) == " ":
                return [tens, Fraction(unit)], start + 2
            return [tens], start + 1
        return ([Fraction(_SMALL[word])], start + 1) if word in _SMALL else None

    def _fraction_after(self, position: int) -> tuple[Fraction, int] | None:
        """The fraction of a mixed number: '2 1/2', 'two and a half', 'an hour and a half'."""
        if "/" in self._word(position) and self._joined(position):
            return Fraction(self._word(position)), position + 1
        and_ = _UNIT_AND.match(self._text, self._tokens[position - 1].end())
        if not and_:
            return None
        while self._tokens[position].start() < and_.end():
            position += 1
        position += self._word(position) in ("a", "an", "one")
        return Fraction(1, _DENOMINATORS[self._word(position)]), position + 1

    def _word(self, position: int) -> str:
        return self._tokens[position][0] if position < len(self._tokens) else ""

    def _joined(self, position: int) -> bool:
        return self._gap(position) in (" ", "-")

    def _gap(self, position: int) -> str:
        """The text before a token."""
        if position >= len(self._tokens):
            return ""
        return self._text[self._tokens[position - 1].end() : self._tokens[position].start()]

    def _number(
        self, start: int, end: int, *meanings: set[Fraction], required: bool = True
    ) -> Number:
        text = self._text[self._tokens[start].start() : self._tokens[end - 1].end()]
        return Number(text, tuple(map(frozenset, meanings)), required)
