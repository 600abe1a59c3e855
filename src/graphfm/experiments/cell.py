"""One training of a comparison."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphfm.runs.run import Run


@dataclass(frozen=True)
class Cell:
    """A settled training, and what people call it."""

    run: Run
    label: str

    @property
    def key(self) -> str:
        return key_of(self.run.to_json())


def key_of(run: Mapping[str, Any]) -> str:
    """What makes two cells of one comparison the same: every setting, whoever chose it.

    The name of the dataset is none: the comparison knows its graph by the fingerprint.
    """
    return json.dumps({**run, "dataset": None}, sort_keys=True)
