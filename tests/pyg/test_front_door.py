"""Models through `graphfm.train` and its relatives, as a user gives them."""

import json

import pytest
import torch
from torch import nn
from torch_geometric.nn import GraphSAGE, SAGEConv

import graphfm
from graphfm import Callback, InputError
from tests.pyg.graphs import make_graph
from tests.pyg.zoo import IN, OUT

SETTINGS = {"method": "gas", "parts": 6, "epochs": 3}


class Net(nn.Module):
    """One that may be wider or narrower."""

    def __init__(self, in_channels=IN, out_channels=OUT, hidden=8):
        super().__init__()
        self.first, self.norm = SAGEConv(in_channels, hidden), nn.BatchNorm1d(hidden)
        self.second = SAGEConv(hidden, out_channels)

    def forward(self, x, edge_index):
        return self.second(self.norm(self.first(x, edge_index)).relu(), edge_index)


class Stop(Callback):
    """Stops a training by Ctrl-C."""

    def on_epoch(self, record, best):
        if record.epoch == 2:
            raise KeyboardInterrupt


@pytest.fixture(autouse=True)
def _no_picture(monkeypatch):
    monkeypatch.setattr("graphfm.runs.curves.draw_curves", lambda *given: given[2].touch())


@pytest.mark.parametrize("training", [True, False])
def test_the_module_is_trained_in_place_and_keeps_its_mode(training):
    net, graph = Net().train(training), make_graph()
    net.norm.eval()
    result = graphfm.train(graph, model=net, **SETTINGS)
    assert result.module is net
    assert (net.training, net.first.training, net.norm.training) == (training, training, False)
    with pytest.raises(KeyboardInterrupt):
        graphfm.train(graph, model=net, callbacks=[Stop()], **SETTINGS)
    assert (net.training, net.norm.training) == (training, False)
    expected = net.eval()(graph.x, graph.edge_index).softmax(1)
    assert torch.equal(result.model.embed(graph, 0), graph.x)
    assert result.model.predict(graph).shape == expected.shape


def test_a_class_is_called_with_its_options(tmp_path):
    graph, options = make_graph(), {"hidden": 5}
    result = graphfm.train(
        graph, model=Net, model_options=options, out=tmp_path / "run", **SETTINGS
    )
    assert result.module.first.lin_l.weight.shape[0] == 5
    again = graphfm.load_model(tmp_path / "run", model=Net)
    assert torch.equal(again.predict(graph), result.model.predict(graph))
    with pytest.raises(InputError, match="takes no hiden; it takes .*did you mean hidden"):
        graphfm.train(graph, model=Net, model_options={"hiden": 5}, **SETTINGS)
    with pytest.raises(InputError, match="made already; leave out model_options"):
        graphfm.train(graph, model=Net(), model_options=options, **SETTINGS)
    with pytest.raises(InputError, match="backbone and model were both given"):
        graphfm.train(graph, model=Net(), backbone="gcn", **SETTINGS)


def test_another_model_does_not_destroy_a_run(tmp_path):
    graph, path = make_graph(), tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        graphfm.train(graph, model=Net(), out=path, callbacks=[Stop()], **SETTINGS)
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    with pytest.raises(InputError, match="not the one that the run was made with: .* has shape"):
        graphfm.resume(path, graph, model=Net(hidden=4))
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before
    with pytest.raises(InputError, match="a module of class Net; give one with the same arguments"):
        graphfm.resume(path, graph)
    assert graphfm.resume(path, graph, model=Net()).score.epochs == 3


def test_an_embedding_of_node_ids_is_told_of_learned_rows():
    class Ids(Net):
        def __init__(self):
            super().__init__(in_channels=IN + 2)
            self.ids = nn.Embedding(90, 2)

        def forward(self, x, edge_index):
            return super().forward(torch.cat([x, self.ids.weight], 1), edge_index)

    with pytest.raises(InputError, match="examined on small graphs.*node_features='learned'"):
        graphfm.train(make_graph(), model=Ids(), **SETTINGS)


def test_a_failure_with_data_of_edges_says_how_to_leave_them_out():
    class Picky(Net):
        def forward(self, x, edge_index, edge_attr=None):
            assert edge_attr is None, "no attributes"
            return super().forward(x, edge_index)

    graph = make_graph("edge_attr")
    with pytest.raises(InputError, match="no attributes.*; if it should not get the data of edges"):
        graphfm.train(graph, model=Picky(), **SETTINGS)
    graphfm.train(
        graph, model=Picky(), call=lambda net, batch: net(batch.x, batch.edge_index), **SETTINGS
    )


def test_learned_rows_and_made_rows_reach_a_model():
    graph = make_graph()
    for kind in ("degree", "random", "learned"):
        made = graphfm.train(
            graph, model=Net, node_features=kind, standardize=True, **SETTINGS
        ).module
        assert made.first.in_channels > IN


def test_compare_needs_what_makes_a_model(tmp_path):
    make_graph().save(tmp_path / "graph.npz")
    with pytest.raises(InputError, match="made already cannot be sent .* give the function or cla"):
        graphfm.compare(tmp_path / "graph.npz", ["full"], model=Net(), budget_epochs=1)
    rows = graphfm.compare(
        tmp_path / "graph.npz", ["full", "gas"], model=GraphSAGE, seeds=1, budget_epochs=2,
        model_options={"hidden_channels": 4, "num_layers": 2}, own={"gas": {"parts": 4}},
        out=tmp_path / "comparison",
    )  # fmt: skip
    assert [row.num_failed for row in rows] == [0, 0]


def test_a_model_without_a_suitable_method_is_refused_in_one_line():
    with pytest.raises(InputError, match="sign"):
        graphfm.train(make_graph(), model=Net(), method="sign")


def test_the_staleness_of_a_models_histories_is_compared(tmp_path, monkeypatch):
    from tests.unit.cli.commands import graphfm as command

    make_graph().save(tmp_path / "graph.npz")
    found = command(
        "staleness", "--dataset", tmp_path / "graph.npz", "--model", "torch_geometric.nn:GraphSAGE",
        "--model-option", "hidden_channels=4", "--model-option", "num_layers=3", "--epochs", 2,
        "--parts", 4, "--parts-per-batch", 2, "--json",
    )  # fmt: skip
    assert found.code == 0, found.err
    rows = {row["name"]: row["layers"] for row in json.loads(found.out)["rows"]}
    assert [layer["layer"] for layer in rows["gas"]] == [1, 2]
    assert all(layer["score"] > 0 for layer in rows["gas"])
