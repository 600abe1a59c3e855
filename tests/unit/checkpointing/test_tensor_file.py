"""Files of tensors are written in pieces, and are ordinary safetensors files."""

import hashlib

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from graphfm.checkpointing import tensor_file
from graphfm.checkpointing.tensor_file import NAMES, write_tensors


class InPieces:
    """Rows that are given in pieces of one or two."""

    def __init__(self, rows):
        self.rows, self.shape, self.dtype = rows, rows.shape, rows.dtype

    def pieces(self):
        yield self.rows[:1]
        yield from torch.split(self.rows[1:], 2)


def as_bytes(tensor):
    return tensor.contiguous().view(-1).view(torch.uint8)


@pytest.mark.parametrize("dtype", NAMES, ids=str)
def test_every_number_type_comes_back(tmp_path, dtype):
    numbers = torch.arange(160, dtype=torch.uint8)
    rows = (numbers % 2).bool() if dtype == torch.bool else numbers.view(dtype)
    write_tensors(tmp_path / "a", {"rows": rows, "odd": torch.ones(3, dtype=torch.uint8)})
    found = load_file(tmp_path / "a")
    assert found["rows"].dtype == dtype
    assert torch.equal(as_bytes(found["rows"]), as_bytes(rows))
    assert torch.equal(found["odd"], torch.ones(3, dtype=torch.uint8))


SHAPES = st.lists(st.lists(st.integers(0, 4), max_size=3), max_size=4)


@given(SHAPES, st.integers(1, 40), st.booleans())
def test_any_shapes_and_pieces_give_the_file_of_safetensors(
    tmp_path_factory, shapes, piece, turned
):
    folder = tmp_path_factory.mktemp("files")
    tensors = {f"{n}": torch.randn(shape) for n, shape in enumerate(shapes)}
    if turned:
        tensors = {
            name: rows.transpose(0, -1) if rows.dim() else rows for name, rows in tensors.items()
        }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tensor_file, "PIECE", piece)
        digest = write_tensors(folder / "ours", tensors)
    save_file({name: rows.contiguous() for name, rows in tensors.items()}, folder / "theirs")
    assert (folder / "ours").read_bytes() == (folder / "theirs").read_bytes()
    assert digest == hashlib.sha256((folder / "ours").read_bytes()).hexdigest()


def test_tensors_that_share_memory_are_written_under_each_name(tmp_path):
    rows = torch.arange(12.0).view(4, 3)
    write_tensors(tmp_path / "a", {"all": rows, "again": rows, "some": rows[1:3]})
    found = load_file(tmp_path / "a")
    assert torch.equal(found["all"], rows)
    assert torch.equal(found["again"], rows)
    assert torch.equal(found["some"], rows[1:3])


def test_rows_that_are_no_tensor_are_read_piece_by_piece(tmp_path):
    rows = torch.arange(14, dtype=torch.bfloat16).view(7, 2)
    write_tensors(tmp_path / "a", {"rows": InPieces(rows), "more": torch.zeros(())})
    assert torch.equal(load_file(tmp_path / "a")["rows"], rows)
