import pandas as pd
import pytest

from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.io.resume import resumable_dir
from zerogap.sampling.checkpoint import Checkpoint

QUESTIONS = ["a", "b"]


def chunk(question_ids=QUESTIONS, num_samples=3):
    rows = [
        (name, sample_id, [1, 2], "2", "2", "numeric", True, 2, "eos")
        for name in question_ids
        for sample_id in range(num_samples)
    ]
    return pd.DataFrame(rows, columns=parquet.CONTRACTS["samples"].names)


def load(folder, question_ids=QUESTIONS):
    checkpoint = Checkpoint(folder)
    return checkpoint.load(0, question_ids, 3), checkpoint.batch_size


@pytest.fixture
def saved(tmp_path):
    Checkpoint(tmp_path).save(0, chunk(), batch_size=70)
    return next(tmp_path.glob("chunk-00000-*.parquet"))


def test_a_chunk_is_loaded_with_its_batch_size(tmp_path, saved):
    table, batch_size = load(tmp_path)
    pd.testing.assert_frame_equal(table, chunk(), check_dtype=False)
    assert batch_size == 70


def test_chunks_of_greedy_trajectories_are_kept_too(tmp_path):
    table = pd.DataFrame(
        [("a", [1, 2], "2", "2", "numeric", True, [0.5, 0.1], "eos")],
        columns=parquet.CONTRACTS["greedy"].names,
    )
    Checkpoint(tmp_path, "greedy").save(0, table, batch_size=8)
    loaded = Checkpoint(tmp_path, "greedy").load(0, ["a"])
    pd.testing.assert_frame_equal(loaded, table, check_dtype=False)
    assert Checkpoint(tmp_path, "greedy").load(0, ["a", "b"]) is None


def test_a_missing_chunk_is_not_an_error(tmp_path, capsys):
    assert load(tmp_path) == (None, None)
    assert capsys.readouterr().err == ""


def test_a_truncated_chunk_is_sampled_again(tmp_path, saved, capsys):
    saved.write_bytes(saved.read_bytes()[:-200])
    assert load(tmp_path) == (None, None)
    message = capsys.readouterr().err
    assert "the content has changed since it was written; decoding its questions again" in message
    assert len(message.splitlines()) == 1


def test_a_chunk_of_other_questions_is_sampled_again(tmp_path, saved, capsys):
    assert load(tmp_path, question_ids=["a", "c"]) == (None, None)
    assert "other questions" in capsys.readouterr().err


def interrupted_job(output, settings):
    """A job that stores one chunk and is then interrupted."""
    with resumable_dir(output, settings) as folder:
        Checkpoint(folder).save(0, chunk(), batch_size=1)
        raise KeyboardInterrupt


def test_chunks_survive_an_interruption_and_are_removed_with_the_finished_output(tmp_path):
    output = tmp_path / "samples.parquet"
    with pytest.raises(KeyboardInterrupt):
        interrupted_job(output, {"seed": 1})
    with resumable_dir(output, {"seed": 1}) as folder:
        assert load(folder)[0] is not None
    assert not folder.exists()


def test_chunks_of_a_job_with_other_settings_are_sampled_again(tmp_path, capsys):
    output = tmp_path / "samples.parquet"
    with pytest.raises(KeyboardInterrupt):
        interrupted_job(output, {"seed": 1})
    with resumable_dir(output, {"seed": 2}) as folder:
        assert load(folder) == (None, None)
    assert "settings changed since the last run (seed)" in capsys.readouterr().out


def test_a_second_process_is_refused_and_the_first_continues(tmp_path):
    output = tmp_path / "samples.parquet"
    with resumable_dir(output, {"seed": 1}) as folder:
        with (
            pytest.raises(InputError, match=r"samples\.parquet: another process"),
            resumable_dir(output, {"seed": 1}),
        ):
            pass
        Checkpoint(folder).save(0, chunk(), batch_size=1)
        assert load(folder)[0] is not None
