"""Responses as plain text: without thinking, further questions, Markdown and LaTeX.

Only what changes how a number is read is translated, and values stay the same: grouped by `{,}` or
`~`, digits are grouped by a comma or a space without a break, and fractions of LaTeX and single
characters such as ½ get the fraction slash (1⁄2).
"""

import re
import unicodedata

_FRACTIONS = "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
_SUPERSCRIPTS = "⁻⁺⁰¹²³⁴-⁹"
_VULGAR = re.compile(rf"([0-9]?)([{_FRACTIONS}])")
# Nothing of a text without any of these is changed.
_DRESSED = re.compile(  # a set first: Python skips what is not in it
    rf"[\\`{{}}~_&{_FRACTIONS}{_SUPERSCRIPTS}\u00ad\u200b\u2060\ufeff*<]"
    r"(?:(?<![*<])|(?<=\*)(?:\*|[^\s*]+\*(?!\w))|(?<=<)/?[a-z])",
    re.IGNORECASE,
)
_POWER = re.compile(rf"((?:[×x*·]\s?|(?<![0-9.,]))10)([{_SUPERSCRIPTS}]+)")

_THINKING = r"(?:think|thinking|thoughts?|reasoning|analysis|reflection|scratchpad|monologue)"
_OPENED = re.compile(
    rf"<\|?(?:\w+[:_])?{_THINKING}(?:\s[^<>\n]*)?\|?>|\[THINK\]|◁think▷|<unused94>"
    r"|<\|channel\|?>(?:analysis|thought)|<\|inner_prefix\|>|\A(?-i:analysis(?=[A-Z0-9]))",
    re.IGNORECASE,
)
_CLOSED = re.compile(
    rf"<\|?(?:/(?:\w+[:_])?|end_(?:of_)?){_THINKING}\|?>|\[/THINK\]|◁/think▷|<unused95>"
    r"|<\|channel\|>final(?:\s*<\|constrain\|>\s*\w+)?<\|message\|>|<channel\|>"
    r"|<\|inner_suffix\|>|assistantfinal",
    re.IGNORECASE,
)
_TAG_PARTS = ("<|channel|>", "<|channel>", "<|message|>")

# The next question: a word such as "Question" that begins a line, in any dress.
_WHICH = (
    r"(?:(?:[\w']+ ){0,4}(?:next|new|another|similar|follow-?up|second|third|bonus|additional|extra"
    r"|practice|sample|example|math|word)\s+)?"
)
_NUMBERED = (
    r"[ \t*_]*[.#(\[-]?(?:no\b\.?|number\b)?[ \t]*"
    r"(?:[0-9]+|(?:[ivx]+|one|two|three|four|five)\b)(?:(?: of |/)[0-9]+)?[*_\])>`]*[ \t]*"
)
_NEXT_QUESTION = re.compile(
    r"\nQ(?::|\.\s)|\s(?<![a-z]\s)Q:"  # not "solve for Q:"
    rf"|(?<=[.!?]) ?(?-i:Question|Problem)(?:{_NUMBERED})?:"
    r"|(?:(?<!#)#{2,}+[ \t]*"
    r"|(?:[\n\r\u2028]|\|>)[ \t]*(?:[0-9]+[.)]\s)?(?:<[a-z]+>|\\[a-z]+\{|[^\w\n]|_)*+)"
    rf"(?:(?:{_WHICH}(?:q(?!\()|question|problem|exercise|task|instruction|input|prompt)"
    r"|user|human|student)"
    rf"(?:(?:{_NUMBERED})?(?:\s(?:statement|for you|question))?[ \t*_#`\])>}}]*"
    rf"(?:\([^()\n]*\))?[:：]|{_NUMBERED}(?:[.)]|\n|[-–—]\s))"
    rf"|(?:question|problem)(?:\s[-–—]\s|(?:{_NUMBERED})?[\]>])"
    rf"|(?:question|problem|exercise|user|human|assistant)[^\w\n]*\n|example{_NUMBERED}[:：.)\n])"
    r"(?![^\w\n]*[0-9][^?\n]*(?:\n|\Z))"  # not an item of a list, as "Task 1: 20 minutes"
    r"|<[|｜]?(?:user|human|question|problem)[|｜]?>|\[INST\]|(?<=\S)(?-i:assistant|user)\n\n"
    r"|<\|(?:(?:im_|turn_)?end|return|endoftext|end_of_text|eo[mt]_id)\|>|</s>|<end_of_turn>"
    r"|<turn\|>|<｜end▁of▁sentence｜>"
    r"|<\|?(?:im_start|start|start_header_id|start_of_turn|start_of_role|turn)\|?>\s*(?:user|human)",
    re.IGNORECASE,
)
# In every match of `_NEXT_QUESTION`, and far faster to look for: one of these, or a lone q.
_ASKING = (
    *("question", "problem", "exercise", "task", "example", "user", "human", "student"),
    *("assistant", "instruction", "input", "prompt", "[inst", "<|", "</s>", "<end", "<turn", "<｜"),
)
_ANSWERED = re.compile(r"(?i)####|\\(?:f|frame)?box|answer|=")
_RESTATING = re.compile(  # a response that begins with what is given and asked
    r"(?im)^[^\w\n]*(?:[0-9]+[.)][^\w\n]*)?"
    r"(?:(?:given|known|facts)\b[^.:\n]{0,30}:"
    r"|(?:understand\w*|let.{1,4} \w+) (?:this|the problem)\b)"
)

_WRAPPER = re.compile(r"\\(?:boxed|fbox|mbox|(?:text|math)[a-z]*|emph|underline)\s*\{([^{}]*)\}")
_MAX_NESTED = 4  # commands within commands
_PART = r"\s*(?:\{([^{}]*)\}|([0-9]))"
_FRACTION = re.compile(rf"([0-9]?)\\[dtc]?frac{_PART}{_PART}")
_SIMPLE = re.compile(r"\s*([-−]?)\s*[$£€]?([0-9][0-9.,\u2009]*)\s*")
_TAGS = r"</?(?:b|i|u|p|em|strong|span|code|div|br|hr|mark|font)\b[^<>\n]*>"


def _rules(*rules: tuple[str, str]) -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(pattern, re.IGNORECASE), replacement) for pattern, replacement in rules]


_SPACES = _rules(
    (r"[\u00ad\u200b\u2060\ufeff]", ""),
    (r"&nbsp;|&thinsp;", "\u00a0"),
    (_TAGS + r"|\\(?:text)?color\{[a-z]+\}", " "),
    (r"\{,\}", ","),
    (r"\\!", ""),
    (
        r"(?<=[0-9])(?:\{(?:\\,| )\}|\\(?:[,;:> ]|thinspace\s?|hspace\*?\{[^{}]*\}))(?=[0-9])",
        "\u2009",
    ),
    (r"\{([^{}]*)\\over(?![a-z])([^{}]*)\}", r"\\frac{\1}{\2}"),
    (r"(?<=[0-9])~(?=[0-9])", "\u00a0"),
    (r"\\\\(?:\[[^\]]*\])?", "\n"),
    (r"\\[,;:> ]|~(?!~)", " "),
    (r"\\([%$#&_£€])", r"\1"),
)
_COMMANDS = _rules(
    (r"\\times(?![a-z])", "×"),
    (r"\\(?:cdot|ast)(?![a-z])", "*"),
    (r"\\div(?![a-z])", "÷"),
    (r"\\(?:approx|simeq|equiv)(?![a-z])", "≈"),
    (r"\^\{?\\(?:circ|degree)(?![a-z])\}?", " "),
    (r"\\(?:begin|end)\{[a-z]+\*?\}(?:\{[a-z|]+\})?|&(?==)", " "),
    (r"\\[()\[\]]|\\[a-z]+|\}\s*\{", " "),
    (r"[{}]", ""),
)
# At the edges of words: not the operation of "2 ** 3" or "2 * 3".
_EMPHASIS = _rules(
    (r"(?<![\w)])(\*{2,3}|~~)(?=\S)|(?<=\S)(\*{2,3}|~~)(?!\w)", ""),
    (r"(?<![\w*)])\*([^\s*]+)\*(?![\w*])", r"\1"),
    (r"(?<![a-z0-9_])_+(?=[^\s_])|(?<=[^\s_])_+(?![a-z0-9_])", ""),
)


def without_thinking(text: str, *, opened: bool = False) -> str:
    """What follows the thinking of a reasoning model: nothing if it never ends.

    If the prompt has `opened` the thinking, a text without a closing tag is all thinking.
    """
    if not (text.startswith("analysis") or "<" in text or "[" in text or "◁" in text):
        return "" if opened else text
    closed = list(_CLOSED.finditer(text))
    if closed:
        text = text[closed[-1].end() :]
    elif opened:
        return ""
    unfinished = _OPENED.search(text)
    return text[: unfinished.start()] if unfinished else text


def without_next_question(text: str) -> str:
    """A response up to where another question begins.

    It is left whole if no number before that can be an answer: not one without "=" or a mark behind
    a list of what is given.
    """
    folded = text.casefold()
    lone_q = "q" in folded and folded.count("q") > folded.count("qu")
    if not lone_q and not any(map(folded.__contains__, _ASKING)):
        return text
    response = _NEXT_QUESTION.split(text, maxsplit=1)[0]
    is_answered = re.search("[0-9]", response) and (
        _ANSWERED.search(response) or not _RESTATING.search(response)
    )
    return response if is_answered else text


def has_thinking(template: str) -> bool:
    """Whether a chat template has tags for thinking."""
    return bool(_OPENED.search(template) or _CLOSED.search(template))


def is_thinking_token(token: str) -> bool:
    """Whether a token is a tag for thinking or, as `<|channel|>`, a part of one."""
    return has_thinking(token) or token in _TAG_PARTS


def ends_in_thinking(prompt: str) -> bool:
    """Whether a prompt opens thinking that the response continues."""
    closed = list(_CLOSED.finditer(prompt))
    return bool(_OPENED.search(prompt, closed[-1].end() if closed else 0))


def plain(text: str) -> str:
    """The text without Markdown and LaTeX."""
    if not _DRESSED.search(text):
        return text
    text = _apply(_SPACES, text)
    if "\\" in text:
        for _ in range(_MAX_NESTED):  # from the inside to the outside
            text = _FRACTION.sub(_plain_fraction, _WRAPPER.sub(r" \1", text))
        text = _apply(_COMMANDS, text)
    text = _apply(_EMPHASIS, text.replace("`", ""))
    text = _POWER.sub(lambda power: f"{power[1]}^{unicodedata.normalize('NFKC', power[2])}", text)
    return _VULGAR.sub(_plain_vulgar, text)


def _apply(rules: list[tuple[re.Pattern[str], str]], text: str) -> str:
    for pattern, replacement in rules:
        text = pattern.sub(replacement, text)
    return text


def _plain_fraction(match: re.Match[str]) -> str:
    """A fraction of numbers with the fraction slash, behind a whole number as a mixed number."""
    before, above, below = match[1], match[2] or match[3] or "", match[4] or match[5] or ""
    top, bottom = _SIMPLE.fullmatch(above), _SIMPLE.fullmatch(below)
    if not (top and bottom):
        return f"{before} ({above})/({below})"
    sign = "" if top[1] and bottom[1] else top[1] or bottom[1]
    fraction = re.sub(r"[,\u2009]", "", f"{top[2]}⁄{bottom[2]}")
    return f"{before}{' ' * bool(before)}{sign}{fraction}"


def _plain_vulgar(match: re.Match[str]) -> str:
    return match[1] + " " * bool(match[1]) + unicodedata.normalize("NFKC", match[2])
