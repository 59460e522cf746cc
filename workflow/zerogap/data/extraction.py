"""Which answer a response gives, and whether it is the gold one: rules by name.

- ``numeric``, ours and the default: :func:`zerogap.data.answers.extract`, compared as numbers.
- ``strict-match`` and ``flexible-extract``: the two filters of lm_eval's task gsm8k_cot under their
  names, compared as its `exact_match` does it: as texts, without commas, dollar signs and a last
  period. What they find odd (an answer that ends the text loses its last digit under
  ``strict-match``) is part of them; the tests compare them with the installed package.
- ``package.module:function``, somebody else's: text → answer or None, compared as a text with the
  gold answer, which then need not be a number.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from zerogap.data import answers
from zerogap.errors import InputError
from zerogap.plugins import imported

_STRICT = re.compile(r"The answer is (-?[0-9.,]+).")
_FLEXIBLE = re.compile(r"-?[$0-9.,]{2,}|-?[0-9]+")


@dataclass(frozen=True)
class Rule:
    """How responses are judged.

    Attributes:
        find: a response's text → its answer (None: it gives none) and what found it.
        same: (an answer, the gold one) → whether they are one.
        gold: a gold answer as a file has it → as the rule compares it; raises InputError.
    """

    name: str
    find: Callable[[str], tuple[str | None, str]]
    same: Callable[[str, str], bool]
    gold: Callable[[str], str]

    def takes(self, gold: str) -> bool:
        """Whether the rule can be asked about this gold answer at all."""
        try:
            self.gold(gold)
        except InputError:
            return False
        return True

    def judge(self, text: str, gold: str | None) -> tuple[str | None, str, bool | None]:
        """The answer, what found it, and whether it is right: None where no gold is known."""
        answer, extractor = self.find(text)
        if gold is None:
            return answer, extractor, None
        return answer, extractor, answer is not None and self.same(answer, gold)


def rule(name: str) -> Rule:
    """The rule of that name.

    Raises:
        InputError: no such rule, and nothing to import either.
    """
    return RULES.get(name) or _outside(name)


def _numeric(text: str) -> tuple[str | None, str]:
    found = answers.extract(text)
    return found.answer, found.extractor


def _strict(text: str) -> tuple[str | None, str]:
    found = _STRICT.search(text)
    return (found[1], "strict-match") if found else (None, "none")


def _flexible(text: str) -> tuple[str | None, str]:
    found = _FLEXIBLE.findall(text)
    return (found[-1], "flexible-extract") if found else (None, "none")


def _as_texts(answer: str, gold: str) -> bool:
    """lm_eval's exact match with the task's `regexes_to_ignore`."""
    bare, bare_gold = (
        re.sub(r"\.$", "", text.replace(",", "").replace("$", "")).lower()
        for text in (answer, gold)
    )
    return bare == bare_gold


def _text_gold(text: str) -> str:
    if not text.strip():
        raise InputError("the gold answer is empty")
    return text.strip()


def _outside(name: str) -> Rule:
    function = imported(name, "data.extraction", tuple(RULES))

    def find(text: str) -> tuple[str | None, str]:
        answer = function(text)
        if not isinstance(answer, str | None):
            raise InputError(
                f"data.extraction: {name} returned {answer!r}; a text or None is expected"
            )
        return answer, "none" if answer is None else name

    return Rule(name, find, str.__eq__, _text_gold)


RULES = {
    one.name: one
    for one in (
        Rule("numeric", _numeric, answers.same, answers.canonical),
        Rule("strict-match", _strict, _as_texts, answers.canonical),
        Rule("flexible-extract", _flexible, _as_texts, answers.canonical),
    )
}
