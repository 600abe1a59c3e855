"""Progress and report of `graphfm import`."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from graphfm.cli.output import say
from graphfm.cli.transfer_bar import TransferBar
from graphfm.data.graph.summary import target_in_words

SHOWN = 10  # classes, and features
COUNTS = {
    "edge_rows": "rows of edges read", "node_rows": "rows of nodes read", "nodes": "nodes",
    "edges": "edges", "self_loops": "self-loops",
    "duplicate_edges": "rows of edges that occur again", "isolated_nodes": "isolated nodes",
    "nodes_added": "nodes added from edges", "unlabelled": "nodes without a label",
}  # fmt: skip
DONE = {"keep": "kept", "drop": "dropped", "sum": "summed"}
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
            done = f", {DONE[report['duplicates']]}" if key == "duplicate_edges" else ""
            yield text + done, f"{report[key]:,}"
    for key, text in LOST.items():
        if report.get(key):
            yield text, f"{report[key]:,}"
    for split, count in report["splits"].items():
        yield f"{split} nodes", f"{count:,}"
    in_split = sum(report["splits"].values())
    if in_split and report["nodes"] > in_split:
        yield "nodes in no split", f"{report['nodes'] - in_split:,}"
    classes = sorted(report.get("classes", {}).items(), key=lambda entry: -entry[1])
    for name, count in classes[:SHOWN]:
        yield f"class {name}", f"{count:,}"
    if len(classes) > SHOWN:
        yield "more classes", f"{len(classes) - SHOWN:,}"
    for target in report.get("targets", []):
        yield f"target {target['name']}", target_in_words(target)
    features = report.get("features", [])
    for feature in features[:SHOWN]:
        lacking = f", {feature['missing']:,} missing" if feature["missing"] else ""
        yield f"feature {feature['column']}", f"{feature['encoding']}: {feature['width']}{lacking}"
    if len(features) > SHOWN:
        yield "more features", f"{len(features) - SHOWN:,}"
    if not features and "edge_rows" in report:
        yield "features", "none given: log(1 + in-degree) is the only one"
    for key, text in UNUSED.items():
        if unused := report.get(key):
            yield text, ", ".join(unused)


def next_step(report: Mapping[str, Any], out: Path) -> str:
    """What to do with the folder: train, or what a training would lack."""
    lacking = {}
    if not report["classes"] and not report["targets"]:
        lacking["no labels"] = "--label or --regress"
    if not report["splits"]["train"]:
        lacking["no split"] = "--split or --shares"
    if not lacking:
        return f"to use it: graphfm train --dataset {out}"
    tables = "edge_rows" in report  # a graph in another format has no options
    named = (f"{what} ({option})" if tables else what for what, option in lacking.items())
    return f"it has {' and '.join(named)}, which a training needs; graphfm info {out} describes it"
