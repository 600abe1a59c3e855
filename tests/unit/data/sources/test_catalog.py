"""The table of datasets agrees with itself and with the shapes of the synthetic ones."""

import pytest

from graphfm.data.sources.catalog import CATALOG, find
from graphfm.data.sources.raw import FORMS
from graphfm.data.synthetic import SHAPES

NAMES = ["flickr", "reddit", "yelp", "arxiv", "products", "papers100m"]


def test_the_datasets_of_the_paper_are_there():
    assert list(CATALOG) == NAMES
    assert [name for name, source in CATALOG.items() if source.paper] == NAMES[:-1]


@pytest.mark.parametrize("name", NAMES)
def test_every_dataset_says_where_its_files_come_from(name):
    source = CATALOG[name]
    assert source.form in FORMS
    assert all(file.url.startswith(("http://snap.", "https://drive.")) for file in source.downloads)
    paths = [file.path for file in source.downloads]
    assert paths == list(source.files) or source.archive is not None
    assert len({file.url for file in source.downloads}) == len(paths)
    assert all(".." not in path and not path.startswith("/") for path in (*paths, *source.files))


@pytest.mark.parametrize("name", NAMES)
def test_statistics_agree_with_the_synthetic_twin(name):
    source, shape = CATALOG[name], SHAPES[name]
    statistics = source.paper or source.published
    assert (statistics.nodes, statistics.features) == (shape.num_nodes, shape.num_features)
    assert statistics.classes == shape.num_classes
    assert shape.num_edges in (statistics.edges, 2 * statistics.edges)
    assert statistics.split == pytest.approx(shape.split)
    assert sum(source.published.split) == pytest.approx(
        1 if name != "papers100m" else 0.0139, rel=0.01
    )


@pytest.mark.parametrize("name", NAMES)
def test_raw_has_no_preparation(name):
    source = find(f"{name}:raw")
    assert (source.base, source.preparation.edges, source.preparation.standardised) == (
        name, "given", False,
    )  # fmt: skip
