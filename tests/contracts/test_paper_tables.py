"""Every number that the paper prints has a recipe, and no recipe has a number that it does not.

`paper_tables.json` was taken from the paper's TeX file by a script. Cells with `--` are not in it.
"""

import json
from pathlib import Path

from graphfm.recipes import recipes
from graphfm.recipes.recipe import Recipe
from tests.unit.cli.commands import graphfm

PAPER = json.loads((Path(__file__).parent / "paper_tables.json").read_text())
ROWS = {
    "vr-gcn": "VR-GCN", "fastgcn": "FastGCN", "graphsaint": "GraphSAINT",
    "cluster-gcn": "Cluster-GCN", "sign": "SIGN",
    "full": "GraphSAGE", "graphsage": "GraphSAGE", "graphfm-ib": "GraphFM-IB",
    "gas": "GNNAutoScale", "graphfm-ob": "GraphFM-OB",
}  # fmt: skip
BASELINES = ("vr-gcn", "fastgcn", "graphsaint", "cluster-gcn", "sign")
IN_THE_TEXT = "table2-sage-arxiv-graphsage"


def of_table(name: str) -> list[Recipe]:
    return [recipe for recipe in recipes().values() if recipe.table == name]


def gather(pairs):
    """A dictionary in which no key stands for two recipes."""
    found = {}
    for key, value in pairs:
        assert key not in found, key
        found[key] = value
    return found


def test_table_2_is_whole():
    def cell(recipe):
        row, run = ROWS[recipe.run.method], recipe.run
        row = row if run.method in BASELINES else f"{run.backbone.upper()} {row}"
        numbers = (recipe.paper, recipe.paper_std)
        return (row, run.dataset), [number for number in numbers if number is not None]

    printed = [recipe for recipe in of_table("table2") if recipe.paper is not None]
    ours = gather(cell(recipe) for recipe in printed if recipe.name != IN_THE_TEXT)
    theirs = {(row, data): v for row, cells in PAPER["table2"].items() for data, v in cells.items()}
    assert ours == theirs
    assert len(theirs) == 58
    text = recipes()[IN_THE_TEXT]
    assert text.run.method_settings["fanout"] == (25, 10)
    printed_in_text = PAPER["text"]["GraphSAGE [25,10]"][text.run.dataset]
    assert [text.paper, text.paper_std] == printed_in_text


def test_table_3_is_whole():
    def cell(recipe):
        run = recipe.run
        fanout = list(run.method_settings.get("fanout", ()))
        sizes = str(fanout).replace(" ", "")
        if run.method == "full":
            sizes = f"{run.backbone_settings['layers']} layer full-batch"
        else:
            assert len(fanout) == run.backbone_settings["layers"]
        numbers = [recipe.paper, recipe.paper_mebibytes, recipe.paper_seconds]
        return (run.dataset, f"{ROWS[run.method]} {sizes}"), recipe.paper_instead or numbers

    theirs = {(data, row): v for data, rows in PAPER["table3"].items() for row, v in rows.items()}
    assert gather(map(cell, of_table("table3"))) == theirs
    assert len(theirs) == 24


def test_table_4_is_whole():
    ours = gather(
        ((recipe.run.dataset, ROWS[recipe.run.method]), list(recipe.paper_staleness))
        for recipe in of_table("table4")
        if recipe.paper_staleness
    )
    assert ours == {
        (data, row): v for data, rows in PAPER["table4"].items() for row, v in rows.items()
    }
    for recipe in of_table("table4"):
        layers = recipe.run.backbone_settings["layers"]
        assert len(recipe.paper_staleness) in (0, layers - 1)


def test_a_number_of_one_table_is_claimed_by_no_recipe_of_another():
    """Deviation, memory, seconds and staleness too: each belongs to its table alone."""
    for recipe in recipes().values():
        claimed = {
            name for name, value in vars(recipe).items() if name.startswith("paper") and value
        }
        allowed = {
            "table2": {"paper", "paper_std"},
            "table3": {"paper", "paper_mebibytes", "paper_seconds", "paper_instead"},
            "table4": {"paper_staleness"},
            "figure2": set(),
        }[recipe.table]
        assert claimed <= allowed, recipe.name


def test_the_list_as_json_has_every_number_and_where_the_settings_come_from():
    listed = {record["name"]: record for record in graphfm("recipes", "--json").json}
    assert listed.keys() == recipes().keys()
    for name, recipe in recipes().items():
        record = listed[name]
        assert (record["source"], record["chosen"]) == (recipe.source, list(recipe.chosen))
        for field in ("paper", "paper_std", "paper_mebibytes", "paper_seconds", "paper_instead"):
            assert record[field] == getattr(recipe, field)
        assert record["paper_staleness"] == list(recipe.paper_staleness)
        assert record["run"]["method"] == recipe.run.method


def test_the_list_says_where_settings_come_from_and_which_are_chosen():
    lines = dict(line.split(maxsplit=1) for line in graphfm("recipes").out.splitlines())
    assert lines.keys() == recipes().keys()
    assert lines["table2-gcnii-yelp-gas"] == (
        "gcnii, GNNAutoScale, yelp: 0.6514 in the paper; settings: GNNAutoScale's released "
        "large_benchmark/conf/model/gcn2.yaml"
    )
    assert "0.4810 ± 0.0050 in the paper; settings: " in lines["table2-cluster-gcn-flickr"]
    assert "; chosen here: parts of about" in lines["table2-cluster-gcn-flickr"]
