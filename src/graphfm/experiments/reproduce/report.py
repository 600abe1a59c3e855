"""A table of the paper beside ours: text, Markdown, CSV and HTML."""

from __future__ import annotations

import csv
import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev

from graphfm.experiments.compare.report import as_markdown
from graphfm.experiments.outcome import Outcome
from graphfm.experiments.reproduce.plan import Line, ReproductionPlan
from graphfm.files import atomic_path
from graphfm.training.callbacks import Score

Table = list[list[str]]
NONE = "-"


def table(plan: ReproductionPlan, outcomes: Mapping[str, Outcome]) -> Table:
    """Cells as text, the header first."""
    if plan.table == "table4":
        return _staleness_table(plan, outcomes)
    header = [
        "row", "dataset", "paper", "ours", "difference", "paper, s", "epoch, s", "paper, MiB",
        "memory, MiB", "seeds", "note",
    ]  # fmt: skip
    return [header, *(_line(line, outcomes) for line in plan.lines)]


def describe(plan: ReproductionPlan) -> str:
    """One line: what stands in the table."""
    graphs = {cell.run.dataset for cell in plan.cells}
    seeds = f"{plan.seeds} {'seed' if plan.seeds == 1 else 'seeds'}"
    text = f"{plan.table}, {seeds} at most, on {plan.device}"
    if plan.substitute and plan.cells:
        text += f"; NOT the paper's graphs but {', '.join(sorted(graphs))}"
    if plan.epochs is not None:
        text += f"; NOT the paper's epochs but {plan.epochs}"
    return text


def write_report(path: Path, plan: ReproductionPlan, outcomes: Mapping[str, Outcome]) -> None:
    """`table.md`, `table.csv` and `table.html`, each whole or not at all, and the figure."""
    cells = table(plan, outcomes)
    with atomic_path(path / "table.md") as unfinished:
        unfinished.write_text(f"{describe(plan)}\n\n{as_markdown(cells)}", encoding="utf-8")
    with atomic_path(path / "table.html") as unfinished:
        unfinished.write_text(_html(describe(plan), cells), encoding="utf-8")
    with (
        atomic_path(path / "table.csv") as unfinished,
        unfinished.open("w", newline="", encoding="utf-8") as stream,
    ):
        csv.writer(stream).writerows(cells)
    if plan.table == "figure2" and any(_scores(line, outcomes) for line in plan.lines):
        from graphfm.experiments.reproduce.picture import draw_figure2

        with atomic_path(path / "figure2.png") as unfinished:
            draw_figure2(plan, outcomes, unfinished)


def _line(line: Line, outcomes: Mapping[str, Outcome]) -> list[str]:
    recipe, scores = line.recipe, _scores(line, outcomes)
    tests = [score.test for score in scores if score.test is not None]
    ours = fmean(tests) if tests else None
    dataset = line.cells[0].run.dataset if line.cells else recipe.run.dataset
    difference = NONE
    if ours is not None and recipe.paper is not None and dataset == recipe.run.dataset:
        difference = f"{ours - recipe.paper:+.4f}"  # of another graph it would say nothing
    return [
        recipe.row,
        dataset,
        _with_spread(recipe.paper, recipe.paper_std),
        _with_spread(ours, stdev(tests) if len(tests) > 1 else None),
        difference,
        NONE if recipe.paper_seconds is None else f"{recipe.paper_seconds:g}",
        _mean(scores, "seconds_per_epoch", ".3g"),
        NONE if recipe.paper_mebibytes is None else f"{recipe.paper_mebibytes:,}",
        _mean(scores, "peak_bytes", ",.0f", 1 / 2**20),
        str(len(scores)),
        _note(line, outcomes),
    ]


def _staleness_table(plan: ReproductionPlan, outcomes: Mapping[str, Outcome]) -> Table:
    header = ["row", "dataset", "layer", "paper", "ours", "relative", "test", "seeds", "note"]
    body = []
    for line in plan.lines:
        recipe, scores = line.recipe, _scores(line, outcomes)
        dataset = recipe.run.dataset if not line.cells else line.cells[0].run.dataset
        measured = [score.staleness for score in scores if score.staleness]
        tests = [score.test for score in scores if score.test is not None]
        for layer in range(recipe.run.backbone_settings["layers"] - 1):
            paper = recipe.paper_staleness[layer] if recipe.paper_staleness else None
            ours = [of_seed[layer] for of_seed in measured]
            body.append([
                recipe.row, dataset, str(layer + 1), NONE if paper is None else f"{paper:.4f}",
                *(_average([of[name] for of in ours]) for name in ("score", "relative")),
                f"{fmean(tests):.4f}" if tests else NONE, str(len(scores)), _note(line, outcomes),
            ])  # fmt: skip
    return [header, *body]


def _note(line: Line, outcomes: Mapping[str, Outcome]) -> str:
    if line.absent:
        return line.absent
    ended = [outcomes[cell.key] for cell in line.cells if cell.key in outcomes]
    errors = [outcome.error for outcome in ended if outcome.error]
    if errors:
        return f"{len(errors)} of {len(line.cells)} failed: {errors[0]}"
    return f"chosen here: {'; '.join(line.recipe.chosen)}" if line.recipe.chosen else ""


def _scores(line: Line, outcomes: Mapping[str, Outcome]) -> list[Score]:
    ended = [outcomes[cell.key].score for cell in line.cells if cell.key in outcomes]
    return [score for score in ended if score is not None]


def _average(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{fmean(known):.4f}" if known else NONE


def _with_spread(mean: float | None, spread: float | None) -> str:
    if mean is None:
        return NONE
    return f"{mean:.4f}" if spread is None else f"{mean:.4f} ± {spread:.4f}"


def _mean(scores: Sequence[Score], name: str, form: str, factor: float = 1) -> str:
    return f"{fmean(getattr(s, name) for s in scores) * factor:{form}}" if scores else NONE


def _html(title: str, cells: Table) -> str:
    header, *body = cells
    head = "".join(f"<th>{html.escape(text)}</th>" for text in header)
    rows = "\n".join(
        "<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in line) + "</tr>"
        for line in body
    )
    return (
        f"<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><title>{html.escape(title)}"
        "</title><style>table{border-collapse:collapse}td,th{border:1px solid #999;padding:2px 8px}"
        f"</style></head>\n<body><h1>{html.escape(title)}</h1>\n<table>\n<tr>{head}</tr>\n{rows}\n"
        "</table></body></html>\n"
    )
