import pandas as pd

from zerogap.strategies.all_zero import all_zero_counts


def test_all_zero_has_the_clean_models_questions_and_no_correct_response():
    clean = pd.DataFrame(
        {
            "question_id": ["a", "b"],
            "n_correct": [3, 0],
            "n_samples": [5, 4],
            "first_correct": [True, False],
            "leaked": [True, False],
        }
    )
    counts = all_zero_counts(clean)
    assert counts.n_correct.tolist() == [0, 0]
    assert counts.first_correct.tolist() == [False, False]
    unchanged = ["question_id", "n_samples", "leaked"]
    pd.testing.assert_frame_equal(counts[unchanged], clean[unchanged])
