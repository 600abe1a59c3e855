"""What is searched, and what is not."""

import pytest

from graphfm.experiments.tune.space import (
    Choice,
    Range,
    rounded,
    settings_of,
    size_of,
    space_of,
    with_settings,
)
from graphfm.methods import METHODS
from graphfm.runs.run import Run
from tests.own_module import write_module

SHARED = {"lr", "weight_decay", "schedule", "dropout"}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_searched_in_the_same_way_and_holds_its_defaults(method):
    run = Run.make(method=method, device="cpu")
    space, known = space_of(run, ()), settings_of(run)
    assert {name for name in SHARED if name in known} <= space.keys()
    assert space["lr"] == Range(5e-4, 2e-2, log=True)
    for name, dimension in space.items():
        if isinstance(dimension, Choice):
            assert known[name] in dimension.values
            for value in dimension.values:
                with_settings(run, {name: value})
        else:
            assert dimension.low <= known[name] <= dimension.high


@pytest.mark.parametrize("method", METHODS)
def test_the_cost_of_a_step_is_never_searched(method):
    space = space_of(Run.make(method=method, device="cpu"), ())
    assert not space.keys() & {"fanout", "layers", "hidden", "parts", "nodes_per_layer", "depth"}


def test_methods_and_networks_add_their_own():
    assert "beta" in space_of(Run.make(method="graphfm-ib"), ())
    assert "parts_per_batch" in space_of(Run.make(method="gas"), ())
    assert {"alpha", "theta"} <= space_of(Run.make(backbone="gcnii"), ()).keys()
    assert "dropout" not in space_of(Run.make(method="sgc"), ())  # its network has none


def test_what_is_fixed_is_not_searched():
    run = Run.make(method="graphfm-ib", lr=0.5, beta=0.3)
    assert space_of(run, {"lr", "beta"}).keys() == {
        "weight_decay", "schedule", "dropout", "batch_size",
    }  # fmt: skip
    assert space_of(run, ())["lr"] == Range(5e-4, 0.5, log=True)  # a default is never outside


def test_values_that_a_run_would_refuse_are_left_out():
    run = Run.make(method="gas", parts=30)
    assert space_of(run, ())["parts_per_batch"] == Choice((None, 10))
    assert "parts_per_batch" not in space_of(Run.make(method="gas", parts=4), ())


def test_a_method_of_ones_own_has_what_every_training_has(tmp_path, monkeypatch):
    write_module(tmp_path, "searched_module")
    monkeypatch.syspath_prepend(tmp_path)
    run = Run.make(method="searched_module:smoothed")
    assert space_of(run, ()).keys() == SHARED


def test_a_space_without_numbers_is_finite():
    run = Run.make(method="full")
    assert size_of(space_of(run, ())) == float("inf")
    assert size_of(space_of(run, {"lr", "dropout"})) == 8
    assert size_of({}) == 1


def test_settings_are_short_numbers_and_reach_their_owners():
    settings = rounded({"lr": 0.00123456, "schedule": "cosine", "beta": 0.55555, "batch_size": 256})
    assert settings == {"lr": 0.00123, "schedule": "cosine", "beta": 0.556, "batch_size": 256}
    run = with_settings(Run.make(method="graphfm-ib"), settings)
    assert (run.training.lr, run.training.schedule) == (0.00123, "cosine")
    assert (run.method_settings["beta"], run.method_settings["batch_size"]) == ((0.556,), 256)
