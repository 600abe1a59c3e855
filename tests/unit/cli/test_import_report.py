"""What an import tells at its end."""

import re

import pytest

from tests.unit.cli.commands import graphfm

pytestmark = pytest.mark.usefixtures("here")


def test_the_report_counts_rows_that_occur_again_and_nodes_in_no_split(here):
    (here / "e.csv").write_text("source,target\na,b\nb,a\na,b\nb,c\na,a\na,a\n")
    (here / "n.csv").write_text("id,kind,fold\na,x,train\nb,y,val\nc,,\n")
    words = ["import", "e.csv", "--nodes", "n.csv", "--label", "kind", "--split", "fold", "--out"]
    ended = graphfm(*words, "both", "--undirected")
    assert re.search(r"rows of edges that occur again, dropped\s+3", ended.out)
    assert re.search(r"nodes in no split\s+1", ended.out)
    assert "graphfm train --dataset both" in ended.err
    ended = graphfm(*words, "directed")
    assert re.search(r"rows of edges that occur again, kept\s+2", ended.out)


def test_the_report_names_ten_features(here):
    names = [f"f{number}" for number in range(13)]
    (here / "n.csv").write_text(f"id,{','.join(names)}\na{',1' * 13}\nb{',2' * 13}\n")
    (here / "e.csv").write_text("source,target\na,b\n")
    words = [word for name in names for word in ("--feature", f"{name}=as-is")]
    ended = graphfm("import", "e.csv", "--nodes", "n.csv", *words, "--out", "g")
    assert "feature f9" in ended.out
    assert "feature f10" not in ended.out
    assert re.search(r"more features\s+3", ended.out)


def test_an_import_ends_with_what_a_training_would_lack(here):
    (here / "e.csv").write_text("source,target\na,b\n")
    (here / "n.csv").write_text("id,kind\na,x\nb,y\n")
    words = ["import", "e.csv", "--out"]
    ended = graphfm(*words, "a")
    assert "it has no labels (--label or --regress) and no split (--split or --shares)" in ended.err
    assert "graphfm info a" in ended.err
    assert "graphfm train" not in ended.err
    ended = graphfm(*words, "b", "--nodes", "n.csv", "--label", "kind")
    assert (
        "it has no split (--split or --shares), which a training needs; graphfm info b" in ended.err
    )


def test_skewed_labels_are_told_at_once(here, caplog):
    (here / "n.csv").write_text("id,kind\n" + "".join(f"n{n},same\n" for n in range(5)))
    (here / "e.csv").write_text("source,target\nn0,n1\n")
    graphfm("import", "e.csv", "--nodes", "n.csv", "--label", "kind", "--out", "g")
    assert "all labelled nodes have class same" in caplog.text
