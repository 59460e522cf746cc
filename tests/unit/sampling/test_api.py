import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import zerogap
from helpers.tiny_models import model, tokenizer
from zerogap.errors import InputError
from zerogap.io import parquet

TOKENIZER = tokenizer()
PROMPTS = {"a": "Shots. Q: one\nA:", "b": "Shots. Q: twenty-two\nA:", "c": "Shots. Q: 3\nA:"}


def drawn(**more):
    options = {"m": 6, "max_new_tokens": 12} | more
    return zerogap.sample(model("llama"), TOKENIZER, options.pop("prompts", PROMPTS), **options)


def test_a_table_of_every_response():
    made = drawn()
    assert list(made.question_id) == [name for name in PROMPTS for _ in range(6)]
    assert made.correct.isna().all()
    listed = drawn(prompts=list(PROMPTS.values()))
    assert sorted(set(listed.question_id)) == ["0", "1", "2"]


def test_gold_answers_score():
    gold = {"a": "1", "b": "2", "c": "3"}
    made = drawn(gold=gold)
    assert set(made.correct) <= {True, False}
    with pytest.raises(InputError, match="see 'b'"):
        drawn(gold={"a": "1", "c": "2"})


def test_prompts_need_nothing_in_common():
    alone = drawn(prompts={"a": "one", "b": "two"})
    other = drawn(prompts={"a": "one", "b": "three"})
    pd.testing.assert_frame_equal(alone[alone.question_id == "a"], other[other.question_id == "a"])


def test_a_strategy_decodes_its_trajectories_first():
    plain, capped = drawn(temperature=0.3), drawn(temperature=0.3, strategy=zerogap.RailCap(n=1))
    assert list(plain.token_ids) != list(capped.token_ids)


def test_a_filter_drops_responses():
    assert len(drawn(temperature=0.02, strategy=zerogap.TED())) < 18


def test_it_streams_to_parquet_and_resumes(tmp_path):
    made = drawn(output=tmp_path / "samples.parquet")
    pd.testing.assert_frame_equal(
        parquet.read(tmp_path / "samples.parquet", "samples"), made, check_dtype=False
    )
    assert [path.name for path in tmp_path.iterdir()] == ["samples.parquet"]


def test_a_prompt_beyond_the_context_is_named():
    with pytest.raises(InputError, match="question long: .* exceeds the model's context"):
        drawn(prompts={"a": "short", "long": "x" * 250})


def test_a_tokenizer_without_end_is_refused():
    words = tokenizer()
    words.eos_token = None
    with pytest.raises(InputError, match="no end token"):
        zerogap.sample(model("llama"), words, PROMPTS, m=2, max_new_tokens=3)


def test_importing_the_package_loads_no_torch():
    code = "import sys, zerogap, zerogap.metrics; sys.exit('torch' in sys.modules)"
    folder = Path(zerogap.__file__).parents[1]
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(folder)})


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing_such"):
        _ = zerogap.nothing_such
