"""graphfm bench: the table, its JSON, its profile, and what becomes of a case that cannot run."""

import io
import json
import logging
import sys
from contextlib import redirect_stderr, redirect_stdout

import pytest

from graphfm.cli import main
from graphfm.cli.bench import _chosen
from graphfm.experiments.bench.case import Case
from graphfm.experiments.bench.contender import Ours
from graphfm.experiments.bench.machine import COPIED
from graphfm.experiments.bench.rival import NumpyRival
from graphfm.experiments.bench.turns import WARM_UP

SMALL = "synthetic:small:0.02"
SAGE = {"layers": 2, "hidden": 8, "dropout": 0.0, "batch_size": 32, "fanout": (2, 2)}
GCN = {"backbone": "gcn", "layers": 3, "hidden": 8, "parts": 4, "parts_per_batch": 2}
TINY = (
    Case(name="sage", dataset=SMALL, options={"method": "graphsage", **SAGE}, rival="loader",
         device="cpu"),
    Case(name="ib", dataset=SMALL, options={"method": "graphfm-ib", **SAGE}, device="cpu"),
    Case(name="delta", dataset=SMALL, options={"method": "graphfm-delta", **GCN}, rival="full",
         device="cpu"),
)  # fmt: skip
BROKEN = Case(name="broken", dataset=SMALL, options={"method": "gas", "parts": 999}, device="cpu")
KEYS = {
    "suite", "case", "dataset", "options", "status", "steps", "repeats", "name", "seconds",
    "seconds_min", "seconds_max", "warmup_seconds", "prepare_seconds", "peak_bytes", "epoch_bytes",
    "rival", "no_rival", "ratio", "ratio_min", "ratio_max", "memory_ratio", "floor_bytes_per_step",
    "floor_seconds", "floor_share", "machine", "note",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _tiny(monkeypatch):
    """A suite of seconds, a small copy for the bandwidth, and no PyG whatever is installed."""
    suites = {"tiny": TINY, "broken": (TINY[1], BROKEN, TINY[2])}
    suites["gpu"] = (Case(name="gpu", dataset=SMALL, device="cuda"),)
    monkeypatch.setattr("graphfm.cli.bench.SUITES", suites)
    monkeypatch.setitem(COPIED, "cpu", 1 << 20)
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setattr("graphfm.experiments.bench.case.has_pyg", lambda: False)
    yield
    logging.getLogger("graphfm").setLevel(logging.NOTSET)  # which a command sets for its process


def bench(*arguments: str) -> tuple[int, str, str]:
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["graphfm", "bench", *arguments]
    try:
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as end:
            main()
    finally:
        sys.argv = before
    return end.value.code, out.getvalue(), err.getvalue()


def main_with(*arguments: str) -> None:
    """The command where it is expected to raise."""
    before, sys.argv = sys.argv, ["graphfm", "bench", *arguments]
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            main()
    finally:
        sys.argv = before


def test_the_table_has_a_row_for_each_case():
    code, out, err = bench("--suite", "tiny", "--repeats", "2")
    assert code == 0, err
    header, *rows = out.splitlines()
    assert header.split()[:2] == ["dataset", "method"]
    assert [row.split()[1] for row in rows[:3]] == ["sage", "ib", "delta"]
    assert rows[3:] == [
        f"{SMALL}, sage: PyG's compiled sampler is not installed; compared with a NumPy loader "
        "written for this benchmark",
        f"{SMALL}, delta: compared with graphfm full",
    ]
    machine, *lines = err.splitlines()
    assert "torch" in machine
    assert "CPU cores" in machine
    assert sum("s an epoch" in line for line in lines) == 3
    assert lines[0].startswith(f"1 of 3: {SMALL}, sage: ")
    assert "times the rival's; rival: NumPy neighbour loader" in lines[0]


def test_the_table_fits_80_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = bench("--suite", "tiny", "--repeats", "1")
    assert code == 0, err
    assert max(map(len, out.splitlines())) <= 80
    _, dataset, *rows = out.splitlines()
    assert dataset == SMALL
    assert [row.split()[0] for row in rows[:3]] == ["sage", "ib", "delta"]
    assert "(--json prints them)" in " ".join(out.split())


def test_a_folder_keeps_what_was_measured(tmp_path, monkeypatch):
    arguments = ("--suite", "tiny", "--repeats", "1", "--json", "--out", str(tmp_path / "b"))
    first = bench(*arguments)
    files = {"comparison.json", "cells.jsonl", "table.md", "table.csv", "table.tex"}
    assert {path.name for path in (tmp_path / "b").iterdir()} == files

    def epoch(self):
        raise AssertionError("nothing is to be measured again")

    monkeypatch.setattr(Ours, "epoch", epoch)
    code, out, err = bench(*arguments)
    assert (code, out) == (0, first[1])
    assert "3 of 3 cases are done already and are not run again" in err


@pytest.mark.parametrize("after", [0, 3])  # epochs; one in the warm-up, one later
def test_a_rival_that_is_too_slow_is_left_out_and_closed(monkeypatch, after):
    epochs, closed = [], []
    epoch = NumpyRival.epoch

    def slow(self):
        epochs.append(self)
        self.limit = 0.0 if len(epochs) > after else 300.0
        return epoch(self)

    monkeypatch.setattr(NumpyRival, "epoch", slow)
    monkeypatch.setattr(NumpyRival, "close", lambda self: closed.append(self))
    code, out, err = bench("--suite", "tiny", "--case", "sage", "--repeats", "3", "--json")
    record = json.loads(out)
    assert (code, record["status"], record["rival"]) == (0, "measured", None), err
    assert record["repeats"] == 3
    assert record["note"].startswith("no rival: NumPy neighbour loader")
    assert record["note"].endswith("gave up: an epoch took more than 0 s")
    assert len(epochs) == after + 1
    assert closed == epochs[:1]


def test_the_rival_is_closed_when_a_case_ends(monkeypatch):
    closed = []
    monkeypatch.setattr(NumpyRival, "close", lambda self: closed.append(self))
    assert bench("--suite", "tiny", "--case", "sage", "--repeats", "1", "--json")[0] == 0
    assert len(closed) == 1
    monkeypatch.setattr(Ours, "epoch", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main_with("--suite", "tiny", "--case", "sage")
    assert len(closed) == 2


def test_json_is_an_object_for_each_case():
    code, out, err = bench("--suite", "tiny", "--repeats", "3", "--json")
    assert code == 0, err
    records = [json.loads(line) for line in out.splitlines()]
    assert [record["case"] for record in records] == ["sage", "ib", "delta"]
    for record in records:
        assert set(record) == KEYS
        assert (record["status"], record["repeats"]) == ("measured", 3)
        assert 0 < record["seconds_min"] <= record["seconds"] <= record["seconds_max"]
        assert record["peak_bytes"] > 0
        assert record["floor_seconds"] == pytest.approx(
            record["steps"]
            * sum(record["floor_bytes_per_step"].values())
            / record["machine"]["bandwidth"]
        )
        assert record["floor_share"] == pytest.approx(record["floor_seconds"] / record["seconds"])
    sage, ib, delta = records
    assert (sage["steps"], ib["steps"], delta["steps"]) == (4, 4, 2)
    assert sage["ratio_min"] <= sage["ratio"] <= sage["ratio_max"]
    assert (ib["rival"], ib["ratio"], ib["no_rival"]) == (None, None, None)
    assert delta["rival"]["name"] == "graphfm full"


def test_epochs_alternate(monkeypatch):
    turns = []
    epoch = Ours.epoch
    monkeypatch.setattr(Ours, "epoch", lambda self: (turns.append(self.name), epoch(self))[1])
    assert bench("--suite", "tiny", "--case", "delta", "--repeats", "3", "--json")[0] == 0
    assert turns == ["graphfm graphfm-delta", "graphfm full"] * (WARM_UP + 3)


def test_a_whole_name_is_one_case_and_a_part_all_that_contain_it(monkeypatch):
    cases = [Case(name=name, dataset="synthetic:small", options={}) for name in ("1,1", "1,1,1")]
    monkeypatch.setattr("graphfm.cli.bench.SUITES", {"tiny": cases})
    assert list(_chosen("tiny", "synthetic:small 1,1")) == cases[:1]
    assert list(_chosen("tiny", "1,1")) == list(_chosen("tiny", None)) == cases


def test_a_case_that_fails_is_a_line_and_the_others_go_on():
    code, out, err = bench("--suite", "broken", "--repeats", "1", "--json")
    assert code == 1
    records = [json.loads(line) for line in out.splitlines()]
    assert [record["status"] for record in records] == ["measured", "failed", "measured"]
    assert "parts is 999" in records[1]["reason"]
    assert sum("broken: failed: parts is 999" in line for line in err.splitlines()) == 1


def test_running_out_of_memory_is_a_line_too(monkeypatch):
    def epoch(self):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 99 bytes")

    monkeypatch.setattr(Ours, "epoch", epoch)
    code, out, err = bench("--suite", "tiny")
    assert (code, out) == (1, "")
    assert err.count("failed: there is not enough memory") == 3


def test_a_rival_that_is_not_there_is_said(monkeypatch):
    case = Case(name="sage", dataset=SMALL, options=TINY[0].options, rival="pyg", device="cpu")
    monkeypatch.setattr("graphfm.cli.bench.SUITES", {"tiny": (case,)})
    monkeypatch.setattr("graphfm.experiments.bench.pyg_rival.has_pyg", lambda: False)
    code, out, _ = bench("--suite", "tiny", "--repeats", "1", "--json")
    record = json.loads(out)
    assert (code, record["rival"], record["ratio"]) == (0, None, None)
    assert "install torch_geometric" in record["no_rival"]


def test_ctrl_c_ends_with_what_was_measured(monkeypatch):
    def rival(self, graph):
        if self.name == "delta":
            raise KeyboardInterrupt

    monkeypatch.setattr(Case, "make_rival", rival)
    code, out, err = bench("--suite", "tiny", "--repeats", "1")
    assert code == 130
    assert [row.split()[1] for row in out.splitlines()[1:3]] == ["sage", "ib"]
    assert err.splitlines()[-1] == "graphfm: interrupted; 2 of 3 cases were measured"


def test_the_profile_shows_where_a_step_goes():
    code, out, err = bench("--suite", "tiny", "--profile", "--case", "ib")
    assert code == 0, err
    title, header, *rows = out.strip().splitlines()
    assert title.startswith(f"{SMALL}, ib: ")
    assert " ms a step; in a pass of its own that was recorded: " in title
    assert header.split() == ["row", "calls/step", "ms/step", "share"]
    assert any(row.startswith("aten::mm") for row in rows)
    assert rows[-1].split()[0] == "all"
    code, out, _ = bench("--suite", "tiny", "--profile", "--json")
    records = [json.loads(line) for line in out.splitlines()]
    assert (code, [record["case"] for record in records]) == (0, ["sage", "ib", "delta"])
    for record in records:
        assert sum(part["share"] for part in record["parts"]) == pytest.approx(1)
        assert record["calls_per_step"] > 10


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--suite", "huge"), "unknown suite 'huge'; choose one of tiny"),
        (("--suite", "tiny", "--repeats", "0"), "repeats is 0; expected 1 or more"),
        (
            ("--suite", "tiny", "--case", "zz"),
            "no case of suite tiny contains 'zz'; choose one",
        ),
    ],
)
def test_a_wrong_option_is_one_line(arguments, reason):
    code, out, err = bench(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert reason in err


def test_without_a_gpu_its_suite_is_refused(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    code, out, err = bench("--suite", "gpu")
    assert (code, out) == (2, "")
    assert "suite gpu needs a GPU" in err
