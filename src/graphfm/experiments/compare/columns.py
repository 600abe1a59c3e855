"""The columns of a comparison's table, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphfm.errors import InputError, known_name
from graphfm.experiments.compare.row import Row
from graphfm.experiments.outcome import NONE, as_number, with_deviation
from graphfm.experiments.tables import FILES, Column

SETTINGS = "settings"
BEST = "best: * is the row of its method that is best on validation"
DIFFERENCE = (
    "difference: of test from {reference}, which is best on validation, seed by seed: the mean "
    "and its 95 % interval"
)
P = "p: how likely chance alone makes the difference this large (paired t test)"
SHOWN: dict[str, tuple[Column, Callable[[Row], str]]] = {  # by the name that chooses it
    "best": (Column("best", about=BEST), lambda row: "*" if row.is_best else ""),
    "test": (Column("test"), lambda row: with_deviation(row.test, row.test_std)),
    "validation": (
        Column("validation", rank=3), lambda row: with_deviation(row.val, row.val_std),
    ),
    "to-best": (
        Column("to best, s", rank=2), lambda row: as_number(row.mean("seconds_to_best"), ".3g"),
    ),
    "epoch": (
        Column("epoch, s", rank=5), lambda row: as_number(row.mean("seconds_per_epoch"), ".3g"),
    ),
    "memory": (Column("memory, MiB", rank=1), lambda row: _mebibytes(row)),
    "difference": (Column("difference", rank=4), lambda row: _difference(row)),
    "p": (Column("p", rank=6, about=P), lambda row: _probability(row)),
    "nodes": (
        Column("nodes/step", rank=8), lambda row: as_number(row.mean("nodes_per_step"), ",.0f"),
    ),
    "edges": (
        Column("edges/step", rank=7), lambda row: as_number(row.mean("edges_per_step"), ",.0f"),
    ),
    "epochs": (Column("epochs", rank=9), lambda row: as_number(row.mean("epochs"), ".0f")),
    SETTINGS: (Column(SETTINGS, left=True, place=FILES), lambda row: row.settings),
}  # fmt: skip


def choose_columns(names: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """The names of columns, each once, from names with commas between; None chooses none."""
    if names is None:
        return None
    given = names.split(",") if isinstance(names, str) else names
    chosen = tuple(dict.fromkeys(name.strip() for name in given))
    if not chosen:
        raise InputError(f"no column was given; name some of {', '.join(SHOWN)}")
    for name in chosen:
        known_name("column", name, tuple(SHOWN))
    return chosen


def default_columns(rows: Sequence[Row], *, swept: bool) -> tuple[str, ...]:
    """All columns that have something to say of these rows."""
    silent = set() if swept else {"best"}
    if not any(row.difference for row in rows):
        silent |= {"difference", "p"}
    return tuple(name for name in SHOWN if name not in silent)


def about_difference(rows: Sequence[Row]) -> str:
    """What the differences are from; nothing where there are none."""
    names = [row.difference.reference for row in rows if row.difference is not None]
    return DIFFERENCE.format(reference=names[0]) if names else ""


def _difference(row: Row) -> str:
    if row.difference is None:
        return "reference" if row.is_reference and row.tests else NONE
    mean, low, high = row.difference.mean, row.difference.low, row.difference.high
    if low is None or high is None:
        return f"{mean:+.4f}"
    return f"{mean:+.4f} [{low:+.4f}, {high:+.4f}]"


def _probability(row: Row) -> str:
    p = None if row.difference is None else row.difference.p
    return "<0.001" if p is not None and p < 0.001 else as_number(p, ".3f")


def _mebibytes(row: Row) -> str:
    value = row.mean("peak_bytes")
    return NONE if value is None else f"{value / 2**20:,.0f}"
