import contextlib
import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from zerogap.errors import InputError
from zerogap.io import atomic


def test_a_failed_write_keeps_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with contextlib.suppress(RuntimeError), atomic.replacing(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("umask", "mode"), [("022", "644"), ("002", "664"), ("077", "600")])
def test_a_file_has_the_mode_of_the_umask(tmp_path, umask, mode):
    write = (
        "from zerogap.io import atomic\nwith atomic.replacing('file') as path: path.write_text('')"
    )
    shell = f'umask {umask}; exec "$0" -c "$1"'
    subprocess.run(["sh", "-c", shell, sys.executable, write], cwd=tmp_path, check=True)
    assert oct((tmp_path / "file").stat().st_mode & 0o777) == f"0o{mode}"


def test_a_file_that_is_private_stays_so(tmp_path):
    path = tmp_path / "file"
    path.touch(0o600)
    atomic.write_text(path, "new")
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "free some space and run again"),
        (errno.EDQUOT, "free some space and run again"),
        (errno.EACCES, "name a file in a folder that you may write to"),
    ],
)
def test_what_prevents_any_program_from_writing_is_an_input_error(tmp_path, number, remedy):
    path = tmp_path / "file"
    with pytest.raises(InputError, match=remedy) as caught, atomic.replacing(path):
        raise OSError(number, os.strerror(number))
    assert str(path) in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_other_errors_are_left_alone(tmp_path):
    with pytest.raises(OSError, match=r"[Ii]nput/output"), atomic.replacing(tmp_path / "file"):
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_link_stays_and_its_target_is_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder/target")
    for text in ("new", "newer"):
        with atomic.replacing(tmp_path / "link") as temporary:
            temporary.write_text(text)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "folder/target").read_text() == text


@pytest.mark.parametrize("special", ["folder", "fifo", "link to a device", "empty name"])
def test_what_is_no_file_is_not_replaced(tmp_path, monkeypatch, special):
    monkeypatch.chdir(tmp_path)
    path = Path("" if special == "empty name" else "out")
    if special == "folder":
        path.mkdir()
    elif special == "fifo":
        os.mkfifo(path)
    elif special == "link to a device":
        path.symlink_to("/dev/null")
    with pytest.raises(InputError, match=r"name .* file to write"), atomic.replacing(path):
        pass
    assert not Path("/dev/null").is_file()
