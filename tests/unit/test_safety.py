"""What the program never does, and what it is built on."""

import ast
import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
FORBIDDEN_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "pty"}
FORBIDDEN_CALLS = {
    "eval", "exec", "compile", "__import__", "os.system", "os.popen", "torch.load", "np.load",
    "numpy.load", "torch.hub.load", "yaml.load", "tarfile.open", "shutil.unpack_archive",
}  # fmt: skip
TOOLS = ("pip", "setuptools")  # of the environment itself, which `pip freeze` leaves out
FORBIDDEN_METHODS = {"extractall", "extract"}  # of archives: names are to be looked at first


def name_of(node: ast.expr) -> str:
    """os.path.join, as it is written; empty of anything else."""
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def faults(tree: ast.AST) -> list[str]:
    """What in a program would run code from a file, or a shell."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            names.append(getattr(node, "module", None) or "")
            found += [n for n in names if n.partition(".")[0] in FORBIDDEN_MODULES]
        if isinstance(node, ast.Call):
            name = name_of(node.func)
            if name in FORBIDDEN_CALLS or name.rpartition(".")[2] in FORBIDDEN_METHODS:
                found.append(name)
            for word in node.keywords:
                true = isinstance(word.value, ast.Constant) and word.value.value is True
                if word.arg in ("shell", "allow_pickle", "verify") and (
                    true == (word.arg != "verify")
                ):
                    found.append(f"{name}({word.arg})")
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_no_file_is_ever_run(path):
    assert faults(ast.parse(path.read_text())) == []


@pytest.mark.parametrize(
    "program",
    [
        "import pickle", "from pickle import loads", "eval('1')", "import os; os.system('x')",
        "subprocess.run('x', shell=True)", "np.lib.format.read_array(f, allow_pickle=True)",
        "torch.load('x')", "archive.extractall()", "get(url, verify=False)",
    ],
)  # fmt: skip
def test_the_test_above_would_find_it(program):
    assert faults(ast.parse(program)) != []


def pins() -> dict[str, Version]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    wanted = [line for line in lines if line and not line.startswith("#")]
    for line in wanted:
        assert re.fullmatch(r"[\w.-]+==[\w.!]+", line), f"{line} is not one version"
    return {canonicalize_name(n): Version(v) for n, v in (line.split("==") for line in wanted)}


def asked_for() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    texts = [*project["dependencies"], *(text for extra in extras for text in extra)]
    return [Requirement(text) for text in texts]


def test_every_dependency_is_pinned_to_a_version_it_allows():
    pinned = pins()
    for requirement in asked_for():
        version = pinned.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement.name} is not in constraints.txt"
        assert version in requirement.specifier, requirement


def test_what_dependencies_need_is_pinned_too():
    """As far as it is installed here; `make test` installs all of it, by these pins."""
    pinned, todo, seen = pins(), asked_for(), set(TOOLS)
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        if name in seen:
            continue
        seen.add(name)
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue  # for another system than this one
        if name.startswith(("nvidia", "cuda", "triton")):
            continue  # torch names their versions itself, where it is built for GPUs
        assert name in pinned, f"{name} is not in constraints.txt"
        assert pinned[name] in requirement.specifier, requirement
        environment = {**default_environment(), "extra": ""}
        needs = (Requirement(text) for text in found.requires or ())
        todo += [need for need in needs if need.marker is None or need.marker.evaluate(environment)]
    assert len(seen) > len(asked_for())
