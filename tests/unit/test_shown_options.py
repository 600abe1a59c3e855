"""`help` lists the options that `train` and `compare` take."""

import inspect

import pytest

import graphfm
from graphfm.experiments.compare.plan import SET_ELSEWHERE, Plan
from graphfm.runs.options import train_options


@pytest.mark.parametrize(
    ("function", "without"), [(graphfm.train, set()), (graphfm.compare, set(SET_ELSEWHERE))]
)
def test_every_option_is_in_the_signature_and_in_the_help(function, without):
    shown, text = inspect.signature(function).parameters, inspect.getdoc(function)
    for name in train_options().keys() - without:
        assert name in shown
        assert f"\n    {name}: " in text
    for name in without:
        assert f"\n    {name}: " not in text


def test_compare_shows_what_a_plan_takes():
    shown = inspect.signature(graphfm.compare).parameters
    for name, parameter in inspect.signature(Plan.make).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        assert name in shown
        if name not in ("dataset", "methods", "backbone", "device"):
            assert shown[name].default == parameter.default
            assert f"`{name}`" in graphfm.compare.__doc__
    assert not {"seed", "epochs", "max_seconds"} & shown.keys()
