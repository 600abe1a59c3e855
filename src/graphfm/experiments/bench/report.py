"""Measurements and profiles as tables."""

from __future__ import annotations

from collections.abc import Sequence

from graphfm.experiments.bench.measurement import Measurement, Side
from graphfm.experiments.bench.profile import SHOWN, StepProfile
from graphfm.memory import size

LONGEST = 60  # characters of a kernel's name


def table(measured: Sequence[Measurement]) -> list[list[str]]:
    """Cells as text, the header first."""
    header = [
        "dataset", "method", "epoch, s", "min to max", "warm-up, s", "rival, s", "ratio",
        "its spread", "peak", "an epoch's", "of rival's", "floor, s", "of floor", "note",
    ]  # fmt: skip
    return [header, *(_row(one) for one in measured)]


def _row(one: Measurement) -> list[str]:
    ratio, rival = one.ratio, one.rival
    added, share = one.ours.added_bytes, one.memory_ratio
    return [
        one.case.dataset,
        one.case.name,
        _seconds(one.ours.seconds),
        _spread(one.ours),
        _seconds(one.ours.warmup_seconds),
        "-" if rival is None else _seconds(rival.seconds),
        "-" if ratio is None else f"{ratio:.3g}",
        "-" if ratio is None else f"{min(one.ratios):.3g} to {max(one.ratios):.3g}",
        size(one.ours.peak_bytes),
        "-" if added is None else size(added),
        "-" if share is None else f"{share:.2f}",
        "-" if one.floor_seconds is None else _seconds(one.floor_seconds),
        "-" if one.floor_share is None else f"{one.floor_share:.1%}",
        _note(one),
    ]


def _note(one: Measurement) -> str:
    if one.rival is not None:
        return f"against {one.rival.name}"
    return "" if one.no_rival is None else f"no rival: {one.no_rival}"


def _spread(side: Side) -> str:
    seconds = [epoch.seconds for epoch in side.epochs]
    return f"{_seconds(min(seconds))} to {_seconds(max(seconds))}"


def _seconds(value: float) -> str:
    return f"{value:.3g}"


def profile_table(found: StepProfile) -> list[list[str]]:
    """The slowest parts, the rest as one line, and all of them."""
    header = ["row", "calls/step", "ms/step", "share"]
    body = [
        [_short(part.name), f"{part.calls:.1f}", f"{part.seconds * 1e3:.3f}", f"{part.share:.1%}"]
        for part in found.parts[:SHOWN]
    ]
    rest = found.parts[SHOWN:]
    if rest:
        calls, seconds = sum(p.calls for p in rest), sum(p.seconds for p in rest)
        name = f"{len(rest)} others"
        share = sum(p.share for p in rest)
        body.append([name, f"{calls:.1f}", f"{seconds * 1e3:.3f}", f"{share:.1%}"])
    body.append(["all", f"{found.calls:.1f}", f"{found.busy * 1e3:.3f}", "100.0%"])
    return [header, *body]


def profile_title(found: StepProfile) -> str:
    return (
        f"{found.case.dataset}, {found.case.name}: {found.seconds * 1e3:.3f} ms a step; "
        f"in a pass of its own that was recorded: {found.calls:.0f} calls, "
        f"{found.busy * 1e3:.3f} ms in them"
    )


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 3] + "..."
