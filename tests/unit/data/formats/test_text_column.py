"""Texts in two arrays are the texts that were put there."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfm.data.formats import text_column
from graphfm.data.formats.text_column import NumberColumn, TextColumn, as_text_arrays

TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), max_size=12)
PLACES = st.one_of(st.none(), st.integers(-14, 14))


@given(texts=TEXTS, start=PLACES, stop=PLACES, step=st.sampled_from([None, 1, 2, -1]))
@settings(max_examples=200, deadline=None)
def test_ranges_of_texts_are_those_of_a_tuple(texts, start, stop, step):
    column, place = TextColumn(*as_text_arrays(texts)), slice(start, stop, step)
    assert column[place] == tuple(texts)[place]
    assert list(column) == texts
    assert [column[row] for row in range(-len(texts), len(texts))] == [*texts, *texts]


@pytest.mark.parametrize(
    "column", [TextColumn(*as_text_arrays(["1"] * 9)), NumberColumn(np.ones(9, int))]
)
def test_texts_are_iterated_in_pieces(column, monkeypatch):
    monkeypatch.setattr(text_column, "AT_ONCE", 4)
    assert list(column) == ["1"] * 9


def test_damaged_offsets_read_nothing_beyond_the_bytes():
    content = np.frombuffer(b"abc", np.uint8)
    column = TextColumn(np.array([0, 99, -5, 2, 3]), content)
    assert column[:] == ("abc", "", "ab", "c")
    with pytest.raises(IndexError):
        column[4]


def test_a_column_shows_its_first_texts():
    column = TextColumn(*as_text_arrays(["a", "b", "c", "d"]))
    assert repr(column) == "TextColumn('a', 'b', 'c', ...; 4 in all)"
    assert repr(NumberColumn(np.array([7]))) == "NumberColumn('7'; 1 in all)"
