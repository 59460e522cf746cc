"""What a valid paraphrase is, from whichever source.

Every number stays as often as it occurs, no other number is added, and the wording changes.
"""

import re
from collections import Counter

from rapidfuzz.distance import Levenshtein

from zerogap.data.answers import canonical

MAX_SIMILARITY = 0.75  # at least a quarter of the tokens must change
_MAX_LENGTH_RATIO = 3

_SMALL_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
_UNITS = {word: i for i, word in enumerate(_SMALL_NUMBERS.split()) if i > 1}
_DECADES = "twenty thirty forty fifty sixty seventy eighty ninety"
_TENS = {word: 10 * i for i, word in enumerate(_DECADES.split(), start=2)}
_WORD_NUMBER = re.compile(
    rf"\b(?:({'|'.join(_TENS)})(?:[- ](one|{'|'.join(_UNITS)}))?|({'|'.join(_UNITS)}))\b", re.I
)
_DIGIT_NUMBER = re.compile(r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+")
_SOLUTION = re.compile(r"####|\bthe answer is\b|=|\bstep 1\b", re.I)


def problems_with(question: str, paraphrase: str) -> list[str]:
    """What is wrong with a paraphrase; empty if it is valid.

    A valid paraphrase is one line, has exactly the numbers of the question (3 and 'three' are the
    same; 'one' is not counted, because it is as often a pronoun), contains no solution, is at most
    three times as long, and has a :func:`similarity` of at most MAX_SIMILARITY.
    """
    if not paraphrase.strip():
        return ["empty"]
    problems = []
    if "\n" in paraphrase.strip():
        problems.append("more than one line")
    before, after = numbers(question), numbers(paraphrase)
    if missing := before - after:
        problems.append(f"missing numbers: {', '.join(sorted(missing.elements()))}")
    if added := after - before:
        problems.append(f"added numbers: {', '.join(sorted(added.elements()))}")
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


def numbers(text: str) -> Counter[str]:
    """The numbers of a text, in digits or words, in canonical form with their counts."""
    counts = Counter(canonical(number) for number in _DIGIT_NUMBER.findall(text))
    for tens, unit, small in _WORD_NUMBER.findall(text.lower()):
        value = _TENS.get(tens, 0) + _UNITS.get(unit, int(unit == "one")) + _UNITS.get(small, 0)
        counts[str(value)] += 1
    return counts


def _tokens(text: str) -> list[str]:
    return re.findall(r"[a-z0-9']+", text.lower())
