"""The graph: who is whose neighbour, what is known of each node, and how it is split."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphfm.batch import offsets
from graphfm.data.graph import checks
from graphfm.data.graph import names as naming
from graphfm.data.graph.edge_list import both_ways, canonical_order
from graphfm.data.graph.fingerprint import fingerprint
from graphfm.errors import InputError

SPLITS = ("train", "val", "test")
ArrayLike = Tensor | np.ndarray[Any, Any] | Sequence[Any]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Graph:
    """Nodes with features and labels, and for each node the list of its in-neighbours (CSR).

    An edge (u, v) says that v reads from u. What the odd cases mean:

    - *Undirected* graphs hold both directions; `from_edges(..., undirected=True)` adds them.
    - *Duplicate edges* are kept and count as often as they are given.
    - A *self-loop* makes a node its own neighbour. GCN and GCNII, which add a loop to every node,
      add none where there is one.
    - An *isolated* node aggregates zero (SAGE, PNA) or its own row alone (GCN, GCNII).
    - Label *-1* (in multi-label graphs a row of -1) means unlabelled; such a node is in no split
      but takes part in every aggregation.
    - *Edge weights* are positive. They scale messages; a mean becomes a weighted mean. Maxima and
      minima ignore them.
    """

    indptr: Tensor  # [num_nodes + 1] int64
    indices: Tensor  # [num_edges] int32 in-neighbours
    x: Tensor  # [num_nodes, num_features] floating point
    y: Tensor  # [num_nodes] int64, or [num_nodes, num_classes] int8 when multi-label
    num_classes: int
    train_mask: Tensor  # [num_nodes] bool, like the next two
    val_mask: Tensor
    test_mask: Tensor
    edge_weight: Tensor | None = None  # [num_edges] float32, in the order of `indices`
    node_names: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)  # provenance; JSON values only
    trusted: InitVar[bool] = False  # checked before; mapped arrays are not read for it again

    def __post_init__(self, trusted: bool) -> None:
        if not trusted:
            checks.check_graph(self)

    @classmethod
    def from_edges(
        cls,
        edge_index: ArrayLike,
        x: ArrayLike,
        y: ArrayLike | None = None,
        *,
        train_mask: ArrayLike | None = None,
        val_mask: ArrayLike | None = None,
        test_mask: ArrayLike | None = None,
        edge_weight: ArrayLike | None = None,
        node_names: Sequence[str] | None = None,
        class_names: Sequence[str] | None = None,
        num_classes: int | None = None,
        undirected: bool = False,
        meta: Mapping[str, Any] | None = None,
    ) -> Graph:
        """Build a graph from `edge_index` [2, num_edges]: sources in row 0, targets in row 1.

        With `undirected` each pair counts once and both ways, however often and whichever way
        round it is given (of several weights the largest). Without `y` or a mask nothing is
        labelled or in that split; such a graph serves for prediction.
        """
        features = checks.as_features(x)
        n = features.size(0)
        edges = checks.as_edge_index(edge_index, n)
        weight = None if edge_weight is None else checks.as_edge_weight(edge_weight, edges.size(1))
        if undirected:
            edges, weight = both_ways(edges, weight, n)
        order = canonical_order(edges, weight, n)
        classes = naming.as_names("class_names", class_names)
        labels, num_classes = checks.as_labels(y, features, num_classes, classes)
        masks: dict[str, Any] = {
            f"{split}_mask": checks.as_mask(f"{split}_mask", mask, features)
            for split, mask in zip(SPLITS, (train_mask, val_mask, test_mask), strict=True)
        }
        return cls(
            indptr=offsets(torch.bincount(edges[1], minlength=n)),
            indices=edges[0][order].to(torch.int32),
            x=features,
            y=labels,
            num_classes=num_classes,
            edge_weight=None if weight is None else weight[order],
            node_names=naming.as_names("node_names", node_names),
            class_names=classes,
            meta=naming.as_meta(meta),
            **masks,
        )

    @classmethod
    def from_pyg(cls, data: Any) -> Graph:
        """Build a graph from a PyG `Data` (homogeneous, with `x` and `edge_index`)."""
        for key in ("x", "edge_index"):
            if getattr(data, key, None) is None:
                raise InputError(
                    f"the PyG data has no {key}; expected a homogeneous Data with x and edge_index"
                )
        keys = ("y", "train_mask", "val_mask", "test_mask", "edge_weight")
        optional: dict[str, Any] = {key: getattr(data, key, None) for key in keys}
        return cls.from_edges(data.edge_index, data.x, **optional)

    @classmethod
    def from_npz(cls, path: str | Path) -> Graph:
        """Read a graph from an `.npz` file. Never runs code from it. Keys: `docs/npz.md`."""
        from graphfm.data.formats.npz import read_graph

        return read_graph(Path(path))

    def save(self, path: str | Path) -> None:
        """Write the graph to an `.npz` file, whole or not at all."""
        from graphfm.data.formats.npz import write_graph

        path = Path(path)
        if path.suffix != ".npz" and not path.is_dir():
            path = path.with_name(f"{path.name}.npz")
        write_graph(self, path)

    @property
    def num_nodes(self) -> int:
        return self.x.size(0)

    @property
    def num_edges(self) -> int:
        return self.indices.numel()

    @property
    def num_features(self) -> int:
        return self.x.size(1)

    @property
    def multi_label(self) -> bool:
        return self.y.ndim == 2

    @property
    def device(self) -> torch.device:
        return self.x.device

    @property
    def num_bytes(self) -> int:
        """What its tensors take."""
        return sum(tensor.nbytes for _, tensor in self._tensors())

    @cached_property
    def ids(self) -> Tensor:
        """[num_nodes] the nodes, in order."""
        return torch.arange(self.num_nodes, device=self.device)

    @cached_property
    def degree(self) -> Tensor:
        """[num_nodes] int64 number of in-neighbours."""
        return self.indptr.diff()

    @cached_property
    def weighted_degree(self) -> Tensor:
        """[num_nodes] float32 sum of the weights of the edges into each node."""
        if self.edge_weight is None:
            return self.degree.float()
        sums = torch.segment_reduce(
            self.edge_weight.double(), "sum", offsets=self.indptr, initial=0
        )
        return sums.float()  # added up in double: a hub has more edges than float32 has digits for

    @property
    def loop_weight(self) -> Tensor:
        """[num_nodes] float32 weight of the edges from a node to itself; 0 where there is none."""
        position = (self.targets() == self.indices).nonzero().squeeze(1)
        ids = self.indices[position].long()
        weight = torch.ones(ids.numel(), device=self.device)
        if self.edge_weight is not None:
            weight = self.edge_weight[position]
        first = offsets(torch.bincount(ids, minlength=self.num_nodes))  # they are sorted by target
        return torch.segment_reduce(weight.double(), "sum", offsets=first, initial=0).float()

    @property
    def edge_index(self) -> Tensor:
        """[2, num_edges] int64, sorted by target then source."""
        return torch.stack([self.indices.long(), self.targets().long()])

    def __repr__(self) -> str:
        return (
            f"Graph({self.num_nodes:,} nodes, {self.num_edges:,} edges, {self.num_features} "
            f"features, {self.num_classes} {'labels' if self.multi_label else 'classes'}, "
            f"{self.device})"
        )

    def mask(self, split: str) -> Tensor:
        """The mask of "train", "val" or "test"."""
        mask: Tensor = getattr(self, f"{split}_mask")
        return mask

    def to(self, device: str | torch.device) -> Graph:
        """The same graph with every tensor on `device`."""
        if torch.empty(0, device=device).device == self.device:  # "cuda" may be "cuda:0"
            return self
        moved = copy.copy(self)
        for name in ("degree", "weighted_degree", "fingerprint", "ids"):
            moved.__dict__.pop(name, None)
        for name, tensor in self._tensors():
            object.__setattr__(moved, name, tensor.to(device))
        return moved

    def with_features(self, dtype: torch.dtype) -> Graph:
        """The same graph with its features in another floating-point type."""
        if self.x.dtype == dtype:
            return self
        changed = copy.copy(self)
        changed.__dict__.pop("fingerprint", None)
        object.__setattr__(changed, "x", checks.as_type(self.x, dtype))
        return changed

    @cached_property
    def fingerprint(self) -> str:
        """A digest of all numbers in the graph; equal graphs agree on every machine."""
        return fingerprint(str(self.num_classes), self._tensors())

    def _tensors(self) -> Iterator[tuple[str, Tensor]]:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, Tensor):
                yield item.name, value

    def targets(self) -> Tensor:
        """[num_edges] int32 the node that each edge leads to, in the order of `indices`."""
        ids = torch.arange(self.num_nodes, dtype=torch.int32, device=self.device)
        return ids.repeat_interleave(self.degree, output_size=self.num_edges)
