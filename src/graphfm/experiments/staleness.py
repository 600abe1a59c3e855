"""How stale histories get: the paper's Table 4 for one dataset."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from graphfm.data.datasets import load
from graphfm.data.graph import Graph
from graphfm.data.graph.edge_columns import edge_columns
from graphfm.errors import InputError
from graphfm.experiments.cell import Cell, PlannedRow
from graphfm.experiments.outcome import (
    NONE,
    UNDEFINED,
    Outcome,
    deviation,
    mean,
    tests_of,
    with_deviation,
)  # fmt: skip
from graphfm.experiments.process import run_in_child
from graphfm.experiments.runner import Observer, run_cells
from graphfm.experiments.staleness_record import STALENESS, mean_staleness
from graphfm.experiments.store import SCRATCH, Store, memory_store
from graphfm.experiments.tables import BELOW, Column, Table, write_tables
from graphfm.methods import METHODS
from graphfm.runs.devices import kind_of
from graphfm.runs.named import Named
from graphfm.runs.provenance import machine, versions
from graphfm.runs.run import Run, pick_device
from graphfm.training.setup import check_trainable
from graphfm.training.staleness import LayerStaleness

RunCell = Callable[[Cell, str, Path], Outcome]
NO_NEIGHBORS = ("mlp", "sign", "sgc")
PUBLISHED = {"exact_first_hop": False}
PUBLISHED_OB = {**PUBLISHED, "start": "zero"}
FULL, FIRST_HOP, DELTA = "full batch", "gas, exact first hop", "graphfm-delta"
ROWS: dict[str, tuple[str, dict[str, Any]]] = {  # by name: the method and its settings
    "gas": ("gas", PUBLISHED),
    "graphfm-ob, plain sum": ("graphfm-ob", {"partial": "sum", **PUBLISHED_OB}),
    "graphfm-ob, rescaled": ("graphfm-ob", {"partial": "rescaled", **PUBLISHED_OB}),
    FIRST_HOP: ("gas", {}),
    DELTA: ("graphfm-delta", {}),
    FULL: ("full", {}),
}


@dataclass(frozen=True, kw_only=True)
class NamedRow(PlannedRow):
    """One row of `ROWS`, before it is trained."""

    name: str


@dataclass(frozen=True)
class Row:
    """One method over all seeds."""

    name: str
    tests: list[float]  # one per seed; none where the graph has no test nodes
    layers: list[LayerStaleness]  # means over the second half of the epochs and over seeds
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        method, settings = ROWS[self.name]
        layers = [
            {"layer": s.depth, "score": _finite(s.score), "relative": _finite(s.relative)}
            for s in self.layers
        ]
        return {
            "name": self.name,
            "method": method,
            "settings": settings,
            "test": mean(self.tests),
            "test_std": deviation(self.tests),
            "tests": self.tests,
            "layers": layers,
        }


def compare_staleness(
    options: Mapping[str, Any],
    seeds: int = 1,
    out: Path | None = None,
    *,
    observer: Observer | None = None,
    run_cell: RunCell | None = None,
) -> list[Row]:
    """Train every row of `ROWS` with the same flat options, and measure how stale it gets.

    Nothing is refreshed. With `out`, outcomes and tables are kept in that folder, and what it holds
    already is not run again.
    """
    observer, train = observer or Observer(), run_cell or run_in_child
    _check(options, seeds)
    graph = load(options["dataset"], device=pick_device(options["device"]))
    check_trainable(graph, _run(FULL, options, 0).training)
    names = [name for name in ROWS if _is_defined(name, options, graph, observer)]
    planned = [_planned(name, options, seeds) for name in names]
    fingerprint = graph.fingerprint
    settings = _settings(options, graph)
    del graph  # its memory is for the cells
    cells = [cell for row in planned for cell in row.cells]
    store = memory_store() if out is None else Store.open(
        out, settings, {"seeds": seeds}, dataset=options["dataset"]
    )  # fmt: skip
    with store as kept, TemporaryDirectory(prefix="graphfm-") as scratch:

        def run_one(cell: Cell) -> Outcome:
            outcome = train(cell, fingerprint, Path(scratch) / SCRATCH)
            if outcome.status == UNDEFINED:  # all rows share the options: a mistake in them
                raise InputError(outcome.error)
            return outcome

        for _ in run_cells(cells, kept, run_one, observer):
            pass
        rows = [_filled(row, kept.outcomes) for row in planned]
        if out is not None:
            write_tables(out, staleness_table(rows, describe(options, seeds)))
    return rows


def staleness_table(rows: list[Row], caption: str = "") -> Table:
    """Test scores, the staleness S^k of each hidden layer, and that relative to the norm."""
    depths = sorted({layer.depth for row in rows for layer in row.layers})
    columns = (
        Column("method", left=True, names_row=True),
        Column("test"),
        *(Column(f"S^{depth}") for depth in depths),
        *(Column(f"relative {depth}", rank=depth) for depth in depths),
        Column("note", left=True, place=BELOW),
    )
    cells = list[tuple[str, ...]]()
    for row in rows:
        found = {layer.depth: (layer.score, layer.relative) for layer in row.layers}
        numbers = [
            f"{found[depth][which]:.4f}" if depth in found else NONE
            for which in (0, 1)
            for depth in depths
        ]
        test = with_deviation(mean(row.tests), deviation(row.tests))
        cells.append((row.name, test, *numbers, row.note))
    return Table(columns, tuple(cells), caption)


def describe(options: Mapping[str, Any], seeds: int) -> str:
    """One line: what all rows share."""
    layers = f" of {options['layers']} layers" if "layers" in options else ""
    return (
        f"{options['dataset']}, {network_name(options)}{layers}, "
        f"{options['parts_per_batch']} of {options['parts']} parts a step, "
        f"{options['epochs']} epochs, {seeds} {'seed' if seeds == 1 else 'seeds'}"
    )


def network_name(options: Mapping[str, Any]) -> str:
    """The name of the network, which may be a model of the user's own."""
    backbone = options["backbone"]
    return backbone.name if isinstance(backbone, Named) else str(backbone)


def _check(options: Mapping[str, Any], seeds: int) -> None:
    """Refuse whatever is wrong before anything is read or trained."""
    backbone, layers = network_name(options), options.get("layers", 2)
    if backbone in NO_NEIGHBORS:
        raise InputError(
            f"backbone {backbone} reads no neighbours in training; expected sage, gcn, gcnii or pna"
        )
    if layers < 2:
        raise InputError(f"layers is {layers}; expected 2 or more: the last layer has no history")
    if seeds < 1:
        raise InputError(f"seeds is {seeds}; expected 1 or more")
    for name in ROWS:
        run = _run(name, options, seeds - 1)
        METHODS[run.method](**run.method_settings)  # refuses settings that a method cannot have


def _run(name: str, options: Mapping[str, Any], number: int) -> Run:
    """The training of a row with the seed of that number."""
    method, settings = ROWS[name]
    steady = {"schedule": "constant", "patience": 0}  # the last epochs are like the first
    given = {**steady, **options, **settings, "method": method}
    given["seed"] = options["seed"] + number
    if name == FULL:  # one step an epoch: as many epochs as the others take steps
        steps = math.ceil(options["parts"] / options["parts_per_batch"])
        given |= {"epochs": options["epochs"] * steps, "eval_every": steps}
        del given["parts"], given["parts_per_batch"]
    if method != "graphfm-ob":
        del given["beta"]
    return Run.make(**given)


def _planned(name: str, options: Mapping[str, Any], seeds: int) -> NamedRow:
    runs = [_run(name, options, number) for number in range(seeds)]
    cells = (Cell(run, f"{name}, seed {run.training.seed}", STALENESS) for run in runs)
    return NamedRow(name=name, cells=tuple(cells))


def _is_defined(name: str, options: Mapping[str, Any], graph: Graph, observer: Observer) -> bool:
    """Whether the network allows the method; if not, the observer is told."""
    run, reason = _run(name, options, 0), None
    sizes = graph.num_features, graph.num_classes, graph.num_nodes
    try:
        network = run.new_backbone(*sizes, edge_columns(graph), planned=True)
    except InputError as error:  # a model of the user's own does not allow the method
        reason = str(error)
    else:
        if name == DELTA and not all(layer.is_linear for layer in network.layers):
            reason = f"it needs a linear aggregator, which {run.backbone} has not"
        if name == FIRST_HOP and not network.begins_linear:
            reason = f"{run.backbone} does not begin with a linear aggregate of features"
    if reason is not None:
        observer.on_message(f"{name}: left out; {reason}")
    return reason is None


def _settings(options: Mapping[str, Any], graph: Graph) -> dict[str, Any]:
    """All that must be the same for rows to stand in one table."""
    shared = {name: value for name, value in options.items() if name not in ("dataset", "seed")}
    shared |= {"device": kind_of(shared["device"]), "backbone": network_name(options)}
    if isinstance(options["backbone"], Named):
        shared |= options["backbone"].fixed
    return {
        "graph": {"fingerprint": graph.fingerprint},
        "options": shared,
        "versions": versions(),
        "machine": machine(graph.device),
    }


def _filled(row: NamedRow, outcomes: Mapping[str, Outcome]) -> Row:
    measured = [o.measured for o in row.ended(outcomes) if o.measured is not None]
    note = row.note(outcomes) if row.num_failed(outcomes) else ""
    return Row(row.name, tests_of(row.scores(outcomes)), mean_staleness(measured), note)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None  # JSON knows no infinity
