"""Differences between two rows of a table, seed by seed, with Student's t."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import fmean, stdev

CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Paired:
    """The mean difference of two methods over the seeds that both finished."""

    seeds: int
    mean: float
    low: float | None  # the interval that holds the true mean with 95 % confidence
    high: float | None  # None with one seed
    p: float | None  # of a difference this large by chance; None with one seed


def paired(here: Mapping[int, float], there: Mapping[int, float]) -> Paired | None:
    """Compare scores by seed: here minus there. None if they share no seed."""
    differences = [score - there[seed] for seed, score in sorted(here.items()) if seed in there]
    if not differences:
        return None
    number, mean = len(differences), fmean(differences)
    if number == 1:
        return Paired(seeds=1, mean=mean, low=None, high=None, p=None)
    error = stdev(differences, mean) / math.sqrt(number)
    reach = error * t_quantile((1 + CONFIDENCE) / 2, number - 1)
    t = abs(mean) / error if error > 0 else math.inf if mean else 0.0
    p = 2 * (1 - t_cdf(t, number - 1))
    return Paired(seeds=number, mean=mean, low=mean - reach, high=mean + reach, p=p)


def t_cdf(t: float, freedom: int) -> float:
    """The probability that Student's t with so many degrees of freedom is at most `t`.

    The finite series for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4).
    """
    angle = math.atan2(t, math.sqrt(freedom))
    cosine, sine = math.cos(angle), math.sin(angle)
    term = total = cosine if freedom % 2 else 1.0
    for step in range(3 if freedom % 2 else 2, freedom - 1, 2):
        term *= cosine**2 * (step - 1) / step
        total += term
    if freedom == 1:
        return 0.5 + angle / math.pi
    if freedom % 2:
        return 0.5 + (angle + sine * total) / math.pi
    return 0.5 + sine * total / 2


def t_quantile(probability: float, freedom: int) -> float:
    """The inverse of `t_cdf`, for probabilities of 0.5 and more."""
    high = 1.0
    while t_cdf(high, freedom) < probability:
        high *= 2
    return _root(lambda t: t_cdf(t, freedom) - probability, 0.0, high)


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a growing function crosses zero, by bisection to the last bit."""
    while (middle := (low + high) / 2) not in (low, high):
        if function(middle) < 0:
            low = middle
        else:
            high = middle
    return high
