"""A network of PyG, unmodified, trained by methods for graphs that do not fit: here GAT by gas.

The module is yours, before and after. Run it, or name it:

    python examples/pyg_gat.py
    cd examples && graphfm train --model pyg_gat:GAT --model-option hidden=32 --method gas
"""

import logging

import torch
from torch import nn
from torch_geometric.nn import GATConv

import graphfm

logging.getLogger("graphfm").setLevel(logging.ERROR)  # no advice on so small a graph


class GAT(nn.Module):
    """Two layers of attention with a residual connection, as one would write it for PyG."""

    def __init__(self, in_channels: int, out_channels: int, hidden: int = 32) -> None:
        super().__init__()
        self.first = GATConv(in_channels, hidden // 4, heads=4)
        self.skip = nn.Linear(in_channels, hidden)
        self.norm = nn.BatchNorm1d(hidden)
        self.second = GATConv(hidden, out_channels)
        self.dropout = nn.Dropout(0.3)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        h = self.norm(self.first(x, edge_index) + self.skip(x)).relu()
        return self.second(self.dropout(h), edge_index)


def main() -> None:
    graph = graphfm.synthetic("small", scale=0.3)
    torch.manual_seed(0)
    net = GAT(graph.num_features, graph.num_classes)
    print(graphfm.check_model(net, graph))  # which methods can train it, and why not the others

    result = graphfm.train(graph, model=net, method="gas", parts=20, epochs=20, lr=0.01)
    assert result.module is net  # trained in place
    print(f"gas: test accuracy {result.score.test:.4f}")

    rows = result.model.embed(graph)  # what the last convolution reads
    print(f"embeddings {list(rows.shape)}, probabilities {list(result.model.predict(graph).shape)}")


if __name__ == "__main__":
    main()
