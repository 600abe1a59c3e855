"""Texts of all nodes in two arrays, so that they can be mapped: offsets, and UTF-8 bytes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, overload

import numpy as np

Array = np.ndarray[Any, Any]
AT_ONCE = 1 << 14
SHOWN = 3  # texts that a representation has


class Texts(Sequence[str]):
    """A sequence of texts that reads only what is asked for, a range at once."""

    @abstractmethod
    def _range(self, start: int, stop: int) -> Iterator[str]:
        """The texts from `start` up to, but not including, `stop`."""

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[str, ...]: ...

    def __getitem__(self, place: int | slice) -> str | tuple[str, ...]:
        if isinstance(place, slice):
            start, stop, step = place.indices(len(self))
            if step == 1:
                return tuple(self._range(start, max(start, stop)))
            return tuple(self[row] for row in range(start, stop, step))
        row = range(len(self))[place]
        return next(self._range(row, row + 1))

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), AT_ONCE):
            yield from self._range(start, min(start + AT_ONCE, len(self)))

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:SHOWN]))
        more = ", ..." if len(self) > SHOWN else ""
        return f"{type(self).__name__}({shown}{more}; {len(self):,} in all)"


class TextColumn(Texts):
    """Texts in two arrays, which may be mapped."""

    def __init__(self, offsets: Array, content: Array) -> None:
        self._offsets, self._content = offsets, content

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def _range(self, start: int, stop: int) -> Iterator[str]:
        """Read the bytes of some texts at once; offsets of a damaged file are not trusted."""
        bounds = self._offsets[start : stop + 1].clip(0, len(self._content)).tolist()
        first, last = min(bounds, default=0), max(bounds, default=0)
        content = bytes(self._content[first:last])
        for begin, end in pairwise(bounds):
            yield content[begin - first : end - first].decode("utf-8", "replace")


class NumberColumn(Texts):
    """Whole numbers as texts."""

    def __init__(self, numbers: Array) -> None:
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def _range(self, start: int, stop: int) -> Iterator[str]:
        return map(str, self._numbers[start:stop].tolist())


class ChainedColumn(Texts):
    """Two sequences of texts, one after the other."""

    def __init__(self, first: Sequence[str], second: Sequence[str]) -> None:
        self._first, self._second = first, second

    def __len__(self) -> int:
        return len(self._first) + len(self._second)

    def _range(self, start: int, stop: int) -> Iterator[str]:
        size = len(self._first)
        yield from self._first[min(start, size) : min(stop, size)]
        yield from self._second[max(start - size, 0) : max(stop - size, 0)]


def as_text_arrays(texts: Sequence[str]) -> tuple[Array, Array]:
    """Offsets and bytes of texts that are in memory."""
    encoded = [text.encode() for text in texts]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    return offsets, np.frombuffer(b"".join(encoded), np.uint8)
