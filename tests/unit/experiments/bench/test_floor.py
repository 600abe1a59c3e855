"""The floor's bytes, against a count by hand."""

import pytest
import torch

from graphfm import Graph
from graphfm.data.matrix.partition import partition
from graphfm.experiments.bench.contender import Ours
from graphfm.experiments.bench.floor import Reach, StepBytes, step_bytes
from graphfm.experiments.bench.turns import reach
from graphfm.runs.run import Run

NODES, EDGES, FEATURES, CLASSES, TRAIN = 100, 400, 6, 3, 50


@pytest.fixture
def graph() -> Graph:
    """A ring: everybody reads the four next."""
    target = torch.arange(NODES).repeat_interleave(4)
    source = (target + 1 + torch.arange(EDGES) % 4) % NODES
    return Graph.from_edges(
        torch.stack([source, target]),
        torch.zeros(NODES, FEATURES),
        torch.zeros(NODES, dtype=torch.int64),
        num_classes=CLASSES,
        train_mask=torch.arange(NODES) < TRAIN,
        val_mask=torch.arange(NODES) >= TRAIN,
    )


def made(method: str, backbone: str = "sage", **options) -> Run:
    return Run.make(backbone=backbone, method=method, hidden=5, dropout=0.0, **options)


def test_graphsage(graph):
    found = step_bytes(made("graphsage", layers=2, fanout=(2, 3), batch_size=10), graph)
    # 10 seeds read 20 more rows, these 30 another 90; each node's ends, each neighbour's id
    structure = 10 * 16 + (10 * 16 + 20 * 4) + (30 * 16 + 90 * 4)
    weights = (2 * 6 * 5 + 5) + (2 * 5 * 3 + 3)
    assert found == StepBytes(structure, features=120 * 6 * 4, weights=weights * 32)
    assert found.total == structure + 120 * 6 * 4 + weights * 32


def test_a_step_reads_no_more_rows_than_there_are(graph):
    found = step_bytes(made("graphsage", layers=2, fanout=(4, 50), batch_size=10), graph)
    assert found.features == (10 + 40 + NODES) * 6 * 4


def test_momentum_reads_and_writes_a_history_and_counts_visits(graph):
    options = {"layers": 2, "fanout": (2, 3), "batch_size": 10, "exact_first_hop": False}
    plain = step_bytes(made("graphsage", layers=2, fanout=(2, 3), batch_size=10), graph)
    found = step_bytes(made("graphfm-ib", **options), graph)
    both = 10 * (2 * 5 * 4 + 8) + 30 * (2 * 6 * 4 + 8)  # hidden rows of 5, features of 6
    assert found == plain + StepBytes(histories=both)
    half = step_bytes(made("graphfm-ib", history="fp16", **options), graph)
    assert half.histories == 10 * (2 * 5 * 2 + 8) + 30 * (2 * 6 * 2 + 8)


def test_a_known_first_hop_needs_no_neighbours(graph):
    found = step_bytes(made("graphfm-ib", layers=2, fanout=(1, 1), batch_size=10), graph)
    assert found.structure == 10 * 16 + (10 * 16 + 10 * 4)
    assert found.features == 20 * 6 * (4 + 4)  # 20 nodes: their own rows, their neighbours' mean
    assert found.histories == 10 * (2 * 5 * 4 + 8)


def test_features_of_two_bytes(graph):
    run = made("graphfm-ib", layers=2, batch_size=10)
    half = Graph.from_edges(
        torch.zeros(2, 0, dtype=torch.int64), graph.x, graph.y,
        num_classes=CLASSES, train_mask=graph.train_mask,
    )  # fmt: skip
    object.__setattr__(half, "x", graph.x.half())
    assert step_bytes(run, half).features == 20 * 6 * (2 + 2)


def test_full_batch(graph):
    found = step_bytes(made("full", "gcn", layers=2), graph)
    edges, nodes = EDGES, NODES
    assert found.structure == nodes * 16 + (nodes * 16 + edges * 4) * 3  # twice there, once back
    assert found.features == edges * 6 * 4
    first = 3 * nodes * 6 * 4 + 2 * nodes * 5 * 4
    second = 4 * nodes * 5 * 4 + 2 * nodes * 3 * 4 + 2 * edges * 5 * 4
    assert found.hidden == first + second
    assert (found.histories, found.weights) == (0, (6 * 5 + 5 + 5 * 3 + 3) * 32)


PARTS = {"layers": 3, "parts": 10, "parts_per_batch": 2}  # 20 nodes and 80 edges a step
REACH = Reach(halo=30, cut=25)


def test_parts_with_a_history(graph):
    found = step_bytes(made("gas", "gcn", **PARTS), graph, REACH)
    assert found.features == (2 * 20 + 30) * 6 * 4
    assert found.histories == 20 * 5 * 4 * 2  # two hidden layers leave their rows
    layer = (20 * 16 + 80 * 4) + (20 * 16 + 55 * 4)  # 55 edges stay inside: the gradient's way
    assert found.structure == 20 * 16 + 2 * layer
    second = (4 * 20 * 5 + 2 * 20 * 5 + 80 * 5 + 55 * 5) * 4
    third = (4 * 20 * 5 + 2 * 20 * 3 + 80 * 5 + 55 * 5) * 4
    assert found.hidden == 2 * 20 * 5 * 4 + second + third


def test_what_moving_the_halo_adds(graph):
    gas = step_bytes(made("gas", "gcn", **PARTS), graph, REACH)
    back = StepBytes(structure=30 * 16 + 25 * 4, hidden=25 * 5 * 4)
    found = step_bytes(made("graphfm-ob", "gcn", **PARTS), graph, REACH)
    assert found == gas + back + StepBytes(histories=2 * 30 * 5 * 4)
    found = step_bytes(made("graphfm-delta", "gcn", **PARTS), graph, REACH)
    own = StepBytes(histories=2 * (3 * 20 + 2 * 30) * 5 * 4 - gas.histories)
    assert found == gas + back + back + own


@pytest.mark.parametrize("method", ["gas", "graphfm-ob", "graphfm-delta", "cluster-gcn"])
def test_how_far_parts_reach(graph, method):
    """Five parts, one a batch; who is read from several is a node of several halos."""
    part = partition(graph, 5, how="random", seed=0)
    source, target = graph.edge_index
    cut = part[source] != part[target]
    read = torch.unique(torch.stack([source, part[target]])[:, cut], dim=1)
    run = made(method, "gcn", partition="random", parts=5, parts_per_batch=1)
    found = reach(Ours(run, graph))
    whole = Reach(halo=read.size(1) / 5, cut=int(cut.sum()) / 5)
    assert found == (Reach(0, 0) if method == "cluster-gcn" else whole)


def test_what_is_not_counted_is_not_guessed(graph):
    assert step_bytes(made("graphsaint"), graph) is None
    assert step_bytes(made("graphsage", "pna"), graph) is None
