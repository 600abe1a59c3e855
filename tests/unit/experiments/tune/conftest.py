"""Plans of searches that take no time."""

from collections.abc import Callable

import pytest

from graphfm.experiments.tune import TunePlan
from tests.unit.experiments.tune.training import SMALL, Here


@pytest.fixture
def here() -> Here:
    return Here()


@pytest.fixture
def make_plan() -> Callable[..., TunePlan]:
    def make(methods="full,graphsage", **options) -> TunePlan:
        given = {**SMALL, "trials": 2, "seeds": 2, "budget_epochs": 3, "jobs": 1, **options}
        if "minutes" in options and "trials" not in options:
            given["trials"] = None
        return TunePlan.make(methods=methods, **given)

    return make
