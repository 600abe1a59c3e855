"""graphfm staleness: the table, its JSON, and what it refuses."""

import json
import re

import pytest

from graphfm.experiments.child import train_cell
from graphfm.experiments.outcome import FAILED, Outcome
from tests.unit.cli.commands import graphfm

SMALL = ("--dataset", "synthetic:small:0.05", "--device", "cpu", "--hidden", "8")
FEW = (*SMALL, "--parts", "4", "--parts-per-batch", "2", "--epochs", "3")
HISTORY = ["gas", "graphfm-ob, plain sum", "graphfm-ob, rescaled"]
OURS = ["gas, exact first hop", "graphfm-delta"]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch, request):
    """Cells train in this process: one test shows that a process of its own gives the same."""
    monkeypatch.chdir(tmp_path)
    if "in_child" not in request.fixturenames:
        monkeypatch.setattr("graphfm.experiments.staleness.run_in_child", run_here)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "300")


@pytest.fixture
def in_child():
    """Leave the cells in processes of their own."""


def run_here(cell, fingerprint, scratch):
    return train_cell(
        {"run": cell.run.to_json(), "measure": cell.measure, "fingerprint": fingerprint}
    )


def staleness(*arguments) -> tuple[int, str, str]:
    ended = graphfm("staleness", *arguments)
    return ended.code, ended.out, ended.err


def test_the_table_lists_every_method_in_aligned_columns():
    code, out, err = staleness(*FEW, "--seeds", "2")
    assert code == 0, err
    header, *rows = out.splitlines()
    assert re.split(r"\s{2,}", header) == [
        "method", "test", "S^1", "S^2", "relative 1", "relative 2",
    ]  # fmt: skip
    assert [re.split(r"\s{2,}", row)[0] for row in rows] == [*HISTORY, *OURS, "full batch"]
    assert len({len(line) for line in (header, *rows)}) == 1  # aligned to the right
    assert re.search(r"gas +0\.\d{4} ± 0\.\d{4}( +\d+\.\d{4}){4}$", rows[0])
    assert re.search(r"full batch +0\.\d{4} ± 0\.\d{4}( +-){4}$", rows[-1])
    assert len(err.splitlines()) == 12  # six methods, two seeds
    for number, line in enumerate(err.splitlines()):
        assert line.startswith(f"{number + 1} of 12: ")
        assert re.search(rf"seed {number % 2}: test 0\.\d{{4}}", line)


def test_json_is_one_object_on_one_line():
    code, out, err = staleness(*FEW, "--json")
    assert code == 0, err
    (line,) = out.splitlines()
    result = json.loads(line)
    assert result["dataset"] == "synthetic:small:0.05"
    assert (result["parts"], result["epochs"], result["seeds"]) == (4, 3, 1)
    assert result["layers"] == 3
    rows = {row["name"]: row for row in result["rows"]}
    assert list(rows) == [*HISTORY, *OURS, "full batch"]
    for name, row in rows.items():
        assert set(row) == {
            "name", "method", "settings", "test", "test_std", "tests", "layers",
        }, name  # fmt: skip
        assert ("exact_first_hop" in row["settings"]) == (name in HISTORY)  # as published
        assert row["tests"] == [row["test"]]
        assert row["test_std"] is None
        depths = [layer["layer"] for layer in row["layers"]]
        assert depths == ([] if name == "full batch" else [1, 2])
        assert all(layer["score"] >= 0 and layer["relative"] >= 0 for layer in row["layers"])
    assert all(layer["score"] > 0 for layer in rows["gas"]["layers"])
    assert rows["gas"]["layers"] != rows["gas, exact first hop"]["layers"]


def test_a_process_of_its_own_gives_the_same_numbers(in_child, monkeypatch):
    arguments = (*FEW[:-1], "1", "--layers", "2", "--backbone", "pna", "--json")
    apart = staleness(*arguments)
    monkeypatch.setattr("graphfm.experiments.staleness.run_in_child", run_here)
    assert apart[:2] == staleness(*arguments)[:2]
    assert apart[0] == 0, apart[2]


def test_a_folder_keeps_trainings_and_tables(tmp_path, monkeypatch):
    arguments = (*FEW[:-1], "1", "--layers", "2", "--out", "s")
    first = staleness(*arguments)
    files = {"comparison.json", "cells.jsonl", "table.md", "table.csv", "table.tex"}
    assert {path.name for path in (tmp_path / "s").iterdir()} == files
    assert first[2].endswith("tables and every training are in s\n")
    monkeypatch.setattr("graphfm.experiments.staleness.run_in_child", None)  # nothing is run
    second = staleness(*arguments)
    assert second[:2] == first[:2]
    assert "6 of 6 trainings are done already and are not run again" in second[2]
    code, _, err = staleness(*arguments, "--lr", "0.5")
    assert (code, "options lr 0.01, but this command has 0.5" in err) == (2, True)


def test_a_training_that_fails_is_a_note_and_exit_code_1(monkeypatch):
    def fails(cell, fingerprint, scratch):
        if cell.run.method == "graphfm-delta":
            return Outcome(status=FAILED, error="it broke")
        return run_here(cell, fingerprint, scratch)

    monkeypatch.setattr("graphfm.experiments.staleness.run_in_child", fails)
    code, out, err = staleness(*FEW[:-1], "1", "--layers", "2")
    assert code == 1
    assert "graphfm-delta: 1 of 1 failed: it broke" in out
    assert "some trainings failed" in err


def test_same_seed_same_table():
    arguments = (*FEW[:-1], "1", "--layers", "2", "--seed", "3", "--json")
    assert staleness(*arguments)[1] == staleness(*arguments)[1]


@pytest.mark.parametrize(
    ("backbone", "left_out"), [("pna", OURS), ("gcnii", ["gas, exact first hop"])]
)
def test_what_a_backbone_does_not_allow_is_left_out_and_said(backbone, left_out):
    few = (*FEW[:-1], "1", "--backbone", backbone, "--layers", "2", "--json")
    code, out, err = staleness(*few)
    assert code == 0, err
    names = [row["name"] for row in json.loads(out)["rows"]]
    assert names == [name for name in (*HISTORY, *OURS, "full batch") if name not in left_out]
    assert [line.split(":")[0] for line in err.splitlines() if "left out" in line] == left_out


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--seeds", "0"), "seeds is 0; expected 1 or more"),
        (("--epochs", "0"), "epochs is 0; expected 1 or more"),
        (("--parts", "0"), "parts is 0; expected 1 or more"),
        (("--parts-per-batch", "0"), "parts_per_batch is 0; expected 1 or more"),
        (("--parts-per-batch", "99"), "parts_per_batch is 99 and parts 24"),
        (("--beta", "1.5"), "beta is 1.5; expected numbers from 0 to 1"),
        (("--beta", "x"), "--beta"),
        (("--lr", "0"), "lr is 0.0; expected"),
        (("--dropout", "1"), "dropout is 1.0; expected"),
        (("--layers", "1"), "layers is 1; expected 2 or more"),
        (("--backbone", "mlp"), "mlp reads no neighbours"),
        (("--backbone", "sgc"), "sgc reads no neighbours"),
        (("--backbone", "gat"), "unknown backbone 'gat'"),
        (("--device", "tpu"), "unknown device 'tpu'"),
        (("--dataset", "nowhere"), "unknown dataset 'nowhere'"),
        (("--refresh",), "--refresh"),
    ],
)
def test_a_wrong_option_is_one_line(arguments, reason):
    code, out, err = staleness(*SMALL, *arguments)
    assert (code, out) == (2, ""), err
    assert err.startswith("graphfm: ")
    assert err.count("\n") == 1, err
    assert re.search(reason, err), err
