"""graphfm train --resume"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphfm.api import resume
from graphfm.checkpointing.schedule import Interval
from graphfm.cli.ending import report, stoppable
from graphfm.cli.progress import ProgressBar
from graphfm.errors import InputError
from graphfm.runs.reader import read_config


def go_on(path: Path, interval: Interval | None, json: bool, given: Mapping[str, Any]) -> None:
    """Go on with a run; refuses other options that were given, since it has its own."""
    for name, value in given.items():
        if value is not None and (name, value) != ("device", "auto"):
            option = name.replace("_", "-")
            raise InputError(f"--resume goes on with the settings of the run; leave out --{option}")
    epochs = read_config(path)[0].training.epochs
    with stoppable(path) as stop_signal, ProgressBar(epochs) as bar:
        result = resume(path, callbacks=[bar], interval=interval, stop_signal=stop_signal)
    report(result, json)
