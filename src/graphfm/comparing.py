"""The front door of comparisons for Python programs: `compare`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphfm.errors import InputError
from graphfm.runs.named import BackboneLike, MethodLike
from graphfm.runs.options import show_options
from graphfm.runs.own_model import ModelLike, given_network

if TYPE_CHECKING:
    from graphfm.experiments.compare import Row, Sweep


def compare(
    dataset: str | Path,
    methods: str | Sequence[MethodLike] = "all",
    *,
    backbone: BackboneLike | None = None,
    model: ModelLike | None = None,
    model_options: Mapping[str, Any] | None = None,
    seeds: int = 3,
    budget_epochs: int | None = None,
    budget_seconds: float | None = None,
    patience: int | None = None,
    sweep: Sweep | Sequence[Sweep] | None = None,
    own: Mapping[str, Mapping[str, Any]] | None = None,
    device: str = "auto",
    out: str | Path | None = None,
    columns: str | Sequence[str] | None = None,
    **options: Any,
) -> list[Row]:
    """Train several methods on one graph, network and budget, and return the table's rows.

    `compare("debian", ["graphsage", my_method], seeds=2, budget_epochs=20, hidden=64)`. Every
    training runs in a process of its own, which imports a method of your own from its module;
    trainings found in `out` are not run again.

    `seeds` is the number of trainings of each method, `budget_epochs` or `budget_seconds` the most
    that each may take, and `patience` the epochs without a better score after which one ends.
    `sweep` tries values of an option, `Sweep("fanout", (1, 2, 4))` from
    `graphfm.experiments.compare`; several make a grid. `own` has options of single methods:
    `{"graphsage": {"fanout": (2, 2)}}`. `columns` are those of the tables, such as "test,settings".
    `model` makes a network of PyG from `model_options`. Other options go to all that take them.
    """
    from graphfm.experiments.compare import Plan
    from graphfm.experiments.compare import compare as run_plan

    check_dataset("compare", dataset)
    network = given_network(backbone, model, model_options)
    plan = Plan.make(
        dataset=str(dataset), methods=methods, backbone=network, seeds=seeds, device=device,
        budget_epochs=budget_epochs, budget_seconds=budget_seconds, patience=patience, sweep=sweep,
        own=own, **options,
    )  # fmt: skip
    return run_plan(plan, out, columns=columns)


show_options(compare, without=("seed", "epochs", "max_seconds"))


def check_dataset(what: str, dataset: object) -> None:
    """Refuse a graph that other processes could not read."""
    if not isinstance(dataset, str | Path):
        raise InputError(
            f"cannot {what} on a {type(dataset).__name__}: trainings run in processes of their "
            "own and read the graph by name; save it (graph.save) and give the .npz file"
        )
