"""Every command's help shows values in the same way."""

import re

import pytest

from tests.unit.cli.commands import graphfm

COMMANDS = (
    "train", "compare", "evaluate", "predict", "embed", "reproduce", "recipes", "staleness",
    "bench", "methods", "backbones", "info", "datasets", "datasets fetch", "datasets check", "tune",
)  # fmt: skip
VALUES = {
    "N", "X", "NAME", "NAMES", "N[,N]", "X[,X]", "NAME[,NAME]", "FOLDER", "FILE", "TEXT", "TIME",
    "METHOD.OPTION=VALUE", "OPTION=VALUES", "NAME=VALUE",
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_a_value_is_shown_by_a_word_in_capitals(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = graphfm(*name.split(), "--help").out
    assert not re.search(r"[<>{}]", shown)
    values = re.findall(r"^  --[a-z-]+ (\S+)", shown, re.MULTILINE)
    assert set(values) <= VALUES
    assert max(map(len, shown.splitlines())) <= 80


def test_an_argument_is_shown_by_its_name_alone():
    lines = graphfm("reproduce", "--help").out.splitlines()
    assert lines[0] == "Usage: graphfm reproduce [OPTIONS] TABLE"
    assert any(line.startswith("  TABLE  table2, ") for line in lines)
