"""What a method declares beside its settings: how it is trained best, and its published form."""

import json

import pytest

from graphfm import InputError, methods, train
from graphfm.method_forms import published_form, trains_with
from graphfm.methods import METHODS, Method
from graphfm.runs.run import Run
from graphfm.samplers.neighbor import NeighborSampler
from graphfm.training.settings import Training

PUBLISHED = {name for name, method in METHODS.items() if hasattr(method, "published_form")}
IB_AS_PUBLISHED = {
    "beta": (0.9,), "start": "zero", "whole_gradient": False, "correct_lag": False,
    "drop_average": False, "exact_first_hop": False, "picks": "independent",
}  # fmt: skip


@trains_with(lr=0.25, dropout=0.125, seed=3, alpha=0.75)
@published_form(fanout=(7,), batch_size=9)
def mine(*, fanout: tuple[int, ...] = (2,), batch_size: int = 64, size: int = 1) -> Method:
    """A method of one's own that declares both."""
    return Method(NeighborSampler(fanout=fanout, batch_size=batch_size * size))


def again(run, **code):
    """What is read from the record of a run."""
    return Run.from_json(json.loads(json.dumps(run.to_json())), **code)


# How a method is trained best


@pytest.mark.parametrize("name", METHODS)
def test_every_method_trains_with_what_it_declares(name):
    run, declared = Run.make(method=name), getattr(METHODS[name], "trains_with", {})
    found = {**vars(run.training), **run.backbone_settings}
    assert declared.items() <= found.items()
    plain = {**vars(Training()), **Run.make(method="graphsage").backbone_settings}
    same = found.keys() & plain.keys() - declared.keys()
    assert {key: found[key] for key in same} == {key: plain[key] for key in same}


@pytest.mark.parametrize(
    "name", [name for name in METHODS if hasattr(METHODS[name], "trains_with")]
)
def test_what_is_given_wins(name):
    given = {"lr": 0.125, "epochs": 7} | ({} if name == "sgc" else {"dropout": 0.25})
    run = Run.make(method=name, **given)
    found = {**vars(run.training), **run.backbone_settings}
    assert given.items() <= found.items()
    assert Run.make(method=name, **dict.fromkeys(given)) == Run.make(method=name)  # None: not given


def test_what_a_method_declares_is_recorded_like_what_is_given(make_graph, tmp_path):
    """A later version may declare something else: the record says what was trained."""
    run = Run.make(method="graphfm-ib")
    assert METHODS["graphfm-ib"].trains_with.keys() >= {"lr", "dropout", "epochs"}
    assert run.to_json()["training"]["lr"] == METHODS["graphfm-ib"].trains_with["lr"] != 0.003
    assert again(run) == run
    train(make_graph(), method="sgc", epochs=1, out=tmp_path / "run", device="cpu")
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["run"]["training"]["lr"] == METHODS["sgc"].trains_with["lr"]


def test_a_record_wins_over_what_is_declared_today(monkeypatch):
    run = Run.make(method="graphfm-ib")
    monkeypatch.setattr(METHODS["graphfm-ib"], "trains_with", {"lr": 0.5, "weight_decay": 0.5})
    assert Run.make(method="graphfm-ib").training.lr == 0.5
    assert again(run) == run


def test_a_network_takes_what_it_has():
    """SGC has no dropout to set; alpha is a setting of GCNII alone."""
    assert Run.make(method=mine, backbone="gcnii").backbone_settings["alpha"] == 0.75
    run = Run.make(method=mine, backbone="sgc")
    assert "dropout" not in run.backbone_settings
    assert (run.training.lr, run.training.seed) == (0.25, 3)
    assert "alpha" not in Run.make(method=mine).backbone_settings


def test_a_method_of_ones_own_may_declare_both(make_graph):
    run = Run.make(method=mine, lr=0.5)
    assert (run.training.lr, run.backbone_settings["dropout"]) == (0.5, 0.125)
    assert run.method_settings == {"fanout": (2,), "batch_size": 64, "size": 1}
    assert Run.make(method=mine, as_published=True, batch_size=5, size=2).method_settings == {
        "fanout": (7,), "batch_size": 5, "size": 2,
    }  # fmt: skip
    assert again(run, method=mine) == run
    result = train(make_graph(), method=mine, as_published=True, epochs=1, hidden=4, device="cpu")
    assert result.score.epochs == 1


@pytest.mark.parametrize("wrong", ["leraning_rate", "fanout", "device"])
def test_a_name_that_nothing_has_is_refused(wrong):
    @trains_with(lr=0.1, **{wrong: 1})
    def method(*, fanout: tuple[int, ...] = (2,)) -> Method:
        return Method(NeighborSampler(fanout=fanout, batch_size=64))

    with pytest.raises(InputError, match=f"declares a default for {wrong}, which is a setting of"):
        Run.make(method=method)


def test_a_value_that_cannot_be_is_refused():
    @trains_with(lr=-1.0)
    def method() -> Method:
        return Method(NeighborSampler(fanout=(2,), batch_size=64))

    with pytest.raises(InputError, match="lr is -1.0; expected"):
        Run.make(method=method)
    assert Run.make(method=method, lr=0.1).training.lr == 0.1


# The published form


def test_these_methods_have_a_published_form():
    assert sorted(PUBLISHED) == ["gas", "graphfm-ib", "graphfm-ob", "graphsage"]


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_as_published_stands_for_settings_and_is_not_recorded(name):
    ours, theirs = Run.make(method=name), Run.make(method=name, as_published=True)
    changed = METHODS[name].published_form
    assert theirs.method_settings == {**ours.method_settings, **changed}
    assert theirs == Run.make(method=name, **changed)
    assert all(ours.method_settings[key] != value for key, value in changed.items())
    assert Run.make(method=name, as_published=False) == ours
    for run in (ours, theirs):
        assert "as_published" not in json.dumps(run.to_json())
        assert again(run) == run
    assert theirs.training == ours.training  # of the form, not of how it is trained


def test_graphfm_ib_as_published_is_algorithm_1():
    assert METHODS["graphfm-ib"].published_form == IB_AS_PUBLISHED
    run = Run.make(method="graphfm-ib", as_published=True, beta=0.3, start="fresh")
    assert run.method_settings.items() >= {
        **IB_AS_PUBLISHED, "beta": (0.3,), "start": "fresh",
    }.items()  # fmt: skip


def test_the_function_takes_as_published_too():
    made = methods.graphfm_ib(as_published=True, beta=(0.3,), fanout=(4,))
    assert made == methods.graphfm_ib(**{**IB_AS_PUBLISHED, "beta": (0.3,)}, fanout=(4,))
    assert (made.estimator.beta, made.estimator.start) == ((0.3,), "zero")
    assert methods.graphfm_ib(as_published=False) == methods.graphfm_ib()
    assert methods.graphfm_ib(as_published=True) != methods.graphfm_ib()
    assert methods.graphfm_ob(as_published=True).estimator.partial == "released"
    assert not methods.gas(as_published=True).estimator.exact_first_hop
    assert methods.graphsage(as_published=True).sampler.picks == "independent"


@pytest.mark.parametrize("name", sorted(METHODS.keys() - PUBLISHED))
def test_a_method_without_a_published_form_refuses_it(name):
    with pytest.raises(
        InputError, match="as_published is not a setting .* it belongs to method gr"
    ):
        Run.make(method=name, as_published=True)


def test_as_published_is_yes_or_no():
    with pytest.raises(InputError, match="as_published is 'no'; expected true or false"):
        Run.make(method="gas", as_published="no")


def test_either_declaration_may_come_first():
    def method(*, fanout: tuple[int, ...] = (2,)) -> Method:
        return Method(NeighborSampler(fanout=fanout, batch_size=64))

    form, training = published_form(fanout=(3,)), trains_with(lr=0.5)
    for made in (form(training(method)), training(form(method))):
        run = Run.make(method=made, as_published=True)
        assert (run.training.lr, run.method_settings["fanout"]) == (0.5, (3,))


# Records of earlier versions


@pytest.mark.parametrize("whole", [True, False, None])
def test_a_record_without_the_new_settings_is_of_the_old_form(whole):
    """Version 0.1.0 knew no lag correction and no dropout of averages, and before that no
    whole gradient either; what they did not do is not what is done by default today."""
    record = Run.make(method="graphfm-ib", as_published=True, beta=0.7).to_json()
    settings = record["method_settings"]
    del settings["correct_lag"], settings["drop_average"], settings["whole_gradient"]
    if whole is not None:
        settings["whole_gradient"] = whole
    found = Run.from_json(json.loads(json.dumps(record))).method_settings
    new = ("whole_gradient", "correct_lag", "drop_average")
    assert [found[name] for name in new] == [bool(whole), False, False]
    assert found["beta"] == (0.7,)
    assert Run.make(method="graphfm-ib").method_settings["correct_lag"]


def test_a_setting_of_that_name_without_a_published_form_is_a_setting_like_any_other():
    def other(*, as_published: bool = False) -> Method:
        assert as_published
        return methods.graphsage()

    run = Run.make(method=other, as_published=True, device="cpu")
    assert run.method_settings == {"as_published": True}
