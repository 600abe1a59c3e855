"""A setting of graphfm compare is read as each method declares it."""

import json
import sys
from pathlib import Path

import pytest

from graphfm.experiments.outcome import FAILED, Outcome
from tests.unit.cli.commands import graphfm, refused

MODULE = """
from graphfm import Method
from graphfm.samplers.neighbor import NeighborSampler

def m(*, start: float = 0.5):
    return Method(NeighborSampler(fanout=(2,), batch_size=64))

def switch(*, start: bool = False):
    return Method(NeighborSampler(fanout=(2,), batch_size=64))
"""
BOTH = ("compare", "--dataset", "synthetic:small:0.02", "--device", "cpu", "--seeds", "1")


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """The `start` that each method of a comparison is given; nothing is trained."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("users_start.py").write_text(MODULE)
    monkeypatch.delitem(sys.modules, "users_start", raising=False)
    found = {}

    def refuse(cell, *_):
        found[cell.run.method] = cell.run.method_settings.get("start")
        return Outcome(status=FAILED, error="nothing is trained here")

    monkeypatch.setattr("graphfm.experiments.compare.run.run_in_child", refuse)

    def compare(methods, *arguments):
        found.clear()
        return graphfm(*BOTH, "--methods", methods, *arguments), found

    return compare


def test_a_value_that_one_method_cannot_read_names_it_and_what_to_do(settings):
    ended, _ = settings("graphfm-ib,users_start:m", "--start", "zero")
    refused(
        ended,
        "--start is 'zero'; expected a number for users_start:m; give it to single methods "
        "instead: --set graphfm-ib.start=zero",
    )


def test_the_advice_works(settings):
    ended, found = settings("graphfm-ib,users_start:m", "--set", "graphfm-ib.start=zero")
    assert found == {"graphfm-ib": "zero", "users_start:m": 0.5}, ended
    own = ("--set", "users_start:m.start=0.25")
    ended, found = settings("graphfm-ib,users_start:m", "--start", "zero", *own)
    assert found == {"graphfm-ib": "zero", "users_start:m": 0.25}, ended


def test_only_methods_that_are_compared_decide(settings):
    ended, found = settings("graphfm-ib,full", "--start", "zero")
    assert found == {"graphfm-ib": "zero", "full": None}, ended
    ended, found = settings("users_start:m,full", "--start", "1")
    assert found == {"users_start:m": 1.0, "full": None}, ended


def test_a_value_that_no_method_can_read_is_one_line(settings):
    ended, _ = settings("users_start:m,full", "--start", "zero")
    refused(ended, "--start is 'zero'; expected a number; see 'graphfm compare --help'")


def test_a_flag_of_ones_own_leaves_the_text_of_others(settings):
    ended, found = settings("users_start:switch,full", "--start", "yes")
    assert found == {"users_start:switch": True, "full": None}, ended
    ended, _ = settings("graphfm-ib,users_start:switch", "--start", "zero")
    refused(ended, "expected true or false for users_start:switch; give it to single methods")


def test_a_value_that_two_methods_read_differently_is_each_ones_own(settings):
    ended, found = settings("users_start:m,users_start:switch", "--start", "1", "--json")
    assert found == {"users_start:m": 1.0, "users_start:switch": True}, ended
    assert [row["method"] for row in json.loads(ended.out)["rows"]] == list(found)


def test_the_help_says_so(settings):
    shown = " ".join(graphfm("compare", "--help").out.split())
    assert "its value has to suit all of them; otherwise give it to single methods with" in shown
