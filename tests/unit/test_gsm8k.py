import json
import os
from pathlib import Path

import pytest

from zerogap.data import gsm8k
from zerogap.errors import InputError

REAL = Path(os.environ.get("ZEROGAP_GSM8K", Path(__file__).parents[2] / ".." / "shared/data/gsm8k"))
GOOD = {"question": "What is 2 + 3?", "answer": "It is 2+3=<<2+3=5>>5.\nDone.\n#### 5"}


def written(tmp_path, *lines):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(x if isinstance(x, str) else json.dumps(x) for x in lines))
    return path


def test_rationale_is_cleaned(tmp_path):
    (row,) = gsm8k.load(written(tmp_path, GOOD))
    assert row == gsm8k.Row("What is 2 + 3?", "It is 2+3=5. Done.", "5")


@pytest.mark.parametrize(
    ("gold", "number"), [("1,450,000", "1450000"), ("$-3", "-3"), ("2.50", "2.5")]
)
def test_gold_is_canonical(gold, number):
    assert gsm8k.parse({"question": "q", "answer": f"r #### {gold}"}).gold == number


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
        ({"answer": "r #### 1"}, "'question' is missing or empty"),
        ({"question": " ", "answer": "r #### 1"}, "'question' is missing or empty"),
        ({"question": "q", "answer": None}, "'answer' is missing or empty"),
        ({"question": "q", "answer": "r"}, "no '#### N'"),
        ({"question": "q", "answer": "#### 1"}, "no reasoning"),
        ({"question": "q", "answer": "r #### five"}, "'five' is not a number"),
        (GOOD, "question of line 1 again"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, says):
    with pytest.raises(InputError, match=rf"rows\.jsonl, line 3: .*{says}"):
        gsm8k.load(written(tmp_path, GOOD, "", line))


def test_bad_files(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        gsm8k.load(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="no questions"):
        gsm8k.load(written(tmp_path, ""))
    (tmp_path / "latin.jsonl").write_bytes(b'{"question": "\xe9"}')
    with pytest.raises(InputError, match="UTF-8"):
        gsm8k.load(tmp_path / "latin.jsonl")


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "deep" / "rows.jsonl"
    gsm8k.write(path, [gsm8k.entry("How many\u2028 é?", "One.", "1"), GOOD])
    assert [row.gold for row in gsm8k.load(path)] == ["1", "5"]


def test_nothing_half_written(tmp_path):
    with pytest.raises(InputError, match="entry 2"):
        gsm8k.write(tmp_path / "rows.jsonl", [GOOD, {"question": "q", "answer": "r"}])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not (REAL / "test.jsonl").is_file(), reason="GSM8K is not here (ZEROGAP_GSM8K)")
def test_all_of_gsm8k():
    train, test = gsm8k.load(REAL / "train.jsonl"), gsm8k.load(REAL / "test.jsonl")
    assert (len(train), len(test)) == (7473, 1319)
    for row in train + test:
        assert "<<" not in row.rationale and "####" not in row.rationale
        assert "\n" not in row.rationale + row.question
    assert test[0].gold == "18"
