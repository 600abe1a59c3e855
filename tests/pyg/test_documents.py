"""The table of docs/pyg.md says what the certificates say."""

from pathlib import Path

import pytest

from graphfm.pyg.certificate import certify
from graphfm.pyg.whole_graph import edge_data
from tests.pyg.harness import examined
from tests.pyg.zoo import ZOO

LINES = (Path(__file__).parents[2] / "docs" / "pyg.md").read_text().splitlines()
TABLE = [[cell.strip() for cell in line.strip("|").split("|")] for line in LINES if line[:1] == "|"]
GROUPS = [cell.replace("`", "").split(", ") for cell in TABLE[0][1:]]
ROWS = {
    name: cells
    for convs, *cells in TABLE[2:]
    for name in convs.partition(" (")[0].split(", ")
    if name in ZOO
}


def test_the_table_has_most_convolutions():
    assert len(ROWS) > 30
    assert all(set(cells) <= {"yes", "biased", "no"} for cells in ROWS.values())


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_true(name):
    model, graph = examined(name)
    data = {key: values[:64] for key, values in edge_data(graph).items()}
    found = certify(model, graph.num_features, data)
    for group, cell in zip(GROUPS, ROWS[name], strict=True):
        allowed = {method not in found.refused for method in group}
        assert allowed == {cell != "no"}, group
        assert (cell == "biased") == any(method in found.warnings for method in group), group
