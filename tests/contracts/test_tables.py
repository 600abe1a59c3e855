"""What every node table promises."""

import pytest
import torch

from graphfm.tables.device import DeviceTable, places

TABLES = [
    pytest.param(lambda n, w, dtype=dtype: DeviceTable(n, w, dtype=dtype), id=str(dtype))
    for dtype in (torch.float32, torch.bfloat16, torch.float16)
]
TABLES.append(  # rows for some nodes alone, which here are all, in another order
    pytest.param(
        lambda n, w: DeviceTable(n, w, place=places(torch.arange(n).flip(0), n)), id="placed"
    )
)
pytestmark = pytest.mark.parametrize("make", TABLES)


def test_starts_at_zero_and_pulls_float32(make):
    rows = make(5, 3).pull(torch.tensor([0, 4]))
    assert rows.dtype == torch.float32
    assert torch.equal(rows, torch.zeros(2, 3))


def test_pulls_what_was_pushed(make):
    table, values = make(5, 2), torch.tensor([[1.0, -2.0], [0.5, 4.0]])  # exact in every type
    table.push(torch.tensor([3, 1]), values)
    assert torch.equal(
        table.pull(torch.tensor([1, 3, 0])), torch.stack([values[1], values[0], 0 * values[0]])
    )


def test_a_pulled_row_is_a_copy(make):
    table = make(4, 2)
    table.pull(torch.tensor([2])).fill_(7.0)
    assert torch.equal(table.pull(torch.tensor([2])), torch.zeros(1, 2))


@pytest.mark.parametrize(("beta", "want"), [(0.0, 4.0), (0.25, 5.0), (1.0, 8.0)])
def test_beta_is_the_weight_of_the_fresh_value(make, beta, want):
    table, ids = make(4, 1), torch.tensor([1])
    table.push(ids, torch.tensor([[4.0]]))
    table.blend(ids, torch.tensor([[8.0]]), beta)
    assert table.pull(ids).item() == want


def test_carries_no_gradient(make):
    table, ids = make(4, 2), torch.tensor([0, 2])
    values = torch.randn(2, 2, requires_grad=True)
    table.push(ids, values)
    table.blend(ids, values, 0.5)
    assert not table.pull(ids).requires_grad


def test_the_sink_takes_padding_and_no_node_reads_it(make):
    table = make(4, 2)
    table.push(torch.tensor([4, 4, 1]), torch.ones(3, 2))  # 4 is one past the last node
    assert torch.equal(table.pull(torch.arange(4)).sum(1), torch.tensor([0.0, 2.0, 0.0, 0.0]))


def test_adds_to_what_is_there(make):
    table, ids = make(4, 2), torch.tensor([2, 0])
    table.push(ids, torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    table.add(ids, torch.tensor([[0.5, -2.0], [1.0, 1.0]]))
    want = torch.tensor([[1.5, 0.0], [4.0, 5.0], [0.0, 0.0]])
    assert torch.equal(table.pull(torch.tensor([2, 0, 1])), want)
