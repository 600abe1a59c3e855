"""One table, every form."""

import csv
import re

import pytest

from graphfm.experiments.latex import as_latex_text
from graphfm.experiments.tables import (
    BELOW,
    FILES,
    Column,
    Table,
    as_html,
    as_latex,
    as_markdown,
    as_text,
    write_tables,
)  # fmt: skip

COLUMNS = (
    Column("dataset", left=True, names_row=True, heads=True),
    Column("method", left=True, names_row=True),
    Column("test"),
    Column("speed", rank=1),
    Column("epochs", rank=2),
    Column("settings", left=True, place=FILES),
    Column("note", left=True, place=BELOW),
)
ROWS = (
    ("reddit", "full", "0.9000 ± 0.0100", "1,000", "5", "lr_1", "chosen & 50 % of it"),
    ("reddit", "gas", "0.8000", "-", "12", "", "chosen & 50 % of it"),
    ("flickr", "full", "-", "-", "-", "", "not defined: a|b; use --c"),
)
TABLE = Table(COLUMNS, ROWS, "reddit_1, 5 seeds", ("gas alone: lr 0.3",))


def test_where_there_is_room_every_column_is_shown():
    lines = as_text(TABLE).splitlines()
    assert lines[0].split() == ["dataset", "method", "test", "speed", "epochs"]
    assert lines[1] == "reddit   full    0.9000 ± 0.0100  1,000       5"
    assert lines[4:] == [
        "gas alone: lr 0.3",
        "reddit, full, reddit, gas: chosen & 50 % of it",
        "flickr, full: not defined: a|b; use --c",
    ]


def test_in_less_room_a_dataset_becomes_a_heading():
    lines = as_text(TABLE, 46).splitlines()
    assert lines[:6] == [
        "  method             test  speed  epochs",
        "reddit",
        "  full    0.9000 ± 0.0100  1,000       5",
        "  gas              0.8000      -      12",
        "flickr",
        "  full                  -      -       -",
    ]


@pytest.mark.parametrize("width", [60, 46, 38, 34, 28, 26])
def test_no_line_is_wider_than_the_room(width):
    lines = as_text(TABLE, width).splitlines()
    assert max(map(len, lines)) <= width
    told = re.sub(r"\s+", " ", " ".join(lines))
    for name in ("speed", "epochs"):
        header = lines[0].split()
        assert (name in header) != ("not shown here" in told and name in told.split("here:")[1])


def test_the_least_important_column_goes_first():
    assert as_text(TABLE, 38).splitlines()[0].split() == ["method", "test", "speed"]


def test_a_text_that_all_rows_share_names_none_of_them():
    rows = [("a", "same"), ("b", "same")]
    columns = (Column("method", names_row=True), Column("note", place=BELOW))
    assert as_text(Table(columns, tuple(rows))).splitlines()[-1] == "same"


def test_latex_can_be_pasted():
    text = as_latex(TABLE)
    assert r"\caption{reddit\_1, 5 seeds}" in text
    assert r"\begin{tabular}{llrrr}" in text
    assert r"reddit & full & $0.9000 \pm 0.0100$ & 1,000 & 5 \\" in text
    assert r"flickr & full & -- & -- & -- \\" in text
    assert r"chosen \& 50 \% of it" in text
    assert r"a\textbar{}b; use -{}-c" in text
    assert [text.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 1, 1]
    body = text.split(r"\toprule")[1].split(r"\bottomrule")[0]
    assert all(line.count(" & ") == 4 for line in body.splitlines() if line.endswith(r"\\"))


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("-0.0021 [-0.0050, +0.0008]", "$-0.0021$ $[-0.0050, +0.0008]$"),
        ("+0.5", "$+0.5$"),
        ("lr 1e-05, x-3", "lr 1e-05, x-3"),  # a minus inside a word is none
        ("<0.001", "$<$0.001"),
    ],
)
def test_numbers_with_a_sign_are_set_as_mathematics(text, latex):
    assert as_latex_text(text) == latex


def test_what_a_column_means_is_said_where_it_is_shown():
    columns = (Column("name", left=True), Column("test"), Column("p", rank=1, about="p: chance"))
    table = Table(columns, (("full", "0.5", "0.01"),))
    assert as_text(table).splitlines()[-1] == "p: chance"
    assert as_text(table, 12).splitlines()[-1].endswith("hold them)")
    assert "chance" not in as_text(table, 12)
    assert as_markdown(table).endswith("| full | 0.5 | 0.01 |\n\np: chance\n")
    assert r"\par\footnotesize p: chance" in as_latex(table)


def test_a_narrow_column_takes_the_room_that_a_wide_one_leaves():
    columns = (Column("a"), Column("wide column", rank=1), Column("b", rank=2))
    assert as_text(Table(columns, (("1", "2", "3"),)), 6).splitlines()[:2] == ["a  b", "1  3"]


def test_a_power_is_set_as_mathematics():
    assert "$S^{1}$ &" in as_latex(Table((Column("S^1"), Column("b")), (("x", "y"),)))


@pytest.mark.parametrize("letter", list("\\&%$#_{}~^<>|±"))
def test_no_letter_is_left_to_latex(letter):
    table = Table((Column("a"),), ((f"x{letter}y",),))
    body = as_latex(table).split(r"\midrule")[1].split(r"\bottomrule")[0].strip()
    cell = body.removesuffix(r" \\").removeprefix("x").removesuffix("y")
    assert cell != letter
    assert re.fullmatch(r"\\[a-z]+\{\}|\\[&%$#_{}]|\$[<>]\$|\$\\pm\$", cell)


def test_markdown_and_html_and_csv_hold_every_column(tmp_path):
    text = as_markdown(TABLE)
    assert text.startswith("reddit_1, 5 seeds\n\n| dataset | method |")
    assert r"not defined: a\|b" in text
    page = as_html(TABLE, "a < b")
    assert "<title>a &lt; b</title>" in page
    assert "<td class='left'>chosen &amp; 50 % of it</td>" in page
    write_tables(tmp_path, TABLE)
    assert {path.name for path in tmp_path.iterdir()} == {"table.md", "table.tex", "table.csv"}
    with (tmp_path / "table.csv").open(newline="", encoding="utf-8") as stream:
        assert [tuple(line) for line in csv.reader(stream)] == [TABLE.header, *ROWS]
