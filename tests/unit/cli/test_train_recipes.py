"""graphfm train --recipe takes the settings of a row of the paper."""

import pytest

from tests.unit.cli.commands import SMALL, graphfm

pytestmark = pytest.mark.usefixtures("here")


@pytest.mark.parametrize("own", [True, False])
def test_a_recipe_on_its_own_graph_is_held_against_the_paper(monkeypatch, own):
    ran = []
    monkeypatch.setattr("graphfm.cli.train._train", lambda options, *_, **__: ran.append(options))
    other = () if own else ("--dataset", SMALL)
    ended = graphfm("train", "--recipe", "table2-gcn-flickr-graphfm-ob", "--epochs", 3, *other)
    assert (ended.code, ran[0]["epochs"], ran[0]["beta"]) == (0, 3, (0.1,))
    assert ran[0]["dataset"] == ("flickr" if own else SMALL)
    said = "gcn, GraphFM-OB on flickr has 0.5446 in the paper\n"
    assert ended.err == (said if own else "")


def test_another_method_than_the_recipes_is_said_and_not_held_against_the_paper(monkeypatch):
    ran = []
    monkeypatch.setattr("graphfm.cli.train._train", lambda options, *_, **__: ran.append(options))
    ended = graphfm("train", "--recipe", "table2-gcn-flickr-graphfm-ob", "--method", "gas")
    assert (ended.code, ran[0]["method"], "beta" in ran[0]) == (0, "gas", False)
    assert ended.err.startswith(
        "table2-gcn-flickr-graphfm-ob is a run of graphfm-ob on gcn; with gas on gcn it is not a "
        "row of the paper, and "
    )
    assert "beta" in ended.err
    assert ended.err.endswith(" are left out\n")
    assert ended.err.count("\n") == 1


def test_what_a_recipe_leaves_out_may_be_given(monkeypatch):
    ran = []
    monkeypatch.setattr("graphfm.cli.train._train", lambda options, *_, **__: ran.append(options))
    ended = graphfm("train", "--recipe", "table2-gcn-flickr-graphfm-ob", "--backbone", "mlp")
    assert ran[0]["backbone"] == "mlp"
    assert "with graphfm-ob on mlp it is not a row of the paper" in ended.err
    graphfm("train", "--recipe", "table2-gcn-flickr-graphfm-ob", "--beta", "0.7", "--lr", 0.5)
    assert (ran[1]["beta"], ran[1]["lr"]) == ((0.7,), 0.5)
