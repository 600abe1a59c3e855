"""Every setting in which rows differ is in the table, wherever the difference comes from."""

import pytest

from graphfm import InputError
from graphfm.experiments.compare import Sweep
from graphfm.experiments.compare.differences import common_settings
from graphfm.experiments.compare.report import HEADING, comparison_table, data_table, describe
from graphfm.experiments.compare.sweep import own_settings
from graphfm.experiments.tables import as_latex, as_markdown, as_text
from graphfm.methods import METHODS
from graphfm.runs.run import Run

FULL = METHODS["full"].trains_with
SET = ["graphsage.lr=0.02", "graphsage.hidden=16", "graphsage.fanout=2,3"]


def test_rows_are_compared_with_each_other(make_plan):
    plan = make_plan(seeds=1, own=own_settings(SET))
    full, sage = plan.rows({})
    assert full.options == {"hidden": 256, **FULL}
    assert sage.options == {
        "hidden": 16, "epochs": 100, "lr": 0.02, "fanout": (2, 3), "batch_size": 512,
        "picks": "even",
    }  # fmt: skip
    assert full.settings == f"hidden 256, epochs {FULL['epochs']}, lr {FULL['lr']}"
    assert sage.settings == "hidden 16, epochs 100, lr 0.02, fanout 2,3, batch_size 512, picks even"


@pytest.mark.parametrize("width", [80, 100, None])
def test_a_difference_is_in_every_form(make_plan, width):
    plan = make_plan(seeds=1, own=own_settings(SET))
    rows = plan.rows({})
    table = comparison_table(plan, rows)
    of_full, of_sage = (row.settings for row in rows)
    below = as_text(table, width).split(f"{HEADING}\n")[1]
    assert max(map(len, below.splitlines())) <= (width or 1000)
    unfolded = " ".join(below.split())  # a long line is folded
    assert unfolded.startswith(f"full: {of_full} graphsage: {of_sage}")
    assert f"| {of_sage} |" in as_markdown(table)
    assert of_sage.replace("_", r"\_") in as_latex(table)
    assert [record["settings"] for record in data_table(plan, rows).records] == [of_full, of_sage]
    assert [row.to_json()["options"]["lr"] for row in rows] == [FULL["lr"], 0.02]


def test_what_all_rows_are_given_is_no_difference(make_plan):
    own = own_settings(["full.lr=0.1", "graphsage.lr=0.1"])
    plan = make_plan(seeds=1, lr=0.5, budget_epochs=7, own=own)
    assert [row.settings for row in plan.rows({})] == ["", "fanout 5, batch_size 512, picks even"]
    assert plan.common["lr"] == 0.1


def test_defaults_that_differ_are_seen(make_plan):
    """Rows are what they are trained with, not what was given."""
    runs = [Run.make(method="graphsage", lr=lr, schedule="cosine") for lr in (0.1, 0.2)]
    common = common_settings(runs)
    assert "lr" not in common
    assert common["schedule"] == "cosine"


def test_a_method_brings_its_own_settings_into_the_table(make_plan):
    """Without a budget each method has its own epochs, and its own rate and dropout."""
    plan = make_plan("full,graphsage,graphfm-ib", 1)
    names, momentum = ("epochs", "lr", "dropout"), METHODS["graphfm-ib"].trains_with
    assert [[row.options[name] for name in names] for row in plan.rows({})] == [
        [FULL["epochs"], FULL["lr"], 0.5],
        [100, 0.003, 0.5],
        [momentum["epochs"], momentum["lr"], momentum["dropout"]],
    ]
    assert len({FULL["lr"], 0.003, momentum["lr"]}) == 3
    same = make_plan("full,graphsage,graphfm-ib", 1, budget_epochs=9, lr=0.1, dropout=0.2)
    assert [set(names) & row.options.keys() for row in same.rows({})] == [set()] * 3
    assert [same.common[name] for name in names] == [9, 0.1, 0.2]


def test_histories_count_only_where_there_are_any(make_plan):
    plan = make_plan("full,gas,graphfm-ib", 1, own=own_settings(["gas.history=bf16"]))
    full, gas, momentum = plan.rows({})
    assert "history" not in full.options
    assert (gas.options["history"], momentum.options["history"]) == ("bf16", "fp32")


def test_rows_of_a_sweep_share_a_line_and_a_swept_option_has_a_column(make_plan):
    sweeps = [Sweep("lr", (0.1, 0.2)), Sweep("fanout", (1, 2))]
    plan = make_plan(seeds=1, budget_epochs=7, sweep=sweeps)
    table = comparison_table(plan, rows := plan.rows({}))
    assert as_text(table).splitlines()[-2:] == [HEADING, "  graphsage: batch_size 512, picks even"]
    assert [record["lr"] for record in table.records] == ["0.1", "0.2", "0.1", "0.1", "0.2", "0.2"]
    assert [record["fanout"] for record in table.records] == ["-", "-", "1", "2", "1", "2"]
    assert (
        rows[2].settings == "lr 0.1, fanout 1, batch_size 512, picks even"
    )  # for programs it is whole


def test_the_caption_says_only_what_is_true_of_all(make_plan):
    plan = make_plan(own=own_settings(["full.layers=3", "full.epochs=7", "full.patience=1"]))
    assert describe(plan) == "synthetic:small:0.02, sage, epochs by row, 2 seeds, on cpu"
    assert plan.rows({})[1].settings.startswith("layers 2, epochs 100, lr 0.003, patience 50, ")


def test_settings_stand_below_a_table_without_a_column_for_them(make_plan):
    plan = make_plan(seeds=1, own=own_settings(SET))
    table = comparison_table(plan, rows := plan.rows({}), ("validation", "test"))
    assert table.header == ("method", "validation", "test", "settings", "note")
    for form in (as_text, as_markdown, as_latex):
        assert "lr 0.02" in form(table)
    assert "lr 0.02" in data_table(plan, rows).records[1]["settings"]


def test_a_setting_of_histories_is_shown_beside_methods_without_any(make_plan):
    plan = make_plan("graphsage,gas", seeds=1, fill_histories=True)
    sage, gas = plan.rows({})
    assert gas.options["fill_histories"] is True
    assert "fill_histories" not in sage.options
    assert "fill_histories" not in make_plan("graphsage,gas", seeds=1).rows({})[1].options


def test_a_value_that_a_setting_cannot_have_is_refused_at_once(make_plan):
    for given in ({"own": own_settings(["gas.untrained=skp"])}, {"untrained": "skp"}):
        with pytest.raises(InputError, match="gas: untrained is skp; expected record or skip"):
            make_plan("graphsage,gas", seeds=1, **given)
