import matplotlib.pyplot as plt
import pandas as pd
import pytest

from zerogap.reporting.figures.drops import plot_drops


@pytest.fixture
def axes():
    questions = pd.DataFrame(
        {
            "question_id": ["a", "b", "c"],
            "identity": [0.2, 1.0, 1.0],
            "railcap": [0.1, 0.5, 0.0],
            "rouge_l": [0.3, 0.6, 0.9],
            "peakedness": [0.0, 0.2, 0.8],
        }
    )
    figure = plot_drops(questions, {"railcap": "RailCap"})
    yield figure.axes
    plt.close(figure)


def points(axis, label):
    (cloud,) = (cloud for cloud in axis.collections if cloud.get_label() == label)
    return [float(y) for _, y in cloud.get_offsets()]


def test_questions_are_ordered_by_solve_probability_then_peakedness(axes):
    assert [text.get_text() for text in axes[-1].get_xticklabels()] == ["c", "b", "a"]
    assert points(axes[0], "Identity") == [1.0, 1.0, 0.2]


def test_all_panels_have_the_same_order(axes):
    assert points(axes[0], "RailCap") == [0.0, 0.5, 0.1]
    assert points(axes[1], "ROUGE-L") == [0.9, 0.6, 0.3]
    assert [bar.get_height() for bar in axes[1].patches] == [0.8, 0.2, 0.0]
