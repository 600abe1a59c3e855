"""Progress and report of `graphfm import`."""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from graphfm.cli.output import say
from graphfm.cli.transfer_bar import TransferBar
from graphfm.data.graph.summary import target_in_words

SHOWN_CLASSES = 10
COUNTS = {
    "edge_rows": "rows of edges read", "node_rows": "rows of nodes read", "nodes": "nodes",
    "edges": "edges", "self_loops": "self-loops", "duplicate_edges": "edges that occurred again",
    "isolated_nodes": "isolated nodes", "nodes_added": "nodes added from edges",
    "unlabelled": "nodes without a label",
}  # fmt: skip
LOST = {
    "edges_without_id": "edges without an id, left out",
    "edges_with_bad_weight": "edges with a bad weight, left out",
    "edges_with_unknown_id": "edges with an unknown id, left out",
    "rows_without_id": "nodes without an id, left out",
    "repeated_ids": "nodes with a repeated id, left out",
    "left_the_split": "nodes without a label, left the split",
}
UNUSED = {
    "unused_columns": "columns not used",
    "unused_edge_columns": "columns of edges not used",
}


class ImportBar(TransferBar):
    """Bars on a terminal; elsewhere one line for each step."""

    def __init__(self) -> None:
        super().__init__()
        self.said: set[str] = set()

    def tell(self, what: str, done: int, total: int) -> None:
        """Update the bar of `what`, or name it once."""
        super().tell(what, done, total)
        if not sys.stderr.isatty() and what not in self.said:
            self.said.add(what)
            say(f"{what} ...")


def report_rows(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The report as lines for people."""
    for key, text in COUNTS.items():
        if key in report:
            yield text, f"{report[key]:,}"
    for key, text in LOST.items():
        if report.get(key):
            yield text, f"{report[key]:,}"
    for split, count in report["splits"].items():
        yield f"{split} nodes", f"{count:,}"
    classes = sorted(report.get("classes", {}).items(), key=lambda entry: -entry[1])
    for name, count in classes[:SHOWN_CLASSES]:
        yield f"class {name}", f"{count:,}"
    if len(classes) > SHOWN_CLASSES:
        yield "more classes", f"{len(classes) - SHOWN_CLASSES:,}"
    for target in report.get("targets", []):
        yield f"target {target['name']}", target_in_words(target)
    for feature in report.get("features", []):
        lacking = f", {feature['missing']:,} missing" if feature["missing"] else ""
        yield f"feature {feature['column']}", f"{feature['encoding']}: {feature['width']}{lacking}"
    if not report.get("features") and "edge_rows" in report:
        yield "features", "none given: log(1 + in-degree) is the only one"
    for key, text in UNUSED.items():
        if unused := report.get(key):
            yield text, ", ".join(unused)
