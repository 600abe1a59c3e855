"""The table of a comparison, and what its rows say."""

import re

import pytest

from graphfm.experiments.compare import Row, Sweep
from graphfm.experiments.compare.report import comparison_table, describe
from graphfm.experiments.tables import as_markdown, as_text


@pytest.fixture
def rows(make_score) -> list[Row]:
    scores = tuple(make_score(test, seconds_to_best=s) for test, s in ((0.5, 1.0), (0.7, 3.0)))
    return [
        Row(method="full", backbone="sage", scores=scores, seeds=(0, 1)),
        Row(method="graphsage", backbone="sage", scores=scores[:1], seeds=(1,)),
        Row(method="gas", backbone="sage", scores=(), seeds=(), note="not defined: a|b; use c"),
    ]


def test_means_and_deviations(rows):
    record = rows[0].to_json()
    assert record["test"] == pytest.approx(0.6)
    assert record["test_std"] == pytest.approx(0.02**0.5)  # of a sample: two values, one freedom
    assert (record["seconds_to_best"], record["peak_bytes"]) == (2.0, 300 * 2**20)
    assert (record["seeds"], record["tests"]) == (2, [0.5, 0.7])
    assert rows[1].to_json()["test_std"] is None
    assert rows[2].to_json()["test"] is None


def test_columns_are_aligned_and_numbers_rounded(rows, make_plan):
    header, full, graphsage, gas, note = as_text(comparison_table(make_plan(), rows)).splitlines()
    assert re.split(r"\s{2,}", header) == [
        "method", "test", "validation", "to best, s", "epoch, s", "memory, MiB", "nodes/step",
        "edges/step", "epochs",
    ]  # fmt: skip
    assert re.split(r"\s{2,}", full) == [
        "full", "0.6000 ± 0.1414", "0.6000 ± 0.0000", "2", "0.25", "300", "100", "1,000", "5",
    ]  # fmt: skip
    assert re.split(r"\s{2,}", graphsage)[1] == "0.5000"
    assert re.split(r"\s{2,}", gas) == ["gas", *["-"] * 8]
    assert note == "gas: not defined: a|b; use c"
    assert full.index("1,000") + 5 == header.index("edges/step") + 10


def test_80_columns_hold_what_matters_and_say_what_they_do_not(rows, make_plan):
    lines = as_text(comparison_table(make_plan(), rows), 80).splitlines()
    assert max(map(len, lines)) <= 80
    assert re.split(r"\s{2,}", lines[0]) == [
        "method", "test", "validation", "to best, s", "epoch, s", "memory, MiB",
    ]  # fmt: skip
    assert lines[-1] == "not shown here: nodes/step; edges/step; epochs (the files hold them)"


def test_files_hold_whole_notes(make_plan):
    row = Row(method="gas", backbone="sage", scores=(), seeds=(), note="n" * 500)
    assert f"| {'n' * 500} |" in as_markdown(comparison_table(make_plan(), [row]))


def test_markdown_keeps_bars_apart(rows, make_plan):
    caption, _, header, rule, *body = as_markdown(comparison_table(make_plan(), rows)).splitlines()
    assert caption == describe(make_plan())
    assert header.startswith("| method | test | validation |")
    assert rule == "|---|" + "---:|" * 8 + "---|---|"
    assert body[2].endswith(r"| not defined: a\|b; use c |")


def test_a_sweep_is_a_column(make_score, make_plan):
    rows = [
        Row(
            method=method, backbone="sage", values={"fanout": value}, scores=(make_score(),),
            seeds=(0,),
        )
        for method, value in (("full", None), ("graphsage", 4))
    ]  # fmt: skip
    table = comparison_table(make_plan(sweep=Sweep("fanout", (4,))), rows)
    assert [record["fanout"] for record in table.records] == ["-", "4"]


def test_a_network_of_its_own_is_in_the_settings(make_plan):
    (row,) = make_plan("sgc", 1, layers=3).rows({})
    assert row.settings.startswith("network sgc")


def test_one_line_says_what_all_rows_share(make_plan):
    assert describe(make_plan(budget_epochs=7)) == (
        "synthetic:small:0.02, sage of 2 layers, at most 7 epochs, patience 50, 2 seeds, on cpu"
    )
    swept = make_plan(seeds=1, budget_seconds=1.5, sweep=Sweep("layers", (1, 2)))
    assert describe(swept) == (
        "synthetic:small:0.02, sage, at most 1.5 s, patience 50, 1 seed, on cpu"
    )


def test_without_test_nodes_validation_stands_in_for_pictures(make_score):
    scores = (make_score(None, val=0.4), make_score(None, val=0.6))
    row = Row(method="full", backbone="sage", scores=scores, seeds=(0, 1))
    assert (row.test, row.score, row.score_std) == (None, 0.5, pytest.approx(0.02**0.5))
