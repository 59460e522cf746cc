import pandas as pd
import pytest

from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.sampling.checkpoint import Parts

NAMES = ["a", "b"]


def table(names=NAMES, samples=3):
    rows = [
        (name, j, [1, 2], "2", "2", "numeric", True, 2, "eos")
        for name in names
        for j in range(samples)
    ]
    return pd.DataFrame(rows, columns=parquet.CONTRACTS["samples"].names)


@pytest.fixture
def output(tmp_path):
    return tmp_path / "samples.parquet"


def kept(output, origin=None, names=NAMES):
    with Parts(output, origin or {"seed": 1}) as parts:
        return parts.load(0, names, 3), parts.batch_rows


@pytest.fixture
def saved(output):
    with Parts(output, {"seed": 1}) as parts:
        parts.save(0, table(), batch_rows=70)
    return output.with_name("samples.parquet.parts") / "part-00000.parquet"


def test_a_part_comes_back_with_the_batch_it_was_drawn_in(output, saved):
    found, rows = kept(output)
    pd.testing.assert_frame_equal(found, table(), check_dtype=False)
    assert rows == 70


def test_a_truncated_part_is_drawn_again(output, saved, capsys):
    saved.write_bytes(saved.read_bytes()[:-200])
    assert kept(output) == (None, None)
    said = capsys.readouterr().err
    assert "part-00000.parquet" in said
    assert "sampled again" in said
    assert len(said.splitlines()) == 1


def test_a_flipped_bit_is_noticed(output, saved, capsys):
    whole = bytearray(saved.read_bytes())
    whole[60] ^= 4
    saved.write_bytes(whole)
    assert kept(output) == (None, None)
    assert "sampled again" in capsys.readouterr().err


def test_a_part_of_something_else_is_drawn_again(output, saved, capsys):
    assert kept(output, origin={"seed": 2}) == (None, None)
    assert "something else" in capsys.readouterr().err


def test_a_part_of_other_questions_is_drawn_again(output, saved, capsys):
    assert kept(output, names=["a", "c"]) == (None, None)
    assert "other questions" in capsys.readouterr().err


def test_a_second_process_is_refused_and_the_first_goes_on(output):
    with Parts(output, {"seed": 1}) as parts:
        with pytest.raises(InputError, match=r"samples\.parquet: another process"):
            Parts(output, {"seed": 1}).__enter__()
        parts.save(0, table(), batch_rows=1)
    assert kept(output)[0] is not None


def test_leftovers_of_a_killed_write_go(output, saved):
    leftover = saved.with_name(".part-00001.parquet.x1y2.part")
    leftover.write_bytes(b"half")
    kept(output)
    assert not leftover.exists()


def test_discarding_leaves_nothing(output, saved):
    with Parts(output, {"seed": 1}) as parts:
        parts.discard()
    assert not saved.parent.exists()
