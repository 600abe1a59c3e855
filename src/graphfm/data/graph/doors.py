"""What a graph is made from in Python, and what it is turned into: `docs/formats.md` lists it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from graphfm.data.graph import networkx_graph, pyg_data, sparse_matrix, tables
from graphfm.data.graph.node_features import node_features

if TYPE_CHECKING:
    from graphfm.data.graph import Graph


class Doors:
    """The part of `Graph` that knows other libraries. None of them is imported before its use."""

    if TYPE_CHECKING:

        @classmethod
        def from_edges(cls, *args: Any, **options: Any) -> Graph: ...

    @classmethod
    def from_dataframe(
        cls,
        edges: Any,
        nodes: Any = None,
        *,
        source: str = "source",
        target: str = "target",
        weight: str | None = None,
        edge_type: str | None = None,
        edge_features: Sequence[str] = (),
        id: str = "id",
        label: str | None = None,
        split: str | None = None,
        features: Sequence[str] | None = None,
        task: str | None = None,
        undirected: bool = False,
    ) -> Graph:
        """Build a graph from tables: pandas, polars, Arrow, or a dictionary of columns.

        The other arguments name columns. Ids are whole numbers or text; ids that are not 0, 1, 2...
        become `node_names`. Without `nodes` the nodes are the ids of the edges. Labels that are not
        0, 1, 2... become `class_names`. `split` holds train, val, test or nothing; without it,
        columns train_mask, val_mask and test_mask are used. `features` are numbers, booleans or
        lists of numbers; without it, all such columns that have no other use. `task="regression"`
        says that labels which are whole numbers are amounts.
        """
        columns = tables.EdgeColumns(source, target, weight, edge_type, tuple(edge_features))
        wanted = None if features is None else tuple(features)
        about = tables.NodeColumns(id, label, split, wanted, task)
        return cls.from_edges(
            **tables.arguments(edges, nodes, columns, about), undirected=undirected
        )

    @classmethod
    def from_networkx(
        cls,
        graph: Any,
        *,
        weight: str | None = "weight",
        edge_type: str | None = None,
        edge_features: Sequence[str] = (),
        label: str | None = "y",
        split: str | None = "split",
        features: Sequence[str] | None = None,
        task: str | None = None,
    ) -> Graph:
        """Build a graph from a networkx graph of any kind; the other arguments name attributes.

        An undirected edge becomes two. A default that no node or edge has is left out; otherwise
        attributes and `task` are used like the columns and the task of `from_dataframe`.
        """
        wanted = networkx_graph.Wanted(
            weight, edge_type, tuple(edge_features), label, split,
            None if features is None else tuple(features), task,
        )  # fmt: skip
        return cls.from_edges(**networkx_graph.arguments(graph, wanted))

    @classmethod
    def from_scipy(cls, matrix: Any, x: Any = None, y: Any = None, **options: Any) -> Graph:
        """Build a graph from a square sparse matrix: entry [u, v] is an edge from u to v.

        Entries that are not all 1 become edge weights. `options` are those of `from_edges`.
        """
        arguments = sparse_matrix.arguments(matrix)
        return cls.from_edges(x=x, y=y, **{**arguments, **options})

    @classmethod
    def from_pyg(cls, data: Any) -> Graph:
        """Build a graph from a PyG `Data`: homogeneous, with `edge_index` or `adj_t`.

        It may hold x (or num_nodes), y, masks, edge_weight, edge_attr, edge_type, node_names and
        class_names; a warning names everything else.
        """
        return cls.from_edges(**pyg_data.arguments(data), keep_order=True)

    def with_node_features(self, kind: str, *, width: int = 64, seed: int = 0) -> Graph:
        """Return the same graph with features made from its edges, in place of any it has.

        "degree" encodes in- and out-degree; "random" makes a position of each node: `width` random
        numbers, averaged over its neighbours, so that near nodes are alike.
        """
        graph = cast("Graph", self)
        return replace(graph, x=node_features(graph, kind, width, seed))

    def to_pyg(self) -> Any:
        """Return a PyG `Data`; edges of a graph `from_pyg` are in the order in which they were."""
        return pyg_data.data_of(cast("Graph", self))

    def to_networkx(self) -> Any:
        """Return a networkx `DiGraph`, or a `MultiDiGraph` if edges are duplicated.

        Nodes are called by their names if all differ, otherwise 0, 1, 2... Attributes are those
        that `from_networkx` reads: x, y, split, weight, edge_attr and edge_type; of the graph
        itself class_names or num_classes, and task.
        """
        return networkx_graph.graph_of(cast("Graph", self))

    def to_scipy(self) -> Any:
        """Return the edges as a sparse array of scipy: entry [u, v] is the weight from u to v."""
        return sparse_matrix.matrix_of(cast("Graph", self))
