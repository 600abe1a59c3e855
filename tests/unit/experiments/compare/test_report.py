"""The table, as text and Markdown."""

import re

import pytest

from graphfm.experiments.compare import Row, Sweep
from graphfm.experiments.compare.report import as_markdown, as_text, describe, table


@pytest.fixture
def rows(make_score) -> list[Row]:
    scores = tuple(make_score(test, seconds_to_best=s) for test, s in ((0.5, 1.0), (0.7, 3.0)))
    return [
        Row(method="full", backbone="sage", value=None, scores=scores),
        Row(method="graphsage", backbone="sage", value=None, scores=scores[:1]),
        Row(method="gas", backbone="sage", value=None, scores=(), note="not defined: a|b; use c"),
    ]


def test_means_and_deviations(rows):
    record = rows[0].to_json()
    assert record["test"] == pytest.approx(0.6)
    assert record["test_std"] == pytest.approx(0.02**0.5)  # of a sample: two values, one freedom
    assert (record["seconds_to_best"], record["peak_bytes"]) == (2.0, 300 * 2**20)
    assert (record["seeds"], record["tests"]) == (2, [0.5, 0.7])
    assert rows[1].to_json()["test_std"] is None
    assert rows[2].to_json()["test"] is None


def test_columns_are_aligned_and_numbers_rounded(rows):
    header, full, graphsage, gas = as_text(table(rows)).splitlines()
    assert re.split(r"\s{2,}", header) == [
        "method", "test", "validation", "to best, s", "epoch, s", "memory, MiB", "nodes/step",
        "edges/step", "epochs", "note",
    ]  # fmt: skip
    assert re.split(r"\s{2,}", full) == [
        "full", "0.6000 ± 0.1414", "0.6000", "2", "0.25", "300", "100", "1,000", "5",
    ]  # fmt: skip
    assert re.split(r"\s{2,}", graphsage)[1] == "0.5000"
    assert re.split(r"\s{2,}", gas) == ["gas", *["-"] * 8, "not defined: a|b"]
    assert full.index("1,000") + 5 == header.index("edges/step") + 10


def test_there_is_no_column_for_notes_without_any(rows):
    assert table(rows[:2])[0][-1] == "epochs"


def test_a_long_note_is_cut(rows):
    row = Row(method="gas", backbone="sage", value=None, scores=(), note="n" * 500)
    assert len(table([row])[1][-1]) == 100


def test_markdown_keeps_bars_apart(rows):
    header, rule, *body = as_markdown(table(rows)).splitlines()
    assert header.startswith("| method | test | validation |")
    assert rule == "|---|" + "---:|" * 8 + "---|"
    assert body[2].endswith(r"| not defined: a\|b |")


def test_a_sweep_is_a_column(make_score):
    rows = [
        Row(method=method, backbone="sage", value=value, scores=(make_score(),))
        for method, value in (("full", None), ("graphsage", 4))
    ]
    cells = table(rows, "fanout")
    assert [line[1] for line in cells] == ["fanout", "-", "4"]


def test_one_line_says_what_all_rows_share(make_plan):
    assert describe(make_plan(budget_epochs=7)) == (
        "synthetic:small:0.02, sage of 2 layers, at most 7 epochs, patience 10, 2 seeds, on cpu"
    )
    swept = make_plan(seeds=1, budget_seconds=1.5, sweep=Sweep("layers", (1, 2)))
    assert describe(swept) == (
        "synthetic:small:0.02, sage, at most 1.5 s, patience 10, 1 seed, on cpu"
    )


def test_without_test_nodes_validation_stands_in_for_pictures(make_score):
    scores = (make_score(None, val=0.4), make_score(None, val=0.6))
    row = Row(method="full", backbone="sage", value=None, scores=scores)
    assert (row.test, row.score, row.score_std) == (None, 0.5, pytest.approx(0.02**0.5))
