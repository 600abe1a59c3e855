"""Which trainings there are, and what is refused before any of them starts."""

import pytest

from graphfm import InputError
from graphfm.experiments.compare import Plan, Sweep
from graphfm.experiments.compare.sweep import own_settings
from graphfm.methods import METHODS
from graphfm.runs.run import options_of
from graphfm.training.settings import Training

ROWS = [("full", None), ("graphsage", 1), ("graphsage", 4), ("gas", None)]


def test_all_is_every_method_in_order(make_plan):
    assert [entry.method for entry in make_plan("all").entries] == list(METHODS)


def test_every_cell_has_the_same_settings_but_method_and_seed(make_plan):
    plan = make_plan("all", seeds=3, hidden=8, lr=0.02, dropout=0.1, layers=3, budget_epochs=7)
    for entry in plan.entries:
        assert [cell.run.training.seed for cell in entry.cells] == [0, 1, 2]
        for cell in entry.cells:
            network, training = cell.run.backbone_settings, cell.run.training
            asked = {"hidden": 8, "layers": 3, "dropout": 0.1}
            assert network["layers"] == 3
            assert all(network[name] == asked[name] for name in asked if name in network)
            assert (training.lr, training.epochs, training.patience) == (0.02, 7, 50)


def test_each_method_runs_once_before_any_runs_twice(make_plan):
    labels = [cell.label for cell in make_plan().cells]
    assert labels == [
        "full, seed 0", "graphsage, seed 0", "full, seed 1", "graphsage, seed 1",
    ]  # fmt: skip


def test_no_two_cells_share_a_key(make_plan):
    plan = make_plan("all", seeds=3, sweep=Sweep("layers", (1, 2)))
    keys = [cell.key for cell in plan.cells]
    assert len(set(keys)) == len(keys) == 3 * 2 * len(METHODS)


def test_a_sweep_goes_to_those_methods_that_take_it(make_plan):
    plan = make_plan("full,graphsage,gas", sweep=Sweep("fanout", (1, 4)))
    assert [(entry.method, entry.value) for entry in plan.entries] == ROWS
    fanouts = [entry.cells[0].run.method_settings.get("fanout") for entry in plan.entries]
    assert fanouts == [None, (1,), (4,), None]


@pytest.mark.parametrize(("name", "values"), [("layers", (2, 3)), ("weight_decay", (0.0, 1e-3))])
def test_a_sweep_of_network_or_training_goes_to_all(make_plan, name, values):
    plan = make_plan("all", sweep=Sweep(name, values))
    assert len(plan.entries) == 2 * len(METHODS)
    for entry in plan.entries:
        run = entry.cells[0].run
        assert (vars(run.training) | run.backbone_settings)[name] == entry.value


def test_a_sweep_of_histories_leaves_out_methods_without_any(make_plan):
    plan = make_plan("full,gas", sweep=Sweep("history", ("fp32", "bf16")))
    assert [entry.value for entry in plan.entries] == [None, "fp32", "bf16"]
    assert "history" in options_of("gas", "sage")
    assert "history" not in options_of("full", "sage")


def test_a_value_that_only_some_take_is_a_row_that_says_so(make_plan, monkeypatch):
    def picky(*, fanout: tuple[int, ...] = (5,)):
        if fanout == (1,):
            raise InputError("fanout is 1; expected more")
        return METHODS["graphsage"](fanout=fanout)

    monkeypatch.setattr("graphfm.runs.named.METHODS", {**METHODS, "gas": picky})
    plan = make_plan("graphsage,gas", sweep=Sweep("fanout", (1, 2)))
    refusals = [entry.refusal for entry in plan.entries]
    assert refusals == [None, None, "fanout is 1; expected more", None]
    assert len(plan.cells) == 3 * 2


def test_a_method_with_a_network_of_its_own_gets_it(make_plan, monkeypatch):
    monkeypatch.setattr("graphfm.runs.settling.OWN_NETWORK", {"graphsage": "gcn"})
    plan = make_plan("full,graphsage", backbone="pna", layers=3)
    assert [entry.backbone for entry in plan.entries] == ["pna", "gcn"]
    runs = [entry.cells[0].run for entry in plan.entries]
    assert [run.backbone for run in runs] == ["pna", "gcn"]
    assert [run.backbone_settings["layers"] for run in runs] == [3, 3]


def test_a_budget_in_seconds_lifts_the_one_in_epochs(make_plan):
    training = make_plan(budget_seconds=2).shared.training
    assert (training.max_seconds, training.epochs) == (2.0, 10**6)
    for entry in make_plan("all").entries:
        training = entry.cells[0].run.training
        own = getattr(METHODS[entry.method], "trains_with", {})
        assert (training.max_seconds, training.epochs) == (0.0, own.get("epochs", 100))


def test_a_budget_in_seconds_has_no_last_epoch_to_slow_down_for(make_plan):
    rates = [make_plan(budget_seconds=2), make_plan(budget_seconds=2, schedule="step")]
    rates += [make_plan(budget_epochs=2), make_plan()]
    schedules = [{e.cells[0].run.training.schedule for e in plan.entries} for plan in rates]
    assert schedules == [{"constant"}, {"step"}, {"cosine"}, {"cosine"}]


def test_patience_is_that_of_a_training_unless_it_is_given(make_plan):
    for given, expected in ((None, Training().patience), (3, 3), (0, 0)):
        runs = [entry.cells[0].run for entry in make_plan(patience=given).entries]
        assert {run.training.patience for run in runs} == {expected}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"methods": "full,nope"}, "unknown method 'nope'; choose one of full"),
        ({"methods": ""}, "unknown method ''"),
        ({"methods": []}, "no method was given"),
        ({"methods": "all,full"}, "unknown method 'all'"),
        ({"backbone": "nope"}, "unknown backbone 'nope'"),
        ({"seeds": 0}, "seeds is 0; expected 1 to 1000"),
        ({"seeds": 10**9}, "seeds is 1000000000; expected 1 to 1000"),
        ({"budget_epochs": 0}, "epochs is 0; expected 1 or more"),
        ({"budget_seconds": 0}, "budget_seconds is 0; expected a number above 0"),
        ({"budget_seconds": float("nan")}, "budget_seconds is nan"),
        ({"budget_seconds": float("inf")}, "max_seconds is inf"),
        ({"budget_seconds": 1, "budget_epochs": 1}, "two budgets, in epochs and in seconds"),
        ({"patience": -1}, "patience is -1"),
        ({"lr": 0.0}, "lr is 0.0; expected"),
        ({"layers": 0}, "layers is 0; expected"),
        (
            {"sweep": Sweep("nope", (1,))},
            "nope is not a setting of backbone sage or of full",
        ),
        ({"sweep": Sweep("dataset", ("a",))}, "dataset is not a setting"),
        ({"sweep": Sweep("beta", (1,))}, "beta is not a setting of backbone sage or of full"),
        ({"sweep": Sweep("seed", (1,))}, "seed cannot be swept; --seeds sets it"),
        ({"sweep": Sweep("epochs", (1,))}, "epochs cannot be swept; --budget-epochs sets it"),
        ({"sweep": Sweep("lr", (1,)), "lr": 0.1}, "lr is swept and also set to 0.1"),
        ({"sweep": [Sweep("lr", (1,)), Sweep("lr", (2,))]}, "lr is swept 2 times; give all values"),
        ({"epochs": 5}, "epochs is not an option of a comparison; --budget-epochs sets it"),
        ({"seed": 5}, "seed is not an option of a comparison; --seeds sets it"),
        ({"own": {"full": {"seed": 5}}}, "full was given a seed; --seeds is how many"),
        ({"history": "bf16"}, "history applies to histories, but none of the methods"),
        ({"methods": "gas", "history": "bf17"}, "history is bf17; expected fp32, bf16 or fp16"),
        (
            {"sweep": Sweep("lr", (1,)), "own": {"full": {"lr": 0.1}}},
            "lr is swept and also set to 0.1",
        ),
        (
            {"methods": "graphsage,gas", "beta": (0.5,)},
            "beta is not a setting of backbone sage or method graphsage, gas; it belongs to",
        ),
        ({"sweep": Sweep("fanout", (1, 0))}, "fanout is .*0"),
        ({"sweep": Sweep("fanout", (1, "x"))}, "fanout is 'x'; expected a whole number"),
        ({"sweep": Sweep("layers", (2, 2.5))}, "layers is 2.5; expected a whole number"),
    ],
)
def test_a_mistake_is_refused(make_plan, options, reason):
    with pytest.raises(InputError, match=reason):
        make_plan(**options)


def test_a_method_can_be_told_something_of_its_own():
    own = own_settings(["graphsage.fanout=2,3", "graphsage.batch-size=64", "full.lr=0.5"])
    assert own == {"graphsage": {"fanout": (2, 3), "batch_size": 64}, "full": {"lr": 0.5}}
    plan = Plan.make(methods=["full", "graphsage"], seeds=1, own=own)
    full, sage = (entry.cells[0].run for entry in plan.entries)
    assert (full.training.lr, sage.training.lr) == (0.5, 0.003)
    assert (sage.method_settings["fanout"], sage.method_settings["batch_size"]) == ((2, 3), 64)


def test_the_published_form_goes_to_those_methods_that_have_one(make_plan):
    plan = make_plan("ladies,graphfm-ib,gas", seeds=1, as_published=True)
    ladies, momentum, gas = (entry.cells[0].run.method_settings for entry in plan.entries)
    assert momentum.items() >= METHODS["graphfm-ib"].published_form.items()
    assert not gas["exact_first_hop"]
    assert ladies == make_plan("ladies", 1).entries[0].cells[0].run.method_settings
    own = own_settings(["gas.as-published=true"])
    plan = make_plan("graphfm-ib,gas", seeds=1, own=own)
    momentum, gas = (entry.cells[0].run.method_settings for entry in plan.entries)
    assert (momentum["correct_lag"], gas["exact_first_hop"]) == (True, False)


def test_a_sweep_over_the_published_form_and_ours(make_plan):
    plan = make_plan("gas", seeds=1, sweep=Sweep("as_published", (False, True)))
    found = [entry.cells[0].run.method_settings["exact_first_hop"] for entry in plan.entries]
    assert found == [True, False]


@pytest.mark.parametrize("text", ["fanout=2", "graphsage.fanout", "graphsage.=2", ".fanout=2", ""])
def test_a_setting_of_nobody_is_refused(text):
    with pytest.raises(InputError, match="expected a method, its option and a value"):
        own_settings([text])


def test_a_setting_of_a_method_that_is_not_compared_is_refused():
    with pytest.raises(
        InputError, match="gas has settings but is not compared; add it to the methods .full"
    ):
        Plan.make(methods=["full"], own={"gas": {"parts": 3}})


def test_true_is_not_one():
    assert Sweep.parse("fanout=1,true,1").values == (1, True)
