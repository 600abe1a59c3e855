"""The settings of the rows of a table: those that all share, and those in which they differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from graphfm.runs.run import Run
from graphfm.runs.settling import HISTORY_SETTINGS
from graphfm.training.settings import Training


def settings_of(run: Run) -> dict[str, Any]:
    """All settings of a run but its seed, without those that its method does not use."""
    unused = {"seed"}
    if run.made_method is not None and not run.made_method.estimator.keeps_history:
        unused.update(HISTORY_SETTINGS)
    training = {n: value for n, value in asdict(run.training).items() if n not in unused}
    return {**run.backbone_settings, **training, **run.method_settings}


def common_settings(runs: Iterable[Run]) -> dict[str, Any]:
    """The settings on which all runs agree that have them.

    Of histories, which some methods keep, only defaults go without saying.
    """
    every, found = list(runs), dict[str, list[Any]]()
    defaults = asdict(Training())
    for run in every:
        for name, value in settings_of(run).items():
            found.setdefault(name, []).append(value)
    told = {
        name
        for name in HISTORY_SETTINGS
        if 0 < len(found.get(name, ())) < len(every) and found[name][0] != defaults[name]
    }
    return {
        name: values[0]
        for name, values in found.items()
        if name not in told and len(set(map(repr, values))) == 1
    }


def differences(run: Run, shared: Run, common: Mapping[str, Any]) -> dict[str, Any]:
    """What tells a row from the others: every setting in which rows differ, with its value here.

    The settings of its method are among them, and a network that is not that of the table.
    """
    own = {*run.method_settings, *run.backbone_settings.keys() - shared.backbone_settings.keys()}
    shown = {n: v for n, v in settings_of(run).items() if n in own or n not in common}
    return shown if run.backbone == shared.backbone else {"network": run.backbone, **shown}
