import pytest

from zerogap.data.gsm8k import Row
from zerogap.data.questions import disjoint, questions, training_questions, with_paraphrases
from zerogap.errors import InputError
from zerogap.io import parquet

ROWS = [Row(f"Question {i}?", f"Because {i}.", str(i)) for i in range(40)]


def test_leaked_half():
    table = questions(ROWS, None, 20, seed=1)
    assert list(table.question_id) == [f"test-{i:04d}" for i in range(40)]
    assert table.leaked.sum() == 20
    assert table.paraphrase.isna().all()
    assert list(table.gold) == [row.gold for row in ROWS]


def test_the_seed_decides():
    one, same, other = (questions(ROWS, 30, 10, seed) for seed in (1, 1, 2))
    assert one.equals(same)
    assert list(one.leaked) != list(other.leaked)


def test_a_question_keeps_its_id_in_a_smaller_table():
    whole = questions(ROWS, None, 20, 1).set_index("question_id").question
    for row in questions(ROWS, 7, 3, 1).itertuples():
        assert whole[row.question_id] == row.question


def test_training_table():
    table = training_questions(ROWS, 12, 3)
    assert len(table) == table.question_id.nunique() == 12
    assert not table.leaked.any()
    assert table.question_id.str.match(r"train-\d{4}").all()


def test_paraphrases_join_the_leaked_questions(tmp_path):
    table = questions(ROWS, 10, 4, 1)
    texts = {i: f"New {i}" for i in table.question_id[table.leaked]}
    joined = with_paraphrases(table, texts)
    parquet.write(tmp_path / "q.parquet", joined, "questions", {})
    back = parquet.read(tmp_path / "q.parquet", "questions")
    assert dict(zip(back.question_id, back.paraphrase, strict=True)) == {
        i: texts.get(i) for i in table.question_id
    }


def test_a_question_without_a_paraphrase_leaks_no_longer():
    table = questions(ROWS, 10, 4, 1)
    ids = list(table.question_id[table.leaked])
    joined = with_paraphrases(table, {i: f"New {i}" for i in ids[1:]} | {ids[0]: None})
    assert list(joined.question_id[joined.leaked]) == ids[1:]
    assert joined.paraphrase.notna().equals(joined.leaked)
    with pytest.raises(InputError, match="not one question"):
        with_paraphrases(table, dict.fromkeys(ids))


def test_paraphrases_must_fit():
    table = questions(ROWS, 10, 4, 1)
    texts = {i: "New" for i in table.question_id[table.leaked]}
    with pytest.raises(InputError, match="not leaked"):
        with_paraphrases(table, {**texts, "test-9999": "New"})
    texts.popitem()
    with pytest.raises(InputError, match="1 leaked questions without"):
        with_paraphrases(table, texts)


@pytest.mark.parametrize(
    ("n", "n_leaked", "says"), [(41, 5, "n_test is 41"), (0, 0, "n_test is 0")]
)
def test_too_many(n, n_leaked, says):
    with pytest.raises(InputError, match=says):
        questions(ROWS, n, n_leaked, 1)


@pytest.mark.parametrize("n_leaked", [0, 10, 11])
def test_both_groups_are_needed(n_leaked):
    with pytest.raises(InputError, match="n_leaked"):
        questions(ROWS, 10, n_leaked, 1)


def test_disjoint():
    disjoint(ROWS[:5], ROWS[5:])
    with pytest.raises(InputError, match="test question 1 "):
        disjoint(ROWS[4:6], ROWS[5:])
