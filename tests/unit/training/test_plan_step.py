"""The plan of a step: decided once, pure, and what the parts then do."""

import copy
from dataclasses import replace

import pytest
import torch

from graphfm import InputError
from graphfm.backbones import BACKBONES, make_backbone
from graphfm.data.graph.size import GraphSize
from graphfm.estimators.aggregate_momentum import AggregateMomentum
from graphfm.kernels import backend
from graphfm.methods import METHODS, Method
from graphfm.samplers.neighbor import NeighborSampler
from graphfm.step_plan import COPIED, GATHERED, IN_PLACE, UNREAD
from graphfm.training.plan_step import plan_step
from graphfm.training.settings import Training
from graphfm.training.trainer import Trainer

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.fixture
def with_kernels(monkeypatch):
    """As on a GPU where Triton works; a plan launches nothing."""
    monkeypatch.setattr(backend, "available", lambda device: True)


def plan(graph, method, backbone="sage", device=CPU, settings=None, **network):
    size = GraphSize.of(graph)
    method = METHODS[method]() if isinstance(method, str) else method
    network = {"dropout": 0.0, **network}
    with torch.device("meta"):
        made = make_backbone(backbone, graph.num_features, graph.num_classes, **network)
    return plan_step(size, device, made, method, settings or Training())


@pytest.mark.parametrize("method", [name for name in METHODS if name not in ("sign", "sgc")])
@pytest.mark.parametrize("backbone", ["sage", "gcn", "gcnii"])
def test_a_plan_is_pure(make_graph, method, backbone):
    """The same inputs give the same plan, and neither method nor network is changed."""
    graph, made = make_graph(undirected=True), METHODS[method]()
    before = copy.deepcopy((vars(made.sampler), vars(made.estimator)))
    assert plan(graph, made, backbone) == plan(graph, made, backbone)
    assert (vars(made.sampler), vars(made.estimator)) == before


@pytest.mark.parametrize("method", METHODS)
def test_a_trainer_keeps_the_tables_of_its_plan(make_graph, method):
    graph = make_graph(undirected=True)
    backbone = method if method in ("sign", "sgc") else "sage"
    trainer = Trainer(graph, make_backbone(backbone, 7, 4, layers=3), METHODS[method]())
    tables = trainer.method.estimator.tables
    assert tables.keys() == trainer.plan.tables.keys()
    planned = dict(trainer.plan.tables)
    if trainer.plan.first_hop is not None:
        planned["first hop"] = trainer.plan.first_hop
        tables = {**tables, "first hop": trainer.method.estimator.first_hop}
    for name, table in planned.items():
        rows = tables[name].rows
        assert (rows.nbytes, rows.dtype) == (table.num_bytes, table.dtype)


@pytest.mark.parametrize(
    ("method", "backbone", "network", "wanted"),
    [
        ("graphsage", "sage", {}, IN_PLACE),
        ("graphsage", "gcn", {}, IN_PLACE),
        ("graphsage", "gcn", {"residual": True, "hidden": 7}, COPIED),  # its own row is read too
        ("graphsage", "sage", {"dropout": 0.5, "dropout_input": True}, COPIED),
        ("graphsage", "pna", {}, COPIED),
        ("graphfm-ib", "sage", {}, COPIED),  # beside the known aggregate
        ("gas", "gcn", {}, UNREAD),
        ("gas", "sage", {}, COPIED),
        ("full", "gcn", {}, IN_PLACE),
        ("full", "pna", {}, IN_PLACE),
    ],
)
def test_how_features_reach_the_first_layer_on_a_cpu(make_graph, method, backbone, network, wanted):
    assert plan(make_graph(), method, backbone, **network).features == wanted


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("backbone", ["sage", "gcn", "gcnii"])
def test_a_step_reads_features_as_its_plan_says(make_graph, method, backbone):
    graph = make_graph(num_nodes=60, num_edges=200, undirected=True)
    backbone = method if method in ("sign", "sgc") else backbone
    trainer = Trainer(graph, make_backbone(backbone, 7, 4), METHODS[method]())
    (seeds, *_) = trainer.method.sampler.epoch(trainer.rng)
    read = trainer.draw(seeds).x
    found = COPIED if read.size(1) else UNREAD
    found = IN_PLACE if read.data_ptr() == trainer.x.data_ptr() else found
    assert trainer.plan.features == found


@pytest.mark.parametrize("exact_first_hop", [False, True])
@pytest.mark.parametrize(("batch_size", "crowded"), [(2, set()), (6, {0}), (20, {0, 1})])
def test_a_plan_knows_where_a_batch_has_more_picks_than_nodes(
    make_graph, exact_first_hop, batch_size, crowded
):
    graph = make_graph(num_nodes=60, num_edges=2000)  # 2 * 4 + 2 * 5 * 4 picks; 6 * 4, then 30 * 4
    made = METHODS["graphfm-ib"](
        fanout=(4,), batch_size=batch_size, exact_first_hop=exact_first_hop
    )
    trainer = Trainer(graph, make_backbone("sage", 7, 4), made)
    trainer.method.sampler.distinct = None  # the layout of a GPU
    (seeds, *_) = trainer.method.sampler.epoch(trainer.rng)
    first = int(exact_first_hop)
    blocks = trainer.draw(seeds).batch.blocks[first:]
    assert trainer.plan.crowded == crowded - set(range(first))
    assert {d + first for d, block in enumerate(blocks) if not block.edges.fanout} == (
        trainer.plan.crowded
    )


@pytest.mark.usefixtures("with_kernels")
def test_what_is_not_fused_is_not_said_to_be(make_graph):
    graph = make_graph(num_nodes=60, num_edges=2000)
    crowded = plan(graph, METHODS["graphsage"](fanout=(4,), batch_size=6), device=GPU).explain()
    assert "features: copied row by row" in crowded
    assert (
        "fused layers: 2 of 2 (one kernel aggregates and blends); not 1: more picks than nodes"
        in crowded
    )
    for method in ("cluster-gcn", "ladies", "shadow"):
        assert "features: copied row by row" in plan(graph, method, device=GPU).explain()
    assert (
        "features: read in place from the feature table"
        in plan(graph, "full", device=GPU).explain()
    )
    for line in ("first hop", "fused layers"):
        assert (
            f"{line}: none; the network has no graph layers"
            in plan(graph, "sign", "sign", device=GPU).explain()
        )


@pytest.mark.usefixtures("with_kernels")
def test_kernels_gather_features_and_fuse_layers(make_graph):
    graph = make_graph()
    found = plan(graph, "graphfm-ib", device=GPU, layers=3)
    assert (found.features, found.fused) == (GATHERED, {0, 1, 2})
    assert found.first_layer_ahead  # its aggregates are known: no other step is needed
    without = METHODS["graphfm-ib"](exact_first_hop=False)
    assert not plan(graph, without, device=GPU, layers=3).first_layer_ahead
    assert plan(graph, "graphfm-ib", "pna", device=GPU, layers=3).fused == frozenset()
    assert plan(graph, "full", device=GPU).fused == frozenset()
    encoded = plan(graph, "graphfm-ib", "gcnii", device=GPU)  # its first layer reads encoded rows
    assert (encoded.features, encoded.fused) == (COPIED, {0, 1, 2, 3})


@pytest.mark.usefixtures("with_kernels")
def test_a_fanout_too_large_for_a_kernel_is_not_fused(make_graph):
    graph = make_graph(num_nodes=200, num_edges=30_000)
    wide = METHODS["graphsage"](fanout=(100, 1))
    assert plan(graph, wide, device=GPU).fused == {0}
    few = make_graph()  # no node has so many neighbours, and a fan-out above that is cut
    assert plan(few, wide, device=GPU).fused == {0, 1}


@pytest.mark.usefixtures("with_kernels")
def test_a_subclass_that_changes_a_hook_is_not_fused(make_graph):
    class Halved(AggregateMomentum):
        def aggregate(self, step):
            return super().aggregate(step) / 2

    sampler = NeighborSampler(fanout=(1,), batch_size=8)
    found = plan(make_graph(), Method(sampler, Halved(beta=(0.5,))), device=GPU)
    assert (found.fused, found.features) == (frozenset(), COPIED)


@pytest.mark.usefixtures("with_kernels")
@pytest.mark.parametrize(
    ("method", "settings", "reason"),
    [
        ("graphfm-ib", {}, None),
        ("graphsage", {}, None),
        ("full", {}, None),
        ("gas", {}, "the size of this method's batches changes"),
        ("graphfm-ib", {"capture": "off"}, "capture is off"),
        ("graphfm-ib", {"staleness_every": 1}, "the age of histories is measured"),
    ],
)
def test_what_is_captured_and_why_not(make_graph, method, settings, reason):
    graph = make_graph(num_nodes=3000, num_edges=4000)
    made = METHODS[method]() if method in ("full", "gas") else METHODS[method](batch_size=8)
    found = plan(graph, made, device=GPU, settings=Training(**settings))
    assert found.captured == (reason is None)
    assert reason is None or found.not_captured.startswith(reason)
    assert any(line.startswith("CUDA graph: ") for line in found.explain())


@pytest.mark.usefixtures("with_kernels")
def test_an_estimator_of_ones_own_is_captured_only_if_it_says_so(make_graph):
    class Own(AggregateMomentum):
        capturable = False

    graph = make_graph(num_nodes=3000, num_edges=4000)
    method = Method(NeighborSampler(fanout=(1,), batch_size=8), Own(beta=(0.5,)))
    assert "capturable" in plan(graph, method, device=GPU).not_captured
    with pytest.raises(InputError, match="capture is on, but Own does not declare"):
        plan(graph, method, device=GPU, settings=Training(capture="on"))


def test_capture_without_a_gpu_is_refused(make_graph):
    with pytest.raises(InputError, match="capture is on, but there is no GPU; set capture to auto"):
        plan(make_graph(), "full", settings=Training(capture="on"))


@pytest.mark.parametrize("backbone", [name for name in BACKBONES if name not in ("sign", "sgc")])
def test_dropout_makes_a_second_pass_for_histories(make_graph, backbone):
    for dropout in (0.0, 0.5):
        found = plan(make_graph(), "graphfm-ib", backbone, dropout=dropout)
        assert found.recording_pass == (dropout > 0)
        assert not plan(make_graph(), "graphsage", backbone, dropout=dropout).recording_pass


def test_a_plan_explains_itself_in_words(make_graph):
    lines = plan(make_graph(), "graphfm-ib", dropout=0.5).explain()
    assert (
        "first hop: aggregated once for all nodes before training, [60 x 7] float32 on the device"
        in lines
    )
    assert "CUDA graph: no; there is no GPU" in lines
    (histories,) = (line for line in lines if line.startswith("histories: "))
    assert "aggregate.1 [20 x 256] float32 on the device" in histories  # of training nodes
    assert "inputs.1 [60 x 256] float32 on the device" in histories
    assert histories.endswith("a second pass without dropout writes them")
    assert "histories: none" in plan(make_graph(), "graphsage").explain()


@pytest.mark.parametrize("method", ["gas", "graphfm-ob", "graphfm-delta"])
def test_a_plan_tells_that_no_history_is_read(make_graph, method):
    graph = make_graph(undirected=True)
    note = plan(graph, method, layers=2).note
    assert f"note: {note}" in plan(graph, method, layers=2).explain()
    assert plan(graph, method, layers=3).note is None


def test_a_size_that_is_not_known_yet_clamps_no_fanout(make_graph):
    graph, sampler = make_graph(), NeighborSampler(fanout=(1000,), batch_size=8)
    known = GraphSize.of(graph)
    assert sampler.fixed_fanouts(replace(known, max_degree=None), 2) == (1000, 1000)
    assert sampler.fixed_fanouts(known, 2) == (int(graph.degree.max()),) * 2
