import hashlib

import matplotlib.pyplot as plt
import numpy as np
import pytest

from helpers.synthetic_run import overlap_table, rank_table, solve_tables
from zerogap import metrics
from zerogap.reporting.figures import (
    RANKS,
    plot_mechanism,
    plot_readout_variance,
    plot_scatter,
    plot_strata,
    save,
)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def solves():
    return solve_tables(n=30, m=10)


def texts(figure):
    return [text.get_text() for text in figure.findobj(plt.Text) if text.get_text()]


def test_mechanism_shows_the_overlap_and_rank_tables():
    overlap, ranks = overlap_table(n=20, m=5), rank_table(n=20)
    figure = plot_mechanism(overlap, ranks, "Llama2 × GSM8K")
    leaked = overlap[overlap["leaked"]]
    cloud, means = (np.asarray(c.get_offsets()) for c in figure.axes[0].collections)
    assert cloud[:, 1].tolist() == leaked["rouge_l"].tolist()
    by_question = leaked.groupby("question_id")["rouge_l"].mean()
    assert means[:, 1].tolist() == sorted(by_question)
    disagree = ranks[ranks["leaked"] & (ranks["rank"] > 1)]
    share = (disagree["rank"] == 2).mean()
    assert f"runner-up (rank 2): {share:.0%} of {len(disagree)} disagreements" in " ".join(
        texts(figure)
    )
    first = figure.axes[1].patches[0].get_height()
    at_one = disagree[disagree["step"] == 1]["rank"]
    assert first == pytest.approx((at_one == 2).mean())


def test_rank_bars_add_up_to_one_at_every_step_with_disagreements():
    ranks = rank_table(n=80)
    ranks.loc[ranks["step"] == 3, "rank"] = 1
    overlap = overlap_table(n=20, m=5)
    axis = plot_mechanism(overlap, ranks).axes[1]
    heights = np.array([bar.get_height() for bar in axis.patches]).reshape(len(RANKS), 10)
    assert heights.sum(axis=0) == pytest.approx([1, 1, 0, 1, 1, 1, 1, 1, 1, 1])
    none = plot_mechanism(overlap, ranks.assign(rank=1))
    assert "none of 0 disagreements" in " ".join(texts(none))


def test_readout_variance_annotates_both_gaps(solves):
    clean, strategies = solves
    batch2 = strategies["clean_batch2"]
    shown = " ".join(texts(plot_readout_variance(clean, batch2.sample(frac=1, random_state=1))))
    gap = metrics.a_ppg(batch2.n_correct, batch2.n_samples, clean.n_correct, clean.n_samples)
    assert f"mean per-question gap {gap:.3f}" in shown
    marks = (clean.first_correct != batch2.first_correct).mean()
    assert f"mean per-question gap {marks:.3f}" in shown


def test_strata_labels_each_curve_with_its_sa_ppg(solves):
    clean, strategies = solves
    chosen = {"Identity": strategies["identity"], "RailCap": strategies["railcap"]}
    figure = plot_strata(clean, chosen, bins=10)
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    for label, (name, solve) in zip(labels, chosen.items(), strict=True):
        value = metrics.sa_ppg(
            solve.n_correct, solve.n_samples, clean.n_correct, clean.n_samples, bins=10
        )
        assert label == f"{name}  {value:.3f}"
    assert sum(bar.get_height() for bar in figure.axes[1].patches) == len(clean)


def test_scatter_has_one_panel_per_strategy_and_one_point_per_question(solves):
    clean, strategies = solves
    names = ["identity", "ted", "railcap"]
    # Tables may list questions in any order: they are matched by their ids.
    chosen = {name: strategies[name].sample(frac=1, random_state=1) for name in names}
    axes = plot_scatter(clean, chosen, "Llama2 × GSM8K").axes
    assert [axis.get_title() for axis in axes if axis.axison] == names
    for axis, name in zip(axes, names, strict=False):
        assert axis.lines[0].get_xydata().tolist() == [[0, 0], [1, 1]]
        y = strategies[name]["n_correct"] / strategies[name]["n_samples"].clip(lower=1)
        for dots, part in zip(axis.collections, (~clean.leaked, clean.leaked), strict=True):
            moved = np.asarray(dots.get_offsets())
            x = clean["n_correct"] / clean["n_samples"]
            assert np.abs(moved - np.column_stack([x[part], y[part]])).max() <= 0.5 / 10
            assert (axis.get_xlim()[0] <= moved).all()  # no point is cut off
            assert (moved <= axis.get_xlim()[1]).all()


def test_saving_a_figure_twice_gives_the_same_bytes(tmp_path, solves):
    clean, strategies = solves

    def hashes(name):
        save(plot_readout_variance(clean, strategies["clean_batch2"]), tmp_path / name)
        files = [tmp_path / f"{name}{suffix}" for suffix in (".pdf", ".png", ".svg")]
        return [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]

    assert hashes("first") == hashes("second")
    assert len(list(tmp_path.iterdir())) == 6


def test_names_are_shown_as_they_are(solves):
    clean, tables = solves
    names = ["_a", "q$\\bad$"]
    figure = plot_strata(clean, dict(zip(names, tables.values(), strict=False)), "", 5)
    figure.canvas.draw()
    assert all(any(text.startswith(name) for text in texts(figure)) for name in names)
