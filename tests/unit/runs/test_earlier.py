"""Records of runs that earlier versions wrote: their lists per layer began with the input layer."""

import json
from typing import Annotated

import pytest

from graphfm import InputError, Method
from graphfm.experiments.cell import key_of
from graphfm.options import Setting
from graphfm.runs.earlier import FORMAT
from graphfm.runs.named import NotTheSame
from graphfm.runs.run import Run
from graphfm.samplers.neighbor import NeighborSampler
from graphfm.samplers.shadow import ShadowSampler

NAMED = {
    "graphsage": "fanout", "graphfm-ib": "fanout", "vr-gcn": "fanout",
    "fastgcn": "nodes_per_layer", "ladies": "nodes_per_layer", "mvs-gcn": "nodes_per_layer",
}  # fmt: skip
Sizes = Annotated[tuple[int, ...], Setting("Numbers.")]


def as_written_before(run):
    """The record of version 0.1.0, which had no format, and no `picks` of a method."""
    record = json.loads(json.dumps(run.to_json()))
    assert record.pop("format") == FORMAT
    record["method_settings"].pop("picks", None)
    return record


@pytest.mark.parametrize("method", NAMED)
def test_lists_of_an_earlier_version_are_turned_round(method):
    name = NAMED[method]
    run = Run.make(method=method, layers=3, **{name: (4, 2, 1)})
    before = as_written_before(run)
    assert Run.from_json(before).method_settings[name] == (1, 2, 4)
    before["method_settings"][name] = [1, 2, 4]
    assert Run.from_json(before) == run
    assert Run.from_json(json.loads(json.dumps(run.to_json()))) == run


def test_the_lists_of_shadow_always_began_at_the_target():
    run = Run.make(method="shadow", depth=2, fanout=(4, 1))
    assert Run.from_json(as_written_before(run)) == run


@pytest.mark.parametrize("method", NAMED)
def test_a_cell_of_an_earlier_version_is_taken_for_what_it_was(method):
    name = NAMED[method]
    one, other = (Run.make(method=method, **{name: sizes}) for sizes in ((4, 1), (1, 4)))
    before = as_written_before(one)
    assert key_of(before) == key_of(other.to_json()) != key_of(one.to_json())
    alike = Run.make(method=method, **{name: (3,)})
    assert key_of(as_written_before(alike)) == key_of(alike.to_json())


def mine(*, fanout: Sizes = (2,)):
    return Method(NeighborSampler(fanout=fanout, batch_size=8))


def mine_outward(*, fanout: Sizes = (2,)):
    return Method(ShadowSampler(fanout=fanout, batch_size=8))


def test_a_list_of_the_users_own_method_is_turned_round_if_our_sampler_reads_it():
    for method, sizes in ((mine, (1, 4)), (mine_outward, (4, 1))):
        run = Run.make(method=method, fanout=(4, 1))
        before = as_written_before(run)
        assert Run.from_json(before, method=method).method_settings["fanout"] == sizes
        assert key_of(before) != key_of(run.to_json())  # a key is made without the code
        assert Run.from_json(run.to_json(), method=method) == run


def test_a_method_object_has_to_have_the_order_of_today():
    outward, inward = (
        Method(NeighborSampler(fanout=sizes, batch_size=8)) for sizes in ((4, 1), (1, 4))
    )
    before = as_written_before(Run.make(method=outward))
    with pytest.raises(NotTheSame, match=r'other settings .*"fanout": \[1, 4\]'):
        Run.from_json(before, method=outward)
    assert Run.from_json(before, method=inward) == Run.make(method=inward)


def test_a_record_of_a_later_version_is_refused():
    record = {**Run.make().to_json(), "format": FORMAT + 1}
    with pytest.raises(InputError, match=f"its format is {FORMAT + 1}, and this version reads up"):
        Run.from_json(record)
