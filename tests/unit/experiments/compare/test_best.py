"""Which row is best, and how far the others are from it."""

import pytest

from graphfm import InputError
from graphfm.experiments.compare import Plan, Row, Sweep
from graphfm.experiments.compare.best import judged
from graphfm.experiments.compare.columns import choose_columns
from graphfm.experiments.compare.report import comparison_table, data_table
from graphfm.experiments.paired import paired
from graphfm.experiments.tables import as_latex, as_text

SWEEP = Sweep("fanout", (1, 2))


@pytest.fixture
def rows(make_score) -> list[Row]:
    """Test and validation scores disagree about which fanout is best."""

    def row(method, fanout, vals, tests, seeds=(0, 1, 2)) -> Row:
        scores = tuple(make_score(test, val=val) for val, test in zip(vals, tests, strict=True))
        values = {"fanout": fanout}
        return Row(method=method, backbone="sage", values=values, scores=scores, seeds=seeds)

    return judged(
        [
            row("full", None, (0.5, 0.5, 0.5), (0.5, 0.6, 0.6)),
            row("graphsage", 1, (0.7, 0.8, 0.9), (0.4, 0.5, 0.7)),
            row("graphsage", 2, (0.6, 0.6, 0.6), (0.9, 0.9, 0.9)),
            row("gas", None, (0.99,), (0.4,), seeds=(2,)),  # its other seeds failed
            row("sgc", None, (), (), seeds=()),
        ]
    )


def test_validation_chooses_among_rows_with_the_most_seeds(rows):
    assert [row.is_best for row in rows] == [True, True, False, True, False]
    assert [row.is_reference for row in rows] == [False, True, False, False, False]


def test_differences_are_by_seed(rows):
    full, reference, other, gas, none = (row.difference for row in rows)
    assert (reference, none) == (None, None)
    expected = paired({0: 0.5, 1: 0.6, 2: 0.6}, {0: 0.4, 1: 0.5, 2: 0.7})
    assert (full.mean, full.low, full.high, full.p) == (
        expected.mean, expected.low, expected.high, expected.p,
    )  # fmt: skip
    assert full.reference == other.reference == "graphsage, fanout 1"
    assert (gas.mean, gas.low, gas.p, gas.seeds) == (pytest.approx(-0.3), None, None, 1)
    record = rows[0].to_json()
    assert record["difference"].keys() == {"mean", "low", "high", "p", "seeds", "reference"}
    assert record["scores"][2] == {"seed": 2, "test": 0.6, "val": 0.5}


def test_the_table_shows_both(rows, make_plan):
    plan = make_plan("full,graphsage,gas,sgc", sweep=SWEEP)
    table = comparison_table(plan, rows)
    assert [record["best"] for record in table.records] == ["*", "*", "", "*", ""]
    differences = [record["difference"] for record in table.records]
    assert differences[0].startswith("+0.0333 [-0.2535, +0.3202]")
    assert differences[1:] == [
        "reference", "+0.3667 [-0.0128, +0.7461]", "-0.3000", "-",
    ]  # fmt: skip
    assert [record["p"] for record in table.records] == ["0.667", "-", "0.053", "-", "-"]
    text = as_text(table)
    assert "best: * is the row of its method that is best on validation" in text
    assert "difference: of test from graphsage, fanout 1, which is best on validation" in text
    assert r"$+0.3667$ $[-0.0128, +0.7461]$" in as_latex(table)
    assert r"$0.8000 \pm 0.1000$" in as_latex(table)  # validation has a deviation too


def test_programs_get_all_of_it(rows, make_plan):
    first, second, *_ = data_table(make_plan(sweep=SWEEP), rows).records
    assert float(first["difference"]) == pytest.approx(0.1 / 3)
    assert float(first["difference_low"]) < 0 < float(first["difference_high"])
    assert float(first["difference_p"]) == pytest.approx(2 / 3, abs=1e-3)
    assert (first["reference"], second["reference"]) == ("graphsage, fanout 1", "")
    assert (second["is_reference"], second["is_best"]) == ("True", "True")
    assert float(second["val_std"]) == pytest.approx(0.1)


def test_without_test_nodes_there_are_no_differences(make_score, make_plan):
    rows = judged(
        [
            Row(method=m, backbone="sage", scores=(make_score(None, val=v),), seeds=(0,))
            for m, v in (("full", 0.5), ("graphsage", 0.6))
        ]
    )
    assert [row.is_reference for row in rows] == [False, True]
    assert "difference" not in comparison_table(make_plan(), rows).header
    chosen = comparison_table(make_plan(), rows, ("difference",))
    assert [record["difference"] for record in chosen.records] == ["-", "-"]


def test_columns_are_chosen_by_name():
    assert choose_columns("test, settings,test") == ("test", "settings")
    assert choose_columns(None) is None
    with pytest.raises(InputError, match="unknown column 'tset'; choose one of best, test"):
        choose_columns("tset")
    with pytest.raises(InputError, match="no column was given"):
        choose_columns([])


def test_of_errors_the_least_is_best(make_score):
    def row(method, value, metric) -> Row:
        scores = (make_score(value, val=value, metric=metric),)
        return Row(method=method, backbone="sage", scores=scores, seeds=(0,))

    for metric, best in (("mae", "gas"), ("rmse", "gas"), ("r2", "full"), ("micro-f1", "full")):
        rows = judged([row("full", 0.9, metric), row("gas", 0.2, metric)])
        assert [found.method for found in rows if found.is_reference] == [best]
        assert rows[0].to_json()["metric"] == metric
    worse = judged([row("full", -3.0, "r2"), row("gas", -2.0, "r2")])
    assert worse[1].is_reference


def test_one_table_has_one_metric():
    own = {"full": {"metric": "macro-f1"}}
    with pytest.raises(InputError, match="metric is auto, macro-f1; one table has one metric"):
        Plan.make(dataset="debian", methods="full,graphsage", own=own)
