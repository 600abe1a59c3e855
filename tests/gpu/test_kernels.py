"""Triton's kernels and their plain twins. Run on a machine with a GPU: `pytest tests/gpu`.

They also run without one, as Python: `TRITON_INTERPRET=1 pytest tests/gpu/test_kernels.py`.
"""

import pytest
import torch
from torch.nn.functional import cross_entropy

from graphfm.data.matrix.adjacency import Adjacency
from graphfm.kernels import backend as compiled
from graphfm.kernels import matmul as product
from graphfm.kernels import precompile as ahead
from graphfm.kernels.adam import Adam
from graphfm.kernels.cross_entropy import backward, mean_cross_entropy, number_marked
from graphfm.kernels.linear import linear
from graphfm.kernels.table_write import put_rows
from graphfm.runs.run import Run, build
from graphfm.samplers.neighbor import NeighborSampler
from graphfm.step_plan import StepPlan

DEVICE = torch.device("cpu" if compiled.INTERPRETED else "cuda")
pytestmark = pytest.mark.skipif(
    not (compiled.INTERPRETED or torch.cuda.is_available()), reason="needs a GPU"
)
ADJACENCIES = {"mean": Adjacency.mean, "symmetric": Adjacency.symmetric}
CLOSE = {"rtol": 1e-5, "atol": 1e-6}  # sums in another order


def test_the_kernels_are_there():
    assert compiled.available(DEVICE)
    with compiled.kernels(False):
        assert not compiled.available(DEVICE)


@pytest.mark.parametrize("kind", ADJACENCIES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fanout", [(1,), (3, 2), (7,)])
def test_the_same_neighbours_are_picked(make_graph, kind, weighted, fanout):
    """Nodes and degrees bit for bit, isolated nodes and loops included; weights to rounding."""
    graph = make_graph(num_nodes=400, num_edges=1500, weighted=weighted).to(DEVICE)
    batches = []
    for wanted in (True, False):
        sampler = NeighborSampler(fanout=fanout, batch_size=9)
        sampler.prepare(ADJACENCIES[kind](graph), StepPlan(num_layers=2))
        sampler.distinct = None  # a GPU's layout, where this runs as Python
        seeds = torch.tensor([5, 399, 5, 0, 17], device=DEVICE)
        with compiled.kernels(wanted):
            batches.append(sampler.sample(seeds, torch.Generator(DEVICE).manual_seed(3)))
    for ours, plain in zip(batches[0].blocks, batches[1].blocks, strict=True):
        assert torch.equal(ours.src_ids, plain.src_ids)
        torch.testing.assert_close(ours.edges.weight, plain.edges.weight, rtol=1e-6, atol=0)
        assert torch.equal(ours.degree, plain.degree)


METHODS = {
    "graphsage": {"method": "graphsage", "fanout": (3, 2)},
    "ib": {"method": "graphfm-ib", "fanout": (2, 1)},
    "ib sampled first hop": {"method": "graphfm-ib", "exact_first_hop": False},
    "ib as published": {
        "method": "graphfm-ib", "exact_first_hop": False, "start": "zero", "beta": (0.9,)
    },
    "ib whole gradient": {"method": "graphfm-ib", "whole_gradient": True, "beta": (0.2,)},
    "ib half tables": {"method": "graphfm-ib", "history": "fp16"},
    "ib beta 1": {"method": "graphfm-ib", "beta": (1.0,)},
    "ib beta 0": {"method": "graphfm-ib", "beta": (0.0,)},
    "vr-gcn": {"method": "vr-gcn"},
    "vr-gcn sampled first hop": {"method": "vr-gcn", "exact_first_hop": False},
}  # fmt: skip


@pytest.mark.parametrize("backbone", ["sage", "gcn", "gcnii", "pna"])
@pytest.mark.parametrize("name", METHODS)
def test_training_is_the_same_with_and_without(make_graph, name, backbone):
    """Losses of six steps within 1e-4, weights and histories too (half tables: one part in 500)."""
    options = {
        "residual": True,
        "layers": 2,
        "hidden": 16,
        "lr": 0.001,
        "batch_size": 20,
        **METHODS[name],
    }
    graph = make_graph(num_nodes=500, num_edges=3000)
    trainers = []
    for kernels in ("auto", "plain"):
        run = Run.make(
            dataset="x", backbone=backbone, dropout=0.0, kernels=kernels, steps_per_epoch=6,
            device=DEVICE.type, **options,
        )  # fmt: skip
        trainers.append(build(run, graph))
        sampler = trainers[-1].method.sampler  # a GPU's layout, where this runs as Python
        sampler.distinct, sampler.reads_in_place = None, False
    ours, plain = trainers
    assert ours.epoch() == pytest.approx(plain.epoch(), rel=1e-4)
    half = options.get("history") == "fp16"
    close = {"rtol": 2e-3, "atol": 2e-3} if half else {"rtol": 1e-3, "atol": 1e-4}
    torch.testing.assert_close(ours.backbone.state_dict(), plain.backbone.state_dict(), **close)
    for table, rows in ours.method.estimator.histories_by_name().items():
        torch.testing.assert_close(
            rows.rows[:-1], plain.method.estimator.histories_by_name()[table].rows[:-1], **close
        )


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(("num_rows", "width", "out"), [(1, 3, 1), (70, 33, 17), (300, 64, 130)])
@pytest.mark.parametrize("programs", [1, 132])
def test_a_linear_layer_and_its_gradients(monkeypatch, num_rows, width, out, relu, programs):
    monkeypatch.setattr(product, "PROGRAMS", programs)
    x = torch.randn(num_rows, width, device=DEVICE, requires_grad=True)
    weight = torch.randn(out, width, device=DEVICE, requires_grad=True)
    bias, change = torch.randn(out, device=DEVICE).requires_grad_(), torch.randn(num_rows, out)
    found = []
    for wanted in (True, False):
        with compiled.kernels(wanted):
            rows = linear(x, weight, bias, relu=relu)
        gradients = torch.autograd.grad(rows, (x, weight, bias), change.to(DEVICE))
        found.append((rows.detach(), *gradients))
    torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("shape", [(1, 64, 1), (70, 300, 33), (2000, 100, 130)])
@pytest.mark.parametrize("tile", [product.SMALL, product.MEDIUM, product.LARGE])
def test_products_are_as_exact_as_the_librarys(monkeypatch, shape, tile, back):
    """Against float64, the largest error is at most twice that of the library."""
    num_rows, inner, width = shape
    if compiled.INTERPRETED and num_rows > 100:
        num_rows = 100
    monkeypatch.setattr(product, "_tile", lambda *_: tile)
    torch.manual_seed(0)
    rows = torch.randn(num_rows, 2 * inner, device=DEVICE)[:, :inner]
    weight, bias = torch.randn(width, inner, device=DEVICE), torch.randn(width, device=DEVICE)
    if back:
        want = rows.double() @ weight.double().t()
        found = product.multiply_back(rows, weight.t()).double()
        library = (rows @ weight.t()).double()
    else:
        want = (rows.double() @ weight.double().t() + bias.double()).relu()
        found = product.multiply(rows, weight, bias, relu=True).double()
        library = torch.addmm(bias, rows, weight.t()).relu().double()
    assert (found - want).abs().max() <= 2 * (library - want).abs().max() + 1e-6


@pytest.mark.parametrize("shape", [(1, 64, 1), (70, 300, 33), (2000, 100, 130)])
def test_gradients_of_weights_are_as_exact_as_the_librarys(shape):
    """Against float64, the largest error is at most twice that of the library."""
    num_rows, inner, width = shape
    if compiled.INTERPRETED and num_rows > 300:
        num_rows = 300
    torch.manual_seed(0)
    rows = torch.randn(num_rows, 2 * inner, device=DEVICE)[:, :inner]
    grad = torch.randn(num_rows, width, device=DEVICE)
    of_weight, of_bias = product.gradients(rows, product.turn(grad, None)[1])
    want = grad.double().t() @ rows.double()
    library = (grad.t() @ rows).double()
    assert (of_weight.double() - want).abs().max() <= 2 * (library - want).abs().max() + 1e-6
    torch.testing.assert_close(of_bias, grad.sum(0), rtol=1e-5, atol=1e-4)


@pytest.mark.skipif(compiled.INTERPRETED, reason="nothing is compiled")
@pytest.mark.parametrize("num_rows", [40, 300, 3000])
@pytest.mark.parametrize("relu", [True, False])
def test_gradients_find_their_kernels_compiled(monkeypatch, num_rows, relu):
    """A layer of a shape that no other test has; what its gradient takes was expected."""
    triton = pytest.importorskip("triton")
    x = torch.randn(num_rows, 88 + 16 * relu, device=DEVICE, requires_grad=True)
    weight = torch.randn(num_rows // 20 + 65, x.size(1), device=DEVICE, requires_grad=True)
    bias = torch.randn(weight.size(0), device=DEVICE, requires_grad=True)
    compiling = []
    monkeypatch.setattr(
        triton.knobs.runtime, "jit_cache_hook", lambda **given: compiling.append(given["fn"].name)
    )
    out = linear(x, weight, bias, relu=relu)
    ahead.settle()
    assert {"gradient", "turned_product"} <= set(compiling)
    compiling.clear()
    out.sum().backward()
    assert not compiling


@pytest.mark.skipif(compiled.INTERPRETED, reason="nothing runs beside it")
@pytest.mark.parametrize("shape", [(512, 512, 41), (1024, 512, 256), (2048, 512, 256)])
def test_products_have_the_same_bits_beside_other_work(shape):
    """Kernels that do not wait for all they have begun are wrong now and then, and only so."""
    num_rows, inner, width = shape
    rows, weight = torch.randn(num_rows, inner, device=DEVICE), torch.randn(width, inner).to(DEVICE)
    grad, bias = torch.randn(num_rows, width, device=DEVICE), torch.randn(width, device=DEVICE)
    table, ids = torch.randn(1 << 20, 64, device=DEVICE), torch.randint(1 << 20, (1 << 16,))
    ids = ids.to(DEVICE)

    def all_products():
        return (
            product.multiply(rows, weight, bias, relu=True),
            product.multiply_back(grad, weight),
            *product.gradients(rows, product.turn(grad, None)[1]),
        )

    want = all_products()
    graph, trunk = torch.cuda.CUDAGraph(), torch.cuda.Stream(priority=-1)
    wrong, beside = torch.zeros((), dtype=torch.int64, device=DEVICE), torch.cuda.Stream()
    with torch.cuda.graph(graph, stream=trunk):
        beside.wait_stream(trunk)
        with torch.cuda.stream(beside):
            for _ in range(20):
                table.index_select(0, ids)
        for _ in range(20):
            for found, wanted in zip(all_products(), want, strict=True):
                wrong += (found != wanted).any()
        trunk.wait_stream(beside)
    for _ in range(50):
        graph.replay()
    assert int(wrong) == 0


@pytest.mark.parametrize("bits", [0x7FFFFFFF, 0x7FC00000, -1])  # a GPU's NaN, a CPU's, another
@pytest.mark.parametrize("where", ["rows", "gradient"])
def test_gradients_of_what_is_not_a_number_are_none(bits, where):
    rows, grad = torch.ones(20, 70, device=DEVICE), torch.ones(20, 5, device=DEVICE)
    (rows if where == "rows" else grad).view(torch.int32)[3, 2] = bits
    of_weight, of_bias = product.gradients(rows, product.turn(grad, None)[1])
    want = grad.t() @ rows
    assert want.isnan().any()
    assert torch.equal(of_weight.isnan(), want.isnan())
    assert torch.equal(of_bias.isnan(), grad.sum(0).isnan())


def test_what_is_not_a_number_stays_so():
    rows = torch.ones(3, 64, device=DEVICE)
    rows[1, 5] = torch.nan
    found = product.multiply(rows, torch.ones(2, 64, device=DEVICE), relu=True)
    assert found.isnan().tolist() == [[False] * 2, [True] * 2, [False] * 2]


@pytest.mark.parametrize("many", [10, 1000])
def test_the_mean_loss_and_its_gradient(monkeypatch, many):
    """Nodes that do not train, and nodes without a label, count for nothing."""
    monkeypatch.setattr("graphfm.kernels.cross_entropy.MANY_ROWS", many)
    logits = torch.randn(50, 7, device=DEVICE, requires_grad=True)
    ids = torch.randint(90, (50,), device=DEVICE)
    labels = torch.randint(-1, 7, (90,), device=DEVICE)
    mask = (torch.rand(90, device=DEVICE) < 0.5) & (labels >= 0)
    totals = torch.tensor([2.0, 3.0], device=DEVICE)
    number = number_marked(ids, mask)
    assert float(number) == float(mask[ids].sum())
    loss = mean_cross_entropy(logits, ids, labels, mask, number, totals)
    backward(loss)
    gradient, logits.grad = logits.grad, None
    want = cross_entropy(logits[mask[ids]], labels[ids][mask[ids]])
    want.backward()
    torch.testing.assert_close(loss, want.detach(), **CLOSE)
    torch.testing.assert_close(gradient, logits.grad, **CLOSE)
    count = mask[ids].sum().float()
    torch.testing.assert_close(totals, torch.stack([2 + want.detach() * count, 3 + count]), **CLOSE)
    loss = mean_cross_entropy(logits, ids, labels, mask, number, totals)
    (twice,) = torch.autograd.grad(2 * loss, logits)
    torch.testing.assert_close(twice, 2 * gradient, **CLOSE)


@pytest.mark.parametrize("how", ["write", "add", "blend"])
@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.bfloat16])
def test_rows_are_written_where_they_belong(kind, how):
    ids = torch.tensor([4, 0, 7], device=DEVICE)
    values, found = torch.randn(3, 600, device=DEVICE)[:, :300], []
    for wanted in (True, False):
        torch.manual_seed(5)
        table = torch.randn(9, 300, device=DEVICE).to(kind)
        with compiled.kernels(wanted):
            shares = torch.tensor([0.0, 0.3, 1.0], device=DEVICE) if how == "blend" else None
            put_rows(table, ids, values, add=how == "add", shares=shares)
        found.append(table)
    torch.testing.assert_close(*found)


def test_adam_is_torchs():
    """Twenty steps of both, of parameters of all sizes, more than one launch takes."""
    shapes = [(30, 50), (30,), (1,), (2000,), (7, 3)] * 8
    ours = [torch.nn.Parameter(torch.randn(shape, device=DEVICE)) for shape in shapes]
    theirs = [torch.nn.Parameter(p.detach().clone()) for p in ours]
    rate = torch.tensor(0.01, device=DEVICE)
    mine = Adam(ours, lr=rate, weight_decay=0.1, foreach=False, capturable=DEVICE.type == "cuda")
    other = torch.optim.Adam(theirs, lr=0.01, weight_decay=0.1)
    for _ in range(20):
        for p, q in zip(ours, theirs, strict=True):
            p.grad = torch.randn_like(p)
            q.grad = p.grad.clone()
        mine.step()
        other.step()
    for p, q in zip(ours, theirs, strict=True):
        torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)
    for p, q in zip(ours, theirs, strict=True):
        assert float(mine.state[p]["step"]) == float(other.state[q]["step"]) == 20
