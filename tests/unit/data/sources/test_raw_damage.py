"""Published files of any form that are damaged are refused, and nothing is left."""

import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfm import InputError
from graphfm.data.sources import build as building
from graphfm.data.sources import mapped_folder as stored
from graphfm.data.sources.raw import base
from tests.unit.data.sources.refusals import refused

FORMS = ("graphsaint", "ogb-tables", "ogb-arrays")


@pytest.mark.parametrize("form", FORMS)
def test_every_file_is_needed(published, form, tmp_path):
    example = published.example()
    for name in published.source(form).files:
        published.write(form, tmp_path, example)
        (tmp_path / name).unlink()
        refused(published, form, tmp_path, f"{name}: no such file")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kept", [0.0, 0.3, 0.7, 0.98])
def test_every_file_cut_short_is_refused(published, form, tmp_path, kept):
    example = published.example(20, 60)
    for name in published.source(form).files:
        published.write(form, tmp_path, example)
        path = tmp_path / name
        content = path.read_bytes()
        path.write_bytes(content[: min(int(len(content) * kept), len(content) - 1)])
        refused(published, form, tmp_path, path.name)


@pytest.mark.parametrize("form", FORMS)
def test_a_web_page_in_place_of_any_file_is_refused(published, form, tmp_path):
    example = published.example()
    for name in published.source(form).files:
        published.write(form, tmp_path, example)
        (tmp_path / name).write_text("<!DOCTYPE html><html><title>Google Drive</title></html>")
        refused(published, form, tmp_path, f"{name} is a web page, not data")


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(FORMS), st.integers(0, 7), st.integers(0, 1 << 20), st.integers(1, 255))
def test_a_flipped_byte_is_refused_or_harmless(published, form, file, place, flip):
    """Whatever it does, it is a graph or one line."""
    example = published.example()
    with tempfile.TemporaryDirectory() as name:
        folder, source = Path(name), published.source(form)
        published.write(form, folder, example)
        path = folder / source.files[file % len(source.files)]
        content = bytearray(path.read_bytes())
        content[place % len(content)] ^= flip
        path.write_bytes(content)
        with suppress(InputError):
            assert stored.open_graph(building.build(source, folder)).num_nodes > 0
        assert not (folder / "graph.unfinished").exists()


def test_more_nodes_than_memory_are_refused(published, tmp_path, monkeypatch):
    published.saint(tmp_path, published.example())
    monkeypatch.setattr(building, "available_memory", lambda: 100)
    refused(published, "graphsaint", tmp_path, "building 6 nodes takes more memory")


def test_a_full_disk_is_not_taken_for_a_damaged_file():
    with pytest.raises(OSError, match="No space left"), base.reading(Path("x")):
        raise OSError(28, "No space left on device")
