"""What a batch sends to its halo, by a kernel and by plain code."""

import pytest
import torch

from graphfm.batch import Block, Edges, offsets
from graphfm.kernels.halo_update import Affine, Blend, spread
from tests.kernels.device import DEVICE, FLOAT_TYPES, with_and_without


def view_of(num_halo, num_batch):
    """A halo that reads a batch along random edges, some of it along none."""
    torch.manual_seed(2)
    counts = torch.randint(0, 12, (num_halo,))
    counts[:3] = torch.tensor([0, 200, 0])
    total = int(counts.sum())
    col = torch.randint(num_batch, (total,)) + num_halo
    edges = Edges(
        offsets(counts).int().to(DEVICE),
        col.int().to(DEVICE),
        torch.rand(total).to(DEVICE),
        num_halo + num_batch,
    )
    ids = torch.randperm(num_halo + num_batch).to(DEVICE)
    return Block(ids, edges, counts.float().to(DEVICE))


def blend_of(how, width, num_halo):
    torch.manual_seed(1)
    bias = torch.randn(width, device=DEVICE)
    weight = torch.eye(width, device=DEVICE)
    share = torch.rand(num_halo).where(torch.arange(num_halo) > 5, torch.tensor(0.0)).to(DEVICE)
    factor = torch.rand(num_halo).to(DEVICE) if "rescaled" in how else None
    return Blend(Affine(weight, bias, relu="no relu" not in how), factor, share)


@pytest.mark.parametrize("kind", FLOAT_TYPES)
@pytest.mark.parametrize("width", [1, 33, 300])
@pytest.mark.parametrize("how", ["add", "blend", "blend rescaled, no relu"])
def test_a_batch_spreads_to_its_halo(kind, width, how):
    view = view_of(60, 40)
    rows = torch.randn(40, width).to(DEVICE)
    blend = None if how == "add" else blend_of(how, width, 60)

    def change():
        table = torch.randn(101, width, device=DEVICE).to(kind)
        spread(table, rows, view, blend)
        return table

    close = {"rtol": 1e-4, "atol": 1e-4} if kind == torch.float32 else {"rtol": 1e-2, "atol": 1e-2}
    torch.testing.assert_close(*with_and_without(change), **close)


@pytest.mark.parametrize("how", ["add", "blend"])
def test_what_is_not_a_number_arrives(how):
    view, rows = view_of(20, 8), torch.ones(8, 5, device=DEVICE)
    rows[3, 2] = torch.nan
    blend = None if how == "add" else blend_of(how, 5, 20)

    def change():
        table = torch.zeros(29, 5, device=DEVICE)
        spread(table, rows, view, blend)
        return table.isnan()

    ours, plain = with_and_without(change)
    assert ours.any()
    assert torch.equal(ours, plain)


def test_a_batch_without_a_halo_changes_nothing():
    view = view_of(60, 40)
    edges = Edges(view.edges.indptr[:1], view.edges.col[:0], view.edges.weight[:0], 40)
    empty = Block(view.src_ids[:40], edges, view.degree[:0])
    table = torch.randn(101, 4, device=DEVICE)
    before = table.clone()
    spread(table, torch.randn(40, 4, device=DEVICE), empty, None)
    assert torch.equal(table, before)
