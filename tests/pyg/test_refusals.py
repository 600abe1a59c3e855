"""What cannot be trained is refused by name, in one line, before training."""

import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn

import graphfm
from graphfm import InputError, check_model
from graphfm.methods import METHODS
from tests.pyg import unsuitable as nets
from tests.pyg.graphs import make_graph
from tests.pyg.zoo import HIDDEN, IN, OUT, ZOO

SUBGRAPHS = {"cluster-gcn", "shadow"}
PICKED = {"graphsage", "graphfm-ib", "vr-gcn", "mvs-gcn", "fastgcn", "ladies"}
HISTORIES = {"gas", "graphfm-ob"}
SAMPLED = {"graphsage", "graphfm-ib"}
EVERY = set(METHODS) - {"sign", "sgc"}


def sequence(conv):
    return pyg.Sequential("x, edge_index", [(conv, "x, edge_index -> x")])


def written(forward):
    return lambda: nets.Written(forward)


ONLY_FULL = {
    "ChebConv": (lambda: sequence(pyg.ChebConv(IN, OUT, 2)), r"\(ChebConv\) makes a Laplacian"),
    "LSTM": (lambda: sequence(pyg.SAGEConv(IN, OUT, aggr="lstm")), r"\(LSTMAggregation\) needs"),
    "GraphNorm": (lambda: nets.Normed(pyg.GraphNorm(HIDDEN)), r"norm \(GraphNorm\) normalises"),
    "PairNorm": (lambda: nets.Normed(pyg.PairNorm()), r"norm \(PairNorm\) normalises over all"),
    "InstanceNorm": (lambda: nets.Normed(pyg.InstanceNorm(HIDDEN)), r"norm \(InstanceNorm\) norm"),
    "LayerNorm": (lambda: nets.Normed(pyg.LayerNorm(HIDDEN)), r"\(LayerNorm\) .* mode='node'"),
    "MeanSubtraction": (lambda: nets.Normed(pyg.MeanSubtractionNorm()), r"\(MeanSubtractionNorm\)"),
    "GraphSizeNorm": (lambda: nets.Normed(pyg.GraphSizeNorm()), r"\(GraphSizeNorm\) divides by"),
    "BatchNorm": (
        lambda: nets.Normed(nn.BatchNorm1d(HIDDEN, track_running_stats=False)),
        r"norm \(BatchNorm1d\) keeps no running statistics",
    ),
    "GPSConv": (nets.Global, r"conv \(GPSConv\) attends to all nodes"),
    "DirGNNConv": (lambda: pyg.DirGNNConv(pyg.SAGEConv(IN, OUT)), r"\(DirGNNConv\) sends messages"),
    "flow": (lambda: sequence(pyg.SAGEConv(IN, OUT, flow="target_to_source")), "target to source"),
    "decomposed": (
        lambda: pyg.GCN(IN, HIDDEN, 2, OUT, decomposed_layers=2), "several times in one hop",
    ),
    "HypergraphConv": (lambda: sequence(pyg.HypergraphConv(IN, OUT)), r"\(HypergraphConv\) reads"),
    "GraphUNet": (lambda: pyg.GraphUNet(IN, HIDDEN, OUT, 2), "depends on nodes that no edge leads"),
    "undirected": (written(nets.makes_undirected), "depends on nodes that no edge leads from"),
    "turned edges": (written(nets.turns_edges), "depends on nodes that no edge leads from"),
    "mean": (written(nets.subtracts_mean), "depends on nodes that no edge leads from"),
    "order": (written(nets.counts_nodes), "depend on the order of the nodes"),
    "random": (written(nets.always_random), "its outputs are random in evaluation, too"),
    "embeddings": (written(nets.embeds_nodes), "it fails on parts of a small graph: RuntimeError"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Sparse")  # of GraphUNet's products
@pytest.mark.parametrize("name", ONLY_FULL)
def test_only_full_batch(name):
    make, reason = ONLY_FULL[name]
    certificate = check_model(make(), make_graph())
    assert certificate.methods == ("full",)
    for method in EVERY - {"full"}:
        with pytest.raises(InputError, match=reason) as caught:
            certificate.require(method)
        assert "\n" not in str(caught.value)
        assert str(caught.value).endswith("use one of full")


OUTSIDE = "messages are passed outside of MessagePassing modules"
SOME = {
    "scatter between": (written(nets.scatter_between), {"full"} | SUBGRAPHS, OUTSIDE),
    "scatter first": (written(nets.scatter_first), {"full"} | SUBGRAPHS, OUTSIDE),
    "scatter last": (written(nets.scatter_last), {"full"} | SUBGRAPHS, OUTSIDE),
    "dropout_edge": (written(nets.drops_edges), {"full"} | SUBGRAPHS, "first is given other edges"),
    "loops": (written(nets.adds_loops), {"full"} | SUBGRAPHS, "first is given other edges"),
    "counts edges": (
        written(nets.counts_edges), EVERY - PICKED - {"graphfm-delta"}, "nothing is left out",
    ),
    "asks degree": (written(nets.asks_degree), EVERY, ""),
    "sum and max": (
        lambda: sequence(pyg.SAGEConv(IN, OUT, aggr=["sum", "max"])), EVERY - PICKED, "alike",
    ),
    "SAGE": (lambda: pyg.GraphSAGE(IN, HIDDEN, 2, OUT), EVERY, ""),
    "GIN": (lambda: pyg.GIN(IN, HIDDEN, 2, OUT), EVERY, ""),
    "SG": (ZOO["SGConv"].make, EVERY - {"vr-gcn", "mvs-gcn"}, "several hops"),
    "APPNP": (ZOO["APPNP"].make, EVERY - {"vr-gcn", "mvs-gcn"}, "several hops"),
    "GCN": (lambda: pyg.GCN(IN, HIDDEN, 2, OUT), EVERY - {"graphfm-delta"}, "weights in it"),
    "GAT": (
        lambda: pyg.GAT(IN, HIDDEN, 2, OUT), EVERY - PICKED - {"graphfm-delta"} | SAMPLED,
        "neither a sum nor a mean",
    ),
    "PNA": (ZOO["PNA"].make, EVERY - PICKED - {"graphfm-delta"} | SAMPLED, "neither a sum"),
    "MLP": (lambda: pyg.MLP([IN, HIDDEN, OUT]), EVERY, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", SOME)
def test_only_some_methods(name):
    make, allowed, reason = SOME[name]
    certificate = check_model(make(), make_graph())
    assert set(certificate.methods) == allowed
    for method in EVERY - allowed:
        with pytest.raises(InputError) as caught:
            certificate.require(method)
        assert "\n" not in str(caught.value)
    if allowed != EVERY:
        assert any(reason in why for why in certificate.refused.values()), certificate.refused


def test_attention_is_warned_of():
    certificate = check_model(pyg.GAT(IN, HIDDEN, 2, OUT), make_graph())
    assert "hurt attention; gas reads all neighbours" in certificate.warnings["graphfm-ib"]
    assert "biased" in certificate.warnings["graphsage"]
    assert not check_model(pyg.GCN(IN, HIDDEN, 2, OUT), make_graph()).warnings
    text = str(certificate)
    assert "an output depends on nodes up to 2 hops away" in text
    assert "convs.0, call 1, hop 1: neither a sum nor a mean" in text


WRONG = {
    "compiled": (lambda: torch.compile(nets.Normed(nn.Identity())), "is compiled, and compiled"),
    "compiled part": (lambda: nets.Normed(torch.compile(nn.Linear(8, 8))), "is compiled, and"),
    "scripted": (lambda: torch.jit.script(nn.Linear(IN, OUT)), "is compiled, and compiled modules"),
    "outputs": (lambda: pyg.GCN(IN, HIDDEN, 2, OUT + 1), "has 4 outputs per node; expected 3"),
    "inputs": (lambda: pyg.GCN(IN + 1, HIDDEN, 2, OUT), "fails on one of .* with 6 features"),
    "parameters": (lambda: nets.Needs(IN, HIDDEN, 2, OUT), "Needs.forward needs batch, pos; exp"),
    "no parameters": (nets.TakesNothing, "TakesNothing.forward takes nothing; expected x, edge_in"),
    "pair": (written(nets.returns_pair), r"returned a tuple; expected a tensor \[num_nodes, num_o"),
    "graph": (written(nets.returns_graph), r"returned shape \[1, 3\]; expected a tensor"),
    "column": (written(nets.returns_column), r"returned shape \[\d+\]; expected a tensor"),
    "number": (lambda: 3, "model is a int; expected a torch.nn.Module"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_no_method_can_train(name):
    make, reason = WRONG[name]
    graph = make_graph()
    for use in (check_model, lambda net, graph: graphfm.train(graph, model=net, epochs=1)):
        with pytest.raises(InputError, match=reason) as caught:
            use(make(), graph)
        assert "\n" not in str(caught.value)


def test_training_is_refused_before_it_begins(tmp_path):
    net = nets.Normed(pyg.PairNorm())
    with pytest.raises(InputError, match=r"gas cannot train Normed: norm \(PairNorm\) normalises"):
        graphfm.train(make_graph(), model=net, method="gas", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("method", "option", "reason"),
    [
        ("gas", {"compensate": True}, "compensate needs a network of ours"),
        ("graphfm-delta", {"compensate": True}, "compensate needs a network of ours"),
        ("vr-gcn", {"split_dropout": True}, "split_dropout needs a network of ours"),
    ],
)
def test_options_of_our_own_networks_are_refused(method, option, reason):
    net = pyg.GraphSAGE(IN, HIDDEN, 2, OUT)
    with pytest.raises(InputError, match=reason):
        graphfm.train(make_graph(), model=net, method=method, epochs=1, **option)
