"""Which rows a layer's number names, and what the last hidden rows are."""

import pytest
import torch
from torch import nn

from graphfm import InputError, Model, load_model, train
from graphfm.backbones import BACKBONES, make_backbone
from graphfm.backbones.ending import embedding, outputs
from graphfm.training.inference import LayerwiseInference


def rows(backbone, graph, ending):
    infer = LayerwiseInference(backbone.adjacency(graph))
    return torch.cat([*infer.parts(backbone, ending)])


@pytest.fixture
def made(make_graph, taken):
    """A graph and a network of three layers on it."""

    def make(name, **options):
        graph = make_graph()
        settings = {**taken(name, layers=3, hidden=5), **options}
        return graph, make_backbone(name, graph.num_features, graph.num_classes, **settings)

    return make


@pytest.mark.parametrize(
    ("name", "options", "width"),
    [
        ("gcnii", {}, 5), ("pna", {"jump": True}, 20), ("mlp", {}, 5), ("sign", {}, 20),
        ("sgc", {}, 7),
    ],
)  # fmt: skip
def test_the_last_matrix_makes_outputs_of_the_last_hidden_rows(made, name, options, width):
    graph, backbone = made(name, **options)
    hidden = rows(backbone, graph, embedding(backbone))
    assert hidden.shape == (graph.num_nodes, width)
    decode = backbone.decode
    last = decode[-1] if isinstance(decode, nn.Sequential) else decode
    with torch.no_grad():
        torch.testing.assert_close(last(hidden), rows(backbone, graph, outputs(backbone)))


@pytest.mark.parametrize("name", ["sage", "gcn", "pna"])
def test_where_the_last_layer_gives_outputs_the_rows_before_it_are_the_last_hidden(made, name):
    graph, backbone = made(name)
    by_layer = [rows(backbone, graph, embedding(backbone, layer)) for layer in range(4)]
    assert [found.size(1) for found in by_layer] == [7, 5, 5, graph.num_classes]
    assert torch.equal(by_layer[0], graph.x)
    assert torch.equal(by_layer[2], rows(backbone, graph, embedding(backbone)))
    assert torch.equal(by_layer[3], rows(backbone, graph, outputs(backbone)))
    for layer in range(4):
        assert torch.equal(by_layer[layer], rows(backbone, graph, embedding(backbone, layer - 4)))


@pytest.mark.parametrize("name", BACKBONES)
@pytest.mark.parametrize("beyond", [1, -2])
def test_a_layer_that_the_network_does_not_have_is_refused(made, name, beyond):
    _, backbone = made(name)
    number = len(backbone.layers)
    layer = number + 1 if beyond > 0 else -number - 2
    with pytest.raises(InputError, match=f"the layer is {layer}; expected 0 to {number}"):
        embedding(backbone, layer)


def test_a_decoder_of_another_form_is_read_whole(made):
    graph, backbone = made("gcnii")
    backbone.decode = nn.Bilinear(1, 1, 1)  # it is not asked
    assert torch.equal(
        rows(backbone, graph, embedding(backbone)), rows(backbone, graph, embedding(backbone, -1))
    )


def test_models_embed_graphs_in_memory_and_from_a_folder(make_graph, tmp_path):
    graph = make_graph()
    result = train(graph, method="graphsage", hidden=6, epochs=1, out=tmp_path / "run")
    hidden = result.model.embed(graph)
    assert hidden.shape == (graph.num_nodes, 6)
    loaded = load_model(tmp_path / "run")
    assert torch.equal(loaded.embed(graph, layer=1), hidden)
    assert torch.equal(loaded.embed(graph, nodes=[4, 2]), hidden[[4, 2]])
    assert torch.equal(loaded.predict(graph, nodes=torch.tensor([4])), loaded.predict(graph)[4:5])
    before = graph.x.clone()
    loaded.embed(graph, layer=0).zero_()
    assert torch.equal(graph.x, before)


@pytest.mark.parametrize("nodes", [[], [0.5], ["a"], [True], [[1]], [-1], [10**6], 3])
def test_nodes_that_are_not_numbers_of_nodes_are_refused(make_graph, nodes):
    graph = make_graph()
    model: Model = train(graph, hidden=2, epochs=1).model
    with pytest.raises(InputError, match="node"):
        model.predict(graph, nodes=nodes)
