"""Decides which recipes a table consists of, and on which graphs they run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graphfm.data.sources.catalog import CATALOG
from graphfm.data.sources.fetch import is_here
from graphfm.data.synthetic import SHAPES
from graphfm.errors import InputError, known_name
from graphfm.experiments.cell import Cell, PlannedRow, in_turns
from graphfm.recipes import TABLES, recipes
from graphfm.recipes.recipe import Recipe
from graphfm.runs.run import Run, pick_device

SUBSTITUTES = ("debian", "synthetic")
# A substitute tries the table out on a machine without the paper's graphs, in minutes.
SMALL_SCALE, FEW_SEEDS, SEEDS = 0.02, 1, 5
FEW_EPOCHS = {"table2": 10, "table3": 10, "table4": 6, "figure2": 10}  # table4's are the slowest


@dataclass(frozen=True, kw_only=True)
class Line(PlannedRow):
    """One recipe of the paper's table, before it is trained."""

    recipe: Recipe

    @property
    def dataset(self) -> str:
        """The graph that is trained on: the recipe's, or its substitute."""
        return self.cells[0].run.dataset if self.cells else self.recipe.run.dataset


@dataclass(frozen=True, kw_only=True)
class ReproductionPlan:
    """Every recipe of a table, for every seed, settled before anything is trained."""

    table: str
    lines: tuple[Line, ...]
    seeds: int
    substitute: str | None
    epochs: int | None  # instead of the recipes' own
    device: str

    @classmethod
    def make(
        cls,
        table: str,
        *,
        datasets: Sequence[str] | None = None,
        backbones: Sequence[str] | None = None,
        seeds: int | None = None,
        substitute: str | None = None,
        scale: float | None = None,
        epochs: int | None = None,
        device: str = "auto",
    ) -> ReproductionPlan:
        """Make the plan for a table; None is not given."""
        known_name("table", table, TABLES)
        if substitute is not None:
            known_name("substitute", substitute, SUBSTITUTES)
        if scale is not None and substitute != "synthetic":
            raise InputError(
                f"scale is {scale}, but it is the size of a synthetic substitute; add "
                "--substitute synthetic, or leave out --scale"
            )
        seeds = (SEEDS if substitute is None else FEW_SEEDS) if seeds is None else seeds
        if not 1 <= seeds <= 1000:
            raise InputError(f"seeds is {seeds}; expected 1 to 1000: it is how many, not which")
        wanted = _wanted(table, datasets, backbones)
        place = str(pick_device(device))
        scale = SMALL_SCALE if scale is None else scale
        SHAPES["small"].times(scale)  # refuses a scale that makes no graph
        epochs = FEW_EPOCHS[table] if epochs is None and substitute is not None else epochs
        lines = tuple(_line(recipe, seeds, substitute, scale, epochs, place) for recipe in wanted)
        return cls(
            table=table, lines=lines, seeds=seeds, substitute=substitute, epochs=epochs,
            device=place,
        )  # fmt: skip

    @property
    def cells(self) -> list[Cell]:
        """In the order to run them: every recipe once before any a second time."""
        return in_turns(self.lines)


def _wanted(
    table: str, datasets: Sequence[str] | None, backbones: Sequence[str] | None
) -> list[Recipe]:
    of_table = [recipe for recipe in recipes().values() if recipe.table == table]
    for what, given in (("dataset", datasets), ("backbone", backbones)):
        known = tuple(dict.fromkeys(getattr(recipe.run, what) for recipe in of_table))
        for name in given or ():
            known_name(f"{what} of {table}", name, known)
    return [
        recipe
        for recipe in of_table
        if (not datasets or recipe.run.dataset in datasets)
        and (not backbones or recipe.run.backbone in backbones)
    ]


def _line(
    recipe: Recipe, seeds: int, substitute: str | None, scale: float, epochs: int | None, place: str
) -> Line:
    dataset = recipe.run.dataset
    if substitute is None and dataset in CATALOG and not is_here(dataset):
        refusal = f"{dataset} is not on this machine; get it with: graphfm datasets fetch {dataset}"
        return Line(recipe=recipe, refusal=refusal)
    if substitute == "synthetic":
        assert dataset in SHAPES
        dataset = f"synthetic:{dataset}:{scale:g}"
    elif substitute is not None:
        dataset = substitute
    given: dict[str, Any] = {"dataset": dataset, "epochs": epochs, "device": place}
    if epochs is not None:
        given["eval_every"] = min(recipe.run.training.eval_every, max(epochs // 10, 1))
    runs = [Run.make(**recipe.options(**given, seed=seed)) for seed in range(seeds)]
    cells = tuple(Cell(run, f"{recipe.name}, seed {run.training.seed}") for run in runs)
    return Line(recipe=recipe, cells=cells)
