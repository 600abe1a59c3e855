"""The rival samples what it should, computes what SAGE computes, and learns."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.nn import SAGEConv

from graphfm import synthetic
from graphfm.errors import InputError
from graphfm.experiments.bench.case import Case
from graphfm.experiments.bench.contender import Ours
from graphfm.experiments.bench.neighbor_loader import NeighborLoader
from graphfm.experiments.bench.pyg_rival import PyGRival, has_pyg
from graphfm.experiments.bench.rival import NumpyRival
from graphfm.runs.run import Run

OPTIONS = {"layers": 2, "hidden": 16, "dropout": 0.0, "batch_size": 64}


@pytest.fixture(scope="module")
def graph():
    return synthetic("small", scale=0.05)


def loader(graph, fanout, batch_size=64, seed=0):
    return NeighborLoader(graph, graph.train_mask.nonzero().squeeze(1), fanout, batch_size, seed)


def neighbors(graph, node: int) -> list[int]:
    return graph.indices[graph.indptr[node] : graph.indptr[node + 1]].tolist()


def test_an_epoch_has_every_training_node_once(graph):
    seen = torch.cat([batch.ids[: batch.num_seeds] for batch in loader(graph, (2, 2))])
    assert seen.sort().values.tolist() == graph.train_mask.nonzero().squeeze(1).tolist()


@settings(max_examples=20, deadline=None)
@given(fanout=st.lists(st.integers(1, 30), min_size=1, max_size=3), seed=st.integers(0, 99))
def test_batches_hold_real_neighbours_no_node_twice_and_as_many_as_asked(fanout, seed):
    graph = synthetic("small", scale=0.01)
    for batch in loader(graph, tuple(fanout), 20, seed):
        assert batch.ids.unique().numel() == batch.ids.numel() == batch.hops[0].num_src
        for hop, upper in zip(batch.hops, [*batch.hops[1:], None], strict=True):
            assert hop.num_dst == (batch.num_seeds if upper is None else upper.num_src)
        for hop, size in zip(batch.hops, fanout, strict=True):
            ids = batch.ids[: hop.num_src]
            for row in range(hop.num_dst):
                node = int(ids[row])
                picked = hop.col[hop.indptr[row] : hop.indptr[row + 1]]
                around = neighbors(graph, node)
                assert picked.numel() == min(size, len(around))
                assert set(ids[picked].tolist()) <= set(around)


def test_picks_are_without_replacement_and_all_alike(graph):
    sampler = loader(graph, (1,))
    picks = sampler._distinct(np.full(20_000, 6), 3)
    assert all(len(set(row)) == 3 for row in picks[:500].tolist())
    share = np.bincount(picks.flatten(), minlength=6) / 20_000
    assert np.abs(share - 0.5).max() < 0.02  # five standard deviations


def test_the_rivals_layer_is_pygs(graph):
    run = Run.make(method="graphsage", fanout=(4, 3), **OPTIONS)
    rival = NumpyRival(run, graph)
    batch = next(iter(rival.batches))
    h = graph.x[batch.ids]
    for depth, (layer, hop) in enumerate(zip(rival.network, batch.hops, strict=True)):
        conv = SAGEConv(layer.root.in_features, layer.root.out_features)
        conv.lin_l.load_state_dict(layer.neighbors.state_dict())
        conv.lin_r.load_state_dict(layer.root.state_dict())
        row = torch.arange(hop.num_dst).repeat_interleave(hop.indptr.diff())
        expected = conv((h, h[: hop.num_dst]), torch.stack([hop.col, row]))
        h = layer(h, hop)
        torch.testing.assert_close(h, expected, rtol=1e-4, atol=1e-5)
        h = h.relu() if depth == 0 else h
    torch.testing.assert_close(rival.logits(batch)[0], h)


@pytest.mark.parametrize("multi_label", [False, True])
def test_the_rival_learns(multi_label):
    graph = synthetic("yelp", scale=0.001) if multi_label else synthetic("small", scale=0.05)
    rival = NumpyRival(Run.make(method="graphsage", fanout=(3, 3), **OPTIONS), graph)
    losses = [rival.epoch() for _ in range(6)]
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.parametrize("steps", [0, 3])
def test_both_sides_take_as_many_steps_and_see_as_many_rows(graph, steps):
    run = Run.make(method="graphsage", fanout=(3, 2), steps_per_epoch=steps, **OPTIONS)
    rival, ours = NumpyRival(run, graph), Ours(run, graph)
    ours.epoch()
    batches = list(rival.batches)
    assert len(batches) == ours.trainer.touched["steps"]
    most = 64 * 3 * 4  # of ours, which may hold a node twice
    assert ours.trainer.touched["nodes"] <= most * ours.trainer.touched["steps"]
    assert all(batch.ids.numel() <= most for batch in batches)


def test_fanouts_go_from_the_targets_outward_on_both_sides(graph, monkeypatch):
    """5 neighbours of a target, then 2 of each: ours, the loader's, and what PyG is asked for."""
    run = Run.make(method="graphsage", fanout=(5, 2), **OPTIONS)
    loaded = next(iter(NumpyRival(run, graph).batches))
    sampler = Ours(run, graph).trainer.method.sampler
    ours = sampler.sample(loaded.ids[: loaded.num_seeds], torch.Generator().manual_seed(0))
    most = [int(block.edges.indptr.diff().max()) for block in ours.blocks]
    assert most == [int(hop.indptr.diff().max()) for hop in loaded.hops] == [2, 5]
    monkeypatch.setattr("graphfm.experiments.bench.pyg_rival.has_pyg", lambda: True)
    monkeypatch.setattr(
        "torch_geometric.loader.NeighborLoader", lambda data, **how: SimpleNamespace(**how)
    )
    assert PyGRival(run, graph).batches.num_neighbors == [5, 2]


def test_without_pyg_the_loader_is_ours_and_says_so(graph, monkeypatch):
    options = {"method": "graphsage", "fanout": (2, 2), **OPTIONS}
    case = Case(name="one", dataset="synthetic:small:0.05", options=options, rival="loader")
    monkeypatch.setattr("graphfm.experiments.bench.case.has_pyg", lambda: False)
    assert "written for this benchmark" in case.make_rival(graph).name
    monkeypatch.setattr("graphfm.experiments.bench.pyg_rival.has_pyg", lambda: False)
    with pytest.raises(InputError, match="not installed; install torch_geometric"):
        PyGRival(case.run(), graph)


@pytest.mark.skipif(not has_pyg(), reason="PyG's compiled sampler is not installed")
@pytest.mark.filterwarnings("ignore")
def test_pygs_loader_learns_too(graph):
    rival = PyGRival(Run.make(method="graphsage", fanout=(3, 3), **OPTIONS), graph)
    losses = [rival.epoch() for _ in range(6)]
    assert losses[-1] < 0.9 * losses[0]


def test_full_batch_is_a_rival_with_the_same_network(graph):
    options = {"method": "gas", "backbone": "gcn", "layers": 3, "hidden": 8, "parts": 4}
    case = Case(name="gas", dataset="synthetic:small:0.05", options=options, rival="full")
    rival = case.make_rival(graph)
    assert isinstance(rival, Ours)
    assert len(rival.trainer.backbone.layers) == 3
    assert rival.trainer.backbone.layers[0].out_width == 8
    rival.epoch()
    assert rival.trainer.touched["steps"] == 1
