"""The picture of all trials."""

from graphfm.experiments.tune.picture import draw_trials
from graphfm.experiments.tune.record import TrialRecord


def test_the_picture_is_drawn(tmp_path):
    states = [("complete", 0.5), ("stopped", 0.3), ("failed", None), ("complete", 0.6)]
    records = [
        TrialRecord(method=method, number=n, state=state, val=val, settings={})
        for method in ("full", "gas")
        for n, (state, val) in enumerate(states, 1)
    ]
    records.append(TrialRecord(method="sgc", number=1, state="stopped", val=0.1, settings={}))
    draw_trials(records, "a title", tmp_path / "trials.png")
    assert (tmp_path / "trials.png").stat().st_size > 5000
