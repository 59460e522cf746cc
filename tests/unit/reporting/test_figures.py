import hashlib

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from helpers.synthetic_run import (
    overlap_table,
    rail_table,
    rank_table,
    recovery_table,
    solve_tables,
)
from zerogap import metrics
from zerogap.analysis.diagnostics import diagnostics
from zerogap.metrics.sensitivity import sensitivity
from zerogap.reporting.figures.diagnostics import KIND_COLOURS, plot_diagnostics
from zerogap.reporting.figures.paper import RANKS, plot_mechanism, plot_readout_variance
from zerogap.reporting.figures.strata import plot_strata
from zerogap.reporting.figures.style import save
from zerogap.reporting.figures.supplementary import (
    plot_loss,
    plot_scatter,
    plot_sensitivity,
)
from zerogap.reporting.labels import Labels


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
    axis = plot_mechanism(overlap_table(n=20, m=5), ranks).axes[1]
    heights = np.array([bar.get_height() for bar in axis.patches]).reshape(len(RANKS), 10)
    assert heights.sum(axis=0) == pytest.approx([1, 1, 0, 1, 1, 1, 1, 1, 1, 1])


def test_mechanism_without_disagreements_says_none():
    ranks = rank_table(n=20).assign(rank=1)
    figure = plot_mechanism(overlap_table(n=20, m=5), ranks)
    assert "none of 0 disagreements" in " ".join(texts(figure))


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
    labels = figure.axes[0].get_legend_handles_labels()[1]
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


def test_sensitivity_draws_one_line_per_strategy_in_both_panels(solves):
    table = sensitivity(*solves, bins=10, samples_to_try=(2, 5), repeats=2)
    figure = plot_sensitivity(table, "Llama2 × GSM8K")
    for axis, varied in zip(figure.axes, ("bins", "samples"), strict=True):
        assert len(axis.lines) == len(solves[1])
        line = next(one for one in axis.lines if one.get_label() == "railcap")
        curve = table.query("strategy == 'railcap' and varied == @varied").sort_values(varied)
        assert line.get_xdata().tolist() == curve[varied].tolist()
        assert line.get_ydata().tolist() == curve["value"].tolist()
    assert [axis.get_title() for axis in figure.axes] == ["m = 10", "B = 10"]


@pytest.fixture
def losses():
    rows = [(m, d, s, 1 / (s + 1)) for m in ("a", "b") for d in ("clean", "pq") for s in range(4)]
    return pd.DataFrame(rows, columns=["model", "benchmark", "step", "loss"])


def test_loss_has_one_panel_per_model(losses):
    figure = plot_loss(losses, Labels(models={"a": "Llama2"}))
    assert [axis.get_title() for axis in figure.axes] == ["Llama2", "b"]
    steps, mean = figure.axes[1].lines[:2]
    assert steps.get_ydata().tolist() == [1, 1 / 2, 1 / 3, 1 / 4]
    assert mean.get_ydata() == pytest.approx([25 / 48] * 4)  # four steps are one window


def test_saving_a_figure_twice_gives_the_same_bytes(tmp_path, solves):
    clean, strategies = solves

    def hashes(name):
        save(plot_readout_variance(clean, strategies["clean_batch2"]), tmp_path / name)
        files = [tmp_path / f"{name}{suffix}" for suffix in (".pdf", ".png", ".svg")]
        return [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]

    assert hashes("first") == hashes("second")
    assert len(list(tmp_path.iterdir())) == 6


def test_diagnostics_has_a_row_of_panels_per_setting(solves):
    clean, strategies = solves
    frame = diagnostics(
        rail_table(n=30, m=10),
        recovery_table(n=30),
        clean,
        strategies["clean_batch2"],
        n_resamples=40,
    )
    parts = [frame.assign(model="llama2", benchmark=benchmark) for benchmark in ("gsm8k", "pq")]
    figure = plot_diagnostics(pd.concat(parts), Labels())
    assert len(figure.axes) == 2 * 3
    values = frame.set_index(["measure", "responses", "subset", "kind"]).value.sort_index()
    widths = np.array([bar.get_width() for bar in figure.axes[0].patches])
    bars = widths.reshape(5, len(KIND_COLOURS))
    by_kind = values["rail_steps", "identity", "leaked"][list(KIND_COLOURS)]
    assert bars[1].tolist() == pytest.approx(by_kind.tolist())
    shown = " ".join(texts(figure))
    assert f"{values['rail_share', 'railcap', 'unleaked', 'all']:.0%}" in shown
    recovery = figure.axes[2].containers[0].lines[0].get_ydata()
    assert recovery.tolist() == values["recovery", "clean", "all"][["all", *KIND_COLOURS]].tolist()
