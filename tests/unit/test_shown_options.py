"""`help` lists the options that `train`, `compare` and `tune` take."""

import inspect

import pytest

import graphfm
from graphfm.experiments.compare.entries import SET_ELSEWHERE
from graphfm.experiments.compare.plan import Plan
from graphfm.experiments.tune import TunePlan
from graphfm.runs.options import train_options


@pytest.mark.parametrize(
    ("function", "without"),
    [
        (graphfm.train, set()),
        (graphfm.compare, set(SET_ELSEWHERE)),
        (graphfm.tune, set(SET_ELSEWHERE)),
    ],
)
def test_every_option_is_in_the_signature_and_in_the_help(function, without):
    shown, text = inspect.signature(function).parameters, inspect.getdoc(function)
    for name in train_options().keys() - without:
        assert name in shown
        assert f"\n    {name}: " in text
    for name in without:
        assert f"\n    {name}: " not in text


@pytest.mark.parametrize(
    ("function", "make"), [(graphfm.compare, Plan.make), (graphfm.tune, TunePlan.make)]
)
def test_a_function_shows_what_its_plan_takes(function, make):
    shown = inspect.signature(function).parameters
    for name, parameter in inspect.signature(make).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        assert name in shown
        if name not in ("dataset", "methods", "backbone", "device"):
            assert shown[name].default == parameter.default
            assert f"`{name}`" in function.__doc__
    assert not {"seed", "epochs", "max_seconds"} & shown.keys()
