"""Graph files that are damaged or are no archives are refused."""

import errno
import pickle
import random
import struct
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfm import Graph, InputError
from tests.unit.data.formats.npz_files import (
    X,
    graph,
    npy,
    refused,
    with_header,
    write,
)


def read_or_refuse(path: Path) -> Graph | None:
    """The graph, or None where it was refused as it should be."""
    try:
        return Graph.from_npz(path)
    except InputError as error:
        if str(path) not in str(error):
            raise
        return None


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("good") / "graph.npz"
    graph().save(path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("scratch") / "graph.npz"


def test_a_file_that_is_not_there(path):
    refused(path, "no such file")


def test_a_directory(path):
    path.mkdir()
    refused(path, "it is not a file; give the path of an .npz file")


def test_a_file_that_may_not_be_read(path, monkeypatch):
    def forbid(*given):
        raise PermissionError(errno.EACCES, "Permission denied")

    path.write_bytes(b"something")
    monkeypatch.setattr("zipfile.ZipFile", forbid)
    refused(path, "permission denied; make it readable")


def test_a_name_too_long_for_the_system(tmp_path):
    refused(tmp_path / ("n" * 300 + ".npz"), "too long")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK",
        b"PK\x05\x06" + bytes(18),
        b"edge_index,x\n0,1\n",
        npy(X),
        pickle.dumps({"x": 1}),
        random.Random(0).randbytes(5000),
    ],
    ids=["empty", "magic only", "empty zip", "text", "npy", "pickle", "random"],
)
def test_a_file_that_is_no_npz(path, content):
    path.write_bytes(content)
    refused(path)


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.binary(max_size=300))
def test_random_bytes_behind_the_magic_of_a_zip(scratch, content):
    scratch.write_bytes(b"PK\x03\x04" + content)
    refused(scratch, "damaged, or not an .npz file")


def test_a_file_cut_short_anywhere(path, good):
    for length in [*range(0, len(good), 23), len(good) - 1]:
        path.write_bytes(good[:length])
        refused(path, "damaged, or not an .npz file")


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.data())
def test_a_flipped_bit_is_found_or_changes_nothing(scratch, good, data):
    bit = data.draw(st.integers(0, 8 * len(good) - 1))
    damaged = bytearray(good)
    damaged[bit // 8] ^= 1 << bit % 8
    scratch.write_bytes(damaged)
    if (read := read_or_refuse(scratch)) is not None:
        whole = graph()
        assert read.fingerprint == whole.fingerprint
        assert (read.node_names, read.class_names) == (whole.node_names, whole.class_names)
        assert read.meta == whole.meta


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.data())
def test_a_flipped_bit_in_an_npy_header_is_found_or_read_as_it_says(scratch, data):
    """The archive's checksum is right here: what is written is what was meant."""
    member = bytearray(npy(X))
    bit = data.draw(st.integers(0, 8 * 128 - 1))
    member[bit // 8] ^= 1 << bit % 8
    write(scratch, x=bytes(member))
    read = read_or_refuse(scratch)
    assert read is None or read.x.numel() == X.size


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.text(st.sampled_from("{}[]()'\"\\,:<>|fiOUSV048-+*/ descr\n\t"), max_size=40))
def test_an_npy_header_of_nonsense(scratch, text):
    write(scratch, x=with_header(text, X.tobytes()))
    refused(scratch)


# Archives


@pytest.mark.parametrize(
    ("members", "missing"),
    [
        ({"x": None}, "it has no x .it holds"),
        ({"edge_index": None}, "it has no edge_index .it holds"),
        ({"edge_index": None, "x": None}, "it has no edge_index and no x .it holds nothing"),
        ({"x": None, "X": X}, "it holds edge_index.npy, X.npy"),
    ],
)
def test_a_zip_without_the_keys(path, members, missing):
    refused(write(path, **members), missing)


def test_two_members_of_one_name(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write(path)
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("x.npy", npy(X + 1))
    refused(path, "two arrays of the same name")


def patch_directory(path: Path, offset: int, kind: str, value: int, *, local: int | None) -> None:
    """Overwrite a field of `x` in the zip's directory, and beside its data."""
    raw = bytearray(path.read_bytes())
    entry = raw.rindex(b"x.npy", 0, raw.rindex(b"PK\x05\x06")) - 46
    struct.pack_into(kind, raw, entry + offset, value)
    if local is not None:
        start = struct.unpack_from("<I", raw, entry + 42)[0]
        struct.pack_into(kind, raw, start + local, value)
    path.write_bytes(raw)


@pytest.mark.parametrize(
    ("offset", "kind", "value", "local", "reason"),
    [
        (8, "<H", 1, 6, "encrypted"),
        (8, "<H", 0x20, 6, "patched"),
        (10, "<H", 99, 8, "compression"),
        (10, "<H", zipfile.ZIP_LZMA, 8, "damaged"),
        (10, "<H", zipfile.ZIP_BZIP2, 8, "damaged"),
        (10, "<H", zipfile.ZIP_STORED, 8, "damaged"),
        (16, "<I", 0xDEADBEEF, 14, "CRC"),
        (20, "<I", 1, 18, "damaged"),
        (24, "<I", 2**31, 22, r"x declares float32 \[3, 2\], which is 24 bytes, but "),
        (24, "<I", 1, 22, "damaged"),
        (42, "<I", 10**6, None, "damaged"),
    ],
    ids=[
        "encrypted", "patched", "unknown method", "lzma", "bzip2", "stored", "crc",
        "compressed size", "huge size", "tiny size", "offset",
    ],
)  # fmt: skip
def test_an_archive_that_lies(path, offset, kind, value, local, reason):
    patch_directory(write(path), offset, kind, value, local=local)
    refused(path, reason)


def test_a_directory_that_hides_members_in_a_comment(path):
    write(path, edge_weight=np.ones(4))
    hidden = 46 + len("edge_weight.npy")
    patch_directory(path, 32, "<H", hidden, local=None)
    refused(path, "directory is damaged")


def test_a_name_that_differs_from_the_one_beside_the_data(path):
    write(path, edge_weight=np.ones(4))
    raw = bytearray(path.read_bytes())
    place = raw.rindex(b"edge_weight.npy")
    raw[place : place + 15] = b"edge_veight.npy"
    path.write_bytes(raw)
    refused(path, "damaged")


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_any_honest_compression_is_read(path, method):
    assert torch.equal(Graph.from_npz(write(path, method)).x, torch.from_numpy(X))
