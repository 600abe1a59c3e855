"""SIGN (Rossi et al., 2020) and SGC (Wu et al., 2019): powers of a matrix, then rows alone.

SIGN: Y = xi(sigma([X Theta_0, A X Theta_1, ..., A^r X Theta_r]) Omega).
SGC: Y = softmax(S^K X Theta).
"""

import pytest
import torch

from graphfm import methods
from graphfm.backbones import make_backbone
from tests.papers.slow import (
    CLASSES,
    GRAPHS,
    HUB,
    NUM_NODES,
    WIDTH,
    Fast,
    Matrix,
    learned,
    mean_loss,
    small_graph,
)

STEPS = [[0, 5, 2], [1, 3, 13], [6, 7, 8, 9], [10, 11, 12, 1]]


class Rows:
    """A network over rows of hops: parameters in float64, by name."""

    def __init__(self, backbone):
        named = dict(backbone.named_parameters())
        self.by_name = {n: p.detach().double().requires_grad_() for n, p in named.items()}
        self.parameters = list(self.by_name.values())
        self.optimizer = torch.optim.Adam(self.parameters, lr=0.05)

    def linear(self, name, rows):
        return rows @ self.by_name[f"{name}.weight"].T + self.by_name[f"{name}.bias"]


def hops(matrix, graph, number):
    found = [graph.x.double()]
    for _ in range(number):
        found.append(matrix @ found[-1])
    return found


@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.parametrize(("directed", "weighted"), GRAPHS)
@pytest.mark.parametrize("name", ["sign", "sgc"])
def test_step_by_step(name, directed, weighted, number):
    graph, weight_of = small_graph(directed=directed, weighted=weighted)
    torch.manual_seed(2)
    options = {"hidden": 6, "dropout": 0.0} if name == "sign" else {}
    backbone = make_backbone(name, WIDTH, CLASSES, layers=number, **options)
    rows_of = Rows(backbone)
    fast = Fast(graph, backbone, methods.METHODS[name](batch_size=4))
    # SIGN: D^-1/2 A D^-1/2 of the graph as it is; SGC: with self-loops, as in GCN
    matrix = Matrix("gcn" if name == "sgc" else "sign", weight_of).whole
    assert (float(matrix.diagonal().count_nonzero()) == NUM_NODES) == (name == "sgc")
    x = hops(matrix, graph, number)
    for nodes in STEPS:
        got = fast.step(nodes)
        if name == "sgc":
            out = rows_of.linear("decode", x[-1][nodes])
        else:
            parts = [rows_of.linear(f"decode.1.hops.{k}", x[k][nodes]) for k in range(number + 1)]
            out = rows_of.linear("decode.5", torch.cat(parts, dim=1).relu())
        learned(fast, rows_of, out, mean_loss(graph, nodes, out), got)


def test_one_hop_by_hand():
    """The hub reads its neighbours by 1 / sqrt(deg v deg u); a self-loop is an edge like others."""
    graph, weight_of = small_graph()
    degree = {v: sum(w == v for w, _ in weight_of) for v in range(NUM_NODES)}
    want = sum(graph.x[u] / (degree[HUB] * degree[u]) ** 0.5 for v, u in weight_of if v == HUB)
    found = make_backbone("sign", WIDTH, CLASSES, layers=1).features(graph)
    torch.testing.assert_close(found[HUB, WIDTH:], want)
