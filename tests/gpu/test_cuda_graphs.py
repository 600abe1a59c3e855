"""Steps captured as CUDA graphs. Run on a machine with a GPU: `pytest tests/gpu`."""

import logging

import pytest
import torch

from graphfm import InputError
from graphfm.runs.run import OWN_NETWORK, Run, build
from graphfm.training.setup import seeded

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
STATIC = {  # whose steps can be captured
    "full": {"method": "full"},
    "graphsage": {"method": "graphsage", "fanout": (3, 2)},
    "independent picks": {"method": "graphsage", "fanout": (3, 2), "picks": "independent"},
    "ib": {"method": "graphfm-ib"},
    "ib sampled first hop": {"method": "graphfm-ib", "exact_first_hop": False},
    "ib as published": {"method": "graphfm-ib", "as_published": True},
    "vr-gcn": {"method": "vr-gcn"},
    "vr-gcn split dropout": {"method": "vr-gcn", "split_dropout": True},
    "sign": {"method": "sign"},
    "sgc": {"method": "sgc"},
}
BACKBONES = ("sage", "gcn", "gcnii", "pna")


def trained(graph, *, epochs=4, **options):
    """A trainer after a few epochs, with its losses; 200 nodes train: 11 of 17, one of 13."""
    if options["method"] != "full":
        options = {"batch_size": 17, **options}
    trainer, losses = build(Run.make(dataset="x", device="cuda", **options), graph), []
    with seeded(0, trainer.graph.device):
        for _ in range(epochs):
            losses.append(trainer.epoch())
            if trainer.training.refresh_histories:  # as an evaluation does
                trainer.refresh_histories()
    return trainer, losses


def assert_same(one, other):
    (a, losses_a), (b, losses_b) = one, other
    assert losses_a == losses_b
    torch.testing.assert_close(a.backbone.state_dict(), b.backbone.state_dict(), rtol=0, atol=0)
    for name, table in a.method.estimator.histories_by_name().items():
        assert torch.equal(table.rows[:-1], b.method.estimator.histories_by_name()[name].rows[:-1])
    assert torch.equal(a.rng.get_state(), b.rng.get_state())
    assert a.touched == b.touched


CAPTURED = [  # without its kernel VR-GCN lays out every neighbour, as many as there are
    (name, backbone, kernels)
    for name in STATIC
    for backbone in ((None,) if name in OWN_NETWORK else BACKBONES)
    for kernels in ("auto", "plain")
    if not name.startswith("vr-gcn") or (kernels == "auto" and backbone != "pna")
]


@pytest.mark.parametrize(("name", "backbone", "kernels"), CAPTURED)
def test_the_same_bits_with_and_without(make_graph, name, backbone, kernels):
    graph = make_graph(num_nodes=600, num_edges=4000)
    options = {**STATIC[name], "kernels": kernels, "layers": 2}
    if backbone is not None:
        options |= {"backbone": backbone, "dropout": 0.3}
    captured = trained(graph, capture="on", **options)
    assert captured[0].plan.captured
    assert_same(captured, trained(graph, capture="off", **options))


@pytest.mark.parametrize(
    "options",
    [
        {"schedule": "cosine", "epochs": 4},
        {"clip": 0.1},
        {"weight_decay": 0.01, "batch_norm": True},
        {"precision": "tf32"},
        {"precision": "bf16"},
        {"history": "bf16"},
        {"steps_per_epoch": 5},
        {"refresh_histories": True},
        {"dropout": 0.0},
        {"drop_average": False},
        {"as_published": True},
    ],
    ids=str,
)
def test_settings_have_their_effect_when_captured(make_graph, options):
    graph = make_graph(num_nodes=600, num_edges=4000)
    options = {"method": "graphfm-ib", "layers": 3, **options}
    assert_same(trained(graph, capture="on", **options), trained(graph, capture="off", **options))


def test_gradients_go_to_a_side_stream_unless_autograd_adds_to_them(make_graph):
    """Two layers with one matrix: its gradient is a sum, which must not be read too early."""
    graph, found = make_graph(num_nodes=600, num_edges=4000), {}
    for shared in (False, True):
        for capture in ("on", "off"):
            options = {"method": "graphfm-ib", "layers": 4, "batch_size": 17, "capture": capture}
            trainer = build(Run.make(dataset="x", device="cuda", **options), graph)
            if shared:
                trainer.backbone.layers[2].weight = trainer.backbone.layers[1].weight
            with seeded(0, trainer.graph.device):
                found[capture] = trainer, [trainer.epoch() for _ in range(3)]
        assert_same(found["on"], found["off"])
        assert (found["on"][0].captured.side_stream is None) == shared


def halve(gradient):
    gradient.mul_(0.5)


@pytest.mark.parametrize("kind", ["register_hook", "register_post_accumulate_grad_hook"])
def test_hooks_see_gradients_that_are_there(make_graph, kind):
    graph, found = make_graph(num_nodes=600, num_edges=4000), {}
    for capture in ("on", "off"):
        options = {"method": "graphfm-ib", "layers": 3, "batch_size": 17, "capture": capture}
        trainer = build(Run.make(dataset="x", device="cuda", **options), graph)
        for parameter in trainer.backbone.parameters():
            if kind == "register_hook":
                parameter.register_hook(halve)
            else:
                parameter.register_post_accumulate_grad_hook(lambda p: halve(p.grad))
        with seeded(0, trainer.graph.device):
            found[capture] = trainer, [trainer.epoch() for _ in range(3)]
    assert_same(found["on"], found["off"])


def test_frozen_parameters_leave_the_side_stream(make_graph):
    graph, found = make_graph(num_nodes=600, num_edges=4000), {}
    for capture in ("on", "off"):
        options = {"method": "graphfm-ib", "layers": 3, "batch_size": 17, "capture": capture}
        trainer = build(Run.make(dataset="x", device="cuda", **options), graph)
        trainer.backbone.layers[1].weight.requires_grad_(False)
        trainer.backbone.layers[2].bias.requires_grad_(False)
        with seeded(0, trainer.graph.device):
            found[capture] = trainer, [trainer.epoch() for _ in range(3)]
    assert_same(found["on"], found["off"])
    assert found["on"][0].captured.side_stream is not None


@pytest.mark.parametrize("where", ["draw", "backward"])
def test_an_error_while_capturing_is_the_one_that_is_raised(make_graph, monkeypatch, where):
    """Memory may run out there, and advice depends on its being known."""
    graph = make_graph(num_nodes=600, num_edges=4000)
    options = {"method": "graphfm-ib", "batch_size": 17, "capture": "on"}
    trainer = build(Run.make(dataset="x", device="cuda", **options), graph)

    def fails_while_capturing(do):
        def maybe(*given):
            result = do(*given)
            if torch.cuda.is_current_stream_capturing():
                raise torch.OutOfMemoryError("no more")
            return result

        return maybe

    if where == "draw":
        draw = fails_while_capturing(trainer.captured.draw)
        monkeypatch.setattr(trainer.captured, "draw", draw)
    else:
        monkeypatch.setattr(
            trainer.optimizer, "step", fails_while_capturing(trainer.optimizer.step)
        )
    with pytest.raises(torch.OutOfMemoryError, match="no more"):
        trainer.epoch()
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    monkeypatch.undo()  # what comes after it is as if nothing had been
    options = {"method": "graphfm-ib"}
    assert_same(trained(graph, capture="on", **options), trained(graph, capture="off", **options))


def test_a_schedule_reaches_the_captured_steps(make_graph):
    graph = make_graph(num_nodes=600, num_edges=4000)
    options = {"method": "graphfm-ib", "epochs": 6, "capture": "on"}
    steady, _ = trained(graph, schedule="constant", **options)
    falling, _ = trained(graph, schedule="cosine", **options)
    assert any(
        not torch.equal(p, q)
        for p, q in zip(steady.backbone.parameters(), falling.backbone.parameters(), strict=True)
    )


def test_many_labels(make_graph):
    graph = make_graph(num_nodes=600, num_edges=4000, multi_label=True)
    options = {"method": "graphfm-ib"}
    assert_same(trained(graph, capture="on", **options), trained(graph, capture="off", **options))


@pytest.mark.parametrize("method", ["gas", "mvs-gcn", "fastgcn", "graphsaint", "shadow"])
def test_what_cannot_be_captured_says_so(make_graph, method, caplog):
    graph = make_graph(num_nodes=600, num_edges=4000)
    with pytest.raises(InputError, match="capture is on, but the size of this method's batches"):
        build(Run.make(dataset="x", device="cuda", method=method, capture="on"), graph)
    with caplog.at_level(logging.INFO, logger="graphfm"):
        trainer = build(Run.make(dataset="x", device="cuda", method=method), graph)
    assert trainer.plan.not_captured in caplog.text
    trainer.epoch()


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
def test_nothing_is_waited_for_inside_an_epoch(make_graph):
    """Once captured, the host launches; it asks for nothing before the epoch's end."""
    graph = make_graph(num_nodes=600, num_edges=4000)
    trainer, _ = trained(graph, method="graphfm-ib", capture="on")
    batches = list(trainer.method.sampler.epoch(trainer.rng))
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        with trainer.executing():
            for start in range(0, len(batches), 8):
                trainer.captured(batches[start : start + 8])
    finally:
        torch.cuda.set_sync_debug_mode("default")
