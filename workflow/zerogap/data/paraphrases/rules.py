"""Paraphrases by rules: the wording changes, every number stays as it is spelled.

They replace the paper's language model (appendix A.1) where there is no network. Words and phrases
are exchanged, clauses and sentences change places, the question takes another form, and the whole
is put into another frame. The rules themselves are in `rules.yaml`.
"""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import yaml

from zerogap.data.paraphrases.validation import problems_with, similarity
from zerogap.errors import InputError

_TARGET_SIMILARITY = 0.6  # drawing stops at the first paraphrase that is this different
_MAX_ATTEMPTS = 24
_RULES: dict[str, Any] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))

# Base form → past tense, for turning 'did she buy' into 'she bought'.
_PAST: dict[str, str] = dict(pair.split("/") for pair in _RULES["verbs"].split())
# Base form → third person singular.
_PRESENT = {
    verb: {"have": "has", "go": "goes", "carry": "carries"}.get(
        verb, f"{verb}es" if verb.endswith(("s", "sh", "ch", "x")) else f"{verb}s"
    )
    for verb in _PAST
}
_WORDS = _RULES["words"] | {"BASE": "|".join(_PAST), "PAST": "|".join(_PAST.values())}
_LOWERED = frozenset(_RULES["lowered"].split())
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)]*\s+(?=[\"'“‘(]*[A-Z$0-9])")
_ABBREVIATION = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|St|Jr|Sr|vs|No|Mt)|[ap]\.m|[A-Z][a-z]+ [A-Z])\.$")


def paraphrase(question: str, seed: int) -> str:
    """The question in other words, on one line; the same arguments give the same text.

    Raises:
        InputError: no paraphrase of the question is valid.
    """
    rng = Random(f"paraphrase/{seed}/{question}")
    valid = []
    for attempt in range(_MAX_ATTEMPTS):
        text = _rewrite(question, rng, boldness=3 * attempt // _MAX_ATTEMPTS)
        if not problems_with(question, text):
            valid.append((similarity(question, text), text))
            if valid[-1][0] <= _TARGET_SIMILARITY:
                break
    if not valid:
        raise InputError(f"the rules find no valid paraphrase of {question!r}")
    return min(valid)[1]


def _rewrite(question: str, rng: Random, boldness: int) -> str:
    """One draw of all the rules.

    Boldness 0: some changes; 1: all changes, and the question goes first; 2, for long questions:
    each statement is introduced as well.
    """
    chance = 1.0 if boldness else 0.75
    parts = _sentences(question)
    asking = [i for i, part in enumerate(parts) if part.rstrip("\"'”’)").endswith("?")]
    at = asking[-1] if asking else len(parts) - 1
    q, statements = parts[at], parts[:at] + parts[at + 1 :]
    if boldness or rng.random() < 0.5 or not statements:
        for pattern, statement, asked in _CONDITIONS:
            if match := pattern.fullmatch(q):
                statements.append(_fill(statement, match))
                q = _fill(asked, match)
                break
    statements = [_reworded(s, rng, chance) for s in statements]
    q = _synonyms(_question_form(q, rng), rng, chance)
    if not statements:
        return _framed("alone", statements, q, rng)
    frames = ["items", "assumption"]
    if len(statements) <= 3 and not any(re.match(r"(?:If|Suppose)\b", s) for s in statements):
        frames += ["condition"] * 2
    if not _PRONOUN.search(q):  # a question that goes first refers to nothing that comes later
        frames += ["question_first"] * 3
    frame = (rng.choice(frames), "question_first", "introduced")[boldness]
    return re.sub(r"\s+", " ", _framed(frame, statements, q, rng)).strip()


def _sentences(text: str) -> list[str]:
    parts: list[str] = []
    for part in _SENTENCE_END.split(" ".join(text.split())):
        if parts and _ABBREVIATION.search(parts[-1]):
            parts[-1] += f" {part}"
        else:
            parts.append(part)
    return parts


def _reworded(s: str, rng: Random, chance: float) -> str:
    """A statement after the rules for clauses and words."""
    for patterns in _CLAUSES:
        if rng.random() < chance:
            for pattern, groups, unless, templates in patterns:
                match = pattern.search(s)
                if match and not unless.search(" ".join(match[i] for i in groups) or s):
                    template = rng.choice(templates) if len(templates) > 1 else templates[0]
                    s = pattern.sub(partial(_fill, template), s)
                    break
    return _synonyms(s, rng, chance)


def _question_form(q: str, rng: Random) -> str:
    """The question in another form; starts with a capital and ends with '?'."""
    fitting = [(match, to) for pattern, to in _FORMS if (match := pattern.fullmatch(q))]
    if not fitting:
        return q
    match, template = rng.choice(fitting[:2])
    return re.sub(r" +([?.,])", r"\1", re.sub(r"  +", " ", _fill(template, match)))


def _synonyms(s: str, rng: Random, chance: float) -> str:
    """Exchange words in place; a replacement is not exchanged again."""
    spans: list[tuple[int, int, str]] = []
    lowered = s[:1].lower() + s[1:]
    for pattern, options in _SYNONYMS:
        for text in (s, lowered):
            for m in pattern.finditer(text):
                clear = all(m.end() <= start or end <= m.start() for start, end, _ in spans)
                if clear and m.end() > m.start() and rng.random() < chance:
                    new = rng.choice(options)
                    spans.append((m.start(), m.end(), _upper(new) if m.start() == 0 else new))
    for start, end, new in sorted(spans, reverse=True):
        s = s[:start] + new + s[end:]
    return s


def _framed(frame: str, statements: list[str], q: str, rng: Random) -> str:
    """Question and statements in a frame: one of its texts for each of its places."""
    items = [_lower(s.rstrip(" .!")) for s in statements]
    clauses = [re.sub(r"^(?:and|then|next,?) ", "", item) for item in items]
    texts = {
        "q": _lower(q),
        "Q": q,
        "Story": " ".join(statements),
        "story": _lower(" ".join(statements)),
        "items": "; ".join(items),
        "and": ", and ".join(clauses),
        "semicolon": "; ".join(clauses),
        "and_also": ", and also ".join(clauses),
    }
    if frame == "introduced":
        introduced = [
            f"{rng.choice(_RULES['further' if i else 'first'])} {_lower(s)}"
            for i, s in enumerate(statements)
        ]
        return " ".join([f"Here is something to work out: {_lower(q)}", *introduced])
    return " ".join(rng.choice(options).format(**texts) for options in _RULES["frames"][frame])


# Words and patterns.


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _lower(sentence: str) -> str:
    """The sentence as part of another one: a name keeps its capital."""
    first = re.match(r"[A-Za-z]+", sentence)
    if first and first[0] in _LOWERED and not sentence.startswith("A.M"):
        return sentence[0].lower() + sentence[1:]
    return sentence


_FORMS_OF_WORDS: dict[str, Callable[[str], str]] = {
    "U": _upper,
    "L": _lower,
    "P": _PAST.__getitem__,
    "S": _PRESENT.__getitem__,
}


def _fill(template: str, match: re.Match[str]) -> str:
    """A template of the rules with the groups of a match."""

    def group(mark: re.Match[str]) -> str:
        text = match[int(mark[2])] or ""
        for form in reversed(mark[1]):
            text = _FORMS_OF_WORDS[form](text)
        return text

    return re.sub(r"\{([ULPS]*)(\d)\}", group, template)


def _compiled(text: str) -> re.Pattern[str]:
    """An expression of the rules; words in capitals stand for lists of words."""
    while (full := re.sub(r"\b[A-Z]{3,}\b", lambda m: str(_WORDS[m[0]]), text)) != text:
        text = full
    return re.compile(text)


def _whole_words(text: str) -> re.Pattern[str]:
    if re.match(r"[a-zA-Z(]", text) and not text.startswith("(?<"):
        text = rf"(?<![\w'’-]){text}"
    return _compiled(rf"{text}(?![\w'’-])")


_PRONOUN = _compiled("PRONOUN")
_SYNONYMS = [(_whole_words(text), options) for text, *options in _RULES["synonyms"]]
_CONDITIONS = [(_compiled(text), *templates) for text, *templates in _RULES["conditions"]]
_FORMS = [(_compiled(text), template) for text, template in _RULES["forms"]]


def _clause(row: dict[str, Any]) -> tuple[re.Pattern[str], list[int], re.Pattern[str], list[str]]:
    """Pattern, groups that must not have some words (none: the sentence), these, templates."""
    unless = row.get("unless", "(?!)")  # matches nothing
    return _compiled(row["match"]), row.get("of", []), _whole_words(f"(?:{unless})"), row["to"]


_CLAUSES = [list(map(_clause, rows)) for rows in _RULES["clauses"].values()]
