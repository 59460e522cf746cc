"""Sealed files: files with a digest of their whole content in their name.

Formats with checksums of their own, such as Parquet, leave parts of a file uncovered. A sealed file
is either exactly what was written or not used.
"""

from pathlib import Path

from zerogap.errors import InputError
from zerogap.io.digests import bytes_digest


def seal(path: Path) -> Path:
    """Rename a complete file so that its name holds its digest; an older version is deleted."""
    sealed = path.with_name(f"{path.stem}-{bytes_digest(path.read_bytes())}{path.suffix}")
    for older in _versions(path):
        older.unlink()
    return path.rename(sealed)


def find_sealed(path: Path) -> Path | None:
    """Return where :func:`seal` has put a file; None if there is no such file.

    Raises:
        InputError: the content is not what was written.
    """
    for sealed in _versions(path):
        if sealed.stem.removeprefix(f"{path.stem}-") != bytes_digest(sealed.read_bytes()):
            raise InputError(f"{sealed}: the content has changed since it was written")
        return sealed
    return None


def _versions(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.stem}-*{path.suffix}"))
