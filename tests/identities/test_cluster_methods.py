"""Identities of the methods that cut the graph into parts."""

import math

import pytest
import torch

from graphfm import methods, train
from graphfm.backbones import make_backbone
from graphfm.batch import Batch
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.estimators.exact import Exact
from graphfm.methods import METHODS, Method
from graphfm.samplers.cluster import ClusterSampler
from graphfm.tables.base import NodeTable
from graphfm.training.losses import node_losses
from graphfm.training.settings import Training
from graphfm.training.trainer import Trainer

GRAPH_BACKBONES = ["sage", "gcn", "gcnii", "pna"]
LINEAR = ["sage", "gcn", "gcnii"]


@pytest.fixture
def graph(make_graph):
    return make_graph(undirected=True, weighted=True)


def trainer_of(graph, name, method: Method, **options) -> Trainer:
    torch.manual_seed(1)
    backbone = make_backbone(name, graph.num_features, graph.num_classes, **options)
    backbone.calibrate(graph)
    return Trainer(graph, backbone, method, Training())


def full_outputs(trainer: Trainer) -> list[torch.Tensor]:
    """Outputs of every layer, and of the network, by the whole graph."""
    graph, backbone = trainer.graph, trainer.backbone
    block = backbone.adjacency(graph).full_block()
    rows, h = [], backbone.encode(graph.x)
    h0 = h
    for depth, layer in enumerate(backbone.layers):
        h = Exact()(depth, layer, block, h, h0)
        rows.append(h)
    return [*rows, backbone.decode(h)]


def batch_of(trainer: Trainer, *parts: int) -> Batch:
    return trainer.method.sampler.sample(torch.tensor(parts), trainer.rng)


def weights_after(graph, name, method, **options):
    result = train(graph, backbone=name, method=method, layers=3, epochs=3, parts=6, **options)
    return result.model.backbone.state_dict()


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("name", GRAPH_BACKBONES)
def test_momentum_of_zero_is_gnnautoscale_bit_for_bit(graph, name, dropout):
    options = {"parts_per_batch": 2, "dropout": dropout, "batch_norm": True}
    ob = weights_after(graph, name, "graphfm-ob", beta=(0.0,), **options)
    torch.testing.assert_close(ob, weights_after(graph, name, "gas", **options), rtol=0, atol=0)
    moved = weights_after(graph, name, "graphfm-ob", beta=(0.5,), **options)
    assert any(not torch.equal(ob[key], moved[key]) for key in ob)


@pytest.mark.parametrize("method", ["gas", "graphfm-ob", "graphfm-delta"])
@pytest.mark.parametrize("name", GRAPH_BACKBONES)
def test_all_parts_at_once_are_the_full_batch(graph, name, method):
    if method == "graphfm-delta" and name == "pna":
        name = "gcn"  # pna is refused, see below
    make = methods.METHODS[method](parts=4, parts_per_batch=4)
    trainer = trainer_of(graph, name, make, dropout=0.0, layers=3)
    batch = batch_of(trainer, 0, 1, 2, 3)
    want = full_outputs(trainer)[-1]
    got = trainer.backbone(graph.x[batch.input_ids], batch, trainer.method.estimator)
    torch.testing.assert_close(got, want[batch.target_ids], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("first_hop", [False, True])
@pytest.mark.parametrize("method", ["gas", "graphfm-delta"])  # momentum blends in a partial view
@pytest.mark.parametrize("name", LINEAR)
def test_fresh_histories_leave_no_error(graph, name, method, first_hop):
    """Once every history holds what is true of today's weights, a part is exact."""
    make = methods.METHODS[method](parts=4, exact_first_hop=first_hop)
    trainer = trainer_of(graph, name, make, dropout=0.0, layers=3)
    trainer.refresh_histories()
    batch = batch_of(trainer, 2)
    assert batch.blocks[0].halo_ids.numel() > 5
    got = trainer.backbone(graph.x[batch.input_ids], batch, trainer.method.estimator)
    want = full_outputs(trainer)[-1][batch.target_ids]
    torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", LINEAR)
def test_differences_keep_the_aggregates_exact(graph, name):
    """However often parts are visited and weights change, M = A K."""
    method = methods.graphfm_delta(parts=5, exact_first_hop=False)
    trainer = trainer_of(graph, name, method, dropout=0.0, layers=3)
    for _ in range(4):
        trainer.epoch()
    estimator, block = method.estimator, trainer.infer.adjacency.full_block()
    for depth, known in estimator.known.items():
        want = trainer.backbone.layers[depth].aggregate(known.pull(block.src_ids), block)
        got = estimator.sums[depth].pull(block.src_ids)
        torch.testing.assert_close(got, want, atol=1e-4, rtol=1e-4)


def test_differences_of_a_maximum_are_refused(graph):
    with pytest.raises(ValueError, match="use sage, gcn or gcnii, or pna with --aggregators mean"):
        trainer_of(graph, "pna", methods.graphfm_delta(parts=4))


def gradients(trainer):
    return torch.cat([p.grad.flatten() for p in trainer.backbone.parameters()])


@pytest.mark.parametrize("name", LINEAR)
def test_compensated_gradients_of_all_parts_add_up_to_the_full_gradient(graph, name):
    """With exact histories of rows and gradients; without compensation they do not."""
    found = {}
    for compensate in (False, True):
        method = methods.graphfm_delta(parts=4, parts_per_batch=1, compensate=compensate)
        trainer = trainer_of(graph, name, method, dropout=0.0, layers=3)
        trainer.refresh_histories()
        outputs = full_outputs(trainer)
        loss = (node_losses(outputs[-1], graph.y) * graph.train_mask).sum()
        depths = range(1, 3)
        exact = torch.autograd.grad(loss, [outputs[d] for d in depths], retain_graph=True)
        trainer.optimizer.zero_grad()
        loss.backward()
        want = gradients(trainer)
        trainer.optimizer.zero_grad()
        for part in range(4):
            if compensate:
                ids = torch.arange(graph.num_nodes)
                for depth, rows in zip(depths, exact, strict=True):
                    method.estimator.compensation.gradients[depth].push(ids, rows)
            batch = batch_of(trainer, part)
            loss = trainer.batch_loss(batch)
            (loss * graph.train_mask[batch.target_ids].sum()).backward()
        found[compensate] = (gradients(trainer) - want).norm() / want.norm()
    assert found[True] < 1e-4
    assert found[False] > 0.05


def test_a_part_reads_its_halo_and_the_halo_reads_it(graph):
    sampler = ClusterSampler(parts=4)
    trainer = trainer_of(graph, "gcn", Method(sampler, methods.gas(parts=4).estimator))
    batch = batch_of(trainer, 1)
    block, dense = batch.blocks[0], torch.zeros(graph.num_nodes, graph.num_nodes)
    whole = trainer.infer.adjacency.full_block()
    dense.index_put_((whole.edges.row.long(), whole.edges.col.long()), whole.edges.weight)
    view, part = block.from_halo, torch.zeros(graph.num_nodes, graph.num_nodes)
    rows, cols = view.dst_ids[view.edges.row], view.src_ids[view.edges.col]
    part.index_put_((rows, cols), view.edges.weight)
    want = torch.zeros_like(dense)
    index = torch.meshgrid(block.halo_ids, block.dst_ids, indexing="ij")
    want[index] = dense[index]
    torch.testing.assert_close(part, want)
    total = dense.sum(1) + trainer.infer.adjacency.self_weight
    torch.testing.assert_close(view.share, (want.sum(1) / total)[block.halo_ids])


@pytest.mark.parametrize("backbone", ["sage", "gcn", "gcnii"])
@pytest.mark.parametrize("name", ["gas", "graphfm-ob", "graphfm-delta"])
@pytest.mark.parametrize("first_hop", [True, False])
@pytest.mark.parametrize("residual", [True, False])
def test_rows_are_read_in_place_or_gathered_alike(
    graph, monkeypatch, name, backbone, first_hop, residual
):
    """Straight from a table, from a copy of the halo's rows, and with the halo in pieces."""

    def trained():
        torch.manual_seed(3)
        method = METHODS[name](parts=4, parts_per_batch=2, exact_first_hop=first_hop)
        network = {"layers": 3, "hidden": 32, "dropout": 0.0, "residual": residual}
        trainer = trainer_of(graph, backbone, method, **network)
        losses = [trainer.epoch() for _ in range(3)]
        tables = {key: table.rows for key, table in method.estimator.histories_by_name().items()}
        return losses, dict(trainer.backbone.state_dict()), tables

    straight = trained()
    for module in ("batch", "tables.base"):
        monkeypatch.setattr(f"graphfm.{module}.HALO_ROWS", 7)
    in_pieces = trained()
    for module in ("halo_history", "halo_difference"):
        monkeypatch.setattr(f"graphfm.estimators.{module}.table_of", lambda *_: None)
    monkeypatch.setattr("graphfm.backbones.gcn.GCNLayer.affine", lambda _: None)
    gathered = trained()
    torch.testing.assert_close(in_pieces, straight, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(gathered, straight, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", ["gas", "graphfm-ob", "graphfm-delta"])
def test_a_network_that_reads_h0_later_is_given_its_rows(graph, monkeypatch, name):
    monkeypatch.setattr("graphfm.backbones.gcn.GCN.reads_h0", True)
    trainer = trainer_of(graph, "gcn", METHODS[name](parts=4), layers=3, dropout=0.0)
    batch = batch_of(trainer, 0)
    torch.testing.assert_close(trainer.inputs.features(batch), graph.x[batch.input_ids])


@pytest.mark.parametrize("partial", ["rescaled", "sum"])
def test_a_row_without_any_weight_is_left_alone(make_graph, monkeypatch, partial):
    """Nodes that only send: with a matrix without diagonal they see a share of nothing."""
    graph = make_graph(num_nodes=40, num_edges=60)
    assert bool((graph.degree == 0).any())
    monkeypatch.setattr("graphfm.backbones.gcn.GCN.adjacency", lambda _, g: Adjacency.mean(g))
    method = METHODS["graphfm-ob"](parts=4, partial=partial)
    trainer = trainer_of(graph, "gcn", method, layers=3, dropout=0.0)
    assert all(math.isfinite(trainer.epoch()) for _ in range(3))
    assert all(bool(t.rows.isfinite().all()) for t in method.estimator.histories_by_name().values())


class Doubled(NodeTable):
    """A table that keeps its rows in a way of its own."""

    def __init__(self, num_rows, width):
        self.kept = torch.zeros(num_rows, width)

    def pull(self, ids):
        return self.kept[ids] / 2

    def push(self, ids, values):
        self.kept[ids] = 2 * values.detach()


def doubled(plans, num_nodes, *_):
    return {name: Doubled(num_nodes, plan.spec.width) for name, plan in plans.items()}


@pytest.mark.parametrize("name", ["gas", "graphfm-ob", "graphfm-delta"])
def test_any_kind_of_table_will_do(graph, monkeypatch, name):
    losses = []
    for kind in (None, Doubled):
        if kind is not None:
            monkeypatch.setattr("graphfm.training.trainer.allocate", doubled)
        trainer = trainer_of(graph, "gcn", METHODS[name](parts=4), layers=3, dropout=0.0)
        losses.append([trainer.epoch() for _ in range(3)])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
