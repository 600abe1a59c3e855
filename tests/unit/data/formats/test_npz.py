"""Graph files that are damaged, mislabelled or hostile are refused, and no other thing happens."""

import errno
import io
import json
import os
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
from graphfm.data.formats import npz
from graphfm.data.graph.graph_file import RULES

EDGES = np.array([[0, 1, 2, 2], [1, 2, 0, 0]])
X = np.array([[0.5, 1.0], [2.0, -3.0], [4.0, 0.25]], dtype=np.float32)


def graph() -> Graph:
    return Graph.from_edges(
        EDGES,
        X,
        [0, 1, -1],
        train_mask=[1, 0, 0],
        val_mask=[0, 1, 0],
        edge_weight=[1, 2, 3, 4],
        node_names=["a", "b", "c"],
        class_names=["one", "two"],
        meta={"source": "test"},
    )


def npy(array, version=None) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asanyarray(array), version=version)
    return stream.getvalue()


def with_header(header: str, data: bytes = b"", version: tuple[int, int] = (1, 0)) -> bytes:
    """An npy member whose header says what it likes."""
    text = header.encode() + b"\n"
    size = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + size + text + data


def described(shape: str, descr: str = "'<f4'", data: bytes = X.tobytes(), order=False) -> bytes:
    return with_header(f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}", data)


def write(path: Path, compression: int = zipfile.ZIP_DEFLATED, **members) -> Path:
    """A zip with a good `edge_index` and `x`, changed or joined by `members`; None leaves out."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for key, member in {"edge_index": EDGES, "x": X, **members}.items():
            if member is not None:
                content = member if isinstance(member, bytes) else npy(member)
                archive.writestr(f"{key}.npy", content)
    return path


def with_meta(path: Path, meta) -> Path:
    return write(path, meta=np.array(meta if isinstance(meta, str) else json.dumps(meta)))


def refused(path: Path, reason: str = ".") -> None:
    with pytest.raises(InputError, match=reason) as caught:
        Graph.from_npz(path)
    assert str(path) in str(caught.value)
    assert str(caught.value).count(str(path)) == 1


def read_or_refuse(path: Path) -> Graph | None:
    """The graph, or None where it was refused as it should be."""
    try:
        return Graph.from_npz(path)
    except InputError as error:
        if str(path) not in str(error):
            raise
        return None


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "graph.npz"


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("good") / "graph.npz"
    graph().save(path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("scratch") / "graph.npz"


# Files that are not what they say


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


# Headers


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


# What the arrays hold


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"edge_index": EDGES + 1}, "edge_index holds node id 3"),
        ({"edge_index": EDGES.astype(float)}, "edge_index holds"),
        ({"x": X * np.nan}, "x holds NaN"),
        ({"x": X[:0]}, "x has shape"),
        ({"y": np.array([0, 1])}, "y has shape"),
        ({"y": np.array([0, 1, 2**40])}, "y holds label"),
        ({"y": np.array(["a", "b", "c"])}, "y holds <U1 values; expected numbers"),
        ({"train_mask": np.ones(3, bool)}, "train_mask is given without y"),
        ({"train_mask": np.zeros(3, bool)}, "train_mask is empty"),
        ({"edge_weight": np.zeros(4)}, "edge_weight holds"),
        ({"edge_weight": np.ones(3)}, "edge_weight has shape"),
    ],
)
def test_wrong_values_are_named_with_the_file(path, members, reason):
    refused(write(path, **members), reason)


@pytest.mark.parametrize(
    ("meta", "reason"),
    [
        ("not JSON", "meta is not one JSON text"),
        ("", "meta is not one JSON text"),
        ("[1, 2]", "meta is a JSON list"),
        ("5", "meta is a JSON int"),
        ("null", "meta is a JSON NoneType"),
        ("[" * 100_000, "meta is not one JSON text"),
        ('{"a":' * 100_000, "meta is not one JSON text"),
        ('{"a": ' + "1" * 10_000 + "}", "meta is not one JSON text"),
        ({"names": ["a"]}, "node_names has 1 entries; expected 3"),
        ({"names": "abc"}, "node_names is a str"),
        ({"names": {"a": 1, "b": 2, "c": 3}}, "node_names is a dict"),
        ({"names": [1, 2, 3]}, "node_names holds a value that is not text"),
        ({"names": ["a", "b", "\ud800"]}, "node_names holds a value that is not text"),
        ({"names": 3}, "node_names is a int"),
        ({"labels": ["a", ["b"]]}, "class_names holds a value that is not text"),
        ({"labels": True}, "class_names is a bool"),
        ({"labels": ["a"], "num_classes": 2}, "class_names has 1 entries; expected 2"),
        ({"num_classes": "many"}, "num_classes is 'many'"),
        ({"num_classes": -1}, "num_classes is -1"),
        ({"num_classes": 2.5}, "num_classes is 2.5"),
    ],
)
def test_meta_that_is_wrong(path, meta, reason):
    refused(with_meta(path, meta), reason)


@pytest.mark.parametrize(
    ("meta", "reason"),
    [
        (np.array(["{}", "{}"]), "meta is not one JSON text"),
        (np.array([], dtype="<U2"), "meta is not one JSON text"),
        (np.array(5), "meta holds int64 values; expected text"),
        (np.array(b"{}"), "meta holds |S2 values; expected text"),
        (described("()", "'<U1'", b"\xff\xff\xff\xff"), "meta is not one JSON text"),
    ],
    ids=["two", "none", "number", "bytes", "no letter"],
)
def test_meta_that_is_no_text(path, meta, reason):
    refused(write(path, meta=meta), reason)


# What is not used


def test_arrays_that_are_not_used_are_named_in_one_warning(path, caplog):
    write(path, edge_attr=np.ones((4, 2)), edge_type=np.zeros(4), split=np.array(["a"]))
    assert Graph.from_npz(path).num_edges == 4
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("graphfm", "WARNING")
    assert record.getMessage().startswith(f"{path}: edge_attr, edge_type, split are not used")


def test_a_file_whose_arrays_are_all_used_is_read_without_a_warning(path, caplog):
    graph().save(path)
    Graph.from_npz(path)
    assert caplog.records == []


# Quantised features


@pytest.mark.parametrize("kind", ["i1", "u1", "<i2", ">i2"])
def test_quantised_features_are_scaled_back(path, kind):
    x, scale = np.array([[1, 2], [100, 0], [3, 127]]).astype(kind), np.array([0.5, 0.25])
    read = Graph.from_npz(write(path, x=x, x_scale=scale))
    assert read.x.dtype == torch.float32
    assert read.x.tolist() == [[0.5, 0.5], [50.0, 0.0], [1.5, 31.75]]


@pytest.mark.parametrize(
    ("x", "scale", "reason"),
    [
        (X, np.ones(3), r"x_scale has shape \[3\] for x of shape \[3, 2\]"),
        (X, np.ones((1, 2)), "x_scale has shape"),
        (X, np.array(1.0), "x_scale has shape"),
        (X[0], np.ones(2), "x_scale has shape"),
        (X, np.array([1.0, np.nan]), "x_scale holds NaN"),
        (X, np.array([1.0, np.inf]), "x_scale holds NaN or infinite"),
        (X, np.full(2, 3e38, dtype=np.float32), "x holds NaN or infinite"),
        (X, np.full(2, 1e300), "x holds NaN or infinite"),
        (X, np.array(["a", "b"]), "x_scale holds <U1 values"),
    ],
)
def test_scales_that_are_wrong(path, x, scale, reason):
    refused(write(path, x=x, x_scale=scale), reason)


# Saving


def test_saving_over_a_file_replaces_it(path):
    Graph.from_edges(EDGES, X + 1).save(path)
    graph().save(path)
    assert Graph.from_npz(path).fingerprint == graph().fingerprint
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("failure", [OSError("disk full"), KeyboardInterrupt(), MemoryError()])
def test_a_failure_in_the_middle_of_saving_leaves_the_old_file(path, monkeypatch, failure):
    path.write_bytes(b"old")

    def fail_half_way(stream, **arrays):
        stream.write(b"half of it")
        stream.flush()
        assert len(os.listdir(path.parent)) == 2
        raise failure

    monkeypatch.setattr(np, "savez_compressed", fail_half_way)
    with pytest.raises(type(failure)):
        graph().save(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("name", ["", "missing/graph.npz"])
def test_saving_to_an_impossible_place_leaves_nothing(tmp_path, name):
    with pytest.raises(InputError, match="not a file|no such folder"):
        graph().save(tmp_path / name)
    assert os.listdir(tmp_path) == []


def test_saving_keeps_keys_of_meta_apart_from_names(path):
    with_names = Graph.from_edges(EDGES, X, node_names=list("abc"), meta={"names": 7, "k": 1})
    with_names.save(path)
    read = Graph.from_npz(path)
    assert (read.node_names, read.meta) == (("a", "b", "c"), {"k": 1})
