"""graphfm compare is killed or interrupted: what is kept, and that no process is left."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.unit.cli.comparing import FEW, SMALL, compare

pytestmark = pytest.mark.usefixtures("here")


def begin(*arguments) -> subprocess.Popen[str]:
    """The command in a process and a group of its own, as a shell starts it."""
    program = "from graphfm.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", program, "compare", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def children(parent: int) -> list[int]:
    """Processes that `parent` has started."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = status.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(after_name[1]) == parent and after_name[0] != "Z":
            found.append(int(status.parent.name))
    return found


def wait_for(condition, seconds: float = 60.0):
    """What `condition` returns once it is true of the world."""
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError("it did not happen in time")


def is_gone(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


@linux
def test_killed_in_the_middle_only_the_running_training_is_lost(here):
    arguments = (*FEW, "--seeds", "1", "--budget-epochs", "3", "--out", "c")
    cells = here / "c" / "cells.jsonl"
    process = begin(*arguments)
    try:
        wait_for(lambda: cells.exists() and cells.read_bytes().endswith(b"\n"))
        wait_for(lambda: children(process.pid))  # the second training runs
        process.kill()
        process.communicate()
    finally:
        process.kill()
    (finished,) = cells.read_bytes().splitlines()
    assert json.loads(finished)["cell"] == "full, seed 0"

    code, out, err = compare(*arguments, "--json")
    assert code == 0, err
    assert err.splitlines()[2] == "1 of 2 trainings are done already and are not run again"
    assert [line.split(": ")[:2] for line in err.splitlines()[3:-1]] == [
        ["2 of 2", "graphsage, seed 0"]
    ]
    assert cells.read_bytes().splitlines()[0] == finished
    assert [row["seeds"] for row in json.loads(out)["rows"]] == [1, 1]
    assert not (here / "c" / ".cell").exists()


@linux
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_however_it_ends_no_process_is_left(here, number):
    endless = ("--methods", "full", "--budget-epochs", 10**6, "--patience", 0)
    process = begin(*SMALL, *endless, "--out", "c")
    try:
        (running,) = wait_for(lambda: children(process.pid))
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # Ctrl-C goes to all that the terminal has started
        else:
            process.send_signal(number)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    try:
        wait_for(lambda: is_gone(running))
    finally:
        with suppress(ProcessLookupError):
            os.kill(running, signal.SIGKILL)
    assert (here / "c" / "cells.jsonl").read_bytes() == b""
    if number != signal.SIGKILL:
        assert (process.returncode, out) == (128 + number, "")
        assert err.splitlines()[2:] == [
            "graphfm: interrupted before a training ended; the same command starts again"
        ]
