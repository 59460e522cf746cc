import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerogap.errors import InputError
from zerogap.io.sealed import find_sealed, seal


def write_sealed(folder, content: bytes):
    path = folder / "part-1.bin"
    path.write_bytes(content)
    return seal(path)


def test_a_sealed_file_is_found_under_its_first_name(tmp_path) -> None:
    sealed = write_sealed(tmp_path, b"content")
    assert find_sealed(tmp_path / "part-1.bin") == sealed
    assert sealed.read_bytes() == b"content"


def test_a_file_that_was_never_sealed_is_not_found(tmp_path) -> None:
    (tmp_path / "part-1.bin").write_bytes(b"half of the con")
    assert find_sealed(tmp_path / "part-1.bin") is None


def test_sealing_again_leaves_the_new_version_only(tmp_path) -> None:
    write_sealed(tmp_path, b"old")
    new = write_sealed(tmp_path, b"new")
    assert list(tmp_path.iterdir()) == [new]


@given(position=st.integers(0, 99), mask=st.integers(1, 255))
def test_any_changed_byte_is_an_error(tmp_path_factory, position, mask) -> None:
    folder = tmp_path_factory.mktemp("sealed")
    sealed = write_sealed(folder, bytes(range(100)))
    content = bytearray(sealed.read_bytes())
    content[position] ^= mask
    sealed.write_bytes(content)
    with pytest.raises(InputError, match="changed since it was written"):
        find_sealed(folder / "part-1.bin")
