"""Train GraphFM-IB on a graph of your own arrays, and predict with the model.

python examples/train.py
"""

import numpy as np

import graphfm


def make_graph(num_nodes: int = 2000, num_classes: int = 4, seed: int = 0) -> graphfm.Graph:
    """A graph from NumPy arrays: noisy features, and edges that mostly stay within a class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(num_classes, size=num_nodes)
    x = np.eye(num_classes, dtype=np.float32)[y]
    x = np.concatenate([x, np.zeros((num_nodes, 12), np.float32)], axis=1)
    x += rng.normal(scale=2.0, size=x.shape).astype(np.float32)
    members = [np.flatnonzero(y == c) for c in range(num_classes)]
    source = np.repeat(np.arange(num_nodes), 10)
    alike = np.array([rng.choice(members[y[node]]) for node in source])
    anyone = rng.integers(num_nodes, size=source.size)
    target = np.where(rng.random(source.size) < 0.7, alike, anyone)
    split = rng.random(num_nodes)
    return graphfm.Graph.from_edges(
        np.stack([source, target]),
        x,
        y,
        train_mask=split < 0.6,
        val_mask=(split >= 0.6) & (split < 0.8),
        test_mask=split >= 0.8,
        undirected=True,
    )


def main() -> None:
    graph = make_graph()
    sampled = {"fanout": 1, "batch_size": 256, "epochs": 20}  # five steps in an epoch
    methods = {
        "graphsage": sampled,
        "graphfm-ib": {**sampled, "beta": 0.3},
        "full": {"epochs": 100},
    }
    for method, options in methods.items():
        result = graphfm.train(graph, method=method, hidden=32, lr=0.01, **options)
        print(f"{method:<11} test accuracy {result.score.test:.4f}")
    probabilities = result.model.predict(graph)  # [num_nodes, num_classes], exact
    print("node 0 is of class", int(probabilities[0].argmax()))


if __name__ == "__main__":
    main()
