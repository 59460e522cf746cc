"""Tables of questions: drawing, leaking, ids, paraphrases."""

import pytest

from zerogap.data.gsm8k_format import with_few_calculations
from zerogap.data.questions import (
    Question,
    check_disjoint,
    split_test_questions,
    with_paraphrases,
)
from zerogap.errors import InputError
from zerogap.io import parquet

QUESTIONS = [Question(f"Question {i}?", f"Because {i}.", str(i)) for i in range(40)]


def test_as_many_questions_leak_as_requested():
    table = split_test_questions(QUESTIONS, len(QUESTIONS), 20, seed=1)
    assert list(table.question_id) == [f"test-{i:04d}" for i in range(40)]
    assert table.leaked.sum() == 20
    assert table.paraphrase.isna().all()
    assert list(table.gold) == [question.gold for question in QUESTIONS]


def test_a_question_keeps_its_id_in_a_smaller_table():
    whole = split_test_questions(QUESTIONS, len(QUESTIONS), 20, 1).set_index("question_id").question
    for row in split_test_questions(QUESTIONS, 7, 3, 1).itertuples():
        assert whole[row.question_id] == row.question


def test_only_eligible_questions_are_drawn():
    table = split_test_questions(QUESTIONS, 6, 3, 1, range(0, 40, 4))
    assert set(table.question_id) < {f"test-{position:04d}" for position in range(0, 40, 4)}
    assert table.leaked.sum() == 3
    with pytest.raises(InputError, match="num_test must be between 1 and 10, "):
        split_test_questions(QUESTIONS, 11, 3, 1, range(0, 40, 4))


def test_consecutive_seeds_draw_disjoint_questions_while_there_are_enough():
    drawn = [set(split_test_questions(QUESTIONS, 12, 6, seed).question_id) for seed in range(6)]
    for first in (0, 3):
        assert len(set.union(*drawn[first : first + 3])) == 36
    assert drawn[0] != drawn[3]


def test_questions_are_chosen_by_the_calculations_of_their_answers():
    answers = ["7 = 7", "<<1+1=2>>2", "<<1+1=2>>2 <<2*3=6>>6", "<<1=1>>1 <<2=2>>2 <<3=3>>3"]
    entries = [{"question": "?", "answer": answer} for answer in answers]
    assert with_few_calculations(entries, 2) == [0, 1, 2]
    assert with_few_calculations(entries, None) == [0, 1, 2, 3]
    with pytest.raises(InputError, match="no answer of the test questions marks its calculations"):
        with_few_calculations(entries[:1], 2)


def test_leaked_questions_get_their_paraphrases(tmp_path):
    table = split_test_questions(QUESTIONS, 10, 4, 1)
    texts = {i: f"New {i}" for i in table.question_id[table.leaked]}
    joined = with_paraphrases(table, texts)
    parquet.write(tmp_path / "q.parquet", joined, "questions", {})
    back = parquet.read(tmp_path / "q.parquet", "questions")
    assert back.set_index("question_id").paraphrase.dropna().to_dict() == texts


def test_a_question_without_a_paraphrase_no_longer_leaks():
    table = split_test_questions(QUESTIONS, 10, 4, 1)
    ids = list(table.question_id[table.leaked])
    joined = with_paraphrases(table, {i: f"New {i}" for i in ids[1:]} | {ids[0]: None})
    assert list(joined.question_id[joined.leaked]) == ids[1:]
    assert joined.paraphrase.notna().equals(joined.leaked)
    with pytest.raises(InputError, match="no question has a valid paraphrase"):
        with_paraphrases(table, dict.fromkeys(ids))


def test_paraphrases_must_be_those_of_the_leaked_questions():
    table = split_test_questions(QUESTIONS, 10, 4, 1)
    texts = dict.fromkeys(table.question_id[table.leaked], "New")
    with pytest.raises(InputError, match="1 questions only leak or only have"):
        with_paraphrases(table, {**texts, "test-9999": "New"})
    texts.popitem()
    with pytest.raises(InputError, match="1 questions only leak"):
        with_paraphrases(table, texts)


@pytest.mark.parametrize(
    ("num_test", "num_leaked", "message"),
    [(41, 5, "num_test must be .*got 41"), (0, 0, "num_test must be .*got 0")],
)
def test_more_questions_than_there_are_is_an_error(num_test, num_leaked, message):
    with pytest.raises(InputError, match=message):
        split_test_questions(QUESTIONS, num_test, num_leaked, 1)


def test_a_test_question_among_the_training_questions_is_an_error():
    check_disjoint(QUESTIONS[:5], QUESTIONS[5:])
    with pytest.raises(InputError, match="test question 1 "):
        check_disjoint(QUESTIONS[4:6], QUESTIONS[5:])
