"""How an error is told in a table."""

import pytest

from graphfm.errors import InputError
from graphfm.experiments.bench.rival import TooSlow
from graphfm.experiments.outcome import reason


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (InputError("parts is 9;\n  expected 8"), "parts is 9; expected 8"),
        (TooSlow("an epoch took more than 3 s"), "an epoch took more than 3 s"),
        (KeyError("x"), "KeyError: 'x'"),
        (RuntimeError(), "RuntimeError"),
        (MemoryError(), "there is not enough memory"),
    ],
)
def test_an_error_is_one_line_that_says_what_it_is(error, text):
    assert reason(error) == text
