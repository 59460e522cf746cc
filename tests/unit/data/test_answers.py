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
    "So 4 + 5 = 9. The answer is 9.": "9", "The answer is 9": "9",
    "Answer: 1/2\nConfidence: 95%": "0.5", "Answer: $18$\nConfidence: 95%": "18",
    "Answer: 18€\nConfidence: 95%": "18", "Answer: 18 €\nConfidence: 95%": "18",
    "Answer: 1.8e3\nConfidence: 95%": "1800", "Answer: 50 %\nConfidence: 95%": "50",
    "Answer: 18 dollars per day\nConfidence: 95%": "18",
    '{"final_answer": 18, "confidence": 0.9}': "18",
    "<final_answer>18</final_answer>\n\n2 days": "18",
    "The answer is 18. A common mistake is to say the answer is 20.": "18",
    "The answer is 20. I made a mistake: the answer is 18.": "18",
    "答えは9、The answer is １８.": "18", "The answer is १८।": "18",
    "The answer is 18,00 €.": "18", "The answer is R$ 1.234,56.": "1234.56",
    "The answer is €1,234.": "1234", "The answer is 1,5 Euro.": "1.5",
    "the answer is: $1,450.50.": "1450.5", "The answer is 18, 19 or so": "18",
    "The answer is 40%.": "40", "The answer is ₹1,00,000 in 2 days": "100000",
    "The answer is 18 000 dollars.": "18000", "The answer is 1\u202f234\u202f567.": "1234567",
    "The answer is 18 1000 times": "18", "The answer is 1/2.": "0.5", "The answer is 36 / 2.": "18",
    "The answer is -3/8": "-0.375", "The answer is 2/6.": "1/3", "The answer is 2 1/2.": "2.5",
    "The answer is 2½.": "2.5", "The answer is ¾ of it.": "0.75", "The answer is 1/0.": None,
    "The answer is {7 \\over 2}": "3.5", "The answer is $\\frac{\\$7}{2}$": "3.5",
    "The answer is 1.8e4.": "18000", "The answer is 5E-1.": "0.5",
    "The answer is 1.6e+16.": "16000000000000000", "The answer is 1.8 × 10^4.": "18000",
    "The answer is 1.8×10⁴ in 2 days": "18000", "The answer is 1.8*10**4": "18000",
    "The answer is 10^6.": "1000000", "The answer is $-10^{-2}$.": "-0.01",
    "The answer is 10⁶ in 2 days.": "1000000", "The answer is 2 * 5 = 10**1.": "10",
    "The answer is 7.\nThe answer is 8.": "7", "The answer is 3 + 15 = 18.": "18",
    "The answer is 2 * 3 = 6 * 3 = $18.": "18", "The answer is 20 – 2 = 18 eggs": "18",
    "The answer is 5 – 50 = –45": "-45", "The answer is 80 from Tom + 60 from Eve = 140": "140",
    "The answer is $1,200.50 + 3 eggs = $1,203.50.": "1203.5",
    "The answer is (30 + 6) / 2 = 36/2.": "18", "The answer is 36 ÷ 2 =\n18 eggs in 2 days": "18",
    "The answer is twice as many: 2 * 9 = 18. That is 5 more.": "18",
    "The answer is 18 = 3 *6 = 9 + 9.": "18", "The answer is 18. So x = 4.": "18",
    "The answer is 18\nx = 4": "18", "The answer is 7. The answer is 3 + 5 = 8.": "7",
    "The answer is 3 + 15": "3", "The answer is not 5. The answer is 6, and 7 is left.": "6",
    "The final answer is 18 in 2 days.": "18", "**Final Answer:** 18 in 2 days": "18",
    "### Final Answer\n18 in 2 days": "18", "The answer: 18 in 2 days": "18",
    "So, answer is 18 in 2 days": "18", "The answer should be 18 in 2 days": "18",
    "The answer (in eggs) is 18 in 2 days": "18", "The answer, in all, is 18 in 2 days": "18",
    "His answer is 3. The answer is 18.": "18", "The answer is ... 18 in 2 days": "18",
    "The answer is:\n- 18 eggs\n- 2 days": "18", "The answer is — 18 in 2 days": "18",
    "The answer is \\begin{aligned} x &= 3 + 4 \\\\ &= 7 \\end{aligned}": "7",
    "The answer is Tom's, 18 in 2 days.": "18", "The answer is 3 plus 15 equals 18 in 2 days": "18",
    "The answer is minus 3.": "-3", "The answer is $\\left(-3\\right)$ in 2 days": "-3",
    "The answer is \\textcolor{red}{18} in 2 days": "18", "The answer is **None**.": "None",
    "The answer is m+n where m = 256 and n = 37, so 293": "293", "None": "None",
    "word " * 20_000 + "The answer is 18.": "18",
    "The answer was 18 in 2 days": "18", "The answer becomes 18 in 2 days": "18",
    "The answer is18. It takes 2 days": "18", "Final answer = 18 in 2 days": "18",
    "Answer: 18 eggs\n\nCheck: 20 - 2": "18", "**Answer: $18** (2 days)": "18",
    "### Answer\n\n**18**\n\n### Why\n- 2 days": "18", "<answer>18</answer>\n\n2 days": "18",
    '{"answer": 18, "confidence": 0.9}': "18", "Corrected answer: 18. It takes 2 days": "18",
    "The answer is 20.\n\nWait, let me redo it. The answer is 18.": "18",
    "The answer is 18. Actually, yes, the answer is correct for 2 days.": "18",
    "The answer is 12 + 6, which is 18.": "18", "The answer is the sum of 12 and 6, or 18.": "18",
    "The answer is found by multiplying 9 by 2, giving 18.": "18", "The answer is 9 → 18": "18",
    "If the answer is 20, 2 are left. The answer is 18.": "18",
    "Step 2: Find the final answer\n9 are left. The answer is 18.": "18",
    "### Final Answer\nAfter 5 days, she has $18.": "18",
    "The answer is 18 (16 - 7 = 9 eggs, 2 a day).": "18", "The answer is eighteen (18).": "18",
    "### Final Answer\nEach of the 4 friends gets **12 marbles**.": "12",
    "### Final Answer\nShe bought 3 boxes and 2 bags for **$694**.": "694",
    "2 * 36 = 72\n\n**Final Answer:** The volume of all 3 boxes is 72 inches.": "72",
    "6 * 3 = 18\n\n**Final Answer:** Ann has **18** eggs in **6** boxes.": "18",
    "6 * 3 = 18\n\n**Final Answer:** Ann's 6 boxes hold 18 eggs.": "18",
    "6 * 3 = 18\n\n**Final Answer:** Thus, the 6 boxes hold 18 eggs.": "18",
    "*Final answer:* 18 eggs, 3 in a box": "18", "*Final Answer*: 18 eggs, 3 in a box": "18",
    "**Final Answer:**\n1. She has 18 eggs.": "18", "Final answer - 18 eggs in 6 boxes": "18",
    "Final Answer (in eggs): 18 in 6 boxes": "18", "The answer therefore is 18 in 6 boxes": "18",
    "The answer comes out to 18 in 6 boxes": "18",
    "The answer is half of 36, which is 18.": "18", "The answer is eighteen.": "18",
    "The answer is eighteen months.": "18",
    "<answer>She has 18 eggs in 6 boxes.</answer>": "18",
    "I thought the answer was 20, but the correct answer is 18.": "18",
    "**Final Answer:**\n- The sum of all 3 boxes is:\n\n\\[\n\\text{Sum} = 18\n\\]": "18",
    "Check the answer\n3 boxes (of 6) are full.\n\nFinal Answer: 18 eggs": "18",
    "**Answer:**\n- 18 eggs": "18", "### Answer\n- $18 per day": "18", "Answer:\n-18": "-18",
    "The answer is Rs.500.": "500", "The answer is .5": "0.5", "The answer is:.5": "0.5",
    "**Answer:** She used 18 spoons of the total of 120.": "18",
    "**Answer:** She makes **$18**.\n\n**Explanation:** 16 - 7 = 9 eggs for $2": "18",
    "The answer is 20. No, that's incorrect. The answer is 18.": "18",
    "The answer is 20. Sorry, I miscalculated. The answer is 18.": "18",
    "The answer is 20. It would be wrong to say the answer is 18.": "20",
    "The answer is 36 divided by 2, which is 18.": "18", "The answer is twice 9, or 18.": "18",
    "The answer is the difference between 30 and 12, which is 18.": "18",
    "The answer is that she has $18.\n\nExplanation: 9 * 2 = 18": "18",
    "The answer is about $18. We used 16 - 7 = 9.": "18",
    "Final Answer: The total is $18.\n\nSteps:\n16 - 7 = 9": "18",
}  # fmt: skip
HASHED = {
    "The answer is hard. 2 * 3 = 6\n#### 6": "6", "It is 10-3, so 7 #### 1,234": "1234",
    "#### 36/2": "18", "#### **18** in 2 days": "18", "#### x = 18 in 2 days": "18",
    "#### $\\boxed{7{,}300}$ in 2 days": "7300", "#### None": "None", "#### - 18 in 2 days": "-18",
    "#### Answer: about Rs. 18 in 2 days": "18", "#### ≈ US$18 in 2 days": "18",
    "#### 1: Eggs\n9 * 2\n#### 18": "18", "#### 1\ufe0f\u20e3 eggs\n#### 18": "18",
    "#### Rs.500": "500", "#### 18. she sells 9 eggs.": "18",
    "#### 1. Count the eggs.\nThere are 3.\n#### 18": "18", "#### 6 * 3 = 18 in 2 days": "18",
}  # fmt: skip
BOXED = {
    "\\boxed{3} is wrong, \\boxed{18\\text{ eggs in 2 days}} is not": "18",
    "\\boxed{x = 18}, 2 days": "18", "\\boxed{-\\dfrac{7}{2}}, 2 days": "-3.5",
    "\\boxed{2\\frac12}, 2 days": "2.5", "\\boxed{\\frac{\\text{7}}{2}}, 2 days": "3.5",
    "\\boxed{18": "18", "\\boxed{18} \\boxed{18} \\boxed{1": "18",
    "\\boxed{- 18}": "-18", "\\fbox{18}, 2 days": "18",
    "\\boxed 18, 2 days": "18", "\\boxed{\\begin{array}{c}18\\end{array}}, 2 days": "18",
    "The answer is\n\\[\nx = \\boxed{18}\n\\]\nin 2 days.": "18",
    "**Final Answer:** Each of the 4 friends gets $\\boxed{18}$ marbles.": "18",
    "The answer is 48. Wait, this is wrong: there are 7.\n\n\\boxed{42}": "42",
    "<answer>The 6 boxes hold \\boxed{18}.</answer> in 2 days": "18",
    f"{'İ' * 20} The answer is \\boxed{{18}} in 2 days": "18",  # has two lower-case letters
}  # fmt: skip
LAST = {
    "12 dollars per 3 hours": "3", "that leaves 10-3": "3", "that leaves 10 - 3": "3",
    "it fell to -3 degrees": "-3", "it fell to –3 degrees": "-3", "about .5": "0.5",
    "it was 7\u202f300": "7300", "it was 7 300": "300", "that is 7/2": "3.5",
    "that is 2 1/2 hours": "2.5", "it is 5/10/2020": "2020", "that is $\\frac{7}{2}$": "3.5",
    "it takes 2½ hours": "2.5", "that is 2**3": "3", "it is 10^6": "1000000", "it is 210^2": "2",
    "so **18**": "18", "it is 1.6e+3": "1600",
    "it is 1.6 × 10^3 m": "1600", "9" * 100_000: "9" * 100_000,
    "it is 20 m^2": "20", "it is $20\\text{ m}^{2}$": "20",
    "it is 18 eggs.\n\n**Check:** 18 - 2 = 16": "18", "it is 18.\nLet me verify:\n2 days": "18",
    "let's check how many are left:\n9 * 2 is 18": "18", "1. Check: 9\n2. Sum: 18": "18",
    "it is $18 per day (9 eggs × $2).": "18", "it is 18.\n\n(9 eggs and 2 days)": "18",
    "it is 12 + 6 (= 18).": "18", "an hour and 30 minutes (90 minutes)": "90",
    "it is 3 * (2 + 4)": "4", "in three times (3 * 6)": "6",
    "it is **$18** for the 9 eggs.": "18", "**Total: 18** in 2 days": "18",
    "**Step 2:** it is 18": "18", "**2. Sum** is 18": "18", "**9** are left, so it is 18": "18",
    "**9 eggs** are 9 × 2 = 18": "18", "Answer: 12 - 3 = 9, and 9 * 2 = 18": "18",
    "Answer:\n1. Eggs: 9\n2. Dollars: 18": "18", "5 points/answer = 10, so 18": "18",
    "Answer: 9 eggs of the 16 are sold for 18": "18",
    "analysisSo the answer is 3.assistantfinalIt is 18.": "18",
    "50 × 0.2 = $10\n\n**She earned $10 for 50 minutes.**": "10",
    "750 / 150 = 5\n\nIt takes 5 days to sell the 750 kg.": "5",
    "He loses 2 * 21 = 42 pounds.\nHe weighs 176 - 42 = 134 pounds after 2 weeks.": "134",
    "180 - 135 = 45\n\nHe is 45 miles from home after those 4 hours.": "45",
    "2 * 10 = 20\n\nAfter spending 20, 15 are left.": "15", "9 + 3 = 12, then 12 + 6 is 18": "18",
    "It is 18.\n\n**Quick check:** 2 * 9 = 18 and 20 - 2": "18",
    "It is 18.\n\nTo double-check: 20 - 2": "18", "It is 18. Check by substituting: 20 - 2": "18",
    "It is 18.\n\nVerification of the result:\n20 - 2": "18", "The bill:\nCheck total: 18": "18",
    "It is 18.\n\nWould you like to see it for 20 eggs?": "18",
    "It is 18.\n\n*Note: this assumes 20 eggs.*": "18", "It is 9.\nNote: 9 * 2 = 18": "18",
    "It is 18 (≈9.75 m).": "18", "It is 25. The answer is twenty five.": "25",
    "It is 6.5. The answer is six point five.": "6.5", "It is 0.2. The answer is one fifth.": "0.2",
    "It takes 160 minutes (2 hours and 40 minutes) to download.": "160",
    "It is 18.\n\n---\n\n**Check:** 20 - 2": "18", "\\[\nx = 18\n\\]\n\nCheck: 20 - 2": "18",
    "40 / 16 = 2.5, so she needs 3 packs of 16": "3", "São US$ 18,50": "18.5",
    "Son 1.234,50 dólares": "1234.5", "Das sind **18,00 $**": "18", "(10,20), $9": "9",
    "Das sind **70.000 €**": "70000", "São R$ 70.000": "70000", "Es sind 0.125 €": "0.125",
    "He is home at 5:30 PM.": "5", "The ratio is 3:18": "18",
    "Her goal is 40, and 22 are there.\nShe needs 18 more to reach her goal of 40.": "18",
    "40 in bags of 8.\nThey need 5 bags, so that each has 8 of the 40.": "5",
    "She has 3.\n3 * 6 = 18\nThe 3 boxes hold 18 in all.": "18",
    "Of 8, she wants to keep 3.\nShe gives away 5, leaving 3.": "3",
    "It is 18.assistant\n\nLet me know if you have 5 others.": "18",
    "It is 18.<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nAnother 5": "18",
    "It is 18.</s> There are 5": "18", "It is 18.<|endoftext|>In 2024, the": "18",
    "It is 18.<end_of_turn>\n<start_of_turn>model\nIn 2 steps": "18",
    "The 3 boxes of the given sizes hold 18.": "18",
    "<answer>\nShe sells 16 - 7 = 9 eggs.\nShe makes 9 * 2 = $18.\n</answer>": "18",
    "### Final Answer\nShe sells 16 - 7 = 9 eggs.\nThat makes 9 * 2 = 18.": "18",
    "9 * 2 = 18\n\nSo she sells 16 - 7 = 9 eggs a day, earning $18.": "18",
    "22 + 8 = 30\n\nShe answered 30 questions across the 2 tests.": "30",
    "She has 16 eggs. Note that she eats 3. She makes 9 * 2 = $18.": "18",
    "Tom has 5.\nNote that he buys 3 more.\nIn total he has 8.": "8",
    "**Answer:** First, find the cost of 3 boxes.\n\nA box is $6, so 3 boxes cost $18.": "18",
    "it is 18 m2": "18", "it is 18 cm2.": "18", "it is 18 of CO2": "2",
    '<|channel|>analysis<|message|>3<|end|><|start|>assistant<|channel|>final <|constrain|>json'
    '<|message|>{"total": 18}': "18",
}  # fmt: skip
UNANSWERED = [
    "none here",
    "",
    "It cannot be determined.",
    "analysisThe answer is 3.",
    "analysis16-3=13",
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


REMARKS = [
    " because it takes 9 and 10", ", since 2 boats carry 9", " if 5 of 9 go", ", if 5 of 9 go",
    " when 5 of 9 go", ", as 5 of 9 go", " given that 5 go", " [since 5 of 9 go]", ". (5 of 9 go)",
    ", while Tom gets $9", " from $40 to $58", ". Let me know if 9 is too few!", ". Check: 9 * 2",
    ". I hope this helps with task 9!", ". Would you like to try it with 9?", ".\nConfidence: 95%",
    ".\n\nIf you have any questions about the 9, ask!", ".\n\nWait, let me double-check: 9 * 2",
    ".\n\nProof: 9 * 2", ".\n\n✅ Verified: 9 * 2", ".\n\n**Step 4: Check the answer**\n9 * 2",
    ", of which 9 are big", ", compared to 9", ".\n\n**Why?**\n9 in each of 2",
    ".\n\nLet me verify by working backwards: 9 * 2", ".\n\nLet me just quickly check each step: 9",
    ".\n\n**Verification (working backwards):** 9 * 2", ".\n\n## Note\nIt is about 9 miles.",
    ". Note that this assumes a 7-day week.", ". I am 95% confident.", ".\n\nValidation: 9 * 2",
    ". Feel free to ask about the other 5 tasks!",
]  # fmt: skip


@pytest.mark.parametrize("remark", REMARKS)
@pytest.mark.parametrize("result", ["it is 18", "it is $18", "**it is 18**", "9 * 2 = 18 eggs"])
def test_what_a_remark_behind_the_last_result_tells_is_not_the_answer(result, remark):
    assert extract(f"In 3 steps, {result}{remark}") == Extraction("18", "last_number")


@pytest.mark.parametrize(
    "words", [", 3 in each", ", or 9.75 m", " (9.75 m)", " (≈ 9.75 m)", " at $2.50 each", " of 20"]
)
def test_a_bold_number_is_the_answer_whatever_its_sentence_adds(words):
    assert extract(f"It is **18**{words}.") == Extraction("18", "last_number")


@pytest.mark.parametrize("correction", ["Wait, it is 18", "I made a mistake: it is 18", "Oops, 18"])
def test_a_check_that_finds_a_mistake_is_read(correction):
    assert extract(f"9 * 2 = 19.\n\nLet me verify: 9 + 9. {correction}").answer == "18"


def test_euros_are_grouped_by_spaces_too():
    amounts = {"1 500 €": "1500", "1 500,50 euros": "1500.5", "12 500 Euro": "12500"}
    assert {text: extract(f"Das sind {text}.").answer for text in amounts} == amounts


ASIDES = [
    ", since x = 4", " when x = 4", " for n = 4", " (x = 4)", " [x = 4]", " (3 * 6 = 18 in all)",
    " – n = 4", " as 2x = 8", " with b equal to 6", " using $n = 4$", " by n = 4", " and y = 4",
    " for $m = 4, n = 5$", ", where m = 4", "; n = 4", " after setting n_1 = 4", " if n = 4",
]  # fmt: skip


@pytest.mark.parametrize("aside", ASIDES)
@pytest.mark.parametrize("value", ["18", "$18", "x = 18", "12 + 6 = 18", "a+b = 12 + 6 = $18"])
def test_what_an_aside_sets_equal_is_not_the_answer(value, aside):
    assert extract(f"The answer is {value}{aside}.").answer == "18"


GAPS = [
    ",", "{,}", "\\,", "\\;", "\\ ", "\\!", "~", "_", "'", "’", "\u00a0", "\u2009", "\u2006",
    "\u202f", "&nbsp;", "{\\,}", "{ }", "\\thinspace ", "\\hspace{1pt}",
]  # fmt: skip


@pytest.mark.parametrize("gap", GAPS)
def test_digits_are_grouped_by_any_sign_in_any_place(gap):
    grouped = f"1{gap}234{gap}567"
    for text in ("The answer is {}", "#### {}", "\\boxed{{\\${}}}", "It is {}"):
        assert extract(text.format(grouped)).answer == "1234567"
    assert canonical(grouped) == "1234567"


@pytest.mark.parametrize("dash", "-−‐‑‒–—―﹣－⁻△")
def test_any_dash_in_front_of_a_number_is_a_minus_sign(dash):
    numbers = ["{}45", "{}$45", "${}45$", "**{}45**", "x = {} 45", "({}45)"]
    texts = [f"The answer is {number.format(dash)} in 2 days" for number in numbers]
    texts += [f"#### {dash}45 in 2 days", f"\\boxed{{{dash}45}}", f"It is {dash}45"]
    assert [extract(text).answer for text in texts] == ["-45"] * len(texts)


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
    " Q: ", "\n\nQ: ", "\n\nQuestion: ", "\n\n**Question:** ", "\n*Question*: ", "\n__Question__: ",
    "\n### Question 2\n", "\nQuestion 2: ", "\n**Problem 2:** ", "\nProblem: ", "\nQ2) ",
    "\n2. Q: ", "\n- Question: ", "\n> Next question: ", "\nUser: ", "\n**Human:** ",
    "<|im_start|>user\n", "<|user|>", "<｜User｜>", "\n**Question** 2: ", "\n### Instruction:\n",
    "\n### Problem\n", "\n[Question]: ", "\n[Problem] ", "\nQuestion II: ", "\n(Question 2) ",
    "\nQuestion #2: ", "\nExercise 3. ", "\nQ. ", "\n## Example 2: ", "### User: ",
    "\nHere is another question: ", "\nProblem 2 (easy): ", "\nQuestion two: ", "\n\nUser\n",
    "\nQuestion-2: ", "\nQuestion (2): ", "\nQuestion 2 of 5: ", "\nQuestion – ",
    "\n<b>Question:</b> ", "\n\\textbf{Question:} ", "\n<question>", "\nPractice problem 2: ",
    "\nMath Problem: ", "\n**Problem Statement:** ", "\n| Question: ", '\n"Question: ',
    "\n🔹 Question: ", "\n=== Question ===\n", "<|turn>user\n", "<|start_of_role|>user",
    "<|endoftext|>Question: ", ". Question: ", "\nUser question: ", "\nInstruction 2 (harder): ",
    "\n\nQuestion\n", "\n\nassistant\n", "<|start|>user<|message|>",
]  # fmt: skip


@pytest.mark.parametrize("next_question", QUESTIONS)
@pytest.mark.parametrize(
    ("response", "extractor"),
    [
        ("So 18. The answer is 18.", "the_answer_is"),
        ("So\n#### 18", "hash"),
        ("So 18", "last_number"),
        ("Let's solve this step by step. 9 * 2 = 18", "last_number"),
        ("Given 9 bags of 2, he has 18", "last_number"),
    ],
)
def test_only_the_first_answer_of_a_response_that_runs_on_is_read(
    response, extractor, next_question
):
    for next_answer in ("The answer is 2.", "#### 2", "It is 2", ""):
        text = f"{response}{next_question}1 + 1?\nA: {next_answer}"
        assert extract(text) == Extraction("18", extractor)


@pytest.mark.parametrize(
    "text",
    [
        "Q: Tom has 4 apples.\nA: The answer is 18.",  # repeats the question
        "Let me see. Q: Tom has 4 apples.\nA: The answer is 18.",
        "Two steps.\nQuestion: how many are 2 * 9? The answer is 18.",
        "Tom has 4 in the FAQ: 9 * 2. The answer is 18.",
        "There are 2 tasks:\n- Task 1: 8 minutes\n- Task 2: 10 minutes\n\nThe answer is 18.",
        "For 2 tickets:\nAdult: $13\nStudent: $5\nThe answer is 18.",
        "**Given:**\n- 16 eggs\n\n**Problem:** find 9 * 2\n\nThe answer is 18.",
        "Let me solve this in 3 steps.\n\nProblem: what is 9 * 2?\n\nThe answer is 18.",
        "It has 2 problems.\nProblem 1: 8 points\nProblem 2: 10 points\nThe answer is 18.",
        "At 1:\nq(1) = 2 + 3\nQ(x) = x + 4\n\nThe answer is 18.",
        "2 + Q = 20, solved for Q:\nThe answer is 18.",
        "First student: 9 = 3 * 3\n- Second student:\n9 as well\n\nThe answer is 18.",
    ],
)
def test_a_question_that_belongs_to_the_response_does_not_end_it(text):
    assert extract(text) == Extraction("18", "the_answer_is")


OPENED = [
    "<think>", "<Thinking>", "<think >", "[THINK]", "<seed:think>", "<reasoning>", "<|thinking|>",
    "<|START_THINKING|>", "<|begin_of_thought|>", "<analysis>", "<|channel|>analysis<|message|>",
    "<|inner_prefix|>",
]  # fmt: skip
CLOSED = [
    "</think>", "</thinking>", "</think>", "[/THINK]", "</seed:think>", "</reasoning>",
    "<|/thinking|>", "<|END_THINKING|>", "<|end_of_thought|>", "</analysis>",
    "<|channel|>final<|message|>", "<|inner_suffix|>",
]  # fmt: skip


@pytest.mark.parametrize(("opened", "closed"), list(zip(OPENED, CLOSED, strict=True)))
def test_thinking_is_not_graded(opened, closed):
    for start in (opened, ""):
        assert extract(f"{start}The answer is 3.{closed}\n\nIt is 18.").answer == "18"
        assert extract(f"{start}The answer is 3.{closed}\n\nNo idea.").answer is None
    assert extract(f"{opened}3 + 4 = 7, so maybe the answer is 7").answer is None
    assert extract(f"It is 18. {opened}1{closed}{opened}Or 3?").answer is None


SPELLINGS = {
    "18": ["18", "18.00", "$18", "18.", " 18 ", "018", "+18", "18%", "36/2", "1.8e1", "1.8e+1"],
    "3.5": ["7/2", "3 1/2", "3½", "\\frac{7}{2}", "$\\frac72$", "35e-1"],
    "7300": ["7,300", "7{,}300", "7\\,300", "7'300"],
    "-1/3": ["-1/3", "−2/6"],
    "16000000000000000": ["1.6e+16"],
    "0": ["0", "-0.0"],
    "None": ["None", " none "],
}


@pytest.mark.parametrize(
    ("number", "text"), [(n, text) for n in SPELLINGS for text in SPELLINGS[n]]
)
def test_all_spellings_of_a_number_are_the_same(number, text):
    assert canonical(text) == number
    assert same(text, number)


@pytest.mark.parametrize(
    "text",
    ["", "x", "1/0", "one", "1 to 2", "--", ".", "$", "1.2.3", "e3", "nan", "12a", "null",
     "10, 20", "5 10", "18,00", "2,5", "1,2345"],
)  # fmt: skip
def test_a_text_that_is_not_a_number_is_an_error(text):
    with pytest.raises(InputError, match="not a number"):
        canonical(text)


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


WORDS = (
    "The answer is", "the anſwer IS ", "####", "Q:", "\n\nQuestion:", "x", "e", "é", "**",
    "\\boxed{",
)  # fmt: skip
SYMBOLS = ("1", "20", "345", "٣", "½", "\\frac", "{", "}", *" \n=+()-−,.$£/%~\\", "\u00a0")


@settings(max_examples=1000)
@given(st.lists(st.sampled_from(WORDS + SYMBOLS)).map("".join))
def test_texts_of_the_grammar_give_a_canonical_answer_or_none(text):
    answer = extract(text).answer
    assert answer is None or canonical(answer) == answer


HOSTILE = [
    "9", "1 ", "1⁄2 ", "**", "####", "\\boxed{", "\\text{", "The answer is ", "as ", "\n* ",
    "#### ", "\n<b>", "$", "\nnew ", "x = ", "1,", "10^", "- ", "answer (", "{a\\over", "\n",
    "(1 2) ", "**1** ", "\nCheck:\n", "\nTask 1:", "answer: ", "answer is 1 wait ",
    "12,", ". ", "(.,", " (.", " [a]\n", "\nnote:", "\nwhy?\n", "1.234", "$1,50 ", "check by ",
    "</answer", "answer",
]  # fmt: skip


@pytest.mark.parametrize("part", HOSTILE)
def test_hostile_texts_take_a_second_at_most(part):
    start = time.process_time()
    for beginning in ("The answer is", "It is 18."):
        extract(f"{beginning} {part * 15_000} question, like a check = 1")
        extract(f"{beginning} </{part * 15_000}")
    assert time.process_time() - start < 3
