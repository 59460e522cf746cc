import math
from collections import Counter

import pandas as pd
import pytest

from helpers.synthetic_run import rail_table, recovery_table, solve_tables
from zerogap.analysis.diagnostics import diagnostics
from zerogap.data.token_kinds import KINDS

N, M = 30, 10
KEYS = ("responses", "question_id", "leaked")


@pytest.fixture(scope="module")
def tables():
    clean, strategies = solve_tables(n=N, m=M)
    return rail_table(n=N, m=M), recovery_table(n=N), clean, strategies["clean_batch2"]


@pytest.fixture(scope="module")
def values(tables):
    return by_key(diagnostics(*tables, n_resamples=200))


def by_key(frame):
    return frame.set_index(["responses", "subset", "measure", "kind"]).sort_index()


def literal(rows):
    """The measures of some rows of a `rail` table, one question after the other."""
    total = Counter()
    for row in rows.to_dict("records"):
        total.update({name: row[name] for name in row if name not in KEYS})
    rail, drawn = (sum(total[f"{name}_{kind}"] for kind in KINDS) for name in ("rail", "drawn"))
    measures = {
        ("rail_share", "all"): rail / total["n_steps"],
        ("rail_steps", "all"): rail / total["n_responses"],
        ("drawn", "all"): drawn / rail,
        ("distinct", "all"): total["n_distinct"] / len(rows),
        ("entropy", "all"): total["greedy_entropy"] / total["greedy_steps"],
    }
    for kind in KINDS:
        measures["rail_steps", kind] = total[f"rail_{kind}"] / total["n_responses"]
        measures["drawn", kind] = total[f"drawn_{kind}"] / total[f"rail_{kind}"]
    return measures


@pytest.mark.parametrize(
    ("responses", "subset"),
    [("clean", "all"), ("identity", "leaked"), ("identity", "unleaked"), ("railcap", "unleaked")],
)
def test_measures_of_the_rail_equal_a_literal_computation(tables, values, responses, subset):
    rows = tables[0][tables[0].responses == responses]
    if subset != "all":
        rows = rows[rows.leaked == (subset == "leaked")]
    measured = values.loc[(responses, subset)].value
    measured = measured[measured.index.get_level_values("measure") != "recovery"]
    assert measured.to_dict() == pytest.approx(literal(rows))


def test_the_recovery_rate_compares_with_the_second_batch_on_questions_solved_in_the_first(
    tables, values
):
    _, recovery, clean, batch2 = tables
    solved = set(clean.question_id[clean.n_correct > 0])
    probability = dict(zip(batch2.question_id, batch2.n_correct / batch2.n_samples, strict=True))
    for kind in ("all", *KINDS):
        rows = [
            row
            for row in recovery.itertuples()
            if row.question_id in solved and kind in ("all", row.kind)
        ]
        rate = sum(row.correct for row in rows) / sum(probability[row.question_id] for row in rows)
        assert values.loc[("clean", "all", "recovery", kind), "value"] == pytest.approx(rate)


def test_intervals_contain_their_values_and_are_not_empty(values):
    assert (values.ci_low < values.value).all()
    assert (values.value < values.ci_high).all()


def test_without_any_step_a_value_is_missing_and_equal_questions_have_no_interval(tables):
    rail, recovery, clean, batch2 = tables
    none = rail.assign(rail_end=0, drawn_end=0, n_distinct=7)
    unsolved = clean.assign(n_correct=0)
    values = by_key(diagnostics(none, recovery, unsolved, batch2, n_resamples=20))
    for key in (("railcap", "leaked", "drawn", "end"), ("clean", "all", "recovery", "all")):
        assert all(map(math.isnan, values.loc[key]))
    assert values.loc[("railcap", "leaked", "rail_steps", "end"), "value"] == 0
    assert values.loc[("railcap", "leaked", "distinct", "all")].tolist() == [7, 7, 7]


def test_the_order_of_the_questions_does_not_matter(tables):
    rail, recovery, clean, batch2 = tables
    reversed_tables = (rail[::-1], recovery[::-1], clean, batch2[::-1])
    first, second = (by_key(diagnostics(*t, n_resamples=20)) for t in (tables, reversed_tables))
    pd.testing.assert_frame_equal(first, second)
