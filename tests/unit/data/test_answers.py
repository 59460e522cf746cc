"""Numeric answers: extraction, canonical spelling, equality."""

import json
import re
import time
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import shared_data
from zerogap.data.answers import Extraction, canonical, extract, same
from zerogap.errors import InputError

decimals = st.decimals(
    min_value=-(10**12), max_value=10**12, places=3, allow_nan=False, allow_infinity=False
)


# Text → answer, by what finds it.
STATED = {
    "So 4 + 5 = 9. The answer is 9.": "9",
    "The answer is 9": "9",
    "the answer is: $1,450.50.": "1450.5",
    "The answer is 7. Q: next? A: The answer is 8.": "7",
    "The answer is -3.": "-3",
    "The answer is -$3.": "-3",
    "The answer is $-3.": "-3",
    "The answer is −3.": "-3",
    "The answer is —3.": "-3",
    "The answer is \u20113.": "-3",
    "The answer is 40%.": "40",
    "The answer is 18,000 dollars.": "18000",
    "The answer is 18, 19 or so": "18",
    "The answer is £18.": "18",
    "The answer is € 18": "18",
    "The answer is 18 000 dollars.": "18000",
    "The answer is 1\u202f234\u202f567.": "1234567",
    "The answer is 7\u2009300.": "7300",
    "The answer is 7'300 francs.": "7300",
    "The answer is 7’300 francs.": "7300",
    "The answer is 18 1000 times": "18",
    "The answer is 1/2.": "0.5",
    "The answer is 36 / 2.": "18",
    "The answer is -3/8": "-0.375",
    "The answer is 2/6.": "1/3",
    "The answer is 2 1/2.": "2.5",
    "The answer is 2½.": "2.5",
    "The answer is ¾ of it.": "0.75",
    "The answer is 1/0.": None,
    "The answer is 1.8e4.": "18000",
    "The answer is 5E-1.": "0.5",
    "The answer is 1.6e+16.": "16000000000000000",
    "The answer is 1.8 × 10^4.": "18000",
    "The answer is 7.\nThe answer is 8.": "7",
    "The answer is 3 + 15 = 18.": "18",
    "The answer is 3 * 6 = $18": "18",
    "The answer is 2 * 3 = 6 * 3 = 18.": "18",
    "The answer is $1,200.50 + 3 eggs = $1,203.50.": "1203.5",
    "The answer is (30 + 6) / 2 = 36/2.": "18",
    "The answer is twice as many: 2 * 9 = 18. That is 5 more.": "18",
    "The answer is a + b = 12 + 6 = 18, with b = 6.": "18",
    "The answer is 18 = 3 * 6.": "18",
    "The answer is 18 = 3 *6 = 9 + 9.": "18",
    "The answer is 18. So x = 4.": "18",
    "The answer is 18, since x = 4.": "18",
    "The answer is 18 when x = 4.": "18",
    "The answer is 18 for n = 4.": "18",
    "The answer is 18 (x = 4).": "18",
    "The answer is 18 (3 * 6 = 18 in all).": "18",
    "The answer is 18\nx = 4": "18",
    "The answer is 7. The answer is 3 + 5 = 8.": "7",
    "The answer is 3 + 15": "3",
    "The answer is not 5. The answer is 6, and 7 is left.": "6",
    "The final answer is 18 in 2 days.": "18",
    "**Final Answer:** 18 in 2 days": "18",
    "The answer is\n\\[\nx = \\boxed{18}\n\\]\nin 2 days.": "18",
    "The answer is \\begin{aligned} x &= 3 + 4 \\\\ &= 7 \\end{aligned}": "7",
    "The answer is Tom's, 18 in 2 days.": "18",
    "The answer is 18 – n = 4": "18",
    "The answer is 18 as 2x = 8": "18",
    "The answer is 3 plus 15 equals 18 in 2 days": "18",
    "The answer is minus 3.": "-3",
    "The answer is $\\left(-3\\right)$ in 2 days": "-3",
    "The answer is $m+n=256+37=\\boxed{293}$, with $n=37$.": "293",
    "The answer is \\textcolor{red}{18} in 2 days": "18",
    "word " * 20_000 + "The answer is 18.": "18",
    "The answer is **None**.": "None",
    "None": "None",
}
HASHED = {
    "The answer is hard. 2 * 3 = 6\n#### 6": "6",
    "It is 10-3, so 7 #### 1,234": "1234",
    "#### 36/2": "18",
    "#### **18** in 2 days": "18",
    "#### $\\boxed{7{,}300}$ in 2 days": "7300",
    "#### x = 18 in 2 days": "18",
    "#### 1. Count the eggs.\nThere are 3.\n#### 18": "18",
    "#### None": "None",
}
BOXED = {
    "The total is \\boxed{\\$7{,}300} in 2 days": "7300",
    "\\boxed{7\\,300}, 2 days": "7300",
    "\\boxed{7\\!300}, 2 days": "7300",
    "\\boxed{7~300}, 2 days": "7300",
    "\\boxed{1\\ 234\\ 567}, 2 days": "1234567",
    "\\boxed{3} is wrong, \\boxed{18\\text{ eggs in 2 days}} is not": "18",
    "\\boxed{x = 18}, 2 days": "18",
    "\\boxed{-\\dfrac{7}{2}}, 2 days": "-3.5",
    "\\boxed{2\\frac12}, 2 days": "2.5",
    "\\boxed{\\frac{\\text{7}}{2}}, 2 days": "3.5",
    "\\boxed{18": "18",
    "\\fbox{18}, 2 days": "18",
}
LAST = {
    "12 dollars per 3 hours": "3",
    "that leaves 10-3": "3",
    "that leaves 10 - 3": "3",
    "it fell to -3 degrees": "-3",
    "it fell to –3 degrees": "-3",
    "about .5": "0.5",
    "it was 7\u202f300": "7300",
    "it was 7 300": "300",
    "that is 7/2": "2",
    "that is $\\frac{7}{2}$": "3.5",
    "it takes 2½ hours": "2.5",
    "that is 2**3": "3",
    "so **18**": "18",
    "9" * 100_000: "9" * 100_000,
}
UNANSWERED = [
    "none here",
    "",
    "It cannot be determined.",
    "<think>3 + 4 = 7, so maybe the answer is 7",
]
FOUND = [
    *((text, answer, name) for name, texts in (
        ("the_answer_is", STATED), ("hash", HASHED), ("boxed", BOXED), ("last_number", LAST),
    ) for text, answer in texts.items()),
    *((text, None, "none") for text in UNANSWERED),
]  # fmt: skip


@pytest.mark.parametrize(("text", "answer", "extractor"), FOUND, ids=[t[:60] for t, *_ in FOUND])
def test_the_answer_is_stated_marked_boxed_or_the_last_number(text, answer, extractor):
    assert extract(text) == Extraction(answer, extractor)


DRESSES = [
    "**{}**", "*{}*", "__{}__", "_{}_", "`{}`", "[{}]", "({})", '"{}"', "“{}”", "<b>{}</b>",
    "\\({}\\)", "\\[{}\\]", "${}$", "$${}$$", "\\$ {}", "\\boxed{{{}}}", "$\\mathbf{{{}}}$",
    "\\text{{{} eggs}}", "USD {}", "US${}", "Rs. {}", "about {}", "approximately {}", "approx. {}",
    "~{}", "≈ {}", "exactly {}", "a total of {}", "x = {}", "\\(x_{{1}} = {}\\)", "$x = {}$",
    "therefore {}", ":\n\n{}", "\\approx {}", "&nbsp;{}", "**x = {}**", "{}\\,\\text{{km}}",
]  # fmt: skip


@pytest.mark.parametrize("dress", DRESSES)
@pytest.mark.parametrize("number", ["61", "-45", "7,300.50"])
def test_what_stands_around_the_stated_number_is_skipped(dress, number):
    text = f"It takes 9 days. The answer is {dress.format(number)} apples in 2 days, not 3."
    assert extract(text).answer == canonical(number)


@shared_data.needs_cases
def test_the_shared_cases_are_read_right():
    for line in (shared_data.CASES / "extraction.jsonl").read_text().splitlines():
        case = json.loads(line)
        assert extract(case["response"]).answer == case["expected"], case["response"]


@shared_data.needs_gsm8k
def test_the_solutions_of_gsm8k_give_their_gold_answers():
    for split in ("train", "test"):
        for line in (shared_data.GSM8K / f"{split}.jsonl").read_text().splitlines():
            rationale, _, gold = json.loads(line)["answer"].rpartition("####")
            stated = re.sub("<<[^<>]*>>", "", rationale).replace("the answer is", "it is")
            assert extract(f"{stated.replace('The answer is', 'It is')}#### {gold}").answer == (
                canonical(gold)
            )


QUESTIONS = [
    " Q: ", "\n\nQ: ", "\n\nQuestion: ", "\nQuestion: ", "\n\n**Question:** ", "\n*Question*: ",
    "\n### Question 2\n", "\nQuestion 2: ", "\n**Problem 2:** ", "\nProblem: ",
    "\n> Next question: ", "\nQ2: ", "\nUser: ", "\n**Human:** ", "<|im_start|>user\n", "<|user|>",
    "\n### Instruction:\n", "\n### Problem\n", "\n**Question**\n", "\n[Question]: ",
    "\n(Question 2) ", "\nQuestion #2: ", "\nExercise 3. ", "\nQ. ", "\n## Example 2: ",
]  # fmt: skip


@pytest.mark.parametrize("next_question", QUESTIONS)
@pytest.mark.parametrize(
    ("response", "extractor"),
    [
        ("So 18. The answer is 18.", "the_answer_is"),
        ("So\n#### 18", "hash"),
        ("So 18", "last_number"),
    ],
)
@pytest.mark.parametrize("next_answer", ["The answer is 2.", "#### 2", "It is 2", ""])
def test_only_the_first_answer_of_a_response_that_runs_on_is_read(
    response, extractor, next_question, next_answer
):
    assert extract(f"{response}{next_question}1 + 1?\nA: {next_answer}") == Extraction(
        "18", extractor
    )


@pytest.mark.parametrize(
    "text",
    [
        "Q: Tom has 4 apples.\nA: The answer is 18.",  # repeats the question
        "Let me see. Q: Tom has 4 apples.\nA: The answer is 18.",
        "Two steps.\nQuestion: how many are 2 * 9? The answer is 18.",
        "Tom has 4 in the FAQ: 9 * 2. The answer is 18.",
    ],
)
def test_a_question_that_belongs_to_the_response_does_not_end_it(text):
    assert extract(text) == Extraction("18", "the_answer_is")


@pytest.mark.parametrize(
    "tags", [("<think>", "</think>"), ("", "</think>"), ("[THINK]", "[/THINK]")]
)
def test_thinking_is_not_graded(tags):
    opened, closed = tags
    assert extract(f"{opened}The answer is 3.{closed}\n\nIt is 18.").answer == "18"
    assert extract(f"{opened}The answer is 3.{closed}\n\nNo idea.").answer is None
    assert extract(f"It is 18. {opened}1{closed}{opened or '<think>'}Or 3?").answer != "3"


SPELLINGS = {
    "18": ["18", "18.00", "$18", "18.", " 18 ", "018", "+18", "18%", "36/2", "1.8e1", "1.8e+1"],
    "3.5": ["7/2", "3 1/2", "3½", "\\frac{7}{2}", "$\\frac72$", "35e-1"],
    "7300": ["7,300", "7{,}300", "7\\,300", "7'300"],
    "-1/3": ["-1/3", "−2/6"],
    "16000000000000000": ["1.6e+16"],
    "None": ["None", " none "],
}


@pytest.mark.parametrize(
    ("number", "text"), [(n, text) for n in SPELLINGS for text in SPELLINGS[n]]
)
def test_all_spellings_of_a_number_are_the_same(number, text):
    assert canonical(text) == number
    assert same(text, number)


@pytest.mark.parametrize(
    "text", ["", "x", "1/0", "one", "1 to 2", "--", ".", "$", "1.2.3", "e3", "nan", "12a", "null"]
)
def test_a_text_that_is_not_a_number_is_an_error(text):
    with pytest.raises(InputError, match="not a number"):
        canonical(text)


def test_zero_has_no_sign():
    assert canonical("-0.0") == "0"


def test_a_missing_answer_never_equals_the_gold_answer():
    assert not same(None, "3")


@given(decimals)
def test_canonical_keeps_the_value(number):
    once = canonical(f"{number:f}")
    assert Decimal(once) == number
    assert canonical(once) == once


@given(decimals, decimals)
def test_answers_are_compared_as_numbers(a, b):
    assert same(f"{a:,f}", f"${b:f}" if b >= 0 else f"{b:f}") == (a == b)


@given(decimals)
def test_any_stated_number_is_extracted(number):
    found = extract(f"We get there. The answer is {number:,f}. Q: 5?")
    assert (Decimal(found.answer), found.extractor) == (number, "the_answer_is")


@given(st.text())
def test_any_text_gives_a_canonical_answer_or_none(text):
    answer = extract(text).answer
    assert answer is None or canonical(answer) == answer


WORDS = (
    "The answer is",
    "the anſwer IS ",
    "####",
    "Q:",
    "\n\nQuestion:",
    "x",
    "e",
    "é",
    "**",
    "\\boxed{",
)
SYMBOLS = ("1", "20", "345", "٣", "½", "\\frac", "{", "}", *" \n=+()-−,.$£/%~\\", "\u00a0")


@settings(max_examples=1000)
@given(st.lists(st.sampled_from(WORDS + SYMBOLS)).map("".join))
def test_texts_of_the_grammar_give_a_canonical_answer_or_none(text):
    answer = extract(text).answer
    assert answer is None or canonical(answer) == answer


@pytest.mark.parametrize(
    "part",
    ["9", "1 ", "1⁄2 ", "**", "\\boxed{", "\\text{", "The answer is ", "as ", "\n* ", "#### "],
)
def test_hostile_texts_take_a_second_at_most(part):
    start = time.process_time()
    extract(f"The answer is {part * 15_000}")
    assert time.process_time() - start < 2
