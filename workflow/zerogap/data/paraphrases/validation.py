"""What a valid paraphrase is, from whichever source.

Every number stays, in digits or words, no other number is added, and the wording changes.
"""

import re

from rapidfuzz.distance import Levenshtein

from zerogap.data.paraphrases.numbers import missing_numbers

MAX_SIMILARITY = 0.75  # at least a quarter of the tokens must change
_MAX_LENGTH_RATIO = 3

_SOLUTION = re.compile(r"####|\bthe answer is\b|=|\bstep 1\b", re.I)


def problems_with(question: str, paraphrase: str) -> list[str]:
    """What is wrong with a paraphrase; empty if it is valid.

    A valid paraphrase is one line, has the numbers of the question and no others (100 and 'a
    hundred' are the same, and how often a number occurs does not matter; see
    :mod:`~zerogap.data.paraphrases.numbers`), contains no solution, is at most three times as long,
    and has a :func:`similarity` of at most MAX_SIMILARITY.
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
