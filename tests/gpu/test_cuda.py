"""The same numbers on a GPU. Run on a machine that has one: `pytest tests/gpu`."""

import pytest
import torch

from graphfm import Graph, synthetic, train
from graphfm.backbones import BACKBONES, make_backbone
from graphfm.batch import Block, Edges
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.data.matrix.hops import hops
from graphfm.data.synthetic import Shape
from graphfm.kernels import segment_max, segment_min
from graphfm.training.inference import LayerwiseInference

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
OPTIONS = {
    "pna": {
        "aggregators": ("mean", "max", "min", "std"),
        "scalers": ("identity", "amplification", "attenuation"),
    }
}


@pytest.fixture(autouse=True)
def _float32_products():
    torch.backends.cuda.matmul.allow_tf32 = False


@pytest.mark.parametrize("name", BACKBONES)
def test_gpu_and_cpu_agree(make_graph, taken, name):
    graph = make_graph(num_nodes=500, num_edges=6000, weighted=True)
    options = taken(name, dropout=0.0, batch_norm=True, **OPTIONS.get(name, {}))
    backbone = make_backbone(name, 7, 4, **options)
    backbone.calibrate(graph)
    want = LayerwiseInference(backbone.adjacency(graph))(backbone)
    there = graph.to("cuda")
    infer = LayerwiseInference(backbone.adjacency(there), chunk_nodes=100)
    assert len(infer.ranges) > 1
    torch.testing.assert_close(infer(backbone.cuda()).cpu(), want, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", BACKBONES)
def test_losses_on_gpu_and_cpu_agree(make_graph, taken, name):
    graph = make_graph(num_nodes=500, num_edges=6000)
    options = taken(name, dropout=0.0, **OPTIONS.get(name, {}))
    scores = [
        train(graph, device=device, backbone=name, epochs=5, **options).score
        for device in ("cpu", "cuda")
    ]
    assert scores[0].val == pytest.approx(scores[1].val, abs=0.02)


@pytest.mark.parametrize("name", BACKBONES)
def test_same_seed_same_numbers(make_graph, name):
    graph = make_graph(num_nodes=3000, num_edges=60_000)
    options = {"backbone": name, "epochs": 5, "device": "cuda", **OPTIONS.get(name, {})}
    first, second = (train(graph, **options).model.backbone.state_dict() for _ in range(2))
    torch.testing.assert_close(first, second, rtol=0, atol=0)


@pytest.mark.parametrize("name", BACKBONES)
def test_the_fast_sums_are_the_same_sums(make_graph, taken, name):
    graph = make_graph(num_nodes=3000, num_edges=60_000)
    options = {"backbone": name, "epochs": 1, "device": "cuda", **taken(name, dropout=0.0)}
    exact, fast = (train(graph, deterministic=d, **options).model for d in (True, False))
    torch.testing.assert_close(exact.predict(graph), fast.predict(graph), atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("name", BACKBONES)
def test_a_graph_without_edges_trains(make_graph, name):
    graph = make_graph(num_edges=0)
    assert train(graph, backbone=name, epochs=2, device="cuda").score.val >= 0


@pytest.mark.parametrize("reduce", [segment_max, segment_min])
def test_a_row_without_edges_in_its_block_is_zero(reduce):
    """Whatever its degree in the graph: the halo of a directed graph has such rows."""
    indptr = torch.tensor([0, 2, 2], dtype=torch.int32, device="cuda")
    col = torch.tensor([0, 1], dtype=torch.int32, device="cuda")
    edges = Edges(indptr, col, torch.ones(2, device="cuda"), 2)
    block = Block(torch.arange(2, device="cuda"), edges, torch.tensor([2.0, 3.0], device="cuda"))
    assert reduce(torch.ones(2, 1, device="cuda"), block).flatten().tolist() == [1.0, 0.0]


def test_hops_in_files_come_back_to_the_gpu(make_graph, tmp_path):
    graph = make_graph(num_nodes=500, num_edges=6000, weighted=True)
    want = hops(Adjacency.symmetric(graph), 3)
    there = Adjacency.symmetric(graph.to("cuda"))
    plain = hops(there, 3, chunk_nodes=100)
    kept = hops(there, 3, chunk_nodes=100, most_in_memory=0, cache=tmp_path)
    assert len(list(tmp_path.glob("*.npy"))) == 3
    for hop in range(4):
        assert kept[hop].is_cuda
        assert torch.equal(kept[hop], plain[hop])
        torch.testing.assert_close(kept[hop].cpu(), want[hop], atol=1e-5, rtol=1e-5)


def test_a_graph_moves_as_one_thing(make_graph):
    graph = make_graph(weighted=True)
    there = graph.to("cuda")
    assert all(v.is_cuda for v in vars(there).values() if isinstance(v, torch.Tensor))
    assert there.fingerprint == graph.fingerprint
    assert isinstance(there.to("cpu"), Graph)


def test_synthetic_graphs_are_made_where_they_are_wanted():
    graph = synthetic("small", device="cuda")
    assert graph.device.type == "cuda"
    assert graph.fingerprint == synthetic("small", device="cuda").fingerprint


def test_peak_memory_is_the_gpus(make_graph):
    graph = make_graph(num_nodes=3000, num_edges=60_000)
    score = train(graph, epochs=1, device="cuda").score
    assert graph.num_bytes < score.train_bytes <= score.peak_bytes < 2**30


def test_inference_takes_the_memory_of_a_chunk():
    """Beside the graph and the rows of two layers, that is."""
    shape = Shape(
        num_nodes=20_000, num_edges=4_000_000, num_features=64, num_classes=8, split=(0.5, 0.2, 0.3)
    )
    graph = synthetic(shape, device="cuda")
    backbone = make_backbone("pna", 64, 8, hidden=64).cuda()
    rows = 4 * graph.num_nodes * 64
    peaks = []
    for chunk_edges in (1 << 22, 1 << 17):
        infer = LayerwiseInference(backbone.adjacency(graph), chunk_edges=chunk_edges)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        infer(backbone)
        peaks.append(torch.cuda.max_memory_allocated() - before)
    gathered = 4 * 64 * (1 << 17)  # what a maximum needs: a row per edge of the chunk
    assert peaks[1] < 2 * rows + 4 * gathered
    assert peaks[0] > 5 * peaks[1]


def test_the_first_hop_takes_its_table_and_little_more(make_graph):
    graph = make_graph(num_nodes=50_000, num_edges=100_000, num_features=64).to("cuda")
    graph = graph.with_features(torch.float16)
    infer = LayerwiseInference(Adjacency.mean(graph), chunk_nodes=1000)
    layer = make_backbone("sage", 64, graph.num_classes, layers=2, dropout=0.0).layers[0].cuda()
    infer.adjacency.block(torch.arange(1000, device="cuda"))  # what is made once for a graph
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    table = infer.know_first_hop(layer, graph.x)
    taken = torch.cuda.max_memory_allocated() - before
    assert taken < 1.5 * table.rows.nbytes


def test_the_fingerprint_is_that_of_the_cpu(make_graph):
    graph = make_graph(num_nodes=3000, num_edges=20_000, weighted=True)
    assert graph.to("cuda").fingerprint == graph.fingerprint
