"""graphfm compare: the table, its JSON, and what is said on the way."""

import io
import json
import re
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from graphfm.cli import main
from graphfm.experiments.compare.report import HEADING
from graphfm.experiments.outcome import BROKEN, FAILED, UNDEFINED
from graphfm.methods import METHODS
from tests.unit.cli.comparing import FEW, OUT, SMALL, compare

SHARED = "synthetic:small:0.02, sage of 2 layers, epochs by row, patience 50, 2 seeds, on cpu"
FULL = METHODS["full"].trains_with
OF_FULL = f"epochs {FULL['epochs']}, lr {FULL['lr']}"
SETTINGS = [  # of each method alone, its own epochs and rate among them
    f"  full: {OF_FULL}",
    "  graphsage: epochs 100, lr 0.003, fanout 5, batch_size 512, picks even",
]

pytestmark = pytest.mark.usefixtures("here")


def test_the_table_is_on_stdout_and_all_else_on_stderr(fake, here):
    code, out, err = compare(*FEW)
    assert code == 0
    header, *rows, _, _, heading, of_full, of_sage = out.splitlines()
    assert header.split()[:3] == ["method", "test", "validation"]
    assert [heading, of_full, of_sage] == [HEADING, *SETTINGS]
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
    code, out, _ = compare(*FEW, "--set", "graphsage.lr=0.02")
    assert code == 0
    assert "\n".join(SETTINGS).replace("0.003", "0.02") + "\n" in out
    for name in ("table.md", "table.csv", "table.tex"):
        text = (here / OUT / name).read_text()
        assert "lr 0.02" in text
        assert OF_FULL in text
    rows = json.loads(compare(*FEW, "--set", "graphsage.lr=0.02", "--json")[1])["rows"]
    assert [row["options"]["lr"] for row in rows] == [FULL["lr"], 0.02]
    assert rows[0]["settings"] == OF_FULL


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
    given = ("--batch-size", "3", "--weight-decay", "0.01", "--schedule", "step")
    ended = compare(*FEW, *given, "--seeds", "1", "--budget-epochs", "1", "--out", "c")
    assert ended[0] == 0, ended
    lines = Path("c/cells.jsonl").read_text().splitlines()
    runs = {run["method"]: run for run in (json.loads(line)["run"] for line in lines)}
    assert runs["graphsage"]["method_settings"]["batch_size"] == 3
    assert "batch_size" not in runs["full"]["method_settings"]
    for run in runs.values():
        assert (run["training"]["weight_decay"], run["training"]["schedule"]) == (0.01, "step")
