"""The numeric answer of a response, and when two answers are the same.

Numbers are compared exactly, without a size limit: '18', '18.00', '$18', '18.', '+18', '36/2' and
'1.8e1' are the same number, '18,000' is 18000, and '5%' is 5. The grammar, after markup and LaTeX
(:mod:`zerogap.data.plain_text`):

    response  = text up to the next question, without thinking
    answer    = box behind the last "answer", else statement, else "####" number, else the last
                box, else result
    statement = "the answer is" and the rest of its sentence, or "answer:", a number and its unit
    value     = of the first clause of the sentence with a number, without asides: what its last
                "=" gives, else its bold number or a result behind words, else its first number
    result    = the last number before a check, an offer, a remark in brackets or words behind a
                bold number, without asides; not a given one if its line also has what the last
                "=" gives, or its sentence begins with a new number
    number    = [sign] [currency] digits [exponent] ["/" digits]; digits may be grouped

So words, currencies and `x =` in front of the number are skipped, and of "the answer is 3 * 6 = 18
for x = 2" the answer is 18. Statements before a correction ("Wait") come last, and those without a
number are skipped. Outside a statement, a space does not say that two numbers are one.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import chain, islice
from typing import NamedTuple

from zerogap.data.plain_text import plain, without_next_question, without_thinking
from zerogap.errors import InputError

NO_SOLUTION = "None"  # the gold answer of questions without a solution, as in GSM-Plus

_NARROW = "\u00a0\u2000-\u200a\u202f\u205f"  # spaces that only separate groups of digits
_DASHES = "-−‐‑‒–—―﹣－⁻˗△"  # all stand for a minus sign; first in a set of characters
_CURRENCY = "$£€¥₹₩¢"


def _grouped(separators: str) -> str:
    return rf"[0-9]{{1,3}}(?:[{separators}][0-9]{{3}})+(?![0-9])(?:\.[0-9]+)?"


DIGITS = rf"{_grouped(',')}|[0-9]+(?:\.[0-9]+)?|(?<![A-Za-z.])\.[0-9]+"  # of "Rs.500" no point
_INDIAN = "(?<![0-9],)[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}(?![0-9])"
_SIMPLE = rf"{_grouped(f',_’‘ʼ{_NARROW}' + chr(39))}|{_INDIAN}|{DIGITS}"
# A minus sign belongs to the number unless something before it can be subtracted from.
_MINUS = rf"(?<![\w.)])[{_DASHES}]"


def _number(sign: str, number: str, slash: str) -> re.Pattern[str]:
    """A number, perhaps with an exponent or a fraction of integers behind it."""
    return re.compile(
        rf"(?P<sign>{sign})?(?:[{_CURRENCY}]{{1,3}}\s?(?P<inner>[{_DASHES}])?)?"
        rf"(?P<number>[0-9]++(?=[ {_NARROW}][0-9]++{slash}[0-9])|{number})"
        r"(?:e(?P<exponent>[-+]?[0-9]{1,3})(?![0-9])"
        rf"|(?:\s?[×x*·]\s?10|(?P<ten>(?<=(?<![0-9.,])10)))(?:\^|\*\*)[({{]?"
        rf"(?P<power>[{_DASHES}+]?[0-9]{{1,3}})(?![0-9])[)}}]?)?"
        rf"(?:[ {_NARROW}](?P<above>[0-9]++)(?={slash}[0-9]))?"
        rf"(?:{slash}(?P<below>[0-9]++(?![0-9.,]*[0-9])))?",
        re.IGNORECASE,
    )


_STATED = _number(
    rf"{_MINUS}(?:(?<![\w.)]\s.)\s)?",
    rf"(?:(?<![\w.])|(?<=[A-Za-z]\.))(?:{_grouped(f' {_NARROW}')}|{_SIMPLE})",
    r"\s?[/⁄]\s?",
)
# In the reversed text: its last digit, not that of "m^2" or "m2", and all that could be in the same
# number.
_REVERSED_END = re.compile(
    r"(?i)[0-9](?!.?\^[a-z])(?!(?<=[23])(?:m[ck]?|tf|ni|dy)\b)"
    rf"[{_DASHES}0-9.,_'’‘ʼ{_CURRENCY}/⁄\se+×x*·^(]*"
)
_ANY = _number(_MINUS, _SIMPLE, "[/⁄]")

# The last "answer", but not of </answer>; lower case would move positions, as of İ.
_REVERSED_ANSWER = re.compile(r"(?ai)rewsna(?!\w{0,9}/<)")
_ADJECTIVES = "final|correct|corrected|exact|total|numerical"
_ANSWER_IS = re.compile(  # a set first: Python skips what is not in it
    r"(?-i:[aA])nswer(?:(?:\s+to\s[^.?!\n]{1,80}?|\s*\([^()\n]{1,40}\)|,[^.,?!\n]{1,40},)?"
    r"(?:\s+(?:thus|then|therefore|hence))?"
    r"\s+(?:is|was|being|equals|becomes|comes\s(?:out\s)?to|(?:would|should|must|will)\s+be)"
    r"(?![a-z]|\s+(?:not|correct)\b)"
    r"|(?<=\bfinal\sanswer)\*?(?:\s\([^()\n]{1,40}\))?\s*(?:[:=\n–→]|-\s)|(?<=<answer)>"
    r"|(?:(?<=^the\sanswer)|(?<=[\n.!?]the\sanswer)|(?<=[.!?]\sthe\sanswer))\s*[:=]"
    # A number with its unit and nothing more, as in "Answer: 18 eggs" or <answer>18</answer>
    r"|[\"']?\s*[:=>\n](?=\s*[^\w\n]{0,4}(?!(?<=\n)[0-9][.)]\s)[0-9]+(?:[.,][0-9]+)*+"
    rf"(?: ?[0-9]*[/⁄][0-9]+|e[-+]?[0-9]+)?+(?: ?[%$\\{_CURRENCY}])?+"
    rf"(?: *[a-z/]++){{0,4}}+\s*?(?:\n|(?![\s\w+*/×÷=%{_CURRENCY}{_DASHES[1:]}-]))))",
    re.IGNORECASE | re.ASCII,
)
_DETERMINERS = "the|our|my|your|so|and|thus|hence|therefore"  # not "his", say
_REVERSED_THE = re.compile(  # in the reversed text: what precedes "answer"
    rf"(?:[\s_]+(?:{_ADJECTIVES[::-1]}))*\s*(?:\Z|[^\w\s/]|\n|\b(?:{_DETERMINERS[::-1]})\b"
    rf"(?!\s+(?:{'if|whether|find|calculate|determine|compute|check|verify'[::-1]})\b))",
    re.IGNORECASE | re.ASCII,
)
_MAX_STATEMENTS = 4  # that are read, until one has a number
_BARE = re.compile(r"\s*([0-9]+)\.?\s*")  # what most statements are
_LEAD = re.compile(  # a colon, a line such as "The sum for 5 days is:", a bullet
    r"[\s:…]*+(?:[^\n=.0-9]*+[0-9][^\n=]*\b(?:is|are|be):\s*\n\s*+)?"
    r"(?:\.\.++\s*+)?(?:[—*]\s+|(?<=\n)(?:[-–•]|1\.(?=\s+[^\W0-9]))\s+)?"
)
_ABBREVIATED = r"(?<!\bapprox)(?<!\bca)(?<!\bi\.e)(?<!\be\.g)(?<!\brs)(?<!\bnr)"
_SENTENCE_END = re.compile(
    rf"(?<![=≈])\n(?!\s*[=≈])|{_ABBREVIATED}[.!?](?=[\s\"')\]»”]|$)", re.IGNORECASE
)
_CLAUSE_END = re.compile(r",(?![0-9])|;|(?<![0-9)=≈])\s[–—]\s|\s[–—]\s(?![0-9($])|(?<=[0-9]):\s")
_ASIDE = re.compile(  # in brackets, or up to a comma: "since x = 2", "for x = 2", "in 2 days,"
    r"(?<=[0-9a-z%])\s+[(\[{][^()\[\]{}]*(?:[)\]}]|\Z)"
    r"|\sfrom\s\W?[0-9]\S*\sto\s\S+"
    r"|(?:(?:^|\s)\(?(?:since|because|when|where|while|if|assuming|(?<!the )given)\b"
    r"|(?<=,)\s(?:as|of which|including|compared|instead of|down from|not)\b"
    r"|^(?:that\s)?(?:in|after|for|over|within|with|at\sthe\send\sof)\s(?:the\s)?[0-9]+\s[a-z]"
    r"|\s(?:as|with)\s(?=[^,;=]{0,80}(?:=|\bequal))"
    r"|\s(?:for|at|and|or|by|from|under|using|setting|taking|letting)"
    r"\s[^\w,;]*[0-9]*[a-z](?:_?\w)?\$?\s*(?:=|equal\b)|(?<=[0-9])\s*[|:]\s*[a-z]\w?\s*=)"
    r"(?:(?!\s(?:so|then)\s)[^,;]|,(?=[0-9]))*",
    re.IGNORECASE,
)
_EQUALS = re.compile(r"[=≈→⇒]+|\bequals?\b(?: to\b)?", re.IGNORECASE)
_CONVERTED = re.compile(r"\s+\(\W*[0-9][0-9.,]*+[^0-9]*\)")  # "an hour (60 minutes)"
_NEGATIVE = re.compile(r"^(?:minus|negative)\s+(?=[$£€]?[0-9])", re.IGNORECASE)
_OPERATION = re.compile(  # as in "3 * 6"
    rf"\s?(?:[{_DASHES}+*/×÷x]|plus|minus|times|(?:divided|multiplied) by)\s?[0-9($]"
)
_OPERATOR = re.compile(
    rf"[+*/×÷^]|[{_DASHES}]\s"
    r"|\b(?:the (?:sum|product|difference|quotient)|half of|twice|multiplying)\b"
)
_HASH = re.compile(
    r"####[\s(\[\"'“:=≈]*+(?:answer\s*[:=]\s*|[a-z]\w*\s*[=≈]\s*"
    r"|(?:about|around|roughly|nearly|almost|exactly|only|approximately|approx\.)\s+"
    r"|(?:usd|eur|gbp|inr|rs)\b\.?\s*|us(?=\$))*+",
    re.IGNORECASE,
)
_HEADING = re.compile(r"[.)] +[A-Z]|: +[A-Za-z]|\ufe0f")  # "#### 1. Count the eggs"
_BOXED = re.compile(r"\\(?:boxed|fbox|framebox)\s*(?:\{|(?=-?[0-9]))")

_CORRECTION = re.compile(
    r"(?i)\b(?:(?:wait|hold on|oops|hmm|actually|correction|(?:my|made a) mistake"
    r"|correct answer (?:is|should)|sorry|apologi[sz]e|on second thought|scratch that"
    r"|(?:that|this|which)(?:.s| is| was) (?:wrong|incorrect|not (?:right|correct)))\b"
    r"|let(?: me|.s) re)"
)
_BEHIND = [  # a result, the group if any: a check, an offer, a remark, words after a bold number
    (words.split(), re.compile(pattern, re.IGNORECASE))  # every match has one of the words
    for words, pattern in (
        (
            "check verif proof validat",
            r"(?:\n|(?<!\n[0-9])(?<!\A[0-9])[.!] )[^\w\n]{0,20}(?:step [0-9]+\W+)?"
            r"(?:(?:let.{1,4}|to|(?:we|you) can|now|wait,|as a|do a|just|quick(?:ly)?|sanity|final"
            r"|double|cross)[ -])*(?:check|verif[iy]|proof|validat)(?:ing|e|ion|cation|ed)?"
            r"(?: (?:the|this|that|it|our|my|your|of|original|answer|results?|work|solution|math"
            r"|numbers|calculations?|each|steps?|everything))*"
            r"(?: (?:by|with|working|using|\()[^\n:.=0-9]{0,60})?\W*?[:,\n]()[\s\S]*",
        ),
        (
            "like want let have help confiden note explanation why reason assumption takeaway feel"
            " sure certain",
            r"(?:\n|[.!?] )[^\w\n]{0,20}(?:would you like|do you want|want (?:me )?to|let me know"
            r"|if you(?:.d| would)? (?:like|want|have any)|(?:i )?hope (?:this|that|it) helps"
            r"|(?:please )?feel free|note that\b(?=[^=.!?\n]*[.!?]?\s*\Z)"
            r"|i(?:.m| am) [0-9]+% (?:confident|sure|certain)"
            r"|confidence[^\n=:0-9]{0,9}[:=]|(?:note|explanation|why|reason|assumptions?"
            r"|key takeaways?)\W{0,3}[:?\n](?=[^=]{0,999}\Z))()[\s\S]*",
        ),
        (
            "( [",
            r"()[(\[](?:(?<=[\w.!%$\n]\s.)|(?<=\*\*\s.))"
            r"(?!\s*=|[^\w≈()]*(?:or \W?)?[0-9][0-9.,]*+[^0-9()]*\))"
            r"[^()\[\]]*+[)\]](?!\s?[(=/+×*-])[^0-9\n([=]*+(?:\n[^0-9([=]*+)?\Z",
        ),
        (
            "**",
            r"(\*\*(?:[^*\n0-9]*[:=≈]\s*)?[^\w*\n]{0,4}[0-9][0-9.,]*+(?<!\.)(?![):])[^*\n0-9:]*)"
            r"\*\*(?!:)(?:[^*\n=,;.]|[.,](?=[0-9])|,(?!\s(?:so|thus|then|which|and|giv|mak|leav)))*+"
            r"[^0-9]*+\Z",
        ),
    )
]
_WORDS = (
    "zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen"
    "|sixteen|seventeen|eighteen|nineteen|twenty"
)
_IN_WORDS = re.compile(  # perhaps with a unit, but not "one of them" or "twenty five"
    rf"(?i)\W*({_WORDS})(?: (?!(?:and|of|half|thirds?|quarters?|fifths?|tenths?|hundred"
    rf"|thousand|dozen|\w+illion|{_WORDS})\b)[a-z]+){{0,2}}\W*"
)
_MINUTES = re.compile(r"(?i)(?<=[0-9]):[0-5][0-9](?=\s?[ap]\.?m\b)")  # "5:30 pm" is 5
_RESULT = re.compile(r"[=≈]\s*(?=[^\w\n]{0,4}[0-9])")
# What an explanation behind the answer begins with; its calculations are not the answer's.
_EXPLAINED = re.compile(
    r"(?i)</answer|\n[^\w\n]*(?:explanation|reason|why|here|check|verif|note|breakdown)"
)
# "**Answer:** She makes $18 a day" at the end states it as "Final answer:" does.
_LABEL = re.compile(
    r"(?im)^([^\w\n]*)\*\*answer(?::\*\*|\*\*:)(?=[^=\n]+(?:\n\s*\n[^\w\n]*explanation|\s*\Z))"
)
_GIVEN = re.compile(
    r"(?i)\b(?:in|for|after|of|per|on|at|all|over|within|during|with|each|every|across)"
    r"(?: [a-z]+){0,3} \$?\Z"
)
# What leads to the last number.
_LEADS = re.compile(r"(?i)[=(]|\b(?:so(?! that)|thus|which|then|leaving|left with)\b")
_WORD = re.compile(r"[^\w\n]*[A-Za-z]{2,}(?:['’]s)?,? ")
_BOLD = re.compile(r"\*\*([^\w*\n]{0,4}[0-9][^*\n]*)(?<!:)\*\*(?!:)")
_DIGIT = re.compile("[0-9]")
_OTHER_DIGIT = re.compile(r"(?![0-9])\d")  # not a superscript
_DECIMAL_COMMA = re.compile(
    r"((?:€|R\$|EUR)\s?)?(?<![0-9.,])"
    r"([1-9][0-9]{0,2}(?:[. \u00a0\u202f][0-9]{3})+|[0-9]+(?=,[0-9]))(?:,([0-9]{1,2}))?"
    r"(?![,.]?[0-9])(\s?(?:€|EUR\b|[Ee]uros?\b))?"
)
_CENTS = re.compile(  # "US$ 18,00", "1.234,50 dólares"
    r"(?i)(\$\s?)?(?<![0-9.,])([0-9]+(?:\.[0-9]{3})*),([0-9]{2})(?![,.]?[0-9])"
    r"(?(1)|(?=\s?\\?\$|\sd[oó]l+ar))"
)
_NO_DIGIT = re.compile("[^0-9.]")
_MAX_DIGITS = 4000  # of a fraction: Python converts no longer texts to integers
_WHOLE = re.compile(
    rf"([{_DASHES}+]?)[{_CURRENCY}]?([{_DASHES}]?)"
    rf"((?:[0-9]{{1,3}}(?:,[0-9]{{3}})+(?![0-9])|{_INDIAN}|[0-9]+)?(?:\.[0-9]*)?)"
)


class Extraction(NamedTuple):
    """A response's answer and what found it."""

    answer: str | None  # a canonical number or NO_SOLUTION
    extractor: str  # "the_answer_is", "hash", "boxed", "last_number" or, without an answer, "none"


def extract(text: str) -> Extraction:
    """The answer of a response, as in the grammar above.

    The text from another question on is left out, unless no number before it can be an answer.
    """
    raw = without_next_question(without_thinking(_in_ascii_digits(text)))
    folded = raw.lower()
    if "**answer" in folded:
        raw = _LABEL.sub(r"\1**Final answer:**", raw)
    text = plain(raw)
    if "answer" in folded and (last := _REVERSED_ANSWER.search(raw[::-1])):
        ending = raw[len(raw) - last.end() :]
        if "\\" in ending and (found := _first(map(_statement, _boxes(ending)))):
            return Extraction(*found, "boxed")
        marks = islice(_ANSWER_IS.finditer(text), _MAX_STATEMENTS)
        stated = [m.end() for m in marks if _REVERSED_THE.match(text[: m.start()][::-1])]
        if len(stated) > 1:  # those before a correction come last
            stated = sorted(stated, key=lambda s: bool(_CORRECTION.search(text, s, stated[-1])))
        begins = [start - (text[start - 1] == "\n") for start in stated]  # of a bullet, not a minus
        if found := _first(_statement(text[start:], (ending, text)) for start in begins):
            return Extraction(*found, "the_answer_is")
    if "####" in text and (found := _first(_hash(text, m.end()) for m in _HASH.finditer(text))):
        return Extraction(*found, "hash")
    if "\\" in raw and (found := _first(map(_statement, _boxes(raw)))):
        return Extraction(*found, "boxed")
    for words, behind in _BEHIND:
        match = behind.search(raw) if any(map(folded.__contains__, words)) else None
        if match and not _CORRECTION.search(raw, match.end(1)):
            head = raw[: match.start()] + match[1]
            shown = plain(head)  # perhaps with a line such as "---" at its end
            if _DIGIT.search(shown.rstrip(" \n-*_$").rpartition("\n")[2]):
                raw, text = head, shown
    text = _without_asides(_MINUTES.sub("", text))
    if end := _REVERSED_END.search(text[::-1]):
        # Numbers are read from the left, from where none can reach over, up to the last digit.
        *_, last = _ANY.finditer(text, len(text) - end.end(), len(text) - end.start())
        return Extraction(_result_or(last, text), "last_number")
    if _is_no_solution(text):
        return Extraction(NO_SOLUTION, "the_answer_is")
    return Extraction(None, "none")


# What a statement gives, if it gives anything: a number, NO_SOLUTION or, for 1/0, None.
_Found = tuple[str | None]


def _first(found: Iterable[_Found | None]) -> _Found | None:
    return next(filter(None, found), None)


def _in_ascii_digits(text: str) -> str:
    """The digits of all scripts as 0 to 9, and amounts of money with a decimal point."""
    if not text.isascii():
        text = _OTHER_DIGIT.sub(lambda match: str(unicodedata.decimal(match[0])), text)
    if any(map(text.__contains__, ("€", "EUR", "uro", "R$"))):
        text = _DECIMAL_COMMA.sub(_with_point, text)
    if re.search(",[0-9]{2}(?![0-9])", text):
        text = _CENTS.sub(lambda m: f"{m[1] or ''}{m[2].replace('.', '')}.{m[3]}", text)
    return text


def _with_point(match: re.Match[str]) -> str:
    before, whole, cents, behind = match.groups(default="")
    amount = re.sub("[^0-9]", "", whole) + f".{cents}" * bool(cents)
    return f"{before}{amount}{behind}" if before or behind else match[0]


def _without_asides(text: str) -> str:
    """Without the asides behind its last result, except "(90 minutes)", if a number is left."""
    start = max(map(text.rstrip().rfind, ("\n", ". ", "=", "≈", "→"))) + 1
    rest = _ASIDE.sub(lambda aside: aside[0] * bool(_CONVERTED.match(aside[0])), text[start:])
    return text[:start] + rest if _DIGIT.search(rest) else text


def _result_or(last: re.Match[str], text: str) -> str | None:
    """The last number; if it is given, a result that its line or its sentence begins with.

    "10 * 5 = 50. She earns $50 for 5 days": of a line with what the last "=" gives, a number is
    given if it comes before that, or behind such a preposition. "She needs 26 more to reach 200":
    otherwise if all numbers of the sentence but the first one come before it.
    """
    number, calculated = _value(last), _calculation(text)
    result = _value(calculated) if calculated else None
    start = text.rfind("\n", 0, last.start()) + 1
    line = text[start : last.start()]
    if calculated and result and result in map(_value, _ANY.finditer(line)):
        before = {*map(_value, _ANY.finditer(text, 0, calculated.start()))}
        if not _GIVEN.search(line) and (
            number not in before or _is_recalled(number, calculated, last, start)
        ):
            return number
        # "40 / 16 = 2.5, so 3 packs of 16": the result as it is rounded behind it, if it is.
        whole = result.partition(".")[0]
        rounded = {whole, f"{int(whole[:99]) + 1}"} - before if whole != result else set()
        behind = map(_value, _ANY.finditer(text, calculated.end(), last.start()))
        return next(filter(rounded.__contains__, behind), result)
    start = max(
        (end.end() for end in _SENTENCE_END.finditer(text, start, last.start())), default=start
    )
    first, *others = map(_value, _ANY.finditer(text, start, last.end()))
    if number == result or not others or _LEADS.search(text, start, last.start()):
        return number
    before_it = set(map(_value, _ANY.finditer(text, 0, start)))
    return first if first not in before_it and before_it.issuperset(others) else number


def _is_recalled(
    number: str | None, calculated: re.Match[str], last: re.Match[str], start: int
) -> bool:
    """Whether a line repeats a calculation and ends in what an earlier one gave.

    "9 * 2 = 18. So she sells 16 - 7 = 9 eggs, for $18"; the last line begins at `start`.
    """
    text = last.string
    behind = [*map(_value, _ANY.finditer(text, calculated.end(), last.end()))]
    operands = map(_value, _ANY.finditer(text, start, calculated.start()))
    if calculated.start() < start or behind != [number] or number in operands:
        return False
    matches = (_STATED.match(text, each.end()) for each in _RESULT.finditer(text, 0, start))
    return number in {_value(match) for match in matches if match}


def _calculation(text: str) -> re.Match[str] | None:
    """The number that the last "=" gives."""
    for equals in islice(reversed(list(_RESULT.finditer(text))), _MAX_STATEMENTS):
        match = _STATED.match(text, equals.end())
        if match and not _OPERATION.match(text, match.end()):
            return match
    return None


def _marked(raw: str, text: str, numbers: set[str | None]) -> _Found | None:
    """The result of the last calculation if it is among the bold numbers, else the last of them."""
    bold = [_STATED.search(plain(number)) for number in _BOLD.findall(raw)]
    values = [value for match in bold if match and (value := _value(match)) in numbers]
    result = _calculation(text)
    if result and _value(result) in (values or numbers):
        return (_value(result),)
    return (values[-1],) if values else None


def _statement(text: str, context: tuple[str, str] | None = None) -> _Found | None:
    """What the sentence at the beginning of the text states.

    If it begins with words, a number in it that :func:`_marked` finds in the context comes first.
    """
    if bare := _BARE.fullmatch(text):
        return (_spelled(bare[1], negative=False),)
    heads = text.startswith("\n")  # as in "### Final answer\n"
    text = _LEAD.sub("", text, count=1)
    end = _SENTENCE_END.search(text)
    sentence = _NEGATIVE.sub("-", text[: end.start()] if end else text)
    if _is_no_solution(sentence):
        return (NO_SOLUTION,)
    if words := _IN_WORDS.fullmatch(sentence):
        return (str(_WORDS.split("|").index(words[1].lower())),)
    if context and _WORD.match(sentence):
        numbers = {_value(match) for match in _STATED.finditer(sentence)}
        if marked := _marked(*context, numbers):
            return marked
        if heads and end and numbers:
            until = _EXPLAINED.search(text, end.start())
            if _RESULT.search(text, end.end(), until.start() if until else len(text)):
                return None  # the first sentence of a solution
    # An aside is read only if nothing else is a number.
    for part in (_ASIDE.sub("", sentence), sentence):
        for side in chain(*(reversed(_EQUALS.split(c)) for c in _CLAUSE_END.split(part))):
            match = _STATED.search(side)
            if match and not (
                _OPERATION.match(side, match.end()) or _OPERATOR.search(side[: match.start()])
            ):
                return (_value(match),)
        if match := _STATED.search(part):
            return (_value(match),)
    return None


def _hash(text: str, start: int) -> _Found | None:
    """The number directly behind "####"."""
    match = _STATED.match(text, start)
    if match and _OPERATION.match(text, match.end()):
        return _statement(text[start:])
    if match and not _HEADING.match(text, match.end()):
        return (_value(match),)
    return (NO_SOLUTION,) if _is_no_solution(text[start:].partition("\n")[0]) else None


def _boxes(text: str) -> Iterator[str]:
    """The content of the last boxes in plain text, one that is cut off only if it is alone."""
    boxes = list(_BOXED.finditer(text))[-_MAX_STATEMENTS:]
    for match in reversed(boxes):
        depth, end = 1, match.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        if not depth or match is boxes[0]:
            yield plain(text[match.end() : end - (not depth)])


def _is_no_solution(text: str) -> bool:
    return text.strip(" \n.:\"'").lower() == NO_SOLUTION.lower()


@lru_cache(maxsize=2**16)  # answers repeat: a question has one gold answer and many responses
def canonical(text: str) -> str:
    """A number in its canonical spelling: no grouping, currency, percent, plus or extra zeros.

    A fraction without a finite decimal is reduced: "2/6" is "1/3".

    Raises:
        InputError: the text is neither a number nor `NO_SOLUTION`.
    """
    text = _in_ascii_digits(text)
    bare = re.sub(r"(?<![0-9])\s|\s(?![0-9])", "", text).rstrip("%").rstrip(".")
    match = _WHOLE.fullmatch(bare)
    if match and _DIGIT.search(match[3]):
        negative = (match[1] in tuple(_DASHES)) != bool(match[2])
        return _spelled(match[3].replace(",", ""), negative=negative)
    stated = _STATED.fullmatch(plain(text).strip().strip("$").rstrip("%."))
    value = _value(stated) if stated else NO_SOLUTION if _is_no_solution(text) else None
    if value is None:
        raise InputError(f"{text!r} is not a number")
    return value


def _value(match: re.Match[str]) -> str | None:
    """The canonical number of a match of `_STATED`; None if it is infinite or too long."""
    sign, inner, number, exponent, ten, power, above, below = match.groups()
    number, exponent = _NO_DIGIT.sub("", number) if ten is None else "1", exponent or power
    negative = bool(sign) != bool(inner)
    if not exponent and not below:
        return _spelled(number, negative=negative)
    if len(number + (above or "") + (below or "")) > _MAX_DIGITS or not int(below or 1):
        return None
    value = Fraction(number) * Fraction(10) ** int(re.sub(f"[{_DASHES}]", "-", exponent or "0"))
    value = value + Fraction(int(above), int(below)) if above else value / int(below or 1)
    if 10 ** value.denominator.bit_length() % value.denominator:
        return f"{'-' * negative}{value}"
    with localcontext() as exact:
        exact.prec = len(str(value.numerator)) + 4 * len(str(value.denominator)) + 1
        return _spelled(f"{Decimal(value.numerator) / value.denominator:f}", negative=negative)


def _spelled(digits: str, *, negative: bool) -> str:
    """Digits with at most one point in their canonical spelling."""
    whole, _, fraction = digits.partition(".")
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    number = f"{whole}.{fraction}" if fraction else whole
    return f"-{number}" if negative and number != "0" else number


def same(answer: str, gold: str) -> bool:
    """Whether two texts are the same number, or both none; InputError if one is something else."""
    return canonical(answer) == canonical(gold)
