"""Arrays of a graph file whose headers lie, or that hold code, are refused."""

import io
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from graphfm import Graph
from graphfm.data.formats import npz
from graphfm.data.graph.graph_file import RULES
from tests.unit.data.formats.npz_files import EDGES, X, described, npy, refused, with_header, write


@pytest.mark.parametrize(
    "shape", ["(10**12, 128)", "(1000000000000, 128)", "(3, 3)", "(3, 1)", "(6, 2)", "(0, 2)"]
)
def test_a_shape_that_does_not_match_the_data(path, shape):
    refused(write(path, x=described(shape)))


def test_a_huge_array_that_is_consistent_but_larger_than_the_memory(path, monkeypatch):
    monkeypatch.setattr(npz, "available_memory", lambda: 10)
    refused(write(path), r"bytes of memory, but [\d,]+ are available")


def test_declared_sizes_of_a_petabyte_are_refused_before_anything_is_read(path, monkeypatch):
    member, original = described(f"({2**48}, 2)"), zipfile.ZipFile.getinfo

    def huge(archive, name):
        info = original(archive, name)
        if name == "x.npy":
            info.file_size = len(member) - X.nbytes + 2**48 * 8  # as a zip64 entry may say
        return info

    monkeypatch.setattr(zipfile.ZipFile, "getinfo", huge)
    monkeypatch.setattr(npz, "_read_member", lambda *_: pytest.fail("read"))
    write(path, x=member)
    refused(path, r"bytes of memory, but [\d,]+ are available")


@pytest.mark.parametrize(
    "shape",
    ["(-3, 2)", "(-3, -2)", "(-1, 2)", "3", "[3, 2]", "(3.0, 2)", "('3', 2)", "None",
     f"({2**40}, {2**40}, 0)", f"({2**64}, 0)", "(" + "1," * 70 + ")"],
)  # fmt: skip
def test_a_shape_that_is_none(path, shape):
    refused(write(path, x=described(shape)))


@pytest.mark.parametrize(
    "descr",
    ["'<f3'", "'nonsense'", "'<M8[s]'", "'|V4'", "'<c8'", "'|S4'", "'<U1'", "[('a', '<f4')]",
     "[('a', '<f2'), ('b', '<f2')]", "()", "('<f4',)", "('<f4', (2,))", "None", "5", "[]", "'|O'",
     "[('a', '|O')]"],
)  # fmt: skip
def test_values_that_are_no_numbers(path, descr):
    refused(write(path, x=described("(3, 2)", descr)))


@pytest.mark.parametrize(
    "header",
    ["", "{", "{}", "{[]: 1}", "[1, 2]", "(" * 200, "{'descr': '<f4'", "'''", "\x00", "  {\n {",
     "{'descr': '<f4', 'fortran_order': False}", "__import__('os').getpid()",
     "{'descr': '<f4', 'fortran_order': 1, 'shape': (3, 2)}",
     "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), 'more': 1}", "'\\d'"],
)  # fmt: skip
def test_a_header_that_cannot_be_parsed(path, header):
    refused(write(path, x=with_header(header, X.tobytes())))


@pytest.mark.parametrize(
    "member",
    [b"", b"\x93NUMPY", b"\x93NUMPY\x01\x00\xff\xff{", b"PICKLE" * 9, npy(X)[:-1], npy(X) + b"\0"],
    ids=["empty", "magic", "short header", "no magic", "short data", "long data"],
)
def test_a_member_that_is_no_npy(path, member):
    refused(write(path, x=member))


@pytest.mark.parametrize("version", [(3, 0), (9, 9)])
def test_an_npy_version_that_is_not_known(path, version):
    member = bytearray(npy(X, (2, 0)))
    member[6:8] = bytes(version)
    refused(write(path, x=bytes(member)), "npy format")


def test_a_header_as_python_2_wrote_it_is_read_quietly(path):
    write(path, x=described("(3L, 2L)"))
    assert torch.equal(Graph.from_npz(path).x, torch.from_numpy(X))


def test_npy_version_2_is_read(path):
    assert Graph.from_npz(write(path, x=npy(X, (2, 0)))).num_features == 2


@pytest.mark.parametrize("kind", [">f4", ">f8", ">i4", ">f2", "<f2"])
def test_big_endian_and_half_arrays_are_read(path, kind):
    x = (X * 4).astype(kind)
    read = Graph.from_npz(write(path, x=x, edge_index=EDGES.astype(">i8")))
    assert read.x.dtype == torch.float32
    assert torch.equal(read.x, torch.from_numpy(X * 4))


def test_fortran_order_is_read(path):
    write(path, x=np.asfortranarray(X), edge_index=np.asfortranarray(EDGES))
    plain = Graph.from_edges(EDGES, X)
    assert b"'fortran_order': True" in npy(np.asfortranarray(X))
    assert Graph.from_npz(path).fingerprint == plain.fingerprint


def test_the_widest_floats_are_read(path):
    assert torch.equal(Graph.from_npz(write(path, x=X.astype("g"))).x, torch.from_numpy(X))


# Code


class Bomb:
    """Unpickling it makes a file."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


def bomb(marker: Path) -> bytes:
    array = np.array([[Bomb(marker), 1]] * 3, dtype=object)
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=True)
    return stream.getvalue()


@pytest.mark.parametrize("key", list(RULES))
def test_an_object_array_is_refused_and_never_unpickled(path, tmp_path, key):
    marker = tmp_path / "exploded"
    refused(write(path, **{key: bomb(marker)}), f"{key} holds Python objects")
    assert not marker.exists()


def test_the_bomb_would_explode(tmp_path):
    marker = tmp_path / "exploded"
    np.load(io.BytesIO(bomb(marker)), allow_pickle=True)
    assert marker.exists()


def test_a_pickle_in_the_place_of_an_array_is_not_run(path, tmp_path):
    marker = tmp_path / "exploded"
    refused(write(path, x=pickle.dumps(Bomb(marker))))
    assert not marker.exists()
