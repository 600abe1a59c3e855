"""What an estimator reads and sends back during a step."""

import pytest
import torch

from graphfm.batch import Targets
from graphfm.estimators.aggregate_momentum import AggregateMomentum
from graphfm.estimators.layer_step import ForwardPass, LayerStep, Setup
from graphfm.runs.run import Run, build
from graphfm.tables.device import DeviceTable


def trainer_of(graph, method, **options):
    return build(Run.make(method=method, layers=3, hidden=8, **options), graph)


def batch_of(trainer):
    sampler = trainer.method.sampler
    return sampler.sample(next(iter(sampler.epoch(trainer.rng))), trainer.rng)


def test_a_whole_gradient_changes_the_gradient_and_not_the_value(make_graph):
    graph = make_graph()
    trainer = trainer_of(graph, "graphsage", fanout=(2,), dropout=0.0)
    block, layer = batch_of(trainer).blocks[0], trainer.backbone.layers[0]

    def through(beta, whole):
        estimator = AggregateMomentum(
            beta=(beta,), start="zero", whole_gradient=whole, correct_lag=False
        )
        specs = estimator.declare([layer], 0)
        tables = {name: DeviceTable(60, spec.width) for name, spec in specs.items()}
        estimator.prepare(Setup(layers=[layer], tables=tables))
        estimator.histories[0].push(torch.arange(60), torch.ones(60, layer.agg_width))
        h = graph.x[block.src_ids].requires_grad_()
        agg = estimator.aggregate(LayerStep(0, layer, block, h, h, ForwardPass()))
        return agg.detach(), torch.autograd.grad(agg.sum(), h)[0]

    plain, whole, fresh = through(0.3, False), through(0.3, True), through(1.0, False)
    torch.testing.assert_close(whole[0], plain[0])
    torch.testing.assert_close(whole[1], fresh[1])
    torch.testing.assert_close(plain[1], 0.3 * fresh[1])
    assert not torch.allclose(whole[0], fresh[0])


@pytest.mark.parametrize("method", ["gas", "graphfm-ob"])
def test_the_exact_first_hop_gives_the_halo_todays_rows(make_graph, method):
    trainer = trainer_of(make_graph(undirected=True), method, parts=6, parts_per_batch=2)
    for _ in range(3):
        trainer.epoch()
    batch = batch_of(trainer)
    trainer.batch_loss(batch)
    estimator, layer, halo = (
        trainer.method.estimator, trainer.backbone.layers[0], batch.blocks[0].halo_ids,
    )  # fmt: skip
    assert halo.numel() > 0
    own = trainer.graph.x[halo]
    targets = Targets(own, own, trainer.graph.degree[halo].float())
    want = layer.update(estimator.first_hop.pull(halo), targets)
    torch.testing.assert_close(estimator.histories[0].pull(halo), want.detach())


@pytest.mark.parametrize("method", ["gas", "graphfm-delta"])
def test_kept_gradients_are_those_of_the_sum_of_losses(make_graph, method):
    """With all parts in one batch, of the loss times the number of nodes it averages."""
    graph = make_graph(undirected=True)
    trainer = trainer_of(graph, method, parts=3, parts_per_batch=3, compensate=True, dropout=0.0)
    kept, outs = trainer.method.estimator.compensation, {}

    def add(step, out, halo_aggregate, note=kept.add):
        outs[step.depth] = out
        note(step, out, halo_aggregate)

    kept.add = add
    batch = batch_of(trainer)
    loss = trainer.batch_loss(batch)
    exact = torch.autograd.grad(loss, [outs[1], outs[2]], retain_graph=True)
    loss.backward()
    number = int(graph.train_mask.sum())
    assert number > 1
    for depth, want in zip((1, 2), exact, strict=True):
        found = kept.gradients[depth].pull(batch.target_ids)
        torch.testing.assert_close(found, want * number)


@pytest.mark.parametrize("method", ["gas", "graphfm-delta"])
def test_compensation_leaves_running_statistics_alone(make_graph, method):
    """They learn from the batch once, as without it."""
    graph, found = make_graph(undirected=True), []
    for compensate in (False, True):
        trainer = trainer_of(
            graph, method, parts=6, parts_per_batch=2, compensate=compensate, batch_norm=True,
            dropout=0.0,
        )  # fmt: skip
        trainer.batch_loss(batch_of(trainer))
        found.append({k: v for k, v in trainer.backbone.state_dict().items() if "running" in k})
    assert found[0]
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=0)


@pytest.mark.parametrize(
    ("method", "options", "first"),
    [("gas", {}, True), ("graphfm-ob", {}, True), ("graphfm-delta", {}, True),
     ("graphfm-ib", {}, True), ("graphfm-ib", {"correct_lag": False}, False),
     ("graphfm-ib", {"as_published": True}, False), ("vr-gcn", {}, False),
     ("vr-gcn", {"split_dropout": True}, True)],
)  # fmt: skip
def test_with_dropout_histories_are_written_before_or_after_the_loss(
    make_graph, method, options, first
):
    graph, events = make_graph(undirected=True), []
    trainer = trainer_of(graph, method, dropout=0.5, **options)

    def note(module, args):
        dropping = any(m.training for m in module.modules() if isinstance(m, torch.nn.Dropout))
        events.append("loss" if dropping else "record")

    trainer.backbone.register_forward_pre_hook(note)
    trainer.batch_loss(batch_of(trainer))
    assert events == (["record", "loss"] if first else ["loss", "record"])


@pytest.mark.parametrize("method", ["vr-gcn", "mvs-gcn"])
def test_control_variates_drop_from_the_past_what_they_drop_now(make_graph, method):
    """What is sampled is the change alone, whatever was dropped."""
    trainer = trainer_of(make_graph(), method, dropout=0.5, exact_first_hop=False)
    trainer.refresh_histories()
    estimator, found = trainer.method.estimator, {}

    def aggregate(step, compute=estimator.aggregate):
        agg = compute(step)
        found.setdefault(step.depth, (step, agg))  # of the pass for the loss
        return agg

    estimator.aggregate = aggregate
    trainer.backbone.train()
    trainer.batch_loss(batch_of(trainer))
    step, agg = found[1]
    assert bool((step.mask == 0).any())
    # what has changed is sampled; what has not is exact
    past = estimator.histories[1]
    full = step.layer.aggregate(past.pull(step.block.full.src_ids), step.block.full)
    change = step.h - past.pull(step.block.src_ids) * step.mask
    torch.testing.assert_close(agg, full + step.layer.aggregate(change, step.block))
