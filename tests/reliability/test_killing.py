"""SIGKILL at any moment costs time, and nothing else."""

import pytest

from tests.reliability.killing import METHODS, Killing


@pytest.mark.parametrize("method", METHODS)
def test_killed_and_resumed_it_ends_the_same(tmp_path, method):
    killing = Killing(tmp_path, method, "synthetic:small:0.05", epochs=3)
    for number in range(2):
        killing.trial(number)


@pytest.mark.extended
@pytest.mark.parametrize("method", METHODS)
def test_killed_thirty_times_it_ends_the_same(tmp_path, method):
    killing = Killing(tmp_path, method, "synthetic:small:0.2", epochs=8)
    places = [killing.trial(number) for number in range(30)]
    assert sum("writing" in place for place in places) >= 5, places  # checkpoint writes included
