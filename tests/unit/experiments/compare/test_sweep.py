"""A sweep, as it is typed."""

import pytest

from graphfm import InputError
from graphfm.experiments.compare import Sweep


@pytest.mark.parametrize(
    ("text", "name", "values"),
    [
        ("fanout=1,2,4", "fanout", (1, 2, 4)),
        ("beta=0.1, 1e-3,1", "beta", (0.1, 0.001, 1)),
        ("partition=metis,random", "partition", ("metis", "random")),
        ("exact-first-hop=yes,false", "exact_first_hop", (True, False)),
        ("--batch-size=64", "batch_size", (64,)),
        ("fanout=2,1,2", "fanout", (2, 1)),
        ("lr=nan,inf", "lr", ("nan", "inf")),  # names, which no number takes
    ],
)
def test_values_are_what_they_look_like(text, name, values):
    sweep = Sweep.parse(text)
    assert (sweep.name, sweep.values) == (name, values)
    assert [type(value) for value in sweep.values] == [type(value) for value in values]


@pytest.mark.parametrize("text", ["", "fanout", "fanout=", "=1,2", "fanout=1,,2", "fanout=1,"])
def test_what_is_no_sweep_is_refused(text):
    with pytest.raises(InputError, match="expected a name and its values, such as fanout=1,2,4"):
        Sweep.parse(text)
