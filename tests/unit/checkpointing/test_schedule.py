import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphfm import InputError
from graphfm.checkpointing.schedule import Interval


@pytest.mark.parametrize(
    ("text", "interval"),
    [
        ("auto", Interval()), ("30", Interval(seconds=30)), ("0.5s", Interval(seconds=0.5)),
        ("2 seconds", Interval(seconds=2)), ("500steps", Interval(steps=500)),
        ("1 step", Interval(steps=1)), ("0", Interval(seconds=0)),
        ("1e3", Interval(seconds=1000)), ("1234567.5", Interval(seconds=1234567.5)),
    ],
)  # fmt: skip
def test_what_can_be_asked_for(text, interval):
    assert Interval.parse(text) == interval
    assert Interval.parse(str(interval)) == interval


@given(st.floats(0, 1e9, exclude_max=True))
@example(999999999.9999)
@example(0.001)
@example(1e-5)
def test_what_is_taken_is_read_as_it_was_written(seconds):
    try:
        interval = Interval.parse(f"{seconds:.340f}")
    except InputError:
        assert 0 < seconds < 1e-3
        return
    assert interval == Interval(seconds=seconds)
    assert Interval.parse(str(interval)) == interval


@given(st.integers(0, 10**9 - 1))
def test_steps_are_read_as_they_were_written(steps):
    interval = Interval.parse(f"{steps} steps")
    assert interval == Interval(steps=steps) == Interval.parse(str(interval))


@pytest.mark.parametrize("text", ["0.00001", "0.0009s"])
def test_what_is_too_short_says_so(text):
    with pytest.raises(InputError, match=f"'{text}'; expected a millisecond .* or more; 0 writes"):
        Interval.parse(text)


@pytest.mark.parametrize("text", ["", "-1", "often", "1.5steps", "nan", "1e400", "9" * 400, "3m"])
def test_what_cannot(text):
    with pytest.raises(InputError, match="checkpoint-every is"):
        Interval.parse(text)


@pytest.mark.parametrize("text", ["1e9", "1000000000", "1e9steps"])
def test_what_is_too_long_says_so(text):
    with pytest.raises(InputError, match=f"'{text}'; expected less than a billion; 0 writes one"):
        Interval.parse(text)


def test_by_default_a_minute_at_most_is_lost():
    cheap = Interval()
    assert not cheap.is_due(44, 10**6, cost=0.1)
    assert cheap.is_due(45, 1, cost=1.5)


@pytest.mark.parametrize("cost", [0.01, 1.0, 3.0, 30.0])
def test_by_default_less_than_a_twentieth_of_the_time_is_spent(cost):
    assert cost / (Interval().wait(cost) + cost) < 0.05


def test_what_was_asked_for_is_done_whatever_it_costs():
    assert Interval(seconds=1).is_due(1, 0, cost=100)
    assert Interval(steps=5).is_due(0, 5, cost=100)
    assert not Interval(steps=5).is_due(1e9, 4, cost=0)


@pytest.mark.parametrize("never", [Interval(seconds=0), Interval(steps=0)])
def test_never_is_never(never):
    assert never.never
    assert not never.is_due(1e9, 10**9, 0)
