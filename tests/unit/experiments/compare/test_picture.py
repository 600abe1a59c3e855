"""Pictures that can be read."""

import itertools
import random

import pytest

from graphfm.experiments.compare import Row, Sweep
from graphfm.experiments.compare.picture import draw_comparison, draw_sweep

MANY = [f"method-number-{number}" for number in range(17)]


def make_rows(make_score, spread: float) -> list[Row]:
    rng = random.Random(0)
    rows = []
    for name in MANY:
        test, seconds, size = 0.8 + spread * rng.gauss(0, 1), rng.uniform(1, 50), rng.gauss(600, 9)
        scores = [
            make_score(test + rng.gauss(0, 0.003), seconds_to_best=seconds, peak_bytes=int(size))
            for _ in range(3)
        ]
        rows.append(Row(method=name, backbone="sage", value=None, scores=tuple(scores)))
    return rows


@pytest.mark.parametrize("spread", [0.05, 0.002])
def test_the_names_of_17_methods_do_not_hide_each_other(tmp_path, make_score, spread):
    panels = draw_comparison(make_rows(make_score, spread), "title", tmp_path / "c.png")
    assert [len(names) for names in panels] == [17, 17]
    for names in panels:
        assert all(a.overlap(b) == 0 for a, b in itertools.combinations(names, 2))
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_rows_without_a_score_are_left_out(tmp_path, make_score):
    rows = [
        Row(method="full", backbone="sage", value=None, scores=(make_score(None),)),
        Row(method="gas", backbone="sage", value=None, scores=(), note="not defined"),
    ]
    panels = draw_comparison(rows, "title", tmp_path / "c.png")
    assert [len(names) for names in panels] == [1, 1]


@pytest.mark.parametrize("values", [(8, 1, 64), ("metis", "random"), (True, False), (0.5,)])
def test_a_sweep_of_anything_is_drawn(tmp_path, make_score, values):
    rows = [
        Row(method="gas", backbone="sage", value=value, scores=(make_score(), make_score(0.6)))
        for value in values
    ]
    rows.append(Row(method="full", backbone="sage", value=None, scores=(make_score(),)))
    draw_sweep(rows, Sweep("name", values), "title", tmp_path / "s.png")
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")
    panels = draw_comparison(rows, "title", tmp_path / "c.png")
    assert [len(names) for names in panels] == [2, 2]  # one name a method, however many values
