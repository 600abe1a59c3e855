"""Help, version and the names of commands do without torch, which takes seconds to load."""

import inspect
import os
import subprocess
import sys

import pytest
import typer

import graphfm
from graphfm.cli.app import _loaded
from graphfm.cli.loading import COMMANDS
from tests.unit.cli.commands import graphfm as run

PROGRAM = """
import sys
from graphfm.cli import main
try:
    main()
except SystemExit as end:
    print("torch" in sys.modules, end.code, file=sys.stderr)
"""


def started(*arguments, **more):
    """Whether torch was loaded, the exit code, and what was printed."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **more},
    )  # fmt: skip
    return ended.stderr.split()[-2:], ended.stdout


@pytest.mark.parametrize(
    ("arguments", "code"), [(["--help"], "0"), (["--version"], "0"), ([], "0"), (["trian"], "2")]
)
def test_torch_is_not_loaded_for_what_needs_none(arguments, code):
    assert started(*arguments)[0] == ["False", code]


def test_torch_is_not_loaded_to_complete_the_name_of_a_command():
    shell = {"_GRAPHFM_COMPLETE": "complete_bash", "COMP_WORDS": "graphfm st", "COMP_CWORD": "1"}
    (loaded, _), out = started(**shell)
    assert (loaded, out.split()) == ("False", ["staleness"])
    shell |= {"COMP_WORDS": "graphfm train --method va", "COMP_CWORD": "3"}
    assert started(**shell)[0][0] == "True"  # otherwise this test could not fail


def test_the_list_says_what_the_commands_say_of_themselves():
    for name, (_, words) in COMMANDS.items():
        command, _ = _loaded(name, [])
        group = isinstance(command, typer.Typer)
        about = command.info.help if group else inspect.getdoc(command).partition("\n\n")[0]
        assert " ".join(about.split()) == words, name
        assert group or command.__name__ == name


def test_a_command_that_does_not_exist_is_refused():
    ended = run("trian")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "trian" in ended.err


def test_everything_that_the_package_offers_is_there():
    assert all(callable(getattr(graphfm, name)) for name in graphfm.__all__)
    assert set(graphfm.__all__) <= set(dir(graphfm))
    assert graphfm.data.datasets.load is graphfm.load
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        graphfm.trian  # noqa: B018
