"""How long the trainings of a search are: a factor of each method's own number of epochs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graphfm.files import read_json

LEAST = 5  # epochs of one training, unless the method's own are fewer
KEY = "epochs"  # of the settings of a folder


@dataclass(frozen=True, kw_only=True)
class Pace:
    """One factor for the epochs of all methods, chosen once for a folder, and for what."""

    factor: float
    minutes: float
    methods: int
    seeds: int
    fits: bool = True  # False: even of the shortest trainings too few fit into the minutes
    seconds: float = 0.0  # that it took to find out
    expected: Mapping[str, float]  # seconds of one training to its end, by method

    def epochs(self, own: int) -> int:
        """The epochs of a method that has so many by itself."""
        return min(own, max(LEAST, round(self.factor * own)))

    def in_words(self) -> str:
        """For the first lines and the caption; empty where nothing was changed."""
        if self.factor == 1:
            return ""
        methods = f"{self.methods} method{'' if self.methods == 1 else 's'}"
        seeds = f"{self.seeds} seed{'' if self.seeds == 1 else 's'}"
        what, time = f"{methods} with {seeds}", f"{self.minutes:g} minutes"
        why = f"so that {what} fit into {time}" if self.fits else f"and may still exceed {time}"
        return f"epochs are {self._factor()}, {why}; --budget-epochs sets them"

    def kept_in_words(self, minutes: float | None) -> str:
        """For a later start, which may have another time."""
        if minutes == self.minutes:
            return self.in_words()
        chosen = f"as this folder has them since it was begun with {self.minutes:g} minutes"
        return f"epochs stay {self._factor()}, {chosen}"

    def _factor(self) -> str:
        if self.factor == 1:
            return "each method's own"
        return f"{self.factor:g} times each method's own (at least {LEAST})"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def stored_pace(file: Path) -> Pace | None:
    """The pace that a folder was begun with; None where it has none, or is not readable."""
    try:
        return Pace(**read_json(file)["settings"][KEY])
    except (OSError, ValueError, KeyError, TypeError):  # what is wrong is said elsewhere
        return None
