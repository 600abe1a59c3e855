"""The choices between paper, released code and this project that `faithfulness.py` measures.

Each choice is two settings that differ in one thing. Most differ in a setting of the project; what
the project does not offer is patched in here.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import torch

from graphfm import Graph
from graphfm.estimators import halo_history
from graphfm.layer import GraphLayer
from graphfm.norm import BatchNorm
from graphfm.training.inference import LayerwiseInference
from graphfm.training.trainer import Trainer

Options = dict[str, Any]
Around = Callable[[], AbstractContextManager[object]]
TRAINING: Options = {"schedule": "constant", "patience": 0, "eval_every": 2, "device": "cpu"}
IB: Options = {
    **TRAINING, "backbone": "sage", "method": "graphfm-ib", "as_published": True, "layers": 2,
    "hidden": 64, "dropout": 0.0, "fanout": (1,), "lr": 0.003,
}  # fmt: skip
GAS: Options = {
    **TRAINING, "backbone": "gcn", "method": "gas", "as_published": True, "init": "glorot",
    "layers": 3, "hidden": 64, "dropout": 0.5, "batch_norm": True, "lr": 0.01, "parts": 24,
    "parts_per_batch": 4, "fill_histories": True,
}  # fmt: skip
OB: Options = {**GAS, "method": "graphfm-ob"}
ROWS: Options = {key: value for key, value in GAS.items() if key != "init"}
PNA: Options = {**ROWS, "backbone": "pna", "hidden": 32, "transform": True, "separate": True}
PNA_OB: Options = {**PNA, "method": "graphfm-ob"}
FEW: Options = {**IB, "method": "graphsage"}


@dataclass(frozen=True)
class Patch:
    """What is done around a training, to its graph or to its trainer, that no setting does."""

    around: Around = nullcontext
    change: Callable[[Trainer], None] = lambda trainer: None
    prepare: Callable[[Graph], Graph] = lambda graph: graph
    inherits: bool = False  # needs a training before the first


NOTHING = Patch()


@dataclass(frozen=True)
class Choice:
    """Two settings by name; the second is the first with some changes."""

    what: str
    first: str
    second: str
    base: Options
    changes: Options = field(default_factory=dict)
    patch: Patch = NOTHING  # of the second
    graph: Patch = NOTHING  # of both
    same_weights: bool = False  # training is the same; only the epoch that is chosen may differ


def standardise(graph: Graph) -> Graph:
    """Features with mean 0 and deviation 1."""
    return replace(graph, x=(graph.x - graph.x.mean(0)) / graph.x.std(0).clamp(min=1e-6))


def one_way(graph: Graph) -> Graph:
    """Each edge of an undirected graph in one direction alone."""
    source, target = graph.edge_index
    keep = (source < target) == ((source + target) % 2 == 0)
    return Graph.from_edges(
        graph.edge_index[:, keep], graph.x, graph.y, train_mask=graph.train_mask,
        val_mask=graph.val_mask, test_mask=graph.test_mask, num_classes=graph.num_classes,
    )  # fmt: skip


def own_statistics() -> AbstractContextManager[object]:
    """The halo is normalised as a batch of its own, and moves the running statistics."""
    stack = ExitStack()
    stack.enter_context(
        patch.object(halo_history, "frozen_statistics", lambda layer: nullcontext())
    )
    for kind in GraphLayer.__subclasses__():  # no layer may fold running statistics into a matrix
        stack.enter_context(patch.object(kind, "affine", lambda self: None))
    return stack


def norm_in_training_only() -> AbstractContextManager[object]:
    """Batch norm in training, and none in evaluation: a slip of the released GCN."""
    inference = LayerwiseInference.__call__

    def bare(self: LayerwiseInference, *arguments: Any) -> torch.Tensor:
        with patch.object(BatchNorm, "forward", lambda self, x: x):
            return inference(self, *arguments)

    return patch.object(LayerwiseInference, "__call__", bare)


class Inherited:
    """Histories begin as the training before has left them."""

    def __init__(self) -> None:
        self.before: dict[str, torch.Tensor] = {}

    def __call__(self, trainer: Trainer) -> None:
        tables: dict[str, Any] = trainer.method.estimator.histories_by_name()
        for name, table in tables.items():
            if name in self.before and self.before[name].shape == table.rows.shape:
                table.rows.copy_(self.before[name])
        self.before = {name: table.rows for name, table in tables.items()}


PLAIN = {**GAS, "batch_norm": False}
DRY = {**OB, "dropout": 0.0}
UNFILLED = {**OB, "fill_histories": False}
RESIDUAL = {**OB, "residual": True}
SPARSE, SPARSE_PNA = {**OB, "edge_drop": 0.8}, {**PNA_OB, "edge_drop": 0.8}
JOINED = {**PNA_OB, "jump": True}
CHOICES = (
    Choice("first aggregate of IB", "sampled", "exact", IB, {"exact_first_hop": True}),
    Choice("IB starts from", "zero", "features", IB, {"start": "features"}),
    Choice("IB starts from", "zero", "the first fresh value", IB, {"start": "fresh"}),
    Choice("IB averages", "neighbours", "neighbours and the node", IB, {"average_self": True}),
    Choice("beta of IB", "0.9", "0.7", IB, {"beta": (0.7,)}),
    Choice(
        "IB's histories between seeds", "reset", "kept", IB,
        patch=Patch(change=Inherited(), inherits=True),
    ),
    Choice("length of hidden rows", "any", "1", IB, {"unit_rows": "outputs"}),
    Choice("length of aggregates", "any", "1", IB, {"unit_rows": "aggregates"}),
    Choice(
        "picks of 5 neighbours", "independent", "at equal distances", {**FEW, "fanout": (5,)},
        {"picks": "even"},
    ),
    Choice(
        "fan-outs", "25 next to the targets, then 10", "10 next to the targets, then 25",
        {**FEW, "fanout": (25, 10)}, {"fanout": (10, 25)},
    ),
    Choice("features", "as given", "standardised", IB, patch=Patch(prepare=standardise)),
    Choice(
        "evaluation", "every 2nd epoch", "at the end", IB, {"eval_every": 1000}, same_weights=True
    ),
    Choice("first aggregate of OB", "of the past", "exact", OB, {"exact_first_hop": True}),
    Choice("halo update of GCN", "partial sum", "rescaled", OB, {"partial": "rescaled"}),
    Choice("histories before the first step", "filled", "zero", OB, {"fill_histories": False}),
    Choice("OB starts from", "zero", "the first fresh value", UNFILLED, {"start": "fresh"}),
    Choice("threshold c of OB", "0", "4", OB, {"threshold": 4}),
    Choice("histories", "with dropout", "without", OB, {"dropout_in_histories": False}),
    Choice(
        "batch norm of the halo", "running statistics", "its own, which move them", DRY,
        patch=Patch(around=own_statistics),
    ),
    Choice(
        "batch norm of GCN, unset", "nowhere", "in training alone", PLAIN, {"batch_norm": True},
        Patch(around=norm_in_training_only),
    ),
    Choice("batch norm of GCN", "unset", "set", PLAIN, {"batch_norm": True}),
    Choice("residual of the halo", "left out", "applied", RESIDUAL, {"partial": "sum"}),
    Choice("first weights of GCN", "Glorot's", "torch's", OB, {"init": "torch"}),
    Choice(
        "nodes that move, directed graph", "all that read the batch", "those that it reads", OB,
        {"reach": "read"}, graph=Patch(prepare=one_way),
    ),
    Choice(
        "refresh after each epoch", "no", "yes", {**OB, "eval_every": 1},
        {"refresh_histories": True},
    ),
    Choice("edge dropping", "0", "0.8", OB, {"edge_drop": 0.8}),
    Choice(
        "entries dropped, GCN", "all, to the halo too", "edges in the batch, scaled up", SPARSE,
        {"edge_drop_form": "scaled"},
    ),
    Choice(
        "tuning of GNNAutoScale", "its own", "GraphFM-OB's", {**GAS, "layers": 2, "dropout": 0.3},
        {"hidden": 128, "dropout": 0.5, "clip": 2.0},
    ),
    Choice(
        "PNA aggregates", "a layer of the rows", "rows", PNA,
        {"transform": False, "separate": False},
    ),
    Choice("biases of PNA", "one per scaler, scaled", "one", PNA, {"separate": False}),
    Choice(
        "halo update of PNA", "what is seen is all", "true degree in scalers", PNA_OB,
        {"partial": "rescaled"},
    ),
    Choice("halo update of PNA", "what is seen is all", "divided by the degree", PNA_OB,
           {"partial": "sum"}),
    Choice(
        "edges dropped, PNA", "mean of what is left", "scaled up", SPARSE_PNA,
        {"edge_drop_form": "scaled"},
    ),
    Choice("PNA decodes", "the last layer", "all layers", PNA, {"jump": True}),
    Choice("momentum of that", "beta 0.3", "beta 0", JOINED, {"beta": (0.0,)}),
)  # fmt: skip
