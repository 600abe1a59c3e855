"""The benchmark behind docs/faithfulness.md still runs, and the document is its output."""

import importlib.util
import re
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "faithfulness.md"


@pytest.fixture(scope="module")
def script():
    """The benchmark as a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        place = ROOT / "benchmarks" / "faithfulness.py"
        spec = importlib.util.spec_from_file_location("faithfulness_benchmark", place)
        module = importlib.util.module_from_spec(spec)
        patch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        yield module


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def measured(script):
    """The rows of the table in the document, as lists of cells."""
    text = DOCUMENT.read_text().split(script.BEGIN)[1].split(script.END)[0]
    return [cells(line) for line in text.strip().splitlines()]


def test_every_row_is_printed(script, capsys, tmp_path):
    """The whole table at the smallest size: one seed, one epoch, and every choice has an effect."""
    document = tmp_path / "page.md"
    document.write_text(f"before\n{script.BEGIN}\nlast time\n{script.END}\nafter\n")
    given = ["--dataset", "synthetic:small:0.03", "--seeds", "1", "--epochs", "1"]
    script.main([*given, "--write", str(document)])
    rows = [cells(line) for line in capsys.readouterr().out.strip().splitlines()]
    names = [[c.what, c.first, c.second] for c in script.CHOICES]
    assert rows[0] == list(script.HEAD)
    assert [row[:3] for row in rows[2:]] == names
    for row in rows[2:]:
        a, b, difference = (float(cell.split(" ± ")[0]) for cell in row[3:])
        assert b - a == pytest.approx(difference, abs=1.01e-4)  # each is rounded
    text = document.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "last time" not in text  # noqa: PT018
    assert all(" | ".join(name) in text for name in names)


@pytest.mark.parametrize(
    "what", ["batch norm of the halo", "batch norm of GCN, unset", "features", "IB's histories"]
)
def test_a_patch_without_effect_is_an_error(script, what):
    choice = next(c for c in script.CHOICES if c.what.startswith(what))
    patch = choice.patch
    idle = replace(
        patch, around=nullcontext, change=lambda trainer: None, prepare=lambda graph: graph
    )
    graph = script.synthetic("small", scale=0.03)
    script.check_effect(choice, graph)
    with pytest.raises(SystemExit, match="it changes nothing"):
        script.check_effect(replace(choice, patch=idle), graph)


def test_settings_without_effect_are_an_error(script):
    choice = next(c for c in script.CHOICES if c.what == "threshold c of OB")
    same = replace(choice, changes={"threshold": 0})
    with pytest.raises(SystemExit, match="it changes nothing"):
        script.check_effect(same, script.synthetic("small", scale=0.03))


def test_the_document_has_the_rows_of_the_benchmark(script):
    rows = measured(script)
    assert rows[0] == list(script.HEAD)
    assert [row[:3] for row in rows[2:]] == [[c.what, c.first, c.second] for c in script.CHOICES]


def test_every_effect_that_the_document_quotes_was_measured(script):
    head = DOCUMENT.read_text().split(script.BEGIN)[0].replace("\N{MINUS SIGN}", "-")
    quoted = set(re.findall(r"[+-]0\.\d{4}", head))
    known = {row[5].split(" ± ")[0] for row in measured(script)[2:]}
    assert quoted
    assert quoted <= known
