"""A recipe: the run behind one number of the paper, and that number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphfm.runs.named import choose_backbone, choose_method
from graphfm.runs.run import Run, backbone_of, options_of

AS_PUBLISHED = {"as_published": True}
# Where a recipe says nothing: the learning rate stays, and our methods' own defaults do not count.
UNSAID = {"epochs": 100, "lr": 0.01, "schedule": "constant", "hidden": 128, "dropout": 0.5}
TWIN = "same-tuning"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A run, and what the paper reports for it."""

    name: str
    row: str  # label in the table
    run: Run
    source: str  # where the settings come from, and what the published network has beside them
    paper: float | None = None  # test score, 0 to 1
    paper_instead: str = ""  # what the paper prints instead of numbers: OOM
    paper_std: float | None = None
    paper_mebibytes: int | None = None
    paper_seconds: float | None = None  # per epoch
    paper_staleness: tuple[float, ...] = ()
    chosen: tuple[str, ...] = ()  # settings that no source gives, so we chose them

    @property
    def table(self) -> str:
        return self.name.partition("-")[0]

    def options(self, **given: Any) -> dict[str, Any]:
        """Return the run's options in one dictionary, overridden by those `given` and not None."""
        given = {name: value for name, value in given.items() if value is not None}
        flat, run = self._flat(), self.run
        method = given.get("method", run.method)
        choose_method(method)  # refuses one that does not exist
        if own := backbone_of(method):
            given = {"backbone": own, **given}
        backbone = given.get("backbone", run.backbone)
        choose_backbone(backbone)
        if (method, backbone) != (run.method, run.backbone):  # others have other options
            kept = {"dataset", "backbone", "method", *options_of(method, backbone)}
            flat = {name: value for name, value in flat.items() if name in kept}
        return {**flat, **given}

    def departure(self, options: Mapping[str, Any]) -> str | None:
        """Explain why a run with `options` no longer follows this recipe; None if it does."""
        here, run = (options["method"], options["backbone"]), self.run
        if here == (run.method, run.backbone):
            return None
        left = ", ".join(name for name in self._flat() if name not in options)
        return (
            f"{self.name} is a run of {run.method} on {run.backbone}; with {here[0]} on {here[1]} "
            f"it is not a row of the paper{f', and {left} are left out' if left else ''}"
        )

    def _flat(self) -> dict[str, Any]:
        run = self.run
        return {
            "dataset": run.dataset,
            "backbone": run.backbone,
            "method": run.method,
            **run.backbone_settings,
            **run.method_settings,
            **vars(run.training),
        }


def recipe(
    name: str,
    row: str,
    options: Mapping[str, Any],
    *,
    source: str,
    chosen: tuple[str, ...] = (),
    **paper: Any,
) -> Recipe:
    """Make a recipe from options in one dictionary; an option that does not exist is refused."""
    run = Run.make(**{**UNSAID, **options})
    return Recipe(name=name, row=row, run=run, source=source, chosen=chosen, **paper)
