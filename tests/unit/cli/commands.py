"""Commands that tests run, and what they look at afterwards."""

import io
import json
import re
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from graphfm import Graph
from graphfm.cli import main

SMALL = "synthetic:small:0.02"
TRAIN = ("train", "--dataset", SMALL, "--epochs", "2", "--device", "cpu")
FILES = {"config.json", "metrics.jsonl", "model.safetensors", "result.json", "curves.png"}
KEPT = {"checkpoints", "checkpoints/1.json", "checkpoints/1.safetensors"}


@dataclass
class Ended:
    code: int
    out: str
    err: str

    @property
    def json(self):
        (line,) = self.out.splitlines()
        return json.loads(line)


def graphfm(*arguments) -> Ended:
    """Run a command in this process."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["graphfm", *map(str, arguments)]
    try:
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as end:
            main()
    finally:
        sys.argv = before
    return Ended(end.value.code, out.getvalue(), err.getvalue())


def command(*arguments) -> list[str]:
    """The same, for a process of its own."""
    program = "from graphfm.cli import main; main()"
    return [sys.executable, "-c", program, *map(str, arguments)]


def refused(ended: Ended, reason: str) -> None:
    """Exit code 2, nothing on stdout, and one line on stderr."""
    assert (ended.code, ended.out) == (2, ""), ended
    assert ended.err.startswith("graphfm: ")
    assert ended.err.count("\n") == 1, ended.err
    assert re.search(reason, ended.err), ended.err


def tree(path: Path) -> set[str]:
    return {str(item.relative_to(path)) for item in path.rglob("*")}


def other_graph(path: Path, **options) -> Graph:
    """Five nodes with as many features as the training graph has."""
    x = torch.randn(5, 64, generator=torch.Generator().manual_seed(1))
    graph = Graph.from_edges([[0, 1, 1, 4], [1, 0, 2, 4]], x, **options)
    graph.save(path)
    return graph
