"""Theorem 1, its tracking lemma and Proposition 2: numbers and figures of docs/theory.md.

    python benchmarks/theory.py [--out docs/images] [--only gradient,layers]

Prints the numbers of each part (all: gradient, far, floor, layers, halo, threshold), and draws
OUT/theory_PART.png; it takes minutes.
"""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any

import torch
from matplotlib.figure import Figure
from theory_cases import (
    at_rest,
    drift,
    epochs_of,
    floor,
    halo_terms,
    traces,
    tracked,
    with_threshold,
    without_momentum,
)

from graphfm.diagnostics.convergence import fit_slope, printed_coupling, repaired_coupling

SEEDS = 6
RATIOS = (1, 4, 16, 64)
STEPS = 20
COUPLINGS = {
    "repaired coupling": repaired_coupling,
    "printed coupling": printed_coupling,
    "printed coupling, beta x 0.3": partial(printed_coupling, beta=0.3),
    "no momentum (beta 1)": without_momentum,
}


def gradient(panels: Any) -> None:
    """Mean squared gradient norm against T, for two and three layers."""
    steps = [STEPS * ratio for ratio in RATIOS]
    print(f"| layers | settings | {' | '.join(f'T = {t}' for t in steps)} | slope |")
    print(f"|---|---|{'---|' * len(steps)}---|")
    for layers, axes in zip((2, 3), panels, strict=True):
        for name, couple in COUPLINGS.items():
            runs = [
                [trace.mean for trace in row]
                for row in traces(layers, couple, RATIOS, SEEDS, steps=STEPS)
            ]
            middle = [median(values) for values in zip(*runs, strict=True)]
            cells = " | ".join(f"{value:.4f}" for value in middle)
            print(f"| {layers} | {name} | {cells} | {fit_slope(steps, runs)} |", flush=True)
            axes.plot(steps, middle, marker="o", label=name)
        for exponent in (layers + 2, layers + 3):
            line = [middle[0] * ratio ** (-2 / exponent) for ratio in RATIOS]
            style = "--" if exponent == layers + 3 else ":"
            axes.plot(steps, line, style, color="gray", label=f"slope -2/{exponent}")
        axes.set(xscale="log", yscale="log", xlabel="T", title=f"{layers} layers")
        axes.legend(fontsize=7)
    panels[0].set_ylabel("mean squared norm of the exact gradient")


def far(_: Any) -> None:
    """A smaller constant before the printed betas, for longer; two layers, one seed."""
    couple = COUPLINGS["printed coupling, beta x 0.3"]
    ratios = (64, 256, 1024)
    (row,) = traces(2, couple, ratios, 1, steps=STEPS)
    for ratio, trace in zip(ratios, row, strict=True):
        print(f"beta x 0.3, T = {STEPS * ratio}: mean {trace.mean:.4f}, at rest {trace.rest:.4f}")


def floors(panels: Any) -> None:
    """The gradient's norm at rest against a constant beta."""
    betas = (0.1, 0.2, 0.4, 0.8)
    print("\n| layers | " + " | ".join(f"beta {beta}" for beta in betas) + " | slope |")
    print(f"|---|{'---|' * len(betas)}---|")
    runs = [[floor(2, beta, steps=800, seed=seed) for beta in betas] for seed in range(SEEDS)]
    middle = [median(values) for values in zip(*runs, strict=True)]
    cells = " | ".join(f"{value:.4f}" for value in middle)
    print(f"| 2 | {cells} | {fit_slope(betas, runs)} |", flush=True)
    panels[0].plot(betas, middle, marker="o", label="2 layers")
    panels[0].plot(betas, [0.5 * beta for beta in betas], "--", color="gray", label="slope 1")
    panels[0].set(xscale="log", yscale="log", xlabel="beta", ylabel="norm of the mean gradient")
    panels[0].legend(fontsize=7)


def layers(panels: Any) -> None:
    """Y_k from a start at zero, its floor against beta, and its drift against eta / beta."""
    beta, steps, number = 0.2, 60, 31
    tracking = tracked(beta, fanout=99)
    curve = [tracking.errors().mean(dim=1)]
    for _ in range(steps):
        tracking.step()
        curve.append(tracking.errors().mean(dim=1))
    shown = torch.stack(curve) / torch.stack(curve).max(dim=0).values
    lemma = 1 - beta * 15 / (2 * number)
    late = (shown[-1] / shown[steps // 2]) ** (2 / steps)
    print(f"\ncontraction per step, beta {beta}, B / n = 15 / {number}: layers 1 to 3 ", end="")
    print(", ".join(f"{float(rate):.4f}" for rate in late), f"; the lemma allows {lemma:.4f}")
    for k in range(3):
        panels[0].plot(shown[:, k], label=f"layer {k + 1}")
    panels[0].plot([lemma**t for t in range(steps + 1)], "--", color="gray", label="the lemma")
    panels[0].set(
        yscale="log", xlabel="step", ylabel="Y_k, largest = 1", title="no noise: contraction"
    )
    betas = (0.05, 0.1, 0.2, 0.4)
    found = [at_rest(tracked(value), value) for value in betas]
    _lines(panels[1], "beta", betas, found, "noise floor")
    ratios, found = [], []
    for beta, eta in ((0.4, 1e-4), (0.2, 1e-4), (0.2, 2e-4), (0.1, 2e-4)):
        tracking = tracked(beta, fanout=99)
        ratios.append(eta / beta)
        found.append(at_rest(tracking, beta, drift(tracking, eta)))
    _lines(panels[2], "eta / beta", ratios, found, "no noise, moving weights: drift")
    for axes in panels:
        axes.legend(fontsize=7)


def _lines(axes: Any, name: str, x: Any, found: list[torch.Tensor], title: str) -> None:
    """Y_k against x, a line per layer; `found` holds [layers, copies] for each x."""
    print(f"\n{title}: | layer | {' | '.join(f'{name} {value:.4g}' for value in x)} | slope |")
    for k in range(3):
        by_copy = torch.stack([values[k].view(6, -1).mean(dim=1) for values in found], dim=1)
        means = [float(values[k].mean()) for values in found]
        cells = " | ".join(f"{value:.3g}" for value in means)
        print(f"| {k + 1} | {cells} | {fit_slope(x, by_copy.tolist())} |", flush=True)
        axes.plot(x, means, marker="o", label=f"layer {k + 1}")
    axes.set(xscale="log", yscale="log", xlabel=name, title=title)


def halo(panels: Any) -> None:
    """Rows of the halo: error, bound, and GNNAutoScale's error."""
    terms = []
    for seed in range(SEEDS):
        watched = halo_terms(seed)
        for seeds in epochs_of(watched, 5):
            terms += watched.step(seeds)
    total = len(terms)
    over = sum(t.error > t.bound * (1 + 1e-4) + 1e-5 for t in terms)
    printed = sum(t.error > t.as_printed * (1 + 1e-4) + 1e-5 for t in terms)
    nearer = sum(t.stale_error < t.error for t in terms)
    apart = max(float((t.row - t.rebuilt).norm()) for t in terms)
    wrong = max(float((t.row - t.rebuilt_as_printed).norm()) for t in terms)
    print(f"\n{total} rows: {over} above the bound, {printed} above the printed one")
    for name in ("error", "bound", "as_printed", "stale_error"):
        print(f"mean {name} {fmean(getattr(t, name) for t in terms):.4f}")
    print(f"GNNAutoScale's row is nearer to the exact one in {nearer / total:.1%}")
    print(f"rebuilt from its updates, a row is off by at most {apart:.1e}; as printed {wrong:.2f}")
    bounds = [t.bound for t in terms]
    panels[0].scatter(bounds, [t.error for t in terms], s=3, label="GraphFM-OB")
    panels[0].scatter(bounds, [t.stale_error for t in terms], s=3, label="GNNAutoScale's stale row")
    panels[0].plot([0, max(bounds)], [0, max(bounds)], color="gray", label="error = bound")
    panels[0].set(xlabel="bound of Proposition 2", ylabel="error of the halo's row")
    panels[0].legend(fontsize=7)


def threshold(panels: Any) -> None:
    """The two parts of the bound, and the error, against the threshold c."""
    values = (0, 1, 2, 3, 4, 6)
    print("\n| c | updates | staleness term | bias term | error | GNNAutoScale's error |")
    print("|---|---|---|---|---|---|")
    names = ("updates", "staleness", "bias", "error", "stale_error")
    rows = []
    for c in values:
        terms = with_threshold(c, 3)
        rows.append([fmean(float(getattr(t, name)) for t in terms) for name in names])
        print(f"| {c} | {' | '.join(f'{value:.4f}' for value in rows[-1])} |", flush=True)
    for name, found in list(zip(names, zip(*rows, strict=True), strict=True))[1:]:
        label = "GNNAutoScale's error" if name == "stale_error" else name
        panels[0].plot(values, found, marker="o", label=label)
    panels[0].set(yscale="log", xlabel="threshold c", ylabel="mean over rows of the halo")
    panels[0].legend(fontsize=7)


FIGURES: dict[str, tuple[int, Callable[[Any], None]]] = {
    "gradient": (2, gradient), "far": (0, far), "floor": (1, floors), "layers": (3, layers),
    "halo": (1, halo), "threshold": (1, threshold),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, help="folder for the figures; none: only print")
    parser.add_argument("--only", default=",".join(FIGURES), help=f"some of {','.join(FIGURES)}")
    options = parser.parse_args()
    torch.set_num_threads(1)  # small graphs: threads that wait cost more than they save
    if unknown := set(options.only.split(",")) - FIGURES.keys():
        parser.error(f"unknown figure {min(unknown)}; choose some of {','.join(FIGURES)}")
    for name in options.only.split(","):
        width, draw = FIGURES[name]  # panels; with none, the numbers are only printed
        if not width:
            draw(None)
            continue
        figure = Figure(figsize=(1 + 4 * width, 4), dpi=90, layout="constrained")
        panels = figure.subplots(1, width, squeeze=False)[0]
        draw(panels)
        for axes in panels:
            axes.grid(alpha=0.25)
        if options.out is not None:
            options.out.mkdir(parents=True, exist_ok=True)
            figure.savefig(options.out / f"theory_{name}.png")


if __name__ == "__main__":
    main()
