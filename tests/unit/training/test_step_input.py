"""What a network reads of a graph: computed once, and by everybody the same."""

import pytest
import torch

from graphfm import Graph, load_model, train
from graphfm.backbones import BACKBONES, make_backbone
from graphfm.backbones.sage import SAGE
from graphfm.batch import Batch
from graphfm.diagnostics.gradient import gradient_error
from graphfm.estimators.exact import Exact
from graphfm.runs.run import Run, build
from graphfm.training.inference import LayerwiseInference
from graphfm.training.loop import fit
from graphfm.training.staleness import staleness

OWN = ["sign", "sgc"]


class Doubled(SAGE):
    """Reads twice the features, as no backbone with graph layers does today."""

    def features(self, graph):
        return 2 * graph.x


@pytest.fixture
def calls(monkeypatch):
    """The graphs whose features were computed."""
    seen = []
    for name in OWN:
        original = BACKBONES[name].features

        def counting(self, graph, original=original):
            seen.append(graph)
            return original(self, graph)

        monkeypatch.setattr(BACKBONES[name], "features", counting)
    return seen


@pytest.mark.parametrize("name", OWN)
def test_once_per_training_and_once_per_prediction(make_graph, calls, name):
    graph, other = make_graph(), make_graph(seed=1)
    model = train(graph, method=name, epochs=4, batch_size=8).model
    assert calls == [graph]
    model.predict(other)
    assert calls == [graph, other]
    model.evaluate(graph)
    assert calls == [graph, other, graph]


@pytest.mark.parametrize("name", OWN)
def test_a_model_knows_another_graph(make_graph, name):
    model = train(make_graph(), method=name, epochs=2).model
    other = make_graph(num_nodes=40, seed=5)
    x = model.backbone.features(other)
    with torch.no_grad():
        ids = torch.arange(40)
        want = model.backbone.eval()(x, Batch(ids, ids, ()), Exact()).softmax(1)
    torch.testing.assert_close(model.predict(other), want)


@pytest.mark.parametrize("name", OWN)
def test_a_run_folder_brings_the_model_back(make_graph, tmp_path, name):
    graph = make_graph(multi_label=True, weighted=True)
    result = train(graph, method=name, epochs=3, layers=3, out=tmp_path / "run")
    model = load_model(tmp_path / "run")
    assert torch.equal(model.predict(graph), result.model.predict(graph))
    assert model.evaluate(graph)["test"] == result.score.test


@pytest.mark.parametrize("name", OWN)
def test_same_seed_same_bits(make_graph, name):
    first, second, other = (
        train(make_graph(), method=name, epochs=3, batch_size=8, seed=seed).model.backbone
        for seed in (5, 5, 6)
    )
    torch.testing.assert_close(first.state_dict(), second.state_dict(), rtol=0, atol=0)
    key = next(iter(first.state_dict()))
    assert not torch.equal(first.state_dict()[key], other.state_dict()[key])


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_half_precision_features_train(make_graph, name, kind):
    graph = make_graph()
    half = Graph.from_edges(
        graph.edge_index, graph.x.to(kind), graph.y, train_mask=graph.train_mask,
        val_mask=graph.val_mask,
    )  # fmt: skip
    assert train(half, method=name, epochs=2).score.val >= 0


def test_hops_in_files_train_the_same_network(make_graph, monkeypatch, tmp_path):
    monkeypatch.setenv("GRAPHFM_CACHE", str(tmp_path))
    graph, states = make_graph(), []
    for most in (1 << 30, 0):
        monkeypatch.setattr("graphfm.data.matrix.hops.MOST_IN_MEMORY", most)
        states.append(train(graph, method="sgc", epochs=3).model.backbone.state_dict())
    torch.testing.assert_close(*states, rtol=0, atol=0)
    assert len(list(tmp_path.glob("hops/*.npy"))) == 2


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("full", {}),
        ("graphfm-ib", {}),
        ("graphfm-ib", {"start": "features", "exact_first_hop": False}),
        ("vr-gcn", {}),
        ("gas", {"parts": 6, "parts_per_batch": 2, "refresh_histories": True}),
        ("graphfm-delta", {"parts": 6, "parts_per_batch": 2}),
    ],
    ids=str,
)
def test_everybody_reads_the_features_of_the_backbone(make_graph, method, options, monkeypatch):
    """Training a network that doubles its features is training on doubled features."""
    graph = make_graph()
    twice = Graph.from_edges(
        graph.edge_index, 2 * graph.x, graph.y, train_mask=graph.train_mask,
        val_mask=graph.val_mask, test_mask=graph.test_mask,
    )  # fmt: skip
    found = []
    for kind, known in ((Doubled, graph), (SAGE, twice)):
        monkeypatch.setitem(BACKBONES, "sage", kind)
        trainer = build(Run.make(method=method, hidden=8, epochs=3, **options), known)
        score = fit(trainer)
        state = {key: value.tolist() for key, value in trainer.backbone.state_dict().items()}
        found.append((score.val, score.test, state, staleness(trainer), gradient_error(trainer)))
    assert found[0] == found[1]


def test_inference_takes_features_that_are_there_already(make_graph):
    graph, backbone = make_graph(), make_backbone("sign", 7, 4)
    infer, x = LayerwiseInference(backbone.adjacency(graph)), backbone.features(graph)
    assert torch.equal(infer(backbone, x), infer(backbone))
    assert not torch.allclose(infer(backbone, 2 * x), infer(backbone))


def test_a_trainer_on_sign_measures_its_gradients(make_graph):
    trainer = build(Run.make(method="sign", batch_size=500), make_graph())
    (decode,) = gradient_error(trainer)
    assert decode.relative == pytest.approx(0, abs=1e-5)  # all training rows are one batch
    assert staleness(trainer) == []
