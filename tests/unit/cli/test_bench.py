"""graphfm bench: the table, its JSON, its profile, and what it refuses."""

import json

import pytest

from graphfm.cli.bench import _chosen
from graphfm.experiments.bench.case import Case
from graphfm.experiments.bench.contender import Ours
from graphfm.experiments.bench.turns import WARM_UP
from tests.unit.cli.benching import SMALL, bench

KEYS = {
    "suite", "case", "dataset", "options", "status", "steps", "repeats", "name", "seconds",
    "seconds_min", "seconds_max", "warmup_seconds", "prepare_seconds", "peak_bytes", "epoch_bytes",
    "rival", "no_rival", "ratio", "ratio_min", "ratio_max", "memory_ratio", "floor_bytes_per_step",
    "floor_seconds", "floor_share", "machine", "note",
}  # fmt: skip

pytestmark = pytest.mark.usefixtures("tiny_suites")


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
