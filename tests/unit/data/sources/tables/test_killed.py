"""An import that is stopped at any moment leaves nothing half made, and can be started again."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest

from graphfm import load
from graphfm.data.sources.tables.database import Database
from tests.unit.cli.commands import graphfm
from tests.unit.data.sources.tables.many import script

MEMORY = "600MB"
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
CODES = {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}
# What appears in the unfinished folder, in this order: the tables, the pairs that the join found,
# ids, features, edges not yet sorted, sorted ones, and the record, which is then extended.
SIGNS = (
    "scratch/tables.db", "scratch/pairs", "id_bytes.npy", "x.npy", "edges.unsorted",
    "indices.npy", "graph.json",
)  # fmt: skip
# Functions, and how many calls of them to let pass before the signal.
MOMENTS = (
    ("tables.database:Database.run", 3), ("tables.database:Database.run", 12),
    ("tables.edges:_write", 0), ("tables.importer:write_ids", 0),
    ("tables.encodings:Features._rows", 0), ("tables.labels:_by_shares", 0),
    ("edge_sort:_deal", 0), ("edge_sort:_write_sorted", 0),
    ("folder_writer:write_record", 0), ("folder_writer:edge_summary", 0),
    ("folder_writer:extend_record", 0),
)  # fmt: skip
# One process loads the program once; for each moment a child of its own sends itself the signal.
PROGRAM = """
import importlib, json, os, sys
from pathlib import Path
from graphfm.cli import entry
import graphfm.cli.import_tables, duckdb

arguments, out, moments, signals = json.loads(sys.argv[1])

def prepare(moment, number):
    (place, name), left = moment[0].split(":"), [moment[1]]
    owner = importlib.import_module("graphfm.data.sources." + place)
    *inside, name = name.split(".")
    for part in inside:
        owner = getattr(owner, part)
    before = getattr(owner, name)
    def stopped(*given, **named):
        if left[0] == 0:
            os.kill(os.getpid(), number)
        left[0] -= 1
        return before(*given, **named)
    setattr(owner, name, stopped)

found = []
for moment in moments:
    for number in signals:
        child = os.fork()
        if child == 0:
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            prepare(moment, number)
            sys.argv[1:] = arguments
            try:
                entry()
            except SystemExit as end:
                os._exit(end.code)
            os._exit(1)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        there = sorted(path.name for path in Path(out).parent.iterdir())
        found.append([moment, number, code, there])
print(json.dumps(found))
"""


def left_by(number: int) -> list[str]:
    """What may be there after a signal: only a process that cannot clean up leaves something."""
    return [".graph.unfinished"] if number == signal.SIGKILL else []


@pytest.fixture
def tables(tmp_path):
    folder = tmp_path / "tables"
    folder.mkdir()
    return folder


@pytest.mark.skipif(not hasattr(os, "fork"), reason="each moment has a forked process")
def test_an_import_can_be_stopped_at_every_stage(tmp_path, tables):
    script.write_tables(tables, 200, 1000)
    out = tmp_path / "out" / "graph"
    out.parent.mkdir()
    arguments = script.import_command(tables, out, MEMORY)
    given = json.dumps([arguments, str(out), MOMENTS, SIGNALS])
    ended = subprocess.run([sys.executable, "-c", PROGRAM, given], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert len(found) == len(MOMENTS) * len(SIGNALS)
    for moment, number, code, there in found:
        assert (code, there) == (CODES[number], left_by(number)), moment
    for folder in (out, tmp_path / "whole"):
        import_all(tables, folder)
    assert [path.name for path in out.parent.iterdir()] == ["graph"]
    assert load(out).fingerprint == load(tmp_path / "whole").fingerprint


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_statement_that_would_take_hours_is_interrupted(tmp_path, number):
    def heard(*_):
        raise KeyboardInterrupt

    before, db = signal.signal(number, heard), Database(tmp_path, [], 1 << 30)
    sender = threading.Timer(0.3, os.kill, (os.getpid(), number))
    try:
        sender.start()
        with pytest.raises(KeyboardInterrupt):
            db.run("SELECT count(*) FROM range(1000000) a(i), range(1000000) b(j) WHERE i * j = 3")
        assert db.one("SELECT 1") == (1,)  # nothing is left running
    finally:
        sender.join()
        signal.signal(number, before)
        db.close()


def import_all(tables, out) -> None:
    """Import without being stopped."""
    ended = graphfm(*script.import_command(tables, out, MEMORY))
    assert ended.code == 0, ended.err


def run(arguments: list[str]) -> subprocess.Popen:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", script.COMMAND, *arguments], **quiet)


def made_since(started: float, path) -> bool:
    """Whether a file is there, and is not what an earlier import left."""
    try:
        return path.stat().st_ctime > started
    except FileNotFoundError:
        return False


@pytest.mark.extended
def test_five_million_edges_stopped_at_random_moments(tmp_path, tables):
    script.write_tables(tables, 500_000, 5_000_000)
    began = time.monotonic()
    import_all(tables, tmp_path / "whole")
    whole, wanted = time.monotonic() - began, load(tmp_path / "whole").fingerprint
    out, rng = tmp_path / "out" / "graph", random.Random(0)
    out.parent.mkdir()
    for number in SIGNALS:
        for sign in (*SIGNS, *[None] * 5):  # soon after each sign, and at any moment of the import
            started = time.time()
            process = run(script.import_command(tables, out, MEMORY))
            deadline = time.monotonic() + 10 * whole
            while not made_since(started, out.parent / ".graph.unfinished" / (sign or SIGNS[0])):
                assert time.monotonic() < deadline
                assert process.poll() is None
                time.sleep(0.002)
            time.sleep(rng.random() * (0.1 if sign else whole))
            process.send_signal(number)
            _, said = process.communicate(timeout=60)
            if process.returncode == 0:  # it ended before the signal
                assert load(out).fingerprint == wanted
                os.rename(out, tmp_path / f"done{len(list(tmp_path.iterdir()))}")
                continue
            assert process.returncode == CODES[number], (sign, said)
            assert sorted(path.name for path in out.parent.iterdir()) == left_by(number), sign
    import_all(tables, out)
    assert [path.name for path in out.parent.iterdir()] == ["graph"]
    assert load(out).fingerprint == wanted
