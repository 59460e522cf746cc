"""A long job's working folder: kept, told apart, locked, removed."""

import pytest

from zerogap.errors import InputError
from zerogap.io.resume import fingerprint, folder_state, resumable_dir


def interrupted(output, origin) -> list[str]:
    """What the folder holds when a job begins that is then stopped, having left a file."""
    with pytest.raises(KeyboardInterrupt), resumable_dir(output, origin) as work:
        found = sorted(path.name for path in work.iterdir())
        (work / "checkpoint").write_text("half a day")
        (work / "folder").mkdir(exist_ok=True)
        raise KeyboardInterrupt
    return found


KEPT = ["checkpoint", "folder", "lock", "origin.json"]


def test_a_stopped_job_finds_what_it_left(tmp_path, capsys) -> None:
    assert interrupted(tmp_path / "out", {"rate": (1, 2)}) == ["lock", "origin.json"]
    assert interrupted(tmp_path / "out", {"rate": (1, 2)}) == KEPT
    assert capsys.readouterr().out == ""


def test_of_another_origin_it_begins_anew_and_says_why(tmp_path, capsys) -> None:
    interrupted(tmp_path / "out", {"rate": 1, "data": "a"})
    assert interrupted(tmp_path / "out", {"rate": 1, "data": "b"}) == ["lock", "origin.json"]
    [line] = capsys.readouterr().out.splitlines()
    assert "(data)" in line
    assert "begins anew" in line


def test_a_torn_note_of_the_origin_counts_as_another(tmp_path, capsys) -> None:
    interrupted(tmp_path / "out", {"rate": 1})
    (tmp_path / "out.work/origin.json").write_text("{")
    assert interrupted(tmp_path / "out", {"rate": 1}) == ["lock", "origin.json"]
    assert "begins anew" in capsys.readouterr().out


def test_a_torn_write_is_swept_up(tmp_path) -> None:
    interrupted(tmp_path / "out", {})
    (tmp_path / "out.work/.checkpoint.abc.part").write_text("tor")
    assert interrupted(tmp_path / "out", {}) == KEPT


def test_when_it_succeeds_nothing_is_left(tmp_path) -> None:
    with resumable_dir(tmp_path / "out", {}) as work:
        (work / "checkpoint").write_text("half a day")
    assert list(tmp_path.iterdir()) == []


def test_a_second_process_is_refused(tmp_path) -> None:
    with (
        resumable_dir(tmp_path / "out", {}),
        pytest.raises(InputError, match="another process"),
        resumable_dir(tmp_path / "out", {}),
    ):
        pass


def test_fingerprints_tell_facts_apart():
    assert fingerprint({"a": [1, 2]}) == fingerprint({"a": (1, 2)}) != fingerprint({"a": [1, 3]})


def test_a_model_folder_that_changed_is_another(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"12")
    before = folder_state(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"123")
    assert folder_state(tmp_path) != before
