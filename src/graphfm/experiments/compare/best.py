"""Which rows are best on validation, and how far the others lie from the best of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

from graphfm.experiments.compare.row import Difference, Row
from graphfm.experiments.paired import paired


def judged(rows: Sequence[Row]) -> list[Row]:
    """Mark the best row of each method and of all, and compare test scores with the latter's.

    Only validation chooses: a row chosen by its test score would look better than it is.
    """
    reference = best_on_validation(rows)
    by_method = {row.method: [r for r in rows if r.method == row.method] for row in rows}
    best = [best_on_validation(found) for found in by_method.values()]
    return [
        replace(
            row,
            is_best=any(row is one for one in best),
            is_reference=row is reference,
            difference=None if reference is None else _difference(row, reference),
        )
        for row in rows
    ]


def best_on_validation(rows: Sequence[Row]) -> Row | None:
    """The row with the best mean, of those with the most seeds: a mean of fewer is more of luck."""
    most = max((len(row.scores) for row in rows), default=0)
    whole = [row for row in rows if row.scores and len(row.scores) == most]
    return max(whole, key=lambda row: row.gain, default=None)


def _difference(row: Row, reference: Row) -> Difference | None:
    if row is reference:
        return None
    found = paired(row.tests_by_seed, reference.tests_by_seed)
    return None if found is None else Difference(**asdict(found), reference=reference.name)
