"""Rows of a table, written by a kernel and by plain code."""

import pytest
import torch

from graphfm.kernels import table_write
from graphfm.kernels.table_write import put_rows
from tests.kernels.device import DEVICE, FLOAT_TYPES, with_and_without


@pytest.mark.parametrize("how", ["write", "add", "blend"])
@pytest.mark.parametrize("kind", FLOAT_TYPES)
@pytest.mark.parametrize("width", [1, 33, 300])
def test_rows_are_written_where_they_belong(kind, how, width):
    ids = torch.tensor([4, 0, 7], device=DEVICE)
    values = torch.randn(3, 2 * width, device=DEVICE)[:, :width]
    shares = torch.tensor([0.0, 0.3, 1.0], device=DEVICE) if how == "blend" else None

    def change():
        table = torch.randn(9, width, device=DEVICE).to(kind)
        put_rows(table, ids, values, add=how == "add", shares=shares)
        return table

    torch.testing.assert_close(*with_and_without(change))


@pytest.mark.parametrize("shape", [(3, 4), (2, 5), (5,)])
def test_values_of_another_shape_are_refused(shape):
    table = torch.zeros(9, 5, device=DEVICE)
    with pytest.raises(ValueError, match="expected 3 rows of width 5, the width of the table"):
        put_rows(table, torch.tensor([4, 0, 7], device=DEVICE), torch.ones(shape, device=DEVICE))


def test_a_column_is_written_by_plain_code(monkeypatch):
    monkeypatch.delattr(table_write, "_launch")
    table = torch.zeros(4, 1, device=DEVICE)
    put_rows(table, torch.tensor([2], device=DEVICE), torch.ones(1, 1, device=DEVICE))
    assert table.flatten().tolist() == [0.0, 0.0, 1.0, 0.0]
