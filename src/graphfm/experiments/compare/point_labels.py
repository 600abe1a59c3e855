"""Places names beside points so that they hide neither each other nor the points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

RINGS = (8, 16, 28, 42, 60, 84, 115, 150)  # distances to try, in pixels
ANGLES = [math.tau * step / 16 for step in range(16)]
AROUND_POINT, AROUND_BAR = 6, 2  # pixels that a label keeps from points and error bars
FAR = 20  # pixels: a label farther away is joined to its point by a line
COLOR = "#222222"


@dataclass(frozen=True)
class Box:
    """A rectangle in pixels."""

    left: float
    bottom: float
    right: float
    top: float

    def overlap(self, other: Box) -> float:
        """The area that both cover."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(width, 0.0) * max(height, 0.0)

    @property
    def area(self) -> float:
        return (self.right - self.left) * (self.top - self.bottom)


def add_labels(
    axes: Any,
    points: Sequence[tuple[float, float]],
    errors: Sequence[float],
    texts: Sequence[str],
) -> list[Box]:
    """Write a text beside each point of `axes`; the layout of its figure must be final."""
    renderer = axes.figure.canvas.get_renderer()
    window = axes.get_window_extent(renderer)
    frame = Box(window.x0, window.y0, window.x1, window.y1)
    to_pixels = axes.transData.transform
    centres = [to_pixels(point) for point in points]
    taken = [_around(x, y, y, AROUND_POINT) for x, y in centres]
    for (x, y), error in zip(points, errors, strict=True):
        (column, low), (_, high) = to_pixels((x, y - error)), to_pixels((x, y + error))
        taken.append(_around(column, low, high, AROUND_BAR))
    placed: list[Box] = []
    for (x, y), point, text in zip(centres, points, texts, strict=True):
        label = axes.annotate(
            text, point, (0, 0), textcoords="offset pixels", fontsize=8, color=COLOR, va="bottom"
        )
        extent = label.get_window_extent(renderer)
        box = _best(x, y, extent.width, extent.height, frame, [*taken, *placed])
        label.set_position((box.left - x, box.bottom - y))
        _lead(axes, (x, y), box)
        placed.append(box)
    return placed


def _best(x: float, y: float, width: float, height: float, frame: Box, taken: Sequence[Box]) -> Box:
    """The place around (x, y) that hides least; among equals the nearest."""

    def cost(box: Box) -> float:
        outside = box.area - box.overlap(frame)
        return 2 * outside + sum(box.overlap(other) for other in taken)

    boxes = [
        _beside(x, y, ring * math.cos(angle), ring * math.sin(angle), width, height)
        for ring in RINGS
        for angle in ANGLES
    ]
    return min(boxes, key=cost)


def _beside(x: float, y: float, dx: float, dy: float, width: float, height: float) -> Box:
    """The box of that size that touches (x + dx, y + dy) and lies away from (x, y)."""
    distance = math.hypot(dx, dy)
    middle_x = x + dx + width / 2 * dx / distance
    middle_y = y + dy + height / 2 * dy / distance
    return Box(
        middle_x - width / 2, middle_y - height / 2, middle_x + width / 2, middle_y + height / 2
    )


def _around(x: float, low: float, high: float, distance: float) -> Box:
    return Box(x - distance, low - distance, x + distance, high + distance)


def _lead(axes: Any, point: tuple[float, float], box: Box) -> None:
    """Draw a thin line from a label to its point where they are far apart."""
    x, y = point
    near = min(max(x, box.left), box.right), min(max(y, box.bottom), box.top)
    if math.dist(point, near) < FAR:
        return
    to_data = axes.transData.inverted().transform
    ends = [to_data(point), to_data(near)]
    axes.plot(*zip(*ends, strict=True), color=COLOR, linewidth=0.5, scalex=False, scaley=False)
