import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from zerogap.errors import InputError
from zerogap.io.resume import Journal, resumable_dir, resumable_parts


def interrupted_job(output, settings) -> list[str]:
    """The files that a job finds in its folder; it is then interrupted and leaves some."""
    with contextlib.suppress(KeyboardInterrupt), resumable_dir(output, settings) as work:
        names = sorted(path.name for path in work.iterdir())
        (work / "checkpoint").write_text("half a day")
        (work / "folder").mkdir(exist_ok=True)
        raise KeyboardInterrupt
    return names


EMPTY = ["settings.json", "zerogap.lock"]
KEPT = ["checkpoint", "folder", "settings.json", "zerogap.lock"]


def test_an_interrupted_job_finds_its_files_again(tmp_path, capsys) -> None:
    assert interrupted_job(tmp_path / "out", {"rate": (1, 2)}) == EMPTY
    (tmp_path / "out.work/.checkpoint.abc.part").write_text("a partial write, to be removed")
    assert interrupted_job(tmp_path / "out", {"rate": (1, 2)}) == KEPT
    assert capsys.readouterr().err == ""


def test_changed_settings_empty_the_folder_and_are_named(tmp_path, capsys) -> None:
    interrupted_job(tmp_path / "out", {"rate": 1, "data": "a"})
    assert interrupted_job(tmp_path / "out", {"rate": 1, "data": "b"}) == EMPTY
    [line] = capsys.readouterr().err.splitlines()
    assert "settings changed since the last run (data); starting over" in line
    assert interrupted_job(tmp_path / "out", {"rate": 1}) == EMPTY
    assert "settings changed since the last run (data); starting over" in capsys.readouterr().err


DAMAGE = [b"", b"{", b"[]", b"null", b"7", b"\xff", b"[" * 100_000, b"9" * 5_000]


@pytest.mark.parametrize("name", ["settings.json", "parts.jsonl", ".parts.jsonl.a.part"])
@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: repr(damage[:9]))
def test_a_damaged_file_of_a_work_folder_starts_over_in_one_line(tmp_path, capsys, name, damage):
    def job():
        with (
            contextlib.suppress(KeyboardInterrupt),
            resumable_parts(tmp_path / "out", {"a": 1}) as parts,
        ):
            found = parts.get("part")
            parts.add("part", 1)
            raise KeyboardInterrupt
        return found

    assert job() is None
    (tmp_path / "out.work" / name).write_bytes(damage)
    is_partial = name.endswith(".part")
    assert job() == (1 if is_partial else None)
    is_empty = name == "parts.jsonl" and damage == b""  # no part was finished
    lines = "".join(capsys.readouterr()).splitlines()
    assert len(lines) == (0 if is_partial or is_empty else 1)
    assert job() == 1
    assert "".join(capsys.readouterr()) == ""


@pytest.mark.parametrize("kind", ["folder", "link", "file"])
def test_a_work_folder_that_no_job_made_is_left_alone(tmp_path, kind) -> None:
    photos, work = tmp_path / "photos", tmp_path / "out.work"
    photos.mkdir()
    (photos / "settings.json").write_text("{}")
    if kind == "folder":
        photos = photos.rename(work)
    elif kind == "link":
        work.symlink_to(photos)
    else:
        work.write_text("notes")
    with (
        pytest.raises(InputError, match=r"out\.work: .*rename it"),
        resumable_dir(tmp_path / "out", {}),
    ):
        pass
    assert (photos / "settings.json").exists()


def test_a_link_in_a_work_folder_is_deleted_not_followed(tmp_path) -> None:
    interrupted_job(tmp_path / "out", {})
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos/a").touch()
    (tmp_path / "notes").write_text("text")
    (tmp_path / "out.work/link").symlink_to(tmp_path / "photos")
    (tmp_path / "out.work/parts.jsonl").symlink_to(tmp_path / "notes")
    with resumable_parts(tmp_path / "out", {}) as parts:
        parts.add("part", 1)
    assert (tmp_path / "photos/a").exists()
    assert (tmp_path / "notes").read_text() == "text"


def test_what_a_killed_process_had_written_of_the_output_is_removed(tmp_path) -> None:
    for name in (".out.abcd1234.part", ".out.more.abcd1234.part", "out"):
        (tmp_path / name).touch()
    with resumable_dir(tmp_path / "out", {}):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {".out.more.abcd1234.part", "out"}


def test_a_child_process_keeps_the_lock_of_a_killed_parent(tmp_path) -> None:
    """LLaMA-Factory runs in a child process, which may outlive the script that started it."""
    child = [sys.executable, "-c", "input()"]
    with contextlib.suppress(KeyboardInterrupt), resumable_dir(tmp_path / "out", {}):
        training = subprocess.Popen(child, stdin=subprocess.PIPE, close_fds=False)
        raise KeyboardInterrupt
    with pytest.raises(InputError, match="another process"), resumable_dir(tmp_path / "out", {}):
        pass
    training.communicate(b"\n")
    with resumable_dir(tmp_path / "out", {}):
        pass


def test_a_file_system_without_locks_is_named(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("filelock.lock_descriptor", refuse)
    with (
        pytest.raises(InputError, match=r"lock: cannot be locked \(No locks available\); use"),
        resumable_dir(tmp_path / "out", {}),
    ):
        pass


def test_the_lock_is_closed_before_its_folder_is_removed(tmp_path, monkeypatch):
    """NFS keeps a deleted file in its folder as long as it is open."""
    removed, rmdir = [], Path.rmdir

    def remove(folder):
        opened = [
            os.readlink(link) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()
        ]
        assert not any(name.startswith(str(folder)) for name in opened)
        removed.append(folder)
        rmdir(folder)

    monkeypatch.setattr(Path, "rmdir", remove)
    with resumable_dir(tmp_path / "out", {}) as folder:
        (folder / "part").touch()
    assert removed == [folder]
    assert not folder.exists()


PARTS = {"a": 0.1 + 0.2, "b": [["q", [1, 2], None, True]], "c": [1 / 3, 64]}


@pytest.fixture
def parts(tmp_path):
    journal = Journal(tmp_path / "parts.jsonl", {})
    for key, value in PARTS.items():
        journal.add(key, value)
    return tmp_path / "parts.jsonl"


def test_parts_are_read_back_exactly(parts, capsys) -> None:
    journal = Journal(parts, {})
    assert {key: journal.get(key) for key in "abcd"} == PARTS | {"d": None}
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("damage", "lost"),
    [
        (lambda content: content[:-1], ["c"]),  # killed before the end of the line
        (lambda content: content[:-5], ["c"]),
        (lambda content: content.replace(b'"q"', b'"r"'), ["b"]),
        (lambda content: b"\x00" + content, ["a"]),
    ],
)
def test_damaged_parts_are_dropped_and_can_be_made_again(parts, damage, lost, capsys) -> None:
    parts.write_bytes(damage(parts.read_bytes()))
    journal = Journal(parts, {})
    assert [key for key in "abc" if journal.get(key) is None] == lost
    assert len(capsys.readouterr().err.splitlines()) == 1
    journal.add(lost[0], 1)
    resumed = Journal(parts, {})
    assert all(resumed.get(key) is not None for key in "abc")
    assert capsys.readouterr().err == ""


def test_parts_of_a_job_with_other_settings_are_not_accepted(tmp_path, capsys) -> None:
    Journal(tmp_path / "parts.jsonl", {"strategy": "railcap"}).add("0", [1])
    assert Journal(tmp_path / "parts.jsonl", {"strategy": "identity"}).get("0") is None
    assert "not all of it is what this job wrote" in capsys.readouterr().err
