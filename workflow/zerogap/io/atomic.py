"""Files that appear under their name only when they are complete, and never replace an input."""

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from zerogap.errors import InputError

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# The mode of new files. To read the umask is to set it, which is not safe once there are threads.
_UMASK = os.umask(0o077)
os.umask(_UMASK)
_MODE = 0o666 & ~_UMASK
_NO_ACCESS = (
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR, errno.ENOTDIR),
    *(errno.ENOENT, errno.EEXIST),
)
_NO_NAME = (errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL)


def output_file(path: str | Path, others: Iterable[str | Path] = ()) -> Path:
    """The file that an output of this name replaces: a link's target.

    Args:
        path: the output.
        others: inputs and further outputs of the same command.

    Raises:
        InputError: the path is a folder, a device or another special file, one of `others`, or no
            name that a file can have.
    """
    path = Path(path)
    with write_errors_as_input_errors(path):
        path.exists()
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name the file to write")
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: is a device or another special file; name a file to write")
    for other in map(Path, others):
        is_linked = path.exists() and other.exists() and path.samefile(other)
        if is_linked or os.path.realpath(path) == os.path.realpath(other):
            raise InputError(f"{path}: is the same file as {other}; name another file to write")
    return Path(os.path.realpath(path))


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path, which is renamed to :func:`output_file` if the block succeeds.

    Raises:
        InputError: see :func:`output_file`; or the disk or the quota is full, the file size limit
            is reached, or the path is in a folder that cannot be written.
    """
    target = output_file(path)
    with write_errors_as_input_errors(path):
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(
            prefix=f".{target.name}.", suffix=".part", dir=target.parent
        )
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            # mkstemp creates private files; a file that the user has made private stays so.
            temporary.chmod(stat.S_IMODE(target.stat().st_mode) if target.exists() else _MODE)
            with temporary.open("rb") as file:
                os.fsync(file.fileno())  # before the rename: complete even after a power cut
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file in UTF-8; errors as of :func:`replacing`."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def write_errors_as_input_errors(path: str | Path) -> Iterator[None]:
    """Turn what prevents any program from writing a file here into an InputError."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_SPACE:
            remedy = "free some space and run again"
        elif error.errno in _NO_ACCESS:
            remedy = "name a file in a folder that you may write to"
        elif error.errno in _NO_NAME:
            remedy = "choose another name"
        else:
            raise
        reason = os.strerror(error.errno)
        raise InputError(f"{str(path)[:200]}: not written ({reason}); {remedy}") from error
