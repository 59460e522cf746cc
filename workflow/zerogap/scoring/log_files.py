"""The file behind a path: one log in a folder, unpacked if it is compressed."""

import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from zerogap.errors import InputError, first_line, listed

# The files of a folder that are its log: of the first pattern that any file has.
LOGS = (
    *("*.eval", "samples_*.jsonl", "details_*.parquet", "*_samples.jsonl", "*.jsonl", "*.jsonl.gz"),
    *("*.parquet", "*.csv", "*.csv.gz", "*.json"),
)
ZSTD = 93  # a compression of zip files that Python 3.11 to 3.13 cannot read
_LOCAL_HEADER = struct.Struct("<26xHH")  # of a member: lengths of its name and of an extra field
# First bytes of other files → what they are.
OTHER_FILES = {
    b"version https://git-lfs": "a pointer of Git LFS; get the file with git lfs pull",
    b"<!DOCTYPE": "a web page; download the file itself",
    b"<html": "a web page; download the file itself",
    b"SQLite format 3": "an SQLite data base; export a table of responses",
    b"\x80\x04": "a pickle, which may run code; write JSON Lines",
    b"\x93NUMPY": "a NumPy array; write a table with question ids",
    b"ARROW1": "an Arrow file; write Parquet",
    b"\x28\xb5\x2f\xfd": "compressed by zstd; unpack it, or use gzip",
    b"%PDF": "a PDF file; give a log of responses",
}


def one_log(path: Path) -> Path:
    """The path, or the one log in a folder.

    Raises:
        InputError: the folder has none or several, or the path is not a file.
    """
    for pattern in LOGS if path.is_dir() else ():
        files = [file for file in sorted(path.rglob(pattern)) if not file.name.startswith(".")]
        if len(files) == 1:
            return files[0]
        if files:
            named = listed([str(file.relative_to(path)) for file in files])
            raise InputError(f"{path}: has {len(files)} logs ({named}); name one of them")
    if path.is_dir():
        raise InputError(f"{path}: is a folder without a file of responses or counts")
    if not path.exists():
        raise InputError(f"{path}: does not exist; give a file of responses or counts")
    if not path.is_file():
        raise InputError(f"{path}: is a pipe or a device; save its content in a file first")
    return path


def content(path: Path) -> bytes:
    """The content of a file, unpacked if it is compressed by gzip.

    Raises:
        InputError: it is damaged, or not a log of any kind.
    """
    data = path.read_bytes()
    if data.startswith(b"\x1f\x8b"):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            fault = first_line(error)
            raise InputError(f"{path}: is damaged ({fault}); compress it again") from error
    for start, kind in OTHER_FILES.items():
        if data.startswith(start):
            raise InputError(f"{path}: is {kind}")
    return data


def zipped_samples(path: Path) -> Iterator[bytes]:
    """The content of the files in the folder samples of a zip file, Inspect's log.

    Raises:
        InputError: the zip file is damaged, or has no such files.
    """
    data = path.read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            samples = {  # of members with one name, the last counts: the sample was run again
                member.filename: member
                for member in archive.infolist()
                if member.filename.startswith("samples/") and not member.is_dir()
            }
            for sample in samples.values():
                yield _member(archive, sample, data)
    except (zipfile.BadZipFile, pa.ArrowException, OSError, RuntimeError, struct.error) as error:
        raise InputError(f"{path}: is a damaged zip file ({first_line(error)})") from error
    if not samples:
        raise InputError(
            f"{path}: is a zip file without samples/, so not an Inspect log with samples; give "
            "the log itself"
        )


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, data: bytes) -> bytes:
    if member.compress_type != ZSTD:
        return archive.read(member)
    header = member.header_offset
    start = header + _LOCAL_HEADER.size + sum(_LOCAL_HEADER.unpack_from(data, header))
    packed = pa.BufferReader(data[start : start + member.compress_size])
    return bytes(pa.CompressedInputStream(packed, "zstd").read())
