"""graphfm train --resume"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphfm.api import resume
from graphfm.cli.ending import report, stoppable
from graphfm.cli.progress import ProgressBar
from graphfm.errors import InputError
from graphfm.training.interval import Interval
from graphfm.training.saved_run import read_config


def go_on(path: Path, interval: Interval | None, json: bool, given: Mapping[str, Any]) -> None:
    """Go on with a run; refuses other options that were given, since it has its own."""
    for name, value in given.items():
        if value is not None and (name, value) != ("device", "auto"):
            option = name.replace("_", "-")
            raise InputError(f"--resume goes on with the settings of the run; leave out --{option}")
    epochs = read_config(path)[0].training.epochs
    with stoppable(path) as interruption, ProgressBar(epochs) as bar:
        result = resume(path, watchers=[bar], interval=interval, interruption=interruption)
    report(result, json)
