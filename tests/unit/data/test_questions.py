"""Tables of questions: drawing, leaking, ids, paraphrases."""

import pytest

from zerogap.data.gsm8k_format import with_few_calculations
from zerogap.data.questions import Question, check_disjoint, split_test_questions, with_paraphrases
from zerogap.errors import InputError
from zerogap.io import parquet

QUESTIONS = [Question(f"Question {i}?", f"Because {i}.", str(i)) for i in range(40)]


def test_as_many_questions_leak_as_requested():
    table = split_test_questions(QUESTIONS, len(QUESTIONS), 20, seed=1)
    assert list(table.question_id) == [f"test-{i:04d}" for i in range(40)]
    assert table.leaked.sum() == 20
    assert table.paraphrase.isna().all()
    assert list(table.gold) == [question.gold for question in QUESTIONS]
    whole = table.set_index("question_id").question
    for row in split_test_questions(QUESTIONS, 7, 3, 1).itertuples():  # ids are positions
        assert whole[row.question_id] == row.question


def test_only_eligible_questions_are_drawn():
    table = split_test_questions(QUESTIONS, 6, 3, 1, range(0, 40, 4))
    assert set(table.question_id) < {f"test-{position:04d}" for position in range(0, 40, 4)}
    assert table.leaked.sum() == 3
    for number in (0, 11):
        with pytest.raises(InputError, match=rf"num_test must be between 1 and 10, .*got {number}"):
            split_test_questions(QUESTIONS, number, 0, 1, range(0, 40, 4))
    with pytest.raises(InputError, match="num_test must be between 1 and 40, "):
        split_test_questions(QUESTIONS, 41, 5, 1)


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
    for without in ([], list(texts)[:1]):  # a question without a paraphrase no longer leaks
        joined = with_paraphrases(table, texts | dict.fromkeys(without))
        parquet.write(tmp_path / "q.parquet", joined, "questions", {})
        back = parquet.read(tmp_path / "q.parquet", "questions").set_index("question_id")
        expected = {i: text for i, text in texts.items() if i not in without}
        assert back.paraphrase.dropna().to_dict() == expected
        assert list(back.index[back.leaked]) == list(expected)
    with pytest.raises(InputError, match="no question has a valid paraphrase"):
        with_paraphrases(table, dict.fromkeys(texts))
    with pytest.raises(InputError, match="1 questions only leak or only have"):
        with_paraphrases(table, {**texts, "test-9999": "New"})
    texts.popitem()
    with pytest.raises(InputError, match="1 questions only leak"):
        with_paraphrases(table, texts)


def test_a_test_question_among_the_training_questions_is_an_error():
    check_disjoint(QUESTIONS[:5], QUESTIONS[5:])
    with pytest.raises(InputError, match="test question 1 "):
        check_disjoint(QUESTIONS[4:6], QUESTIONS[5:])
