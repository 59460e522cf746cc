"""Paraphrases by rules: the wording changes, every number stays as it is spelled.

They replace the paper's language model (appendix A.1) where there is no network. Words and phrases
are exchanged (`rules.yaml`), clauses and sentences change places, the question
takes another form, and the whole is put into another frame.
"""

import re
from collections.abc import Callable
from pathlib import Path
from random import Random

import yaml

from zerogap.data.paraphrases.validation import problems_with, similarity
from zerogap.errors import InputError

_TARGET_SIMILARITY = 0.6  # drawing stops at the first paraphrase that is this different
_MAX_ATTEMPTS = 24
_WORDS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))


def _pattern(text: str) -> re.Pattern[str]:
    """A regular expression that only matches whole words."""
    rated = f"{_WORDS['TIME']}|{_WORDS['RATED']}"
    text = text.replace("TIME", _WORDS["TIME"]).replace("RATED", rated)
    if re.match(r"[a-zA-Z(]", text) and not text.startswith("(?<"):
        text = rf"(?<![\w'’-]){text}"
    return re.compile(rf"{text}(?![\w'’-])")


SYNONYMS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (_pattern(pattern), tuple(options)) for pattern, *options in _WORDS["synonyms"]
)
# Base form → past tense, for turning 'did she buy' into 'she bought'.
PAST: dict[str, str] = dict(pair.split("/") for pair in _WORDS["verbs"].split())
# Base form → third person singular.
PRESENT = {
    verb: {"have": "has", "go": "goes", "carry": "carries"}.get(
        verb, f"{verb}es" if verb.endswith(("s", "sh", "ch", "x")) else f"{verb}s"
    )
    for verb in PAST
}


def paraphrase(question: str, seed: int) -> str:
    """The question in other words, on one line; the same arguments give the same text.

    Raises:
        InputError: no paraphrase of the question is valid.
    """
    rng = Random(f"paraphrase/{seed}/{question}")
    best: tuple[float, str] | None = None
    for attempt in range(_MAX_ATTEMPTS):
        text = _rewrite(question, rng, boldness=3 * attempt // _MAX_ATTEMPTS)
        if problems_with(question, text):
            continue
        candidate = (similarity(question, text), text)
        if candidate[0] <= _TARGET_SIMILARITY:
            return text
        best = min(best or candidate, candidate)
    if best is None:
        raise InputError(f"the rules find no valid paraphrase of {question!r}")
    return best[1]


# Sentences.

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)]*\s+(?=[\"'“‘(]*[A-Z$0-9])")
_ABBREVIATION = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|St|Jr|Sr|vs|No|Mt)|[ap]\.m|[A-Z][a-z]+ [A-Z])\.$")
_FUNCTION_WORDS = (
    "A After Afterwards All Also Altogether An Another And As Assuming At Because Before "
    "Between Both But By Calculate Determine During Each Eight Every Everyone Finally Find "
    "First Five For Four From Given Half He Her His How If In It Its Later My Next Nine No Not "
    "On Once One Our Out Over Second Seven She Since Six So Some Soon Suppose Supposing Ten "
    "That The Their Then There These They Third This Those Three To Today Together Twice Two "
    "Using We Were What When Where Which While Who With Yesterday You Your"
)
_LOWERED = frozenset(_FUNCTION_WORDS.split())
_PRONOUN = re.compile(r"\b(?:he|she|they|it|him|them|his|her|their|its|this|that|these|those)\b")


def _sentences(text: str) -> list[str]:
    parts: list[str] = []
    for part in _SENTENCE_END.split(" ".join(text.split())):
        if parts and _ABBREVIATION.search(parts[-1]):
            parts[-1] += f" {part}"
        else:
            parts.append(part)
    return parts


def _lower(sentence: str) -> str:
    """The sentence as part of another one: a name keeps its capital."""
    first = re.match(r"[A-Za-z]+", sentence)
    if first and first[0] in _LOWERED and not sentence.startswith("A.M"):
        return sentence[0].lower() + sentence[1:]
    return sentence


def _upper(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _bare(sentence: str) -> str:
    return sentence.rstrip(" .!")


# Clauses: each function takes a statement and returns another one, or the same.

_NAME = r"[A-Z][a-z]+(?: and [A-Z][a-z]+)?"
_DAYS = r"(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)"
_MONTHS = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
)
_WHEN = (
    rf"(?:on {_DAYS}|in {_MONTHS}|in the (?:morning|afternoon|evening)|last (?:week|month|year)|"
    r"(?:every|each) (?:day|week|month|year|morning|night)|this (?:week|month|year)|"
    r"at the (?:store|market|zoo|park|farm|fair|school fair|party|same time)|yesterday|today)"
)


def _front_to_back(s: str, rng: Random) -> str:
    """Move the time to the end: 'On Monday, she sold 5' → 'She sold 5 on Monday'."""
    match = re.fullmatch(rf"({_WHEN})(,?) ([^,;:?]+)\.", s, re.I)
    if not match or re.search(r" (?:and|who|that|which|than) ", match[3]):
        return s
    if not match[2] and not re.match(rf"(?:{_NAME}|he|she|they|the|\d)", match[3]):
        return s
    return f"{_upper(match[3])} {_lower(_upper(match[1]))}."


def _back_to_front(s: str, rng: Random) -> str:
    """Move the time to the front: 'She sold 5 on Monday' → 'On Monday, she sold 5'."""
    match = re.fullmatch(rf"([^,;:?]+) ({_WHEN})\.", s)
    if not match or re.search(r" (?:and|who|that|which|than|if|when) ", match[1]):
        return s
    return f"{_upper(match[2])}, {_lower(match[1])}."


def _subordinate(s: str, rng: Random) -> str:
    """Move a subordinate clause: 'When it rains, he walks' → 'He walks when it rains'."""
    match = re.fullmatch(r"((?:When|If|Because|After|Before|Since|While) [^,]+), ([^,]+)\.", s)
    # A pronoun must not come before the name that it refers to.
    if not match or (_PRONOUN.search(_lower(match[2])) and re.search(r" [A-Z]", match[1])):
        return s
    main = re.sub(r"^then ", "", match[2])
    return f"{_upper(main)} {_lower(match[1])}."


def _there(s: str, rng: Random) -> str:
    """Move the place: 'There are 12 books on the shelf' → 'On the shelf, there are 12 books'."""
    match = re.fullmatch(
        r"There (are|were|is|was) ([^,]+?) (in|on|at) "
        r"((?:the|a|an|his|her|their|each|\w+'s) [^,]+)\.",
        s,
    )
    if not match or re.search(r" (?:and|who|that|which|than|for|with) ", f"{match[2]} {match[4]}"):
        return s
    return f"{_upper(match[3])} {match[4]}, there {match[1]} {match[2]}."


def _dative(s: str, rng: Random) -> str:
    """Move the recipient: 'Tom gave her 5 cards' ↔ 'Tom gave 5 cards to her'."""
    verbs = r"(gave|gives|handed|hands|sent|sends|lent|lends|sold|sells)"
    match = re.fullmatch(rf"(.*?\b){verbs} (him|her|them|{_NAME}) ((?:another )?\$?\d[^,;]*?)\.", s)
    if match and not re.search(r" (?:and|to|for|at|each|from|per|who|that) ", f"{match[4]} "):
        return f"{match[1]}{match[2]} {match[4]} to {match[3]}."
    match = re.fullmatch(rf"(.*?\b){verbs} ([^,;]*?\d[^,;]*?) to (him|her|them|{_NAME})\.", s)
    if match and not re.search(r" (?:and|to|for|at|each|from|per|of|who|that) ", f"{match[3]} "):
        return f"{match[1]}{match[2]} {match[4]} {match[3]}."
    return s


def _cleft(s: str, rng: Random) -> str:
    """Cleft: 'Maya had 12 stickers' → 'The number of stickers that Maya had was 12'."""
    verbs = "has|had|owns|owned|" + "|".join(dict.fromkeys(PAST.values()))
    match = re.fullmatch(
        rf"({_NAME}|He|She|They) ({verbs}) (\d[\d,]*) ([a-z]+s)"
        r"((?: (?:in|on|at|from|for) [^,]*)?)\.",
        s,
    )
    if not match or match[4] in ("times", "less") or re.search(r"\d|\band\b", match[5]):
        return s
    who, verb, number, things, where = match.groups()
    be = "is" if verb in ("has", "owns") else "was"
    shape = rng.choice(("The number of {} that {} {}{} {} {}.", "The count of {} {} {}{} {} {}."))
    return shape.format(things, _lower(who), verb, where, be, number)


def _split(s: str, rng: Random) -> str:
    """Split a sentence: '…, and she sold 5' → '…. She sold 5'."""
    if re.match(r"(?:If|When|Because|Since|While|After|Before|Suppose)\b", s):
        return s
    return re.sub(
        r",? and (he|she|they|it|there) "
        r"(?=(?:is|are|was|were|has|had|[a-z]+(?:s|ed)|gave|sold|got|ate) )",
        lambda m: f". {_upper(m[1])} ",
        s,
        count=1,
    )


def _more(s: str, rng: Random) -> str:
    """Replace a word: '7 more cards' → '7 additional cards', unless something is compared."""
    if re.search(r"\bthan\b|\btimes\b|\bas\b", s):
        return s
    return re.sub(r"(\d) more (?=[a-z]{3,})", r"\1 additional ", s)


_CLAUSES: tuple[Callable[[str, Random], str], ...] = (
    _split,
    _there,
    _dative,
    _front_to_back,
    _back_to_front,
    _subordinate,
    _more,
    _cleft,
)

# The question.

_ASKS = r"(?:how|what|which|who|calculate|find|determine)"

_SUBJECT = rf"((?:{_NAME})|he|she|they|it|(?:the|his|her|their) [a-z]+)"


def _question_form(q: str, rng: Random) -> str:
    """The question in another form; starts with a capital and ends with '?'."""

    def past(m: re.Match[str]) -> str:
        return f"What is the number of {m[1]} that {m[2]} {PAST[m[3]]}{m[4]}?"

    def present(m: re.Match[str]) -> str:
        verb = m[4] if m[2] == "do" else PRESENT[m[4]]
        return f"What is the number of {m[1]} that {m[3]} {verb}{m[5]}?"

    base = "|".join(PAST)
    many = r"How many (?!more |fewer |less |of |times )"
    acting = rf"{_SUBJECT} ({base})\b(?! to\b)(.*)\?"
    forms: list[tuple[str, str | Callable[[re.Match[str]], str]]] = []
    if not re.search(r"\bthan\b", q):
        forms += [
            (rf"{many}([a-z ]+?) did {acting}", past),
            (rf"{many}([a-z ]+?) (does|do) {acting}", present),
            (rf"{many}([a-z ]+?) are there( .*)?\?", r"What is the number of \1\2?"),
            (rf"{many}([a-z ]+?) were there( .*)?\?", r"What was the number of \1\2?"),
            (
                rf"{many}([a-z]+) (?:are|remain) (left|in|on|at) ?(.*)\?",
                r"What is the number of \1 \2 \3?",
            ),
        ]
    auxiliary = "did|does|do|will|would|has|have|had|is|was"
    forms += [
        (r"How much (?:does|do) ([^,]+?) cost( [^,]+)?\?", r"What is the cost of \1\2?"),
        (r"How much did ([^,]+?) cost( [^,]+)?\?", r"What was the cost of \1\2?"),
        (r"How much money (.*)\?", r"What amount of money \1?"),
        (rf"How much ({auxiliary}) (.*)\?", r"What amount \1 \2?"),
        (
            rf"How much (?!in |more|less|longer|{auxiliary})([a-z]+) (.*)\?",
            r"What amount of \1 \2?",
        ),
        (r"How old (is|was|will|would) (.*)\?", r"What age \1 \2?"),
        (r"How far (.*)\?", r"What distance \1?"),
        (r"How long (did|does|do|will|would) (.*)\?", r"What length of time \1 \2?"),
        (r"How many more (.*)\?", r"What is the answer to this: how many more \1?"),
        (r"How many (?!of |more |fewer |less )([a-z].*)\?", r"What number of \1?"),
        (r"What is the (.*)\?", r"What would be the \1?"),
    ]
    fitting = [(pattern, form) for pattern, form in forms if re.fullmatch(pattern, q)]
    if not fitting:
        return q
    pattern, form = rng.choice(fitting[:2])
    reworded = re.sub(pattern, form, q)
    return re.sub(r" +([?.,])", r"\1", re.sub(r"  +", " ", reworded))


# Frames: where the question goes and the words around it.


def _question_first(statements: list[str], q: str, rng: Random) -> str:
    """The question first, then the statements."""
    opening, bridge = rng.choice(
        (
            ("Given the facts below, {q}", ""),  # prose: ok
            ("Here is something to work out: {q}", "The following is known."),
            ("Consider the question: {q}", "The details are these."),
            ("{Q}", "To find out, use what follows."),
            ("Read on and tell: {q}", "This is what happens."),
        )
    )
    return " ".join(
        part for part in (opening.format(q=_lower(q), Q=q), bridge, " ".join(statements)) if part
    )


def _introduced(statements: list[str], q: str, rng: Random) -> str:
    """The question first, then each statement with an introduction."""
    introduced = [
        f"{rng.choice(_FIRST) if i == 0 else rng.choice(_FURTHER)} {_lower(s)}"
        for i, s in enumerate(statements)
    ]
    return f"Here is something to work out: {_lower(q)} {' '.join(introduced)}"


_FIRST = ("It is known that", "We are told that", "The facts say that")  # prose: ok
_FURTHER = (
    "It is also known that",
    "Besides, we are told that",
    "In addition, it is given that",
    "What is more, we hear that",
)


def _condition(statements: list[str], q: str, rng: Random) -> str:
    """The statements as a condition: 'If …, and …, how many …?'."""
    opening = rng.choice(("If", "Supposing that", "Assuming that", "Given that"))
    clauses = [_lower(_bare(s)) for s in statements]
    link = rng.choice((", and ", "; ", ", and also "))
    clauses = [re.sub(r"^(?:and|then|next,?) ", "", clause) for clause in clauses]
    return f"{opening} {link.join(clauses)}, {_lower(q)}"


def _enumeration(statements: list[str], q: str, rng: Random) -> str:
    """The statements in a row, then the question."""
    opening, closing = rng.choice(
        (
            ("We are told the following: ", "With that in mind, "),
            ("Here is what is known: ", "From this, find out: "),
            ("Think of this situation: ", "Now tell: "),
            ("Picture the following: ", "The task is to say: "),
        )
    )
    clauses = "; ".join(_lower(_bare(s)) for s in statements)
    return f"{opening}{clauses}. {closing}{_lower(q)}"


def _assumption(statements: list[str], q: str, rng: Random) -> str:
    """The statements as an assumption, sentence by sentence."""
    opening = rng.choice(("Suppose that ", "Imagine that ", "Let us say that ", "Say that "))
    closing = rng.choice(("In that case, ", "So, ", "Under these conditions, ", "Then "))
    return f"{opening}{_lower(' '.join(statements))} {closing}{_lower(q)}"


def _rewrite(question: str, rng: Random, boldness: int) -> str:
    """One draw of all the rules.

    Args:
        question: the question.
        rng: decides which rules apply.
        boldness: 0: some changes; 1: all changes, and the question goes first; 2, for long
            questions: each statement is introduced as well.
    """
    chance = 1.0 if boldness else 0.75
    parts = _sentences(question)
    asking = [i for i, part in enumerate(parts) if part.rstrip("\"'”’)").endswith("?")]
    at = asking[-1] if asking else len(parts) - 1
    q, statements = parts[at], parts[:at] + parts[at + 1 :]
    condition, q = (
        _split_condition(q) if boldness or rng.random() < 0.5 or not statements else ("", q)
    )
    if condition:
        statements.append(condition)
    statements = [_statement(s, rng, chance) for s in statements]
    q = _synonyms(_question_form(q, rng), rng, chance)
    if not statements:
        return rng.choice(_WITHOUT_STATEMENTS).format(_lower(q))
    # A question that goes first must not refer to what comes only later.
    has_pronoun = bool(_PRONOUN.search(q))
    frames = [_enumeration, _assumption]
    if len(statements) <= 3 and not any(re.match(r"(?:If|Suppose)\b", s) for s in statements):
        frames += [_condition, _condition]
    if not has_pronoun:
        frames += [_question_first, _question_first, _question_first]
    frame = (rng.choice(frames), _question_first, _introduced)[boldness]
    return re.sub(r"\s+", " ", frame(statements, q, rng)).strip()


_WITHOUT_STATEMENTS = (
    "Here is a question for you to work out: {}",
    "Please find the right answer to the following: {}",
    "Think about this for a moment and then tell: {}",
)


def _split_condition(q: str) -> tuple[str, str]:
    """'If A, how many B?' → 'A.' and 'How many B?'; without a condition: '' and the question."""
    if match := re.fullmatch(rf"(?:If|Given that|Assuming(?: that)?) (.+), ({_ASKS}\b.+)", q):
        return f"{_upper(match[1])}.", _upper(match[2])
    if match := re.fullmatch(rf"((?:\S+ ){{5,}}\S+), (?:and )?({_ASKS}\b.+)", q):
        return f"{match[1]}.", _upper(match[2])
    if match := re.fullmatch(
        r"((?:How|What) .+) (?:if|given that|assuming(?: that)?) ([^?]+)\?", q
    ):
        return f"{_upper(match[2])}.", f"{match[1].rstrip(',')}?"
    return "", q


def _statement(s: str, rng: Random, chance: float) -> str:
    for clause in _CLAUSES:
        if rng.random() < chance:
            s = clause(s, rng)
    return _synonyms(s, rng, chance)


def _synonyms(s: str, rng: Random, chance: float) -> str:
    """Exchange words in place; a replacement is not exchanged again."""
    spans: list[tuple[int, int, str]] = []
    lowered = s[:1].lower() + s[1:]
    for pattern, options in SYNONYMS:
        for text in (s, lowered):
            for m in pattern.finditer(text):
                clear = all(m.end() <= start or end <= m.start() for start, end, _ in spans)
                if clear and m.end() > m.start() and rng.random() < chance:
                    new = rng.choice(options)
                    spans.append((m.start(), m.end(), _upper(new) if m.start() == 0 else new))
    for start, end, new in sorted(spans, reverse=True):
        s = s[:start] + new + s[end:]
    return s
