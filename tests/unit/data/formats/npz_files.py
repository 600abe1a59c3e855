"""Graph files that tests write, good ones and bad ones, and how they are refused."""

import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from graphfm import Graph, InputError

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


def refused(path: Path, reason: str = ".") -> None:
    with pytest.raises(InputError, match=reason) as caught:
        Graph.from_npz(path)
    assert str(path) in str(caught.value)
    assert str(caught.value).count(str(path)) == 1
