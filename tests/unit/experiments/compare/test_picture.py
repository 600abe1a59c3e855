"""Pictures that can be read."""

import itertools
import random
from typing import Any

import pytest

from graphfm.experiments.compare import Row, Sweep
from graphfm.experiments.compare.curve_picture import draw_curves
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
        rows.append(Row(method=name, backbone="sage", scores=tuple(scores), seeds=(0, 1, 2)))
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
        Row(method="full", backbone="sage", scores=(make_score(None),), seeds=(0,)),
        Row(method="gas", backbone="sage", scores=(), seeds=(), note="not defined"),
    ]
    panels = draw_comparison(rows, "title", tmp_path / "c.png")
    assert [len(names) for names in panels] == [1, 1]


@pytest.mark.parametrize("values", [(8, 1, 64), ("metis", "random"), (True, False), (0.5,)])
def test_a_sweep_of_anything_is_drawn(tmp_path, make_score, values):
    rows = [
        Row(
            method="gas", backbone="sage", values={"name": value}, seeds=(0, 1),
            scores=(make_score(), make_score(0.6)),
        )
        for value in values
    ]  # fmt: skip
    full = {"method": "full", "backbone": "sage", "values": {"name": None}, "seeds": (0,)}
    rows.append(Row(**full, scores=(make_score(),)))
    draw_sweep(rows, [Sweep("name", values)], "title", tmp_path / "s.png")
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")
    panels = draw_comparison(rows, "title", tmp_path / "c.png")
    assert [len(names) for names in panels] == [2, 2]  # one name a method, however many values


@pytest.fixture
def drawn(monkeypatch) -> list[dict[str, Any]]:
    """Every line that is drawn."""
    lines = []

    def plot(axes, x, y, **look):
        lines.append({"x": list(x), "y": list(y), **look})

    def level(axes, y, **look):
        lines.append({"y": y, **look})

    monkeypatch.setattr("matplotlib.axes.Axes.plot", plot)
    monkeypatch.setattr("matplotlib.axes.Axes.axhline", level)
    monkeypatch.setattr("matplotlib.figure.Figure.legend", lambda *a, **b: None)
    return lines


def grid_row(make_score, method: str, lr: float | None, fanout: int | None, val: float) -> Row:
    values, scores = {"lr": lr, "fanout": fanout}, (make_score(1 - val, val=val),)
    return Row(method=method, backbone="sage", values=values, scores=scores, seeds=(0,))


def test_a_grid_has_a_line_for_each_method_and_other_value(tmp_path, make_score, drawn):
    cells = [(0.1, 1, 0.5), (0.01, 1, 0.4), (0.1, 2, 0.7), (0.01, 2, 0.6)]
    rows = [grid_row(make_score, "graphsage", *cell) for cell in cells]
    rows += [grid_row(make_score, "full", lr, None, 0.3) for lr in (0.1, 0.01)]
    sweeps = [Sweep("lr", (0.1, 0.01)), Sweep("fanout", (1, 2))]
    draw_sweep(rows, sweeps, "title", tmp_path / "s.png")
    assert [(line["label"], line["x"], line["y"]) for line in drawn] == [  # validation, not test
        ("graphsage, fanout 1", [0.01, 0.1], [0.4, 0.5]),
        ("graphsage, fanout 2", [0.01, 0.1], [0.6, 0.7]),
        ("full", [0.01, 0.1], [0.3, 0.3]),
    ]
    looks = [(line["color"], line["linestyle"]) for line in drawn]
    assert looks[0][0] == looks[1][0] != looks[2][0]
    assert len(set(looks)) == 3


def test_a_method_without_the_first_option_is_level(tmp_path, make_score, drawn):
    rows = [grid_row(make_score, "full", None, fanout, 0.3) for fanout in (1, 2)]
    draw_sweep(rows, [Sweep("lr", (0.1,)), Sweep("fanout", (1, 2))], "title", tmp_path / "s.png")
    assert [(line["label"], line["y"]) for line in drawn] == [
        ("full, fanout 1", 0.3), ("full, fanout 2", 0.3),
    ]  # fmt: skip
    assert drawn[0]["linestyle"] != drawn[1]["linestyle"]


CURVES = (
    {"epoch": [1, 2, 3], "loss": [3, 2, 1], "val": [0.1, None, 0.3], "lr": [1] * 3,
     "seconds": [1.0, 1.0, 2.0]},
    {"epoch": [1, 2, 3, 4], "loss": [3, 2, 1, 1], "val": [0.3, 0.4, 0.5, 0.6], "lr": [1] * 4,
     "seconds": [3.0, 1.0, 2.0, 1.0]},
)  # fmt: skip


def curve_row(make_score, val: float, curves=CURVES, **values) -> Row:
    scores = (make_score(val=val), make_score(val=val, prepare_seconds=2.0))
    what = {"method": "gas", "backbone": "sage", "values": values, "seeds": (0, 1)}
    return Row(**what, scores=scores, curves=curves)


def test_curves_are_all_seeds_and_their_mean_over_seconds(tmp_path, make_score, drawn):
    old = Row(method="full", backbone="sage", scores=(make_score(),), seeds=(0,))  # without a curve
    draw_curves([curve_row(make_score, 0.5), old], "title", tmp_path / "c.png")
    first, second, mean = drawn
    assert (first["x"], first["y"]) == ([2.0, 5.0], [0.1, 0.3])  # a second of preparation
    assert (second["x"], second["y"]) == ([5.0, 6.0, 8.0, 9.0], [0.3, 0.4, 0.5, 0.6])
    assert (mean["label"], mean["x"]) == ("gas", [3.5, 6.5])  # epochs that both evaluated
    assert mean["y"] == pytest.approx([0.2, 0.4])
    assert first["linewidth"] < mean["linewidth"]


def test_of_a_sweep_the_curves_of_the_best_value_are_drawn(tmp_path, make_score, drawn):
    rows = [curve_row(make_score, val, parts=parts) for val, parts in ((0.5, 2), (0.6, 4))]
    draw_curves(rows, "title", tmp_path / "c.png")
    assert [line["label"] for line in drawn if "label" in line] == ["gas, parts 4"]


def test_trainings_of_older_versions_have_no_curves(tmp_path, make_score, drawn):
    best = curve_row(make_score, 0.9, curves=(None, None), parts=2)
    mixed = curve_row(make_score, 0.5, curves=(None, CURVES[1]), parts=4)
    draw_curves([best, mixed], "title", tmp_path / "c.png")
    seed, mean = drawn
    assert (mean["label"], mean["y"]) == ("gas, parts 4", seed["y"])
