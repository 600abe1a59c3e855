"""Kernels over a halo and their plain twins; also run as Python, see `test_kernels.py`."""

import pytest
import torch

from graphfm.batch import Block, Edges, offsets
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.kernels import backend as compiled
from graphfm.kernels.halo_update import Affine, Blend
from graphfm.runs.run import Run, build
from graphfm.tables.device import DeviceTable

DEVICE = torch.device("cpu" if compiled.INTERPRETED else "cuda")
pytestmark = pytest.mark.skipif(
    not (compiled.INTERPRETED or torch.cuda.is_available()), reason="needs a GPU"
)
KINDS = [torch.float32, torch.float16, torch.bfloat16]


def table_of(rows):
    table = DeviceTable(len(rows), rows.size(1), dtype=rows.dtype, device=rows.device)
    table.rows[:-1] = rows
    return table


def with_and_without(change, shape, kind):
    """The table that `change` leaves, by kernels and by plain code."""
    found = []
    for wanted in (True, False):
        torch.manual_seed(5)
        table = table_of(torch.randn(shape, device=DEVICE).to(kind))
        with compiled.kernels(wanted):
            change(table)
        found.append(table.rows)
    return found


def affine_of(out_width, in_width, *, relu):
    torch.manual_seed(1)
    weight, bias = torch.randn(out_width, in_width), torch.randn(out_width)
    return Affine(weight.to(DEVICE), bias.to(DEVICE), relu)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(("in_width", "out_width"), [(3, 1), (33, 130), (100, 64)])
def test_outputs_of_some_rows(kind, relu, in_width, out_width):
    ids = torch.randperm(300)[:150].to(DEVICE)
    affine = affine_of(out_width, in_width, relu=relu)
    sums = table_of(torch.randn(300, in_width).to(DEVICE, kind))
    ours, plain = with_and_without(
        lambda table: table.put_outputs(ids, affine, sums), (300, out_width), kind
    )
    close = {"rtol": 1e-5, "atol": 1e-4} if kind == torch.float32 else {"rtol": 1e-2, "atol": 1e-2}
    torch.testing.assert_close(ours, plain, **close)


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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [1, 33, 300])
@pytest.mark.parametrize("how", ["add", "blend", "blend rescaled, no relu"])
def test_a_batch_spreads_to_its_halo(kind, width, how):
    view = view_of(60, 40)
    rows, blend = torch.randn(40, width).to(DEVICE), None
    if how != "add":
        share = torch.rand(60).where(torch.arange(60) > 5, torch.tensor(0.0)).to(DEVICE)
        factor = torch.rand(60).to(DEVICE) if "rescaled" in how else None
        blend = Blend(affine_of(width, width, relu="no" not in how), factor, share)
    ours, plain = with_and_without(
        lambda table: table.spread(rows, view, blend), (100, width), kind
    )
    close = {"rtol": 1e-4, "atol": 1e-4} if kind == torch.float32 else {"rtol": 1e-2, "atol": 1e-2}
    torch.testing.assert_close(ours, plain, **close)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["mean", "symmetric"])
def test_a_block_of_all_neighbours(make_graph, kind, weighted):
    graph = make_graph(num_nodes=200, num_edges=1500, weighted=weighted).to(DEVICE)
    adjacency, found = getattr(Adjacency, kind)(graph), []
    for wanted in (True, False):
        for number in (0, 1, 90):
            with compiled.kernels(wanted):
                block = adjacency.block(torch.arange(number, device=DEVICE) * 2)
            found.append((block.src_ids, block.degree, vars(block.edges), vars(block.by_id)))
    torch.testing.assert_close(found[:3], found[3:])


METHODS = {
    "gas": {"method": "gas"},
    "ob": {"method": "graphfm-ob", "beta": (0.3,)},
    "ob as published": {
        "method": "graphfm-ob", "partial": "sum", "start": "zero", "exact_first_hop": False
    },
    "ob above a threshold": {"method": "graphfm-ob", "threshold": 2},
    "ob half tables": {"method": "graphfm-ob", "history": "fp16"},
    "delta": {"method": "graphfm-delta"},
    "delta half tables": {"method": "graphfm-delta", "history": "fp16"},
    "delta sampled first hop": {"method": "graphfm-delta", "exact_first_hop": False},
}  # fmt: skip


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("options", [{}, {"residual": True}, {"backbone": "sage"}])
@pytest.mark.parametrize("name", METHODS)
def test_cluster_methods_are_the_same_with_and_without(make_graph, name, options, undirected):
    """Losses of two epochs within 1e-4, weights and histories too (half tables: 1 in 200)."""
    graph, found = make_graph(num_nodes=300, num_edges=2000, undirected=undirected), []
    for kernels in ("auto", "plain"):
        settings = {"backbone": "gcn", **METHODS[name], **options}
        run = Run.make(
            dataset="x", layers=3, hidden=16, dropout=0.0, lr=0.001, parts=6, parts_per_batch=2,
            partition="random", kernels=kernels, device=DEVICE.type, **settings,
        )  # fmt: skip
        trainer = build(run, graph)
        losses = [trainer.epoch() for _ in range(2)]
        tables = trainer.method.estimator.tables
        found.append((losses, trainer.backbone.state_dict(), {n: tables[n].rows for n in tables}))
    ours, plain = found
    half = "half" in name
    assert ours[0] == pytest.approx(plain[0], rel=1e-3 if half else 1e-4)
    close = {"rtol": 5e-3, "atol": 5e-3} if half else {"rtol": 1e-3, "atol": 1e-4}
    torch.testing.assert_close(ours[1:], plain[1:], **close)
