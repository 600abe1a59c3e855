"""The fused aggregate of a fixed fan-out and its plain twin, values, gradients and histories."""

from dataclasses import replace

import pytest
import torch

from graphfm.batch import Block, Edges, Rows
from graphfm.kernels import backend
from graphfm.kernels.fused_aggregate import Combined, combine, fits, keep
from graphfm.kernels.momentum import NEVER_SEEN, Momentum, Noise
from tests.kernels.device import DEVICE, FLOAT_TYPES, with_and_without

CLOSE = {"rtol": 1e-5, "atol": 1e-5}
NUM_DST, NUM_NODES = 5, 40


def block_of(fanout, *, own):
    torch.manual_seed(1)
    size = NUM_DST * (fanout + 1)
    first = torch.arange(NUM_DST + 1, dtype=torch.int32, device=DEVICE) * fanout
    col = torch.arange(NUM_DST, size, dtype=torch.int32, device=DEVICE)
    weight = torch.rand(NUM_DST * fanout, device=DEVICE)
    weight[:fanout] = 0.0  # a node without neighbours
    ids = torch.randint(NUM_NODES, (size,), device=DEVICE)
    ids[1] = ids[0] = 7
    edges = Edges(first, col, weight, size, fanout)
    self_weight = torch.rand(NUM_DST, device=DEVICE) if own else None
    degree = torch.arange(NUM_DST, dtype=torch.float32, device=DEVICE)
    return Block(ids, edges, degree, self_weight)


def momentum_of(width, **changes):
    torch.manual_seed(2)
    past = torch.randn(NUM_NODES + 1, width, device=DEVICE)
    visits = torch.randint(0, 4, (NUM_NODES + 1, 1), device=DEVICE).float()
    whole = Momentum(past, visits, place=None, beta=0.3, fresh=True, whole_gradient=False)
    if changes.pop("lag", False):
        inputs = torch.randn(NUM_NODES + 1, width, device=DEVICE)
        inputs[::3] = NEVER_SEEN
        changes["inputs"] = inputs
    return replace(whole, **changes)


MOMENTUM = {
    "none": None,
    "fresh": {},
    "zero": {"fresh": False},
    "whole gradient": {"whole_gradient": True},
    "beta 0": {"beta": 0.0},
    "beta 1": {"beta": 1.0},
    "lag": {"whole_gradient": True, "lag": True},
    "noise": {"fresh": False, "whole_gradient": True, "noise": Noise(0.8)},
}


@pytest.mark.parametrize("name", MOMENTUM)
@pytest.mark.parametrize("join", [False, True])
@pytest.mark.parametrize(("fanout", "own", "width"), [(1, True, 1), (3, False, 33), (7, True, 300)])
def test_values_and_gradients(name, join, fanout, own, width):
    block = block_of(fanout, own=own)
    assert fits(block)
    settings = MOMENTUM[name]
    momentum = None if settings is None else momentum_of(width, **dict(settings))

    def forward_and_backward():
        rows = torch.randn(block.num_src, width, device=DEVICE, requires_grad=True)
        found = combine(rows, block, join=join, momentum=momentum)
        found.rows.backward(torch.randn_like(found.rows))
        return found.rows.detach(), found.width, found.seen, rows.grad

    ours, plain = with_and_without(forward_and_backward)
    torch.testing.assert_close(ours, plain, **CLOSE)


@pytest.mark.parametrize("kind", FLOAT_TYPES)
@pytest.mark.parametrize("how", ["gathered", "known", "momentum", "placed"])
def test_rows_that_are_read_from_a_table(kind, how):
    block, width = block_of(3, own=True), 33
    table = torch.randn(NUM_NODES, width, device=DEVICE).to(kind)
    known = torch.randn(NUM_NODES, width, device=DEVICE).to(kind) if how == "known" else None
    momentum = momentum_of(width) if how in ("momentum", "placed") else None
    if how == "placed":
        place = torch.arange(NUM_NODES, dtype=torch.int32, device=DEVICE) % 9 + 31
        momentum = replace(momentum, place=place)
    ours, plain = with_and_without(
        lambda: combine(
            Rows(table, block.src_ids), block, join=True, known=known, momentum=momentum
        )
    )
    assert ours.rows.dtype == plain.rows.dtype == torch.float32
    torch.testing.assert_close(ours.rows, plain.rows, **CLOSE)
    torch.testing.assert_close(ours.seen, plain.seen)


def test_known_aggregates_need_no_edges():
    block = block_of(1, own=False)
    no_edges = torch.zeros(NUM_DST + 1, dtype=torch.int32, device=DEVICE)
    nothing = torch.empty(0, device=DEVICE)
    bare = Block(
        block.dst_ids, Edges(no_edges, nothing.int(), nothing, NUM_DST), block.degree, None
    )
    table, known = torch.randn(2, NUM_NODES, 12, device=DEVICE)
    ours, plain = with_and_without(
        lambda: combine(Rows(table, bare.src_ids), bare, join=True, known=known).rows
    )
    assert torch.equal(ours, plain)
    assert torch.equal(ours, torch.cat([known[bare.src_ids], table[bare.src_ids]], dim=1))


def test_a_fanout_that_is_too_large_is_combined_by_plain_code(monkeypatch):
    monkeypatch.setattr("graphfm.kernels.fused_aggregate._launch", None)
    block = block_of(65, own=False)
    rows = torch.randn(block.num_src, 4, device=DEVICE)
    assert combine(rows, block, join=False).rows.shape == (NUM_DST, 4)


def test_rows_in_half_precision_under_autocast():
    block, table = block_of(3, own=True), torch.randn(NUM_NODES, 33, device=DEVICE)
    with torch.autocast(DEVICE.type, torch.bfloat16):
        ours, plain = with_and_without(
            lambda: combine(Rows(table, block.src_ids), block, join=True).rows
        )
    assert ours.dtype == plain.dtype == torch.bfloat16
    torch.testing.assert_close(ours, plain, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("kind", FLOAT_TYPES)
@pytest.mark.parametrize("placed", [False, True])
@pytest.mark.parametrize(("width", "join"), [(1, False), (33, True), (300, True)])
def test_a_history_is_written(kind, placed, width, join):
    """A node that occurs twice has the same row twice; nodes without a row leave no trace."""
    ids = torch.tensor([3, 9, 3, 0, 21], device=DEVICE)
    rows = torch.randn(5, width * (1 + join), device=DEVICE)
    rows[2] = rows[0]
    seen = torch.tensor([4.0, 1.0, 4.0, 2.0, 8.0], device=DEVICE)
    place = torch.full((NUM_NODES + 1,), 12, dtype=torch.int32, device=DEVICE)
    place[:12] = torch.arange(12, dtype=torch.int32, device=DEVICE)

    def write():
        past = torch.randn(13 if placed else NUM_NODES + 1, width, device=DEVICE).to(kind)
        past[-1] = 0
        visits = torch.zeros(past.size(0), 1, device=DEVICE)
        momentum = Momentum(past, visits, place if placed else None, 0.3, True, False)
        keep(Combined(rows, width, seen), ids, momentum)
        return past, visits

    ours, plain = with_and_without(write)
    bits = {"rtol": 1e-2, "atol": 0} if kind == torch.bfloat16 else {"rtol": 0, "atol": 0}
    torch.testing.assert_close(ours, plain, **bits)  # the interpreter cuts bfloat16 off
    assert not ours[0][-1].any()
    assert float(ours[1][3]) == 4.0


def test_what_is_not_a_number_stays_so():
    block = block_of(2, own=True)
    rows = torch.ones(block.num_src, 6, device=DEVICE)
    rows[NUM_DST + 5, 2] = torch.nan  # a source of the third target
    ours, plain = with_and_without(lambda: combine(rows, block, join=True).rows.isnan())
    assert torch.equal(ours, plain)
    assert ours.nonzero().tolist() == [[2, 2]]


def test_an_ablation_combines_by_plain_code(monkeypatch):
    monkeypatch.setattr("graphfm.kernels.fused_aggregate._launch", None)
    block = block_of(2, own=True)
    with backend.without("triton"):
        combine(torch.randn(block.num_src, 4, device=DEVICE), block, join=False)
