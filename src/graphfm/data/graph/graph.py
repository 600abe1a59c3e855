"""The graph: in-neighbours, features, labels and splits of all nodes."""

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

from graphfm.data.formats.npz import write_arrays
from graphfm.data.graph import conversion, degrees
from graphfm.data.graph import labels as labelling
from graphfm.data.graph import names as naming
from graphfm.data.graph.checks import check_graph
from graphfm.data.graph.doors import Doors
from graphfm.data.graph.edge_list import as_csr
from graphfm.data.graph.fingerprint import fingerprint
from graphfm.data.graph.graph_file import graph_arrays, read_graph_file
from graphfm.errors import InputError

SPLITS = ("train", "val", "test")
CARRIED = ("edge_attr", "edge_type")  # what no network of ours reads
ArrayLike = Tensor | np.ndarray[Any, Any] | Sequence[Any]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Graph(Doors):
    """One homogeneous graph for questions about nodes: features, labels and in-neighbours (CSR).

    An edge (u, v) sends a message from u to v. These cases need a definition:

    - An *undirected* graph holds both directions; `from_edges(..., undirected=True)` adds them.
    - *Duplicate edges* are kept, and each of them counts.
    - A *self-loop* makes a node its own neighbour. GCN and GCNII add a loop to every node that
      does not have one.
    - An *isolated* node aggregates zero (SAGE, PNA) or its own row alone (GCN, GCNII).
    - Label *-1* (NaN in a regression) means unknown; it is neither learned from nor scored. A node
      without any label belongs to no split but takes part in every aggregation.
    - *Edge weights* are positive. They scale messages, and a mean becomes a weighted mean. Maxima
      and minima ignore them.
    - *Edge attributes* and *edge types* are carried along; models of PyG may read them.
    - A graph *without features* (`x` has no columns) is trained on rows that are made for its
      nodes (`node_features`).
    """

    indptr: Tensor  # [num_nodes + 1] int64
    indices: Tensor  # [num_edges] int32 in-neighbours
    x: Tensor  # [num_nodes, num_features] floating point
    y: Tensor  # [num_nodes] int64, [num_nodes, num_classes] int8 (labels), or float32 (regression)
    num_classes: int  # or labels, or targets of a regression, which `class_names` name
    train_mask: Tensor  # [num_nodes] bool, like the next two
    val_mask: Tensor
    test_mask: Tensor
    edge_weight: Tensor | None = None  # [num_edges] float32, in the order of `indices`
    node_names: Sequence[str] | None = None  # or ids; read from a file where they are used
    class_names: tuple[str, ...] | None = None
    edge_attr: Tensor | None = None  # [num_edges, ...] any type, in the order of `indices`
    edge_type: Tensor | None = None  # [num_edges] int64, likewise
    edge_order: Tensor | None = None  # [num_edges] where each edge was given; on the CPU
    meta: Mapping[str, Any] = field(default_factory=dict)  # provenance; JSON values only
    trusted: InitVar[bool] = False  # skip the checks, which would read all of a mapped graph

    def __post_init__(self, trusted: bool) -> None:
        if not trusted:
            check_graph(self)

    @classmethod
    def from_edges(
        cls,
        edge_index: ArrayLike,
        x: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        train_mask: ArrayLike | None = None,
        val_mask: ArrayLike | None = None,
        test_mask: ArrayLike | None = None,
        edge_weight: ArrayLike | None = None,
        edge_attr: ArrayLike | None = None,
        edge_type: ArrayLike | None = None,
        node_names: Sequence[str] | None = None,
        class_names: Sequence[str] | None = None,
        num_classes: int | None = None,
        num_nodes: int | None = None,
        task: str | None = None,
        undirected: bool = False,
        keep_order: bool = False,
        meta: Mapping[str, Any] | None = None,
    ) -> Graph:
        """Build a graph from `edge_index` [2, num_edges]: sources in row 0, targets in row 1.

        `undirected` keeps each pair of nodes once per direction, however often and in whichever
        direction it is given; of several weights the largest counts. A graph without `y` and masks
        can be used for prediction only, one without `x` (then give `num_nodes`) for neither.
        `keep_order` lets `to_pyg` return the edges in the given order; it takes 4 bytes per edge.
        `task="regression"` is for a `y` of whole numbers in floating point (else: classes).
        """
        features = conversion.as_features(x, num_nodes, edge_index)
        carried: dict[str, Any] = {"attr": edge_attr, "kind": edge_type, "keep_order": keep_order}
        edges = as_csr(edge_index, features.size(0), edge_weight, undirected, **carried)
        classes = naming.as_names("class_names", class_names)
        labels, num_classes = labelling.as_labels(y, features, num_classes, classes, task)
        masks = dict(zip(labelling.MASKS, (train_mask, val_mask, test_mask), strict=True))
        return cls(
            **edges._asdict(),
            x=features,
            y=labels,
            num_classes=num_classes,
            node_names=naming.as_names("node_names", node_names),
            class_names=classes,
            meta=naming.as_meta(meta),
            **labelling.as_masks(masks, features, labels, num_classes),
        )

    @classmethod
    def from_npz(cls, path: str | Path) -> Graph:
        """Read a graph from an `.npz` file (`docs/npz.md`); no code in the file is ever run."""
        try:
            return cls.from_edges(**read_graph_file(Path(path)))
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    def save(self, path: str | Path) -> None:
        """Write the graph to an `.npz` file; a failure leaves the old file as it was."""
        path = Path(path)
        if path.suffix != ".npz" and not path.is_dir():
            path = path.with_name(f"{path.name}.npz")
        write_arrays(path, graph_arrays(self))

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
        return self.y.ndim == 2 and not self.y.is_floating_point()

    @property
    def task(self) -> str:
        """What `y` asks for: "classes" (one per node), "labels" (many) or "regression"."""
        return labelling.task_of(self.y)

    @property
    def device(self) -> torch.device:
        return self.x.device

    @property
    def num_bytes(self) -> int:
        """Size of all its tensors."""
        return sum(tensor.nbytes for _, tensor in self._tensors())

    @cached_property
    def ids(self) -> Tensor:
        """[num_nodes] all node ids, in order."""
        return torch.arange(self.num_nodes, device=self.device)

    @cached_property
    def degree(self) -> Tensor:
        """[num_nodes] int64 number of in-neighbours."""
        return self.indptr.diff()

    @property
    def weighted_degree(self) -> Tensor:
        """[num_nodes] float32 sum of the weights of the edges into each node."""
        return degrees.weighted_degree(self)

    @property
    def loop_weight(self) -> Tensor:
        """[num_nodes] float32 total weight of each node's self-loops, 0 without any."""
        return degrees.loop_weight(self)

    @property
    def edge_index(self) -> Tensor:
        """[2, num_edges] int64, sorted by target then source."""
        return torch.stack([self.indices.long(), self.targets().long()])

    def __repr__(self) -> str:
        return (
            f"Graph({self.num_nodes:,} nodes, {self.num_edges:,} edges, {self.num_features} "
            f"features, {labelling.in_words(self)}, {self.device})"
        )

    def mask(self, split: str) -> Tensor:
        """Return the mask of "train", "val" or "test"."""
        mask: Tensor = getattr(self, f"{split}_mask")
        return mask

    def to(self, device: str | torch.device) -> Graph:
        """Return the same graph with every tensor on `device`."""
        if torch.empty(0, device=device).device == self.device:  # "cuda" may be "cuda:0"
            return self
        moved = copy.copy(self)
        for name in ("degree", "fingerprint", "ids"):
            moved.__dict__.pop(name, None)
        for name, tensor in self._tensors():
            object.__setattr__(moved, name, tensor.to(device))
        return moved

    def with_features(self, dtype: torch.dtype) -> Graph:
        """Return the same graph with its features in another floating-point type."""
        return self if self.x.dtype == dtype else self.with_x(conversion.as_type(self.x, dtype))

    def with_x(self, x: Tensor) -> Graph:
        """Return the same graph with other features, which are not checked."""
        changed = copy.copy(self)
        changed.__dict__.pop("fingerprint", None)
        object.__setattr__(changed, "x", x)
        return changed

    @cached_property
    def fingerprint(self) -> str:
        """A digest of all that a training reads; it is the same on every machine."""
        used = (item for item in self._tensors() if item[0] not in CARRIED)
        return fingerprint(str(self.num_classes), used)

    def _tensors(self) -> Iterator[tuple[str, Tensor]]:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, Tensor) and item.name != "edge_order":  # it stays where it is
                yield item.name, value

    def targets(self) -> Tensor:
        """[num_edges] int32 target of each edge, in the order of `indices`."""
        ids = torch.arange(self.num_nodes, dtype=torch.int32, device=self.device)
        return ids.repeat_interleave(self.degree, output_size=self.num_edges)
