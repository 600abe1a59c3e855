"""A user's own module, new for each test."""

import importlib
from itertools import count

import pytest

from tests.own_module import write_module

NUMBERS = count()


@pytest.fixture
def name(tmp_path, monkeypatch) -> str:
    """The name of the user's module, which can be imported and was not yet."""
    name = f"users_module_{next(NUMBERS)}"
    write_module(tmp_path, name)
    monkeypatch.syspath_prepend(tmp_path)
    return name


@pytest.fixture
def mine(name):
    return importlib.import_module(name)
