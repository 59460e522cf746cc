import pandas as pd
import pytest

from zerogap.errors import InputError
from zerogap.io import parquet

SOLVE = pd.DataFrame(
    [("a", 3, 5, True, True), ("b", 0, 0, False, False)], columns=parquet.CONTRACTS["solve"].names
)


def test_reading_returns_the_table_and_provenance_written(tmp_path):
    path = tmp_path / "deep" / "solve.parquet"
    parquet.write(path, SOLVE, "solve", {"seed": 3, "strategy": {"n": 4}})
    pd.testing.assert_frame_equal(parquet.read(path, "solve"), SOLVE, check_dtype=False)
    assert parquet.provenance(path) == {"seed": 3, "strategy": {"n": 4}}
    assert [p.name for p in path.parent.iterdir()] == ["solve.parquet"]


def test_missing_columns_are_named(tmp_path):
    with pytest.raises(InputError, match="leaked"):
        parquet.write(tmp_path / "x", SOLVE.drop(columns="leaked"), "solve", {})
    parquet.write(tmp_path / "x", SOLVE, "solve", {})
    with pytest.raises(InputError, match="rouge_l"):
        parquet.read(tmp_path / "x", "overlap", ["leaked"])


def test_asked_columns_come_with_the_key_columns_and_no_others(tmp_path):
    parquet.write(tmp_path / "x", SOLVE, "solve", {})
    table = parquet.read(tmp_path / "x", "solve", ["leaked"])
    pd.testing.assert_frame_equal(table, SOLVE[["question_id", "leaked"]], check_dtype=False)


def test_values_of_another_type_are_refused_and_leave_no_file(tmp_path):
    bad = SOLVE.assign(n_correct=["three", "none"])
    with pytest.raises(InputError, match="solve"):
        parquet.write(tmp_path / "x", bad, "solve", {})
    assert list(tmp_path.iterdir()) == []


def test_a_missing_or_foreign_file_is_reported(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        parquet.read(tmp_path / "none", "solve")
    (tmp_path / "text").write_text("not parquet")
    with pytest.raises(InputError, match="regenerate it"):
        parquet.read(tmp_path / "text", "solve")


OF_RUN = {"run": "r", "model": "m", "variant": "gsm8k", "strategy": "railcap"}


@pytest.mark.parametrize(
    ("folder", "made_by", "accepted"),
    [
        ("results/r/m/gsm8k/cells/railcap", OF_RUN, True),
        ("results/r/m/gsm8k/cells/identity", OF_RUN, False),
        ("results/r/m/pq/cells/railcap", OF_RUN, False),
        ("results/other/m/gsm8k/cells/railcap", OF_RUN, False),
        ("results/r/gsm8k/m/cells/railcap", OF_RUN, False),
        ("results/r/data/pq", {"run": "r", "benchmark": "pq"}, True),
        ("results/bases/m/toy-1", {"model": "m", "variant": "toy"}, True),  # runs share it
        ("elsewhere", {}, True),
    ],
)
def test_a_file_of_a_run_is_read_where_it_was_made(folder, made_by, accepted, tmp_path):
    path = tmp_path / folder / "solve.parquet"
    parquet.write(path, SOLVE, "solve", made_by)
    if accepted:
        assert len(parquet.read_of_run(path, "solve")) == len(SOLVE)
    else:
        with pytest.raises(InputError, match=r"made for run r, model m, variant gsm8k, strategy"):
            parquet.read_of_run(path, "solve")
