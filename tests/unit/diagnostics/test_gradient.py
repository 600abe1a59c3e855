"""Mini-batch gradients against the full-batch gradient."""

import pytest
import torch

from graphfm.diagnostics.gradient import gradient_error
from graphfm.errors import InputError
from graphfm.runs.run import Run, build

CLUSTER = ("gas", "graphfm-ob", "graphfm-delta")


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def trainer_of(graph, method, **options):
    if method in CLUSTER:
        options = {"parts": 6, "parts_per_batch": 2, **options}
    elif method != "full":
        options = {"fanout": (2,), "batch_size": 8, **options}
    options = {"backbone": "gcn", "layers": 3, "hidden": 8, **options}
    return build(Run.make(method=method, device="cpu", **options), graph)


@pytest.mark.parametrize("backbone", ["sage", "gcnii", "mlp"])
def test_zero_for_the_full_batch(make_graph, backbone):
    trainer = trainer_of(make_graph(), "full", backbone=backbone, batch_norm=True)
    trainer.epoch()
    for layer in gradient_error(trainer):
        assert layer.relative < 1e-6, layer
        assert layer.cosine == pytest.approx(1.0)


@pytest.mark.parametrize("backbone", ["gcn", "gcnii"])
@pytest.mark.parametrize("method", CLUSTER)
def test_zero_for_all_parts_at_once(make_graph, method, backbone):
    options = {"backbone": backbone, "parts_per_batch": 6, "batch_norm": True}
    trainer = trainer_of(make_graph(undirected=True), method, **options)
    for layer in gradient_error(trainer):
        assert layer.relative < 1e-4, layer
        assert layer.cosine == pytest.approx(1.0)


def test_names_follow_the_network(make_graph):
    graph = make_graph()
    named = [layer.name for layer in gradient_error(trainer_of(graph, "full"))]
    assert named == ["layer 1", "layer 2", "layer 3"]
    deep = trainer_of(graph, "full", backbone="gcnii", layers=2)
    named = [layer.name for layer in gradient_error(deep)]
    assert named == ["encode", "layer 1", "layer 2", "decode"]


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("full", {}),
        ("graphsage", {}),
        ("graphfm-ib", {}),
        ("vr-gcn", {}),
        ("gas", {"compensate": True}),
        ("graphfm-ob", {}),
        ("graphfm-delta", {"compensate": True}),
    ],
)
def test_everything_is_left_as_it_was(make_graph, method, options):
    trainer = trainer_of(
        make_graph(undirected=True), method, batch_norm=True, dropout=0.5, **options
    )
    trainer.epoch()
    trainer.backbone.layers[0].eval()  # a mode of its own

    def state():
        estimator = trainer.method.estimator
        tables = [table.rows.clone() for table in estimator.histories_by_name().values()]
        weights = [value.clone() for value in trainer.backbone.state_dict().values()]
        grads = [parameter.grad.clone() for parameter in trainer.backbone.parameters()]
        return [*tables, *weights, *grads, trainer.rng.get_state(), torch.get_rng_state()]

    def settings():
        modes = [m.training for m in trainer.backbone.modules()]
        momentum = [layer.norm.momentum for layer in trainer.backbone.layers[:-1]]
        return modes, momentum

    before, settings_before = state(), settings()
    first = gradient_error(trainer)
    torch.testing.assert_close(state(), before, rtol=0, atol=0)
    assert settings() == settings_before
    assert gradient_error(trainer) == first  # no dropout, and the same batches again


def test_training_goes_on_as_if_nothing_had_been_measured(make_graph):
    graph = make_graph(undirected=True)
    options = {"batch_norm": True, "dropout": 0.5, "compensate": True}
    plain, measured = (trainer_of(graph, "gas", **options) for _ in range(2))
    for trainer in (plain, measured):
        torch.manual_seed(5)
        for _ in range(2):
            trainer.epoch()
            if trainer is measured:
                gradient_error(trainer, 2)
    want, got = plain.backbone.state_dict(), measured.backbone.state_dict()
    torch.testing.assert_close(got, want, rtol=0, atol=0)


def test_error_is_that_of_a_gradient_computed_by_hand(make_graph):
    """One batch, one layer: `.grad` after a step against the gradient of the full batch."""
    graph = make_graph(undirected=True)
    options = {"layers": 1, "dropout": 0.0, "lr": 1e-9}
    full, parts = trainer_of(graph, "full", **options), trainer_of(graph, "gas", **options)
    (layer,) = gradient_error(parts, 1)
    for trainer in (full, parts):
        trainer.step(next(iter(trainer.method.sampler.epoch(trainer.rng))))
    want, got = (
        torch.cat([p.grad.flatten() for p in trainer.backbone.parameters()])
        for trainer in (full, parts)
    )
    assert layer.relative == pytest.approx(float((got - want).norm() / want.norm()), rel=1e-4)
    assert layer.cosine == pytest.approx(float(torch.cosine_similarity(got, want, dim=0)), rel=1e-4)
    assert layer.relative > 0.01


def test_compensation_brings_the_gradient_closer(make_graph):
    """With fresh histories the forward pass is exact, and the backward pass is what is left."""
    graph = make_graph(200, 800, undirected=True)

    def first_layer(compensate):
        trainer = trainer_of(graph, "gas", dropout=0.0, lr=1e-9, compensate=compensate)
        for _ in range(4):  # the weights all but stand still while histories become exact
            trainer.epoch()
        return gradient_error(trainer)[0]

    assert first_layer(True).cosine > first_layer(False).cosine


def test_number_of_batches(make_graph):
    trainer = trainer_of(make_graph(undirected=True), "gas")  # three batches an epoch
    assert gradient_error(trainer, 3) == gradient_error(trainer)
    assert gradient_error(trainer, 1) != gradient_error(trainer)
    assert len(gradient_error(trainer, 7)) == 3  # goes on to further epochs
    with pytest.raises(InputError, match="batches is 0; expected 1 or more"):
        gradient_error(trainer, 0)
