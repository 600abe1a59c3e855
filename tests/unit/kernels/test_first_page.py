"""The table on the first page of `graphfm.kernels` lists every operation, twin and test."""

import importlib
import inspect
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

import graphfm.kernels

TESTS = Path(__file__).parents[2]
# Modules that hold no operation, and functions beside the operations that only they or their
# callers' bookkeeping use.
NO_OPERATIONS = {"backend", "choice", "momentum", "precision", "precompile", "side_stream"}
HELPERS = {
    "cross_entropy": {"backward"},
    "fused_aggregate": {"fits", "keep_inputs", "largest_fanout"},
    "linear": set(),
    "matmul": {
        "by_three_passes", "expect_gradients", "fits", "gradients", "multiply", "multiply_back",
        "turn",
    },
    "neighbor_pick": {"entries"},
    "table_write": {"columns_of", "given_or"},
}  # fmt: skip


class Row(NamedTuple):
    module: str
    operation: str
    twin: str
    test: str


def rows():
    """The table's rows: a module's name stands above its operations, which are indented."""
    lines = graphfm.kernels.__doc__.splitlines()
    rules = [number for number, line in enumerate(lines) if line.startswith("=====")]
    starts = [0, *(i + 1 for i, char in enumerate(lines[rules[0]]) if char == " ")]
    found, module = [], ""
    for line in lines[rules[1] + 1 : rules[2]]:
        cells = [line[a:b].strip() for a, b in zip(starts, [*starts[1:], None], strict=True)]
        if cells[0] and not line.startswith(" "):
            module = line.strip()
        elif cells[0]:
            found.append(Row(module, cells[0], cells[2], cells[3]))
    return found


def named(module, name):
    value = torch if name.startswith("torch.") else module
    for part in name.removeprefix("torch.").split("."):
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row.module}.{row.operation}")
def test_what_a_row_names_exists(row):
    module = importlib.import_module(f"graphfm.kernels.{row.module}")
    assert callable(named(module, row.operation))
    assert callable(named(module, row.twin))
    found = [TESTS / folder / f"{row.test}.py" for folder in ("kernels", "unit/kernels")]
    (test,) = [path for path in found if path.exists()]
    assert row.operation.split(".")[0] in test.read_text()


def test_the_table_lists_every_operation():
    folder = Path(graphfm.kernels.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"} - NO_OPERATIONS
    known = rows()
    assert {row.module for row in known} == modules
    for name in modules:
        module = importlib.import_module(f"graphfm.kernels.{name}")
        public = {
            key
            for key, value in vars(module).items()
            if inspect.isfunction(value)
            and value.__module__ == module.__name__
            and not key.startswith("_")
        }
        listed = {text for row in known if row.module == name for text in (row.operation, row.twin)}
        assert public - HELPERS.get(name, set()) == {text for text in listed if "." not in text}


def test_only_this_package_imports_triton_kernels():
    root = Path(graphfm.__file__).parent
    outside = [
        path.relative_to(root)
        for path in root.rglob("*.py")
        if path.relative_to(root).parts[0] != "kernels" and "triton_kernels" in path.read_text()
    ]
    assert outside == []
