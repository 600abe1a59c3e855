"""graphfm compare: grids, chosen columns, differences, and folders with other trainings."""

import json

import pytest

from tests.unit.cli.comparing import FEW, OUT, SMALL, compare

pytestmark = pytest.mark.usefixtures("here")
GRID = ("--sweep", "lr=0.001,0.01", "--sweep", "fanout=1,2")


def test_several_sweeps_make_a_grid(fake, here):
    code, out, _ = compare(*FEW, *GRID)
    assert code == 0
    header, *rows = out.splitlines()
    assert header.split()[:4] == ["method", "lr", "fanout", "best"]
    assert [row.split()[:3] for row in rows[:6]] == [
        ["full", "0.001", "-"], ["full", "0.01", "-"], ["graphsage", "0.001", "1"],
        ["graphsage", "0.001", "2"], ["graphsage", "0.01", "1"], ["graphsage", "0.01", "2"],
    ]  # fmt: skip
    assert [row.split()[3] == "*" for row in rows[:6]] == [True, False, True, False, False, False]
    assert "best: * is the row of its method that is best on validation" in out
    assert (here / f"{OUT}-lr-fanout" / "sweep.png").exists()


def test_the_json_of_a_grid(fake):
    record = json.loads(compare(*FEW, *GRID, "--json")[1])
    assert record["sweeps"] == {"lr": [0.001, 0.01], "fanout": [1, 2]}
    assert record["values"] is None
    assert "lr" not in record["training"]  # rows differ in it
    last = record["rows"][-1]
    assert (last["value"], last["values"]) == (None, {"lr": 0.01, "fanout": 2})
    assert last["options"] == {
        "epochs": 100, "lr": 0.01, "fanout": [2], "batch_size": 512, "picks": "even",
    }  # fmt: skip
    assert last["difference"]["reference"] == "full, lr 0.001"
    assert last["scores"] == [
        {"seed": 0, "test": 0.5, "val": 0.6}, {"seed": 1, "test": 0.6, "val": 0.6},
    ]  # fmt: skip


def test_columns_are_chosen_for_people_and_not_for_programs(fake, here):
    code, out, _ = compare(*FEW, "--columns", "validation,difference,settings")
    assert code == 0
    assert out.splitlines()[0].split() == ["method", "validation", "difference"]
    assert "graphsage: epochs 100, lr 0.003, fanout 5, batch_size 512, picks even" in out
    lines = (here / OUT / "table.md").read_text().splitlines()
    assert lines[2] == "| method | validation | difference | settings | note |"
    assert "method & validation & difference " in (here / OUT / "table.tex").read_text()
    header = (here / OUT / "table.csv").read_text().splitlines()[0].split(",")
    assert {"test", "test_std", "val_std", "difference_p", "reference"} <= set(header)


def test_100_columns_hold_the_differences(fake, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    out = compare(*FEW)[1]
    assert max(map(len, out.splitlines())) <= 100
    assert "difference" in out.splitlines()[0]
    assert "+0.0000 [+0.0000, +0.0000]" in out.splitlines()[2]


def test_another_set_in_the_same_folder_says_whose_table_it_is(fake, here):
    compare(*FEW, "--set", "graphsage.lr=0.02")
    code, out, err = compare(*FEW, "--set", "graphsage.lr=0.03")
    assert (code, "lr 0.03," in out) == (0, True)
    assert err.splitlines()[2] == (
        f"{OUT} also keeps 2 finished trainings with other methods, seeds, values or settings; "
        "the tables and pictures are of this command alone, and all trainings stay in cells.jsonl"
    )


def test_histories_may_be_set_where_one_method_keeps_them(fake):
    code, out, err = compare(*SMALL, "--methods", "gas", "--seeds", "1", "--history", "bf16",
                             "--json")  # fmt: skip
    assert code == 0, err
    assert json.loads(out)["training"]["history"] == "bf16"


def test_curves_are_drawn(here):
    arguments = (*SMALL, "--methods", "full", "--seeds", "1", "--budget-epochs", "2")
    code, _, err = compare(*arguments, "--out", "c")
    assert code == 0, err
    (line,) = (here / "c" / "cells.jsonl").read_text().splitlines()
    assert json.loads(line)["curve"]["epoch"] == [1, 2]
    assert (here / "c" / "curves.png").read_bytes().startswith(b"\x89PNG")
