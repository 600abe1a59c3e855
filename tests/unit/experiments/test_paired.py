"""Paired differences: against values of printed t tables and against the definition."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphfm.experiments.paired import paired, t_cdf, t_quantile

TABLE = {1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 5: 2.5706, 9: 2.2622, 10: 2.2281, 30: 2.0423}


@pytest.mark.parametrize(("freedom", "value"), TABLE.items())
def test_quantiles_are_those_of_a_printed_table(freedom: int, value: float) -> None:
    assert t_quantile(0.975, freedom) == pytest.approx(value, abs=5e-5)


@given(st.integers(1, 60), st.floats(0, 50))
def test_cdf_is_symmetric_and_a_probability(freedom: int, t: float) -> None:
    assert 0.5 <= t_cdf(t, freedom) <= 1 + 1e-12
    assert t_cdf(t, freedom) + t_cdf(-t, freedom) == pytest.approx(1)


@given(st.integers(1, 40), st.floats(0.5, 0.999))
def test_quantile_inverts_the_cdf(freedom: int, probability: float) -> None:
    assert t_cdf(t_quantile(probability, freedom), freedom) == pytest.approx(probability)


def test_differences_are_taken_seed_by_seed() -> None:
    found = paired({0: 0.5, 1: 0.7, 2: 0.9, 7: 0.1}, {2: 0.8, 1: 0.5, 0: 0.2})
    assert found is not None
    assert found.seeds == 3
    assert found.mean == pytest.approx(0.2)  # of 0.3, 0.2 and 0.1
    assert found.low is not None
    assert found.high is not None
    reach = 4.3027 * 0.1 / math.sqrt(3)
    assert (found.low, found.high) == pytest.approx((0.2 - reach, 0.2 + reach), abs=1e-5)
    assert found.p == pytest.approx(0.0742, abs=1e-4)


def test_one_seed_has_no_interval_and_no_common_seed_no_difference() -> None:
    one = paired({0: 0.5}, {0: 0.25, 1: 0.9})
    assert one is not None
    assert (one.mean, one.low, one.p) == (0.25, None, None)
    assert paired({0: 0.5}, {1: 0.5}) is None


def test_equal_differences_leave_no_doubt() -> None:
    same = paired({0: 0.5, 1: 0.5}, {0: 0.5, 1: 0.5})
    apart = paired({0: 0.75, 1: 0.5}, {0: 0.5, 1: 0.25})
    assert same is not None
    assert apart is not None
    assert (same.p, apart.p) == (1.0, 0.0)
