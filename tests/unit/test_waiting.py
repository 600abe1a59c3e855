"""Threads that wait leave the cores to others: the variables are set before torch is loaded."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphfm.experiments import process
from graphfm.experiments.cell import Cell
from graphfm.runs.run import Run
from graphfm.waiting import CHOICES, PATIENT

SRC = Path(__file__).parents[2] / "src"
# Prints the variables as they are when torch is about to be loaded.
SPY = """
import json, os, runpy, sys
class Spy:
    def find_spec(name, path=None, target=None):
        if name == "torch":
            sys.meta_path.remove(Spy)
            print(json.dumps(dict(os.environ)), flush=True)
sys.meta_path.insert(0, Spy)
"""
METHODS = "sys.argv[1:] = ['methods']; "  # a command that loads torch
USES = {
    "import graphfm": "import graphfm; graphfm.train",  # loaded on first use
    "a module of it": "import graphfm.training.trainer",
    "python -m graphfm": METHODS + "runpy.run_module('graphfm', run_name='__main__')",
    "graphfm": METHODS + "from graphfm.cli import entry; entry()",
}


def seen(code: str, **variables: str) -> dict[str, str]:
    """Run a program in a process of its own; of what it prints first, the variables of OpenMP."""
    clean = {name: value for name, value in os.environ.items() if name not in CHOICES}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**clean, "PYTHONPATH": str(SRC), **variables},
    )  # fmt: skip
    found = json.loads(done.stdout.splitlines()[0])
    return {name: found[name] for name in CHOICES if name in found}


@pytest.mark.parametrize("use", USES)
def test_the_variables_are_set_before_torch_is_loaded(use):
    assert seen(SPY + USES[use]) == PATIENT


@pytest.mark.parametrize("name", CHOICES)
def test_what_the_user_has_set_stays_and_nothing_is_added(name):
    assert seen(SPY + USES["import graphfm"], **{name: "1"}) == {name: "1"}


def test_processes_inherit_them_even_if_torch_was_loaded_first():
    child = "import json, os; print(json.dumps(dict(os.environ)))"
    code = (
        f"import subprocess, sys, torch, graphfm; subprocess.run([sys.executable, '-c', {child!r}])"
    )
    assert seen(code) == PATIENT


@pytest.mark.parametrize(
    ("first", "variables", "chosen", "too_late"),
    [
        ("os", {}, False, False),
        ("torch", {}, False, True),
        ("torch", PATIENT, False, False),  # inherited
        ("torch", {"OMP_WAIT_POLICY": "ACTIVE"}, True, False),
    ],
)
def test_who_chose_and_whether_it_came_in_time(first, variables, chosen, too_late):
    code = f"""
import {first}, os, json, sys
from graphfm import waiting
os.environ["KMP_BLOCKTIME"] = f"{{waiting.CHOSEN}} {{waiting.TOO_LATE}}"
print(json.dumps(dict(os.environ)))"""
    assert seen(code, **variables)["KMP_BLOCKTIME"] == f"{chosen} {too_late}"


def test_the_trainings_of_a_comparison_get_them(monkeypatch, tmp_path):
    for name in CHOICES:
        monkeypatch.delenv(name, raising=False)
    for name, value in PATIENT.items():  # as `import graphfm` does
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(
        process, "PROGRAM", "import os, sys; sys.exit(os.environ['GOMP_SPINCOUNT'])"
    )
    outcome = process.run_in_child(Cell(Run.make(), "any"), None, tmp_path / "scratch")
    assert outcome.error.endswith(PATIENT["GOMP_SPINCOUNT"])
