"""Trials in the journal: claimed once, kept, and run again if their process died."""

import json
from contextlib import ExitStack

import pytest

from graphfm.experiments.tune.lease import Lease
from graphfm.experiments.tune.record import COMPLETE, FAILED, RUNNING, STOPPED, best
from graphfm.experiments.tune.trials import JOURNAL, Trials


@pytest.fixture
def processes(tmp_path, make_plan):
    """Opens the folder as another process would; `end` is its death."""
    plan = make_plan("full", trials=100, budget_epochs=10)

    class Processes:
        def __init__(self) -> None:
            self.stack = ExitStack()
            self.plan = plan

        def begin(self) -> Trials:
            lease = self.stack.enter_context(Lease.take(tmp_path))
            return Trials(tmp_path, plan.searches, lease, jobs=2)

        def end(self) -> None:
            self.stack.close()

    found = Processes()
    yield found
    found.end()


def next_of(trials: Trials):
    return trials.claim(lambda records: trials._by_method["full"])


def states(trials: Trials) -> list[str]:
    return [record.state for record in trials.records()]


def test_the_defaults_come_first_and_are_never_stopped(processes):
    trials = processes.begin()
    first, second = next_of(trials), next_of(trials)
    assert first.settings == processes.plan.searches[0].defaults
    assert first.settings.keys() == {"lr", "weight_decay", "schedule", "dropout"}
    assert (first.is_default, second.is_default) == (True, False)
    assert second.settings != first.settings
    assert not any(trials.report(first, epoch, 0.1) for epoch in range(1, 11))


def test_a_training_that_is_behind_is_stopped_at_the_first_look_and_not_before(processes):
    trials = processes.begin()
    first, second, third = (next_of(trials) for _ in range(3))
    for epoch in range(1, 11):
        trials.report(first, epoch, 0.5)
    assert [trials.report(second, epoch, 0.1) for epoch in (1, 2)] == [False, True]
    # a look is at a fifth and at three fifths of the epochs, and takes the best score so far
    assert not any(
        trials.report(third, epoch, 0.9 if epoch == 1 else 0.2) for epoch in range(1, 11)
    )


def test_what_ended_is_kept_with_its_curve(processes):
    trials = processes.begin()
    for state, extra in ((COMPLETE, {"val": 0.6}), (STOPPED, {}), (FAILED, {"note": "no memory"})):
        claimed = next_of(trials)
        trials.report(claimed, 1, 0.5)
        trials.report(claimed, 2, 0.4)
        trials.end(claimed, state, seconds=2.0, epochs=2, **extra)
    processes.end()
    again = processes.begin().records()
    assert [record.state for record in again] == [COMPLETE, STOPPED, FAILED]
    assert [record.val for record in again] == [0.6, 0.5, 0.5]
    assert [list(map(tuple, record.curve)) for record in again] == [[(1, 0.5), (2, 0.4)]] * 3
    assert [record.cost for record in again] == [1.0] * 3
    assert again[2].note == "no memory"


def test_two_processes_never_have_the_same_trial(processes):
    one, two = processes.begin(), processes.begin()
    claimed = [next_of(trials) for trials in (one, two) * 4]
    assert sorted(trial.number for trial in claimed) == list(range(1, 9))
    assert len({json.dumps(trial.settings) for trial in claimed}) == 8
    assert states(one) == states(two) == [RUNNING] * 8
    assert one.others_run()


def test_a_trial_whose_process_died_is_queued_again_and_not_counted(processes):
    trials = processes.begin()
    lost = [next_of(trials).settings for _ in range(2)]
    processes.end()
    again = processes.begin()
    assert again.others_run()
    assert [next_of(again).settings for _ in range(2)] == lost
    assert states(again) == [RUNNING] * 2
    assert again.records()[0].is_default
    assert not again.others_run()


def test_a_process_that_lives_keeps_its_trials(processes):
    one, two = processes.begin(), processes.begin()
    first, second = next_of(one), next_of(two)
    assert (first.number, second.number) == (1, 2)
    one.end(first, COMPLETE, val=0.5, seconds=1.0)
    assert states(two) == [COMPLETE, RUNNING]


def test_what_was_given_back_is_run_again(processes):
    trials = processes.begin()
    first = next_of(trials)
    trials.report(first, 1, 0.5)
    trials.release(first)
    assert states(trials) == []
    again = next_of(trials)
    assert (again.settings, again.is_default) == (first.settings, True)


def test_a_trial_that_had_just_ended_is_not_run_again(processes):
    trials = processes.begin()
    claimed = next_of(trials)
    result = {"state": COMPLETE, "val": 0.7, "seconds": 1.0}
    claimed.trial.set_user_attr("result", result)  # and there its process was killed
    processes.end()
    again = processes.begin()
    assert next_of(again).settings != claimed.settings
    assert next((record.state, record.val) for record in again.records()) == (COMPLETE, 0.7)


def test_a_journal_whose_last_line_is_cut_off_is_mended(processes, tmp_path):
    trials = processes.begin()
    trials.end(next_of(trials), COMPLETE, val=0.5, seconds=1.0)
    processes.end()
    with (tmp_path / JOURNAL).open("ab") as stream:
        stream.write(b'{"op_code":')
    again = processes.begin()
    assert states(again) == [COMPLETE]
    again.end(next_of(again), COMPLETE, val=0.6, seconds=1.0)
    processes.end()
    assert states(processes.begin()) == [COMPLETE] * 2


def test_a_dead_process_leaves_nothing(processes, tmp_path):
    left = tmp_path / ".workers" / "0123456789ab"
    (left / "cell-0").mkdir(parents=True)
    (left / "lock").touch()
    trials = processes.begin()
    assert not left.exists()
    assert trials.lease.path.exists()
    processes.end()
    assert not trials.lease.path.exists()


def test_of_errors_the_least_is_best_and_the_larger_is_stopped(tmp_path, make_plan):
    plan = make_plan("full", trials=100, budget_epochs=10, metric="mae")
    with Lease.take(tmp_path) as lease:
        trials = Trials(tmp_path, plan.searches, lease, jobs=1)
        first, second, third = (next_of(trials) for _ in range(3))
        for epoch in range(1, 11):
            trials.report(first, epoch, 5.0 + epoch)
        assert first.val == 6.0
        assert [trials.report(second, epoch, 9.0) for epoch in (1, 2)] == [False, True]
        assert [trials.report(third, epoch, 2.0) for epoch in (1, 2)] == [False, False]
        assert [record.val for record in trials.records()] == [6.0, 9.0, 2.0]  # while they run
        for claimed in (first, third):
            trials.end(claimed, COMPLETE, seconds=1.0)
        found = best(trials.records())
        assert (found.number, found.val, found.metric) == (3, 2.0, "mae")
        assert trials._studies["full"].best_value == -2.0
