"""The architecture: who may import whom, how long files may get, what `import graphfm` loads."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

SRC = Path(__file__).parents[2] / "src"
FILES = sorted((SRC / "graphfm").rglob("*.py"))
PACKAGES = [path for path in FILES if path.name == "__init__.py"]

# Rooms in the order in which they may import each other: a room imports rooms of earlier lines.
ROOMS = (
    "errors version waiting",
    "files memory batch options metrics",
    "kernels",
    "norm",
    "layer",
    "tables",
    "step_plan",
    "data",
    "samplers estimators",
    "backbones",
    "method_settings method_forms",
    "methods",
    "pyg",
    "training",
    "checkpointing",
    "runs",
    "recipes",
    "diagnostics",
    "experiments",
    "api comparing",
    "tuning",
    "__init__",
    "cli",
    "__main__",
)
# The order of everything directly below a package; "*" stands for all that is not named.
ORDERS = {
    "graphfm": ROOMS,
    "graphfm.data": ("formats", "graph", "matrix", "sources", "synthetic", "datasets", "__init__"),
    "graphfm.experiments": ("*", "compare reproduce staleness bench", "tune", "__init__"),
}
MOST_LINES, MOST_FUNCTION_LINES, MOST_MEDIAN = 250, 45, 120
# Files ("cli/train.py") and functions ("cli/train.py:train") that may be longer, and why.
LONGER: dict[str, str] = {}


def module_of(path: Path) -> str:
    """src/graphfm/data/graph/__init__.py -> graphfm.data.graph"""
    return ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_of(path) for path in FILES}


def targets(node: ast.AST, package: str) -> list[str]:
    """The modules of graphfm that one statement imports."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        parents = package.split(".")[: -(node.level - 1) or None] if node.level else []
        base = ".".join([*parents, *(node.module or "").split(".")]).strip(".")
        inner = [f"{base}.{alias.name}" for alias in node.names]
        names = [name if name in MODULES else base for name in inner]
    else:
        names = []
    return [name for name in dict.fromkeys(names) if name.partition(".")[0] == "graphfm"]


def imports_in(source: str, path: Path) -> Iterator[str]:
    """Every import of graphfm in a file, at any depth: also in functions and type checking."""
    module = module_of(path)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(source)):
        yield from targets(node, package)


IMPORTS = [
    (module_of(path), target) for path in FILES for target in imports_in(path.read_text(), path)
]


def child_of(module: str, parent: str) -> str | None:
    """The part of a module's name directly below `parent`; None if it is not below it."""
    if module == parent:
        return "__init__"
    below = module.startswith(f"{parent}.")
    return module.removeprefix(f"{parent}.").partition(".")[0] if below else None


def between(parent: str, imports: list[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
    """Imports from one child of a package to another: both children, and the import in words."""
    for source, target in imports:
        first, second = child_of(source, parent), child_of(target, parent)
        if first is not None and second is not None and first != second:
            yield first, second, f"{source} imports {target}"


def against(parent: str, imports: list[tuple[str, str]]) -> list[str]:
    """Imports below `parent` that do not go from a later line of its order to an earlier one."""
    line_of = {name: line for line, names in enumerate(ORDERS[parent]) for name in names.split()}
    wrong = []
    for first, second, words in between(parent, imports):
        both_unnamed = not {first, second} & set(line_of)
        if not both_unnamed and line_of.get(first, 0) <= line_of.get(second, 0):
            wrong.append(words)
    return wrong


def cycles(pairs: set[tuple[str, str]]) -> list[set[str]]:
    """Groups of names that import each other, directly or by way of others."""
    reach = {name: {b for a, b in pairs if a == name} for pair in pairs for name in pair}
    for _ in reach:
        for name, found in reach.items():
            reach[name] = found.union(*(reach[other] for other in found))
    groups = [{b for b in found if a in reach[b]} | {a} for a, found in reach.items() if a in found]
    return [group for number, group in enumerate(groups) if group not in groups[:number]]


@pytest.mark.parametrize("parent", ORDERS)
def test_imports_go_one_way(parent):
    assert against(parent, IMPORTS) == []


@pytest.mark.parametrize("parent", ["graphfm", "graphfm.data"])
def test_every_room_is_named_in_the_order(parent):
    named = {name for names in ORDERS[parent] for name in names.split()}
    assert {child_of(module, parent) for module in MODULES} - {None} <= named


@pytest.mark.parametrize("parent", sorted(module_of(path) for path in PACKAGES))
def test_no_package_imports_in_a_circle(parent):
    packages = {child_of(module_of(path), parent) for path in PACKAGES} - {"__init__", None}
    pairs = {(first, second) for first, second, _ in between(parent, IMPORTS)}
    pairs = {pair for pair in pairs if "__init__" not in pair}
    assert [group for group in cycles(pairs) if group & packages] == []


def test_a_wrong_import_would_be_found():
    tree = """
from typing import TYPE_CHECKING
from ..errors import InputError
if TYPE_CHECKING:
    from graphfm.training.trainer import Trainer
def function():
    import graphfm.cli.app
    from graphfm.data import datasets
"""
    path = SRC / "graphfm" / "kernels" / "__init__.py"
    found = [("graphfm.kernels", target) for target in imports_in(tree, path)]
    assert [target for _, target in found] == [
        "graphfm.errors", "graphfm.training.trainer", "graphfm.cli.app", "graphfm.data.datasets",
    ]  # fmt: skip
    wrong = against("graphfm", found)
    assert len(wrong) == 3
    assert not any("errors" in line for line in wrong)
    bench, store = "graphfm.experiments.bench.run", "graphfm.experiments.store"
    for source, target in [(bench, "graphfm.experiments.compare"), (store, bench)]:
        assert against("graphfm.experiments", [(source, target)])
    assert not against("graphfm.experiments", [(bench, store)])
    assert cycles({("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")}) == [{"a", "b", "c"}]


LOADED = """
import sys
import numpy, torch
before = set(sys.modules)
import graphfm
new = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*sorted(new - set(sys.stdlib_module_names) - {"graphfm", "torch", "numpy"}))
"""


def test_importing_graphfm_loads_torch_and_numpy_only():
    ended = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(SRC)},
    )  # fmt: skip
    assert ended.stdout.split() == []


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: module_of(path))
def test_every_package_says_what_it_holds_and_who_imports_whom(path):
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    assert len(text.partition("\n")[0]) > 20, "say what lives here"
    if (package := module_of(path)) == "graphfm":
        return
    words = " ".join(text.split())
    assert re.search(r"(?i)imported by|imports (it|them)|may import (it|them)", words), "by whom?"
    assert re.search(r"(?i)may import|imports", words), "say what it may import"
    listed = re.search(r"May import: (`[\w.]+`(, `[\w.]+`)*)\.", words)
    if listed:  # then no other room is imported
        named = re.findall(r"[\w.]+", listed[1])
        outside = {
            target.removeprefix("graphfm.")
            for source, target in IMPORTS
            if f"{source}.".startswith(f"{package}.") and not f"{target}.".startswith(f"{package}.")
        }
        missing = {t for t in outside if not any(f"{t}.".startswith(f"{n}.") for n in named)}
        assert missing == set()


def lengths() -> Iterator[tuple[str, int, int]]:
    """Every file and every function, its length, and the most that is allowed."""
    others = [SRC.parent / folder for folder in ("tests", "examples", "tools", "benchmarks")]
    for path in [*FILES, *(file for folder in others for file in folder.rglob("*.py"))]:
        name, text = str(path.relative_to(SRC.parent)), path.read_text()
        yield name, len(text.splitlines()), MOST_LINES
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                yield f"{name}:{node.name}", lines, MOST_FUNCTION_LINES


def test_files_and_functions_are_short():
    too_long = {name: lines for name, lines, most in lengths() if lines > most}
    assert {name: too_long[name] for name in too_long if name not in LONGER} == {}
    assert set(LONGER) <= set(too_long), "take out of LONGER what is short enough"


def test_half_of_all_files_are_short():
    assert median(len(path.read_text().splitlines()) for path in FILES) <= MOST_MEDIAN
