"""What the documents say can be run, runs."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def python_blocks(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)


@pytest.mark.parametrize(
    "name",
    [
        "README.md", "docs/formats.md", "docs/npz.md", "docs/extending.md", "docs/your-question.md",
        "docs/your-graph.md", "docs/pyg.md",
    ],
)  # fmt: skip
def test_python_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = python_blocks(name)
    assert blocks
    for block in blocks:
        exec(compile(block, name, "exec"), {"__name__": "__main__"})


def test_the_example_of_the_api_is_at_most_fifteen_lines():
    (example,) = python_blocks("README.md")
    assert len(example.strip().splitlines()) <= 15


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "CONTRIBUTING.md",
        *(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/*.md")),
        *(str(path.relative_to(ROOT)) for path in ROOT.glob("benchmarks/*.md")),
    ],
)
def test_links_lead_somewhere(name):
    text = (ROOT / name).read_text()
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert ((ROOT / name).parent / target).exists(), target


def test_every_method_names_the_test_that_holds_it_to_its_paper():
    text = (ROOT / "docs/methods.md").read_text()
    named = set(re.findall(r"`(tests/[\w/]+\.py)`", text))
    there = {str(path.relative_to(ROOT)) for path in ROOT.glob("tests/papers/test_*.py")}
    assert there <= named
    assert all((ROOT / path).is_file() for path in named)


def test_every_promise_names_a_test_that_there_is():
    text = (ROOT / "docs/reliability.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    assert len(named) > 40
    for path, name in named:
        assert not name or f"\ndef {name}(" in (ROOT / path).read_text(), (path, name)
        assert (ROOT / path).is_file(), path
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    without = [row for row in rows if "`tests/" not in row.rpartition(" | ")[2]]
    assert without == [row for row in rows if row.endswith("| test |")]
