"""Some nodes of a graph: by their numbers, or by the ids that the user knows them by."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from graphfm.data.graph import Graph
from graphfm.data.graph.names import node_numbers
from graphfm.data.sources.tables.database import Database, as_text, check_column, quoted
from graphfm.data.sources.tables.table_files import find_files
from graphfm.errors import InputError

Nodes = Sequence[int] | Tensor | None
LINES = ".txt"
MEMORY = 1 << 30  # of DuckDB, for a table of ids


def num_rows(graph: Graph, ids: Tensor | None) -> int:
    """How many nodes were chosen; None stands for all."""
    return graph.num_nodes if ids is None else ids.numel()


def by_number(graph: Graph, nodes: Nodes) -> Tensor | None:
    """Numbers of nodes as a tensor on the graph's device; None stays None, for all nodes."""
    if nodes is None:
        return None
    try:
        ids = torch.as_tensor(nodes, device=graph.device)
    except (TypeError, ValueError, RuntimeError):
        ids = torch.empty(0)
    if ids.ndim != 1 or ids.numel() == 0 or ids.dtype == torch.bool or ids.is_floating_point():
        raise InputError("nodes is not a list of node numbers; expected some, or None for all")
    low, high = (int(number) for number in ids.aminmax())
    if low < 0 or high >= graph.num_nodes:
        wrong = low if low < 0 else high
        raise InputError(f"there is no node {wrong}; expected 0 to {graph.num_nodes - 1}")
    return ids.long()


def by_id(graph: Graph, given: str, column: str | None = None) -> Tensor:
    """The nodes whose ids a text lists, with commas between, or a file, in their order.

    A file that ends in .txt has an id per line. Any other is a table (CSV, TSV, JSON lines or
    Parquet), whose ids are in `column`, or else in the first one. Ids are the graph's `node_names`,
    or numbers of nodes where it has none.
    """
    path, is_file = Path(given), os.path.isfile(given)  # which takes a text of any length
    has_lines = path.suffix.lower() == LINES
    if column is not None and (not is_file or has_lines):
        raise InputError(
            f"{given!r} is not a table, so it has no column {column!r}; give no column"
        )
    if not is_file:
        wanted = given.split(",")
    elif has_lines:
        wanted = _from_lines(path)
    else:
        wanted = _from_table(path, column)
    if not wanted:
        raise InputError(f"{given} lists no nodes; expected one id or more")
    numbers = node_numbers(graph, wanted)
    if unknown := [text for text in wanted if text not in numbers]:
        more = f" (and {len(unknown) - 1:,} more of those given)" if len(unknown) > 1 else ""
        expected = "ids of nodes"
        if graph.node_names is None:
            expected = f"numbers from 0 to {graph.num_nodes - 1}, as its nodes have no names"
        file = "" if is_file else ", or a file of them"
        raise InputError(f"the graph has no node {unknown[0]!r}{more}; expected {expected}{file}")
    return torch.tensor([numbers[text] for text in wanted], device=graph.device)


def _from_lines(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    return [line for line in lines if line]


def _from_table(path: Path, column: str | None) -> list[str]:
    with tempfile.TemporaryDirectory() as scratch:
        files = find_files([str(path)])
        db = Database(Path(scratch), files, MEMORY)
        try:
            relation, columns = db.reader(files, None)
            column = next(iter(columns)) if column is None else column
            check_column(column, list(columns), "tables")
            text = as_text(quoted(column), columns[column])
            rows = db.arrays(f"SELECT {text} AS id FROM {relation}")
        finally:
            db.close()
    return ["" if text is None else str(text) for text in rows["id"].tolist()]
