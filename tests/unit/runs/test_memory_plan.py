from dataclasses import replace

import pytest
import torch

from graphfm import InputError, load, synthetic, train
from graphfm.backbones import BACKBONES
from graphfm.data.datasets import known_size
from graphfm.data.graph.size import GraphSize
from graphfm.data.synthetic import Shape
from graphfm.methods import METHODS
from graphfm.runs.memory_plan import foresee, memory_plan, plan_for
from graphfm.runs.run import Run, backbone_of, build

CPU = torch.device("cpu")


@pytest.mark.parametrize("name", METHODS)
def test_histories_and_features_are_planned_to_the_byte(make_graph, name):
    graph = make_graph(undirected=True)
    for backbone in [backbone_of(name)] if backbone_of(name) else ["sage", "gcnii"]:
        run = Run.make(method=name, backbone=backbone, layers=3)
        plan, trainer = memory_plan(run, graph), build(run, graph)
        tables = trainer.method.estimator.tables.values()
        places = {id(t.place): t.place.nbytes for t in tables if t.place is not None}
        assert len(places) <= 1  # tables with rows for seeds only share it
        assert plan.histories == sum(t.rows.nbytes for t in tables) + sum(places.values())
        hop = trainer.method.estimator.first_hop
        own = 0 if backbone_of(name) is None else trainer.x.nbytes
        kept = 0 if hop is None else hop.rows.nbytes
        assert plan.features == own + kept
        numbers = sum(p.numel() for p in trainer.backbone.parameters())
        assert plan.weights == 16 * numbers


def test_numbers_per_node_are_planned_to_the_byte(make_graph):
    run, graph = Run.make(method="graphfm-ib"), make_graph()
    trainer = build(run, graph)
    sampler, adjacency = trainer.method.sampler, trainer.infer.adjacency
    kept = (graph.degree, adjacency.row_scale, sampler.distinct.position_of_node)
    order = 3 * sampler.train_ids.nbytes  # the ids, an epoch's order, and the ids in that order
    assert memory_plan(run, graph).indices == sum(numbers.nbytes for numbers in kept) + order


@pytest.mark.parametrize("backbone", [name for name in BACKBONES if name not in ("mlp", "sgc")])
def test_more_of_anything_is_planned_to_take_more(make_graph, backbone):
    graph = make_graph()

    def step(**options):
        plan = memory_plan(Run.make(backbone=backbone, **options), graph)
        return plan.step + plan.weights

    assert step(hidden=64) < step(hidden=128)
    if backbone != "sign":
        assert step(method="graphsage", fanout=(1,)) < step(method="graphsage", fanout=(3,))
        assert step(method="cluster-gcn", parts=8) < step()


def test_the_size_of_a_batch_is_foreseen():
    """Rows of real batches, to within a factor of two on average; SHADOW's are a bound."""
    graph = synthetic("small", scale=0.2)
    for name in METHODS:
        if backbone_of(name):
            continue
        trainer = build(Run.make(method=name, layers=2, dropout=0.0), graph)
        sampler = trainer.method.sampler
        batches = [sampler.sample(s, trainer.rng) for s in sampler.epoch(trainer.rng)]
        planned = sampler.footprint(GraphSize.of(graph), 2)
        rows = sum(batch.blocks[1].num_src for batch in batches) / len(batches)
        assert rows <= 2 * planned[1].sources, name
        if name != "shadow":
            assert planned[1].sources <= 2 * rows, name


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({}, "use a method that samples"),
        ({"method": "graphsage", "fanout": (9,), "batch_size": 9999}, "lower batch_size or hidden"),
        (
            {"method": "cluster-gcn", "parts": 2, "parts_per_batch": 2},
            "lower parts_per_batch",
        ),
        ({"method": "vr-gcn", "batch_size": 1, "layers": 9, "fanout": (1,)}, "set history to fp16"),
    ],
)
def test_what_cannot_fit_is_refused_with_advice(make_graph, monkeypatch, options, advice):
    graph = make_graph(num_nodes=3000, num_edges=30_000)
    monkeypatch.setattr("graphfm.runs.memory_plan.available_memory", lambda: 100_000)
    with pytest.raises(InputError, match=r"would take about .* beside the graph") as refused:
        build(Run.make(**options), graph)
    assert advice in str(refused.value)


def test_what_takes_most_is_named():
    run = Run.make(method="graphfm-ib", dataset="synthetic:papers100m:0.25", hidden=1)
    plan = foresee(run, torch.device("cpu"))
    assert plan.features > max(plan.histories, plan.step, plan.evaluation)
    assert plan.advice(run).startswith("set features to fp16, turn off exact_first_hop")


def test_layers_that_share_their_edges_count_them_once(make_graph):
    graph = make_graph(num_nodes=100, num_edges=50_000)
    few, many = (
        memory_plan(Run.make(backbone="gcnii", layers=layers, hidden=2), graph).step
        for layers in (2, 40)
    )
    assert many < 2 * few  # rows are few here, edges many


def test_neighbours_that_are_not_there_are_not_planned_for():
    """Of 4 on average, a fan-out of 50 finds 4."""
    shape = Shape(
        num_nodes=5000, num_edges=20_000, num_features=8, num_classes=3, split=(0.5, 0.2, 0.3)
    )
    graph = synthetic(shape)
    for options in ({"method": "shadow", "depth": 3}, {"method": "graphsage"}):
        some, more = (
            memory_plan(Run.make(fanout=(fanout,), **options), graph).step for fanout in (6, 50)
        )
        assert more <= 3 * some, options


@pytest.mark.parametrize("name", ["small:0.1", "yelp:0.002", "arxiv:0.01", "flickr:0.0001"])
def test_the_size_of_a_synthetic_graph_is_known_before_it_is_made(name):
    known = known_size(f"synthetic:{name}", CPU)
    made = GraphSize.of(load(f"synthetic:{name}"))
    assert replace(known, still_to_come=0) == replace(made, max_degree=None)  # all but that
    assert known.still_to_come == known.num_bytes


def test_the_size_of_other_names_is_not_known():
    for name in ("debian", "mine.npz", "arxiv", "nonsense"):  # arxiv was not fetched
        assert known_size(name, CPU) is None


def test_what_cannot_fit_is_refused_before_its_graph_is_made(monkeypatch):
    monkeypatch.setattr("graphfm.runs.run.load", lambda *a, **k: pytest.fail("it was loaded"))
    monkeypatch.setattr("graphfm.runs.memory_plan.available_memory", lambda: 20 * 2**30)
    with pytest.raises(InputError, match=r"synthetic:papers100m alone takes .* and 20.0 GiB are"):
        train("synthetic:papers100m", method="graphfm-ib", device="cpu")
    with pytest.raises(InputError, match=r"full on gcn would take .* use a method that samples"):
        train("synthetic:products:2", backbone="gcn", layers=9, device="cpu")


def test_what_is_still_to_come_of_a_graph_is_not_free(monkeypatch):
    monkeypatch.setattr("graphfm.runs.memory_plan.available_memory", lambda: 2**30)
    run = Run.make(dataset="synthetic:flickr", device="cpu")
    known = known_size(run.dataset, CPU)
    plan = plan_for(run, known, CPU)
    assert plan.available == 2**30 - known.num_bytes
    assert plan_for(run, replace(known, still_to_come=0), CPU).available == 2**30


def test_a_plan_allocates_nothing_and_says_nothing(make_graph, caplog):
    graph = make_graph()
    memory_plan(Run.make(method="gas", hidden=1 << 18), graph)  # 250 GiB of weights
    assert not caplog.text
    assert torch.empty(0).device.type == "cpu"


def test_a_pass_over_the_whole_graph_is_planned_for():
    """Refreshing histories takes all nodes at once, where evaluation takes a chunk."""
    size = known_size("synthetic:products", CPU)
    run = {"method": "gas", "backbone": "pna", "aggregators": ("mean",), "device": "cpu"}
    plain, whole = (
        plan_for(Run.make(**run, refresh_histories=refresh), size, CPU).evaluation
        for refresh in (False, True)
    )
    assert whole > plain + 16 * size.num_edges / 2


def test_what_a_layer_makes_of_its_sources_is_planned_for(make_graph):
    graph = make_graph()
    run = {"backbone": "pna", "hidden": 64, "aggregators": ("mean",), "scalers": ("identity",)}
    plain, more = (
        memory_plan(Run.make(**run, transform=transform), graph) for transform in (False, True)
    )
    assert more.step > plain.step
    assert more.evaluation > plain.evaluation
