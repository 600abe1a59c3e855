"""Print a digest of the weights that every method ends with on every backbone.

Three epochs at a fixed seed, through `graphfm.train`, on two small graphs made here. Run it at two
commits and compare what they print: equal lines are equal bits.

    python tools/weights_digest.py --device cpu > before.txt     # at one commit
    python tools/weights_digest.py --device cpu | diff before.txt -    # at another
"""

import argparse
import hashlib
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import torch

import graphfm
from graphfm.backbones import BACKBONES
from graphfm.methods import METHODS

SIZES = {
    "batch_size": 48, "parts": 12, "parts_per_batch": 2, "budget": 60, "coverage": 3,
    "nodes_per_layer": (120,),
}  # fmt: skip
TAKES = {
    "graphsage": ("batch_size",), "graphfm-ib": ("batch_size",), "vr-gcn": ("batch_size",),
    "fastgcn": ("batch_size", "nodes_per_layer"), "ladies": ("batch_size", "nodes_per_layer"),
    "mvs-gcn": ("batch_size", "nodes_per_layer"), "graphsaint": ("budget", "coverage"),
    "shadow": ("batch_size",), "sign": ("batch_size",), "sgc": ("batch_size",), "full": (),
}  # fmt: skip
PARTS = ("parts", "parts_per_batch")
VARIANTS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("graphsage", "sage", {"fanout": (2, 3, 4), "precision": "bf16"}),
    ("graphsage", "gcn", {"fanout": (3,), "batch_norm": True, "residual": True}),
    ("graphsage", "sage", {"fanout": (1000,)}),
    ("graphsage", "sage", {"fanout": (4, 2, 3), "picks": "independent"}),
    ("graphfm-ib", "sage", {"dropout": 0.0}),
    ("graphfm-ib", "gcn", {"dropout": 0.0, "beta": (0.3,), "start": "zero"}),
    ("graphfm-ib", "sage", {"exact_first_hop": False, "start": "features", "dropout": 0.0}),
    ("graphfm-ib", "sage", {"whole_gradient": True, "history": "bf16", "fanout": (2,)}),
    ("graphfm-ib", "pna", {"exact_first_hop": False, "aggregators": ("mean", "max", "std")}),
    ("graphfm-ib", "sage", {"refresh_histories": True, "eval_every": 1, "clip": 1.0}),
    ("graphfm-ib", "sage", {"staleness_every": 1, "schedule": "cosine"}),
    ("graphfm-ib", "sage", {"features": "bf16", "weight_decay": 0.01}),
    ("vr-gcn", "sage", {"exact_first_hop": False, "dropout": 0.0}),
    ("vr-gcn", "gcn", {"dropout": 0.3, "fanout": (3, 1, 2)}),
    ("graphsaint", "sage", {"subgraph": "edge"}),
    ("graphsaint", "gcn", {"subgraph": "node"}),
    ("shadow", "sage", {"subgraph": "pagerank"}),
    ("cluster-gcn", "gcn", {"diagonal": 0.5, "partition": "random"}),
    ("gas", "gcn", {"compensate": True}),
    ("gas", "gcn", {"exact_first_hop": False, "edge_drop": 0.2, "dropout": 0.0}),
    ("gas", "gcn", {"dropout": 0.0}),
    ("gas", "gcnii", {"history": "fp16", "shared_weights": False}),
    ("graphfm-ob", "gcn", {"dropout": 0.0, "exact_first_hop": False, "start": "zero"}),
    ("graphfm-ob", "gcn", {"partial": "sum", "threshold": 2, "batch_norm": True}),
    ("graphfm-ob", "gcn", {"beta": (0.5, 0.2), "deterministic": False}),
    ("graphfm-ob", "pna", {"transform": True, "jump": True, "batch_norm": True}),
    ("graphfm-ob", "sage", {"compensate": True, "residual": True}),
    ("graphfm-delta", "gcn", {"dropout": 0.0}),
    ("graphfm-delta", "gcn", {"compensate": True, "exact_first_hop": False}),
    ("graphfm-delta", "pna", {"aggregators": ("mean",)}),
    ("mvs-gcn", "gcn", {"exact_first_hop": False}),
    ("full", "sage", {"precision": "bf16", "batch_norm": True, "dropout_input": True}),
)  # fmt: skip


def graph_of(kind: str) -> graphfm.Graph:
    """A random graph: undirected with one class per node, or directed with weights and labels."""
    rng = torch.Generator().manual_seed(7)
    nodes, edges, directed = 1500, 6000, kind == "directed"
    y = torch.randint(5, (nodes,), generator=rng)
    if directed:
        y = torch.randint(2, (nodes, 5), generator=rng)
    split = torch.arange(nodes) % 4
    ends = torch.randint(nodes - 5, (2, edges), generator=rng)
    ends[0, :700] = 3  # a hub that many read
    ends[1, 700:1300] = 4  # and one that reads many
    return graphfm.Graph.from_edges(
        ends,
        torch.randn(nodes, 12, generator=rng),
        y,
        train_mask=split <= 1,
        val_mask=split == 2,
        test_mask=split == 3,
        edge_weight=torch.rand(edges, generator=rng) + 0.1 if directed else None,
        num_classes=5,
        undirected=not directed,
    )


def cases() -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Graph, method, backbone and options of every training."""
    for kind in ("undirected", "directed"):
        for method in METHODS:
            own = {"sign": "sign", "sgc": "sgc"}.get(method)
            for backbone in BACKBONES if own is None else [own]:
                if own is not None or backbone not in ("sign", "sgc"):
                    yield kind, method, backbone, {}
        for method, backbone, options in VARIANTS:
            yield kind, method, backbone, options


def digest(graph: graphfm.Graph, method: str, backbone: str, options: dict[str, Any]) -> str:
    """Of the weights after three epochs; or that the pair is refused."""
    given = {name: SIZES[name] for name in TAKES.get(method, PARTS)}
    given |= {"layers": 3, "epochs": 3, "eval_every": 3, "seed": 5}
    given |= {} if backbone == "sgc" else {"hidden": 24}
    try:
        result = graphfm.train(graph, method=method, backbone=backbone, **(given | options))
    except graphfm.InputError:
        return "refused"
    found = hashlib.sha256()
    for name, rows in sorted(result.model.backbone.state_dict().items()):
        found.update(name.encode())
        found.update(rows.cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()[:16]


def main() -> None:
    """One line for each training."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--capture", default="auto")
    parser.add_argument("--kernels", default="auto")
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.getLogger("graphfm").setLevel(logging.ERROR)
    graphs = {kind: graph_of(kind) for kind in ("undirected", "directed")}
    how = {"device": given.device, "capture": given.capture, "kernels": given.kernels}
    for kind, method, backbone, options in cases():
        found = digest(graphs[kind], method, backbone, {**how, **options})
        print(found, kind, method, backbone, options, flush=True)


if __name__ == "__main__":
    main()
