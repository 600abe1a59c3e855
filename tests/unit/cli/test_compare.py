"""graphfm compare: the table, what it refuses, and how it survives."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import pytest

from graphfm.cli import main
from graphfm.experiments.outcome import BROKEN, FAILED, FINISHED, UNDEFINED, Outcome
from graphfm.methods import METHODS
from graphfm.training.callbacks import Score

SMALL = ("--dataset", "synthetic:small:0.02", "--device", "cpu", "--hidden", "8")
FEW = (*SMALL, "--methods", "full,graphsage", "--seeds", "2")
OUT = "runs/compare-synthetic-small-0.02-sage"
SHARED = "synthetic:small:0.02, sage of 2 layers, at most 100 epochs, patience 10, 2 seeds, on cpu"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    return tmp_path


def compare(*arguments) -> tuple[int, str, str]:
    """Run the command in this process."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["graphfm", "compare", *map(str, arguments)]
    try:
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as end:
            main()
    finally:
        sys.argv = before
    return end.value.code, out.getvalue(), err.getvalue()


@pytest.fixture
def fake(monkeypatch) -> dict[str, str | BaseException]:
    """No training: cells end as this says, by label."""
    ends: dict[str, str | BaseException] = {}

    def run_cell(cell, fingerprint, scratch) -> Outcome:
        end = ends.get(cell.label, FINISHED)
        if isinstance(end, BaseException):
            raise end
        if end != FINISHED:
            return Outcome(status=end, error="it does not fit; take another")
        test = 0.5 + cell.run.training.seed / 10
        return Outcome(
            status=FINISHED,
            score=Score(
                val=0.6, test=test, best_epoch=1, epochs=2, seconds_per_epoch=0.1,
                seconds_to_best=0.2, prepare_seconds=0.1, nodes_per_step=10.0,
                edges_per_step=20.0, peak_bytes=2**28,
            ),
        )  # fmt: skip

    monkeypatch.setattr("graphfm.experiments.compare.run.run_in_child", run_cell)
    return ends


def test_the_table_is_on_stdout_and_all_else_on_stderr(fake, here):
    code, out, err = compare(*FEW)
    assert code == 0
    header, *rows = out.splitlines()
    assert header.split()[:3] == ["method", "test", "validation"]
    assert [row.split()[:4] for row in rows] == [
        ["full", "0.5500", "±", "0.0707"],
        ["graphsage", "0.5500", "±", "0.0707"],
    ]
    first, memory, *lines, last = re.sub(r"; about \d+ s left", "", err).splitlines()
    assert err.count(" s left") == 3  # all but the last
    parts = r"graph [\d.]+ KiB; beside it [\d.]+ GiB free, full [\d.]+ .iB, graphsage [\d.]+ .iB"
    assert re.fullmatch(f"memory on cpu, about: {parts}", memory)
    assert first == SHARED
    ended = "full, seed 0: test 0.5000, validation 0.6000 after 0.2 s, 256 MiB"
    assert lines[0] == f"1 of 4: {ended}"
    assert len(lines) == 4
    assert last == f"tables, pictures and every training are in {OUT}"
    assert {path.name for path in (here / OUT).iterdir()} == {
        "comparison.json", "cells.jsonl", "table.md", "table.csv", "table.tex", "comparison.png",
    }  # fmt: skip


def test_json_is_the_last_line_and_holds_the_rows(fake):
    code, out, _ = compare(*FEW, "--sweep", "fanout=1,2", "--budget-seconds", 3, "--json")
    assert code == 0
    record = json.loads(out.splitlines()[-1])
    assert (record["dataset"], record["backbone"], record["seeds"]) == (
        "synthetic:small:0.02", "sage", 2,
    )  # fmt: skip
    assert record["methods"] == ["full", "graphsage"]
    assert record["values"] == [1, 2]
    assert record["training"]["max_seconds"] == 3
    assert record["out"] == f"{OUT}-fanout"
    assert [(row["method"], row["value"]) for row in record["rows"]] == [
        ("full", None), ("graphsage", 1), ("graphsage", 2),
    ]  # fmt: skip
    assert record["rows"][0]["tests"] == [0.5, 0.6]
    assert Path(record["out"], "sweep.png").exists()


def test_without_methods_there_are_all(fake):
    record = json.loads(compare(*SMALL, "--seeds", 1, "--json")[1])
    assert [row["method"] for row in record["rows"]] == list(METHODS)


def test_the_second_time_nothing_is_run_and_that_is_said(fake):
    first, second = compare(*FEW), compare(*FEW)
    assert second[:2] == first[:2]
    _, _, done, last = second[2].splitlines()
    assert [done, last] == [
        "4 of 4 trainings are done already and are not run again",
        f"tables, pictures and every training are in {OUT}",
    ]


def test_a_failed_training_is_exit_code_1_and_a_row(fake):
    fake["full, seed 1"] = FAILED
    code, out, err = compare(*FEW)
    assert code == 1
    assert re.search(r"full +0\.5000 ", out)
    assert "full: 1 of 2 failed: it does not fit; take another\n" in out
    assert "3 of 4: full, seed 1: failed: it does not fit; take another" in err
    assert err.endswith("1 of 4 trainings failed; the same command tries them again\n")
    fake.clear()
    assert compare(*FEW)[0] == 0


def test_a_method_that_is_not_defined_is_no_failure(fake):
    fake["graphsage, seed 0"] = UNDEFINED
    code, out, _ = compare(*FEW)
    assert code == 0
    assert re.search(r"graphsage( +-){8}\n", out)
    assert out.endswith("graphsage: not defined: it does not fit; take another\n")


def test_ctrl_c_says_how_to_go_on(fake):
    fake["full, seed 1"] = KeyboardInterrupt()
    code, out, err = compare(*FEW)
    assert (code, out) == (130, "")
    assert err.splitlines()[-1] == (
        f"graphfm: interrupted; 2 of 4 trainings are kept in {OUT}; "
        "the same command continues from there"
    )


def test_a_terminal_gets_a_live_table(fake, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "argv", ["graphfm", "compare", *FEW])
    out, err = io.StringIO(), Terminal()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit):
        main()
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", err.getvalue())
    assert "0.5500 ± 0.0707" in shown
    assert "full, seed 0: test" not in shown
    assert SHARED in shown.replace("\r", "\n").splitlines()  # a line of its own
    assert out.getvalue().splitlines()[0].startswith("method")


def test_80_by_24_show_every_method(fake, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for name, value in (("TERM", "xterm"), ("COLUMNS", "80"), ("LINES", "24")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["graphfm", "compare", *SMALL, "--seeds", "1"])
    out, err = io.StringIO(), Terminal()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit):
        main()
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", err.getvalue()).replace("\r", "\n")
    last = shown[shown.rindex("\nmethod ") :].strip().splitlines()
    assert [line.split()[0] for line in last[1 : 1 + len(METHODS)]] == list(METHODS)
    assert max(map(len, out.getvalue().splitlines())) <= 80


def test_an_override_is_in_every_table(fake, here):
    code, out, _ = compare(*FEW, "--set", "graphsage.lr=0.003")
    assert (code, "graphsage alone: lr 0.003" in out) == (0, True)
    for name in ("table.md", "table.csv", "table.tex"):
        assert "lr 0.003" in (here / OUT / name).read_text()


def test_without_a_terminal_a_long_training_says_that_it_runs(fake, monkeypatch):
    def slow(cell, fingerprint, scratch):
        if cell.label == "graphsage, seed 0":
            time.sleep(0.5)
        return trained(cell, fingerprint, scratch)

    import graphfm.experiments.compare.run as running

    trained = running.run_in_child
    monkeypatch.setattr("graphfm.cli.experiment_view.EVERY", 0.15)
    monkeypatch.setattr(running, "run_in_child", slow)
    lines = compare(*FEW)[2].splitlines()
    waiting = [line for line in lines if "running for" in line]
    assert len(waiting) >= 2
    assert all(
        re.fullmatch(r"2 of 4: graphsage, seed 0: running for \d s; about \d s left", line)
        for line in waiting
    )


def test_a_method_that_the_child_cannot_build_is_an_error_and_no_row(fake, here):
    fake["graphsage, seed 0"] = BROKEN
    code, out, err = compare(*FEW)
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == (
        "graphfm: graphsage, seed 0 cannot be run: it does not fit; take another"
    )


def test_a_setting_reaches_every_method_that_takes_it(here):
    given = ("--batch-size", "3", "--weight-decay", "0.01", "--schedule", "cosine")
    ended = compare(*FEW, *given, "--seeds", "1", "--budget-epochs", "1", "--out", "c")
    assert ended[0] == 0, ended
    lines = Path("c/cells.jsonl").read_text().splitlines()
    runs = {run["method"]: run for run in (json.loads(line)["run"] for line in lines)}
    assert runs["graphsage"]["method_settings"]["batch_size"] == 3
    assert "batch_size" not in runs["full"]["method_settings"]
    for run in runs.values():
        assert (run["training"]["weight_decay"], run["training"]["schedule"]) == (0.01, "cosine")


def test_help_names_every_option():
    code, out, err = compare("--help")
    assert (code, err) == (0, "")
    shown = set(re.findall(r"--([a-z-]+)", out))
    promised = "dataset backbone methods seeds layers hidden dropout lr budget-epochs"
    promised += " budget-seconds patience sweep device out json"
    assert set(promised.split()) <= shown


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--methods", "full,nope"), "unknown method 'nope'; choose one of full, graphsage"),
        (("--backbone", "gat"), "unknown backbone 'gat'"),
        (("--device", "tpu"), "unknown device 'tpu'"),
        (("--dataset", "nowhere"), "unknown dataset 'nowhere'"),
        (("--dataset", "nowhere.npz"), "nowhere.npz: no such file"),
        (("--seeds", "0"), "seeds is 0; expected 1 to 1000"),
        (("--budget-epochs", "0"), "epochs is 0; expected 1 or more"),
        (("--budget-seconds", "0"), "budget_seconds is 0.0; expected a number above 0"),
        (("--budget-seconds", "1", "--budget-epochs", "1"), "two budgets"),
        (("--sweep", "fanout"), "sweep is 'fanout'; expected a name and its values"),
        (("--sweep", "lr=1,2", "--sweep", "layers=2"), "--sweep was given 2 times; a comparison"),
        (("--sweep", "nope=1"), "nope is not a setting of backbone sage or of full, graphsage"),
        (("--sweep", "lr=1,x"), "lr is 'x'; expected a number"),
        (("--lr", "0"), "lr is 0.0; expected"),
        (("--patience", "-1"), "patience is -1"),
        (("--out", "file"), "cannot write to file: it is a file"),
        (("--out", "full"), "full is not empty and holds no results of this command; choose an"),
        (("--fanuot", "1"), "No such option: --fanuot"),
        (("--methods", "full", "--fanout", "1"), "fanout is not a setting of backbone sage"),
        (("--fanout", "few"), "--fanout is 'few'; expected"),
    ],
)
def test_a_wrong_option_is_one_line_and_leaves_nothing(fake, here, arguments, reason):
    (here / "file").write_text("mine")
    (here / "full").mkdir()
    (here / "full" / "mine.txt").write_text("mine")
    before = set(here.rglob("*"))
    code, out, err = compare(*FEW, *arguments)
    assert (code, out) == (2, ""), err
    assert err.startswith("graphfm: ")
    assert err.count("\n") == 1, err
    assert re.search(reason, err), err
    assert set(here.rglob("*")) == before


def test_other_settings_in_the_same_folder_are_one_line(fake):
    compare(*FEW)
    code, out, err = compare(*FEW, "--lr", "0.5")
    assert (code, out) == (2, "")
    assert err == (
        f"graphfm: {OUT} holds results with training lr 0.01, but this command has 0.5; "
        "choose another --out, or give the same settings\n"
    )


# Processes


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
