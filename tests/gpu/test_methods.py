"""Every method on a GPU. Run on a machine that has one: `pytest tests/gpu`."""

import pytest
import torch

from graphfm import train
from graphfm.backbones import BACKBONES
from graphfm.methods import METHODS
from graphfm.runs.run import backbone_of

TRAINS = [  # each method with each backbone it is for
    (name, backbone) for name in METHODS for backbone in BACKBONES
    if backbone != "mlp" and backbone_of(name) in (None, backbone)
]  # fmt: skip
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize(("name", "backbone"), TRAINS)
def test_trains_every_backbone(make_graph, name, backbone):
    options = {"aggregators": ("mean",)} if (name, backbone) == ("graphfm-delta", "pna") else {}
    graph = make_graph(num_nodes=300, num_edges=3000)
    result = train(graph, method=name, backbone=backbone, epochs=2, device="cuda", **options)
    assert 0 <= result.score.test <= 1
    assert all(p.isfinite().all() for p in result.model.backbone.parameters())


@pytest.mark.parametrize("name", METHODS)
def test_same_seed_same_numbers(make_graph, name):
    graph = make_graph(num_nodes=3000, num_edges=60_000)
    options = {"method": name, "epochs": 3, "layers": 3, "device": "cuda"}
    first, second = (train(graph, **options).model.backbone.state_dict() for _ in range(2))
    torch.testing.assert_close(first, second, rtol=0, atol=0)


@pytest.mark.parametrize("name", METHODS)
def test_a_graph_without_edges_trains(make_graph, name):
    graph = make_graph(num_edges=0)
    assert train(graph, method=name, epochs=2, device="cuda").score.val >= 0
