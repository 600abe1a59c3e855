"""The command `graphfm train --resume`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphfm.api import resume
from graphfm.checkpointing.schedule import Interval
from graphfm.cli.ending import report, stoppable
from graphfm.cli.options import flag
from graphfm.cli.progress import progress_of
from graphfm.errors import InputError
from graphfm.runs.reader import read_config


def go_on(
    path: Path,
    interval: Interval | None,
    json: bool,
    own: Mapping[str, Any],
    others: Mapping[str, Any],
) -> None:
    """Continue a run. It has its own settings, so all `others` that were given are refused.

    `own` are the method and the backbone, if the user gives them again.
    """
    for name, value in others.items():
        if value is not None:
            raise InputError(
                f"--resume continues with the settings of the run; leave out {flag(name)}"
            )
    run, _ = read_config(path, method=own.get("method"), backbone=own.get("backbone"))
    run.require("method", "backbone")
    with stoppable(path, run) as stop_signal, progress_of(run.training) as bar:
        result = resume(
            path,
            method=own.get("method"),
            backbone=own.get("backbone"),
            callbacks=[bar],
            interval=interval,
            stop_signal=stop_signal,
        )
    report(result, json)
