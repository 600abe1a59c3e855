"""The front door of the search for Python programs: `tune`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphfm.comparing import check_dataset
from graphfm.runs.named import BackboneLike, MethodLike
from graphfm.runs.options import show_options
from graphfm.runs.own_model import ModelLike, given_network

if TYPE_CHECKING:
    from graphfm.experiments.tune import TunedRow


def tune(
    dataset: str | Path,
    methods: str | Sequence[MethodLike] = "all",
    *,
    backbone: BackboneLike | None = None,
    model: ModelLike | None = None,
    model_options: Mapping[str, Any] | None = None,
    minutes: float | None = None,
    trials: int | None = None,
    seeds: int = 3,
    budget_epochs: int | None = None,
    patience: int = 20,
    own: Mapping[str, Mapping[str, Any]] | None = None,
    jobs: int | None = None,
    device: str = "auto",
    out: str | Path | None = None,
    **options: Any,
) -> list[TunedRow]:
    """Search the settings of several methods in the same way, and compare the best of each.

    `tune("debian", ["graphsage", my_method], minutes=20, hidden=64)`. The settings are chosen on
    validation; then each method is trained with its best ones and `seeds` seeds, and the rows of
    that table are returned. The same call continues what it finds in `out`.

    `minutes` is the time for everything, `trials` the number of trainings of each method in the
    search; one of them has to be given. `budget_epochs` are the most epochs of one training; by
    default each method has its own number, and with `minutes` a part of it if all would not fit.
    `patience` is the number of epochs without a better score after which one ends (0: never).
    `jobs` trainings run at a time; without it, as many as cores and memory allow. `own` has options
    of single methods: `{"graphsage": {"fanout": (2, 2)}}`. `model` makes a network of PyG from
    `model_options`. Other options go to all that take them, and what is given is not searched.
    """
    from graphfm.experiments.tune import TunePlan
    from graphfm.experiments.tune import tune as run_plan

    check_dataset("tune", dataset)
    backbone = given_network(backbone, model, model_options)
    plan = TunePlan.make(
        dataset=str(dataset), methods=methods, backbone=backbone, minutes=minutes, trials=trials,
        seeds=seeds, budget_epochs=budget_epochs, patience=patience, own=own, jobs=jobs,
        device=device, **options,
    )  # fmt: skip
    return run_plan(plan, out)


show_options(tune, without=("seed", "epochs", "max_seconds"))
