"""What every reader of published files gives, piece by piece."""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from graphfm.data.graph.checks import MOST_CLASSES
from graphfm.errors import InputError
from graphfm.files import check_file

Array = np.ndarray[Any, Any]
MOST_NODES = np.iinfo(np.int32).max  # ids of neighbours are kept in int32
EDGES_AT_ONCE = 1 << 20
NUMBERS_AT_ONCE = 1 << 22  # of features


# A seek to nowhere, a link to itself; others are faults of the disk.
FAULTS_OF_FILES = (None, errno.EINVAL, errno.ELOOP)


class RawGraph(ABC):
    """The files of a dataset. Sizes are known, and agree with the files, once it is made.

    Only labels and split are held in memory whole. Edges may be read more than once.
    """

    num_nodes: int
    num_edges: int
    num_features: int

    def __init__(self, folder: Path, scratch: Path, *, split: str = "") -> None:
        self.folder, self.scratch, self.split_name = folder, scratch, split

    @abstractmethod
    def features(self) -> Iterator[Array]:
        """All rows of features, some at a time."""

    @abstractmethod
    def labels(self) -> Array:
        """[num_nodes] int64, or [num_nodes, num_classes] int8; -1 where there is none."""

    @abstractmethod
    def split(self) -> Array:
        """[num_nodes] int8: 0 train, 1 validation, 2 test, -1 none."""

    @abstractmethod
    def edges(self) -> Iterator[tuple[Array, Array]]:
        """Sources and targets of all edges, some at a time; ids are not checked yet."""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Whatever a damaged file brings about becomes one line that names it."""
    try:
        check_file(path)
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except MemoryError:
        raise InputError(f"{path}: it takes more memory than there is") from None
    except Exception as error:  # gzip, zlib, zip, json and numpy have errors of their own
        if isinstance(error, OSError) and error.errno not in FAULTS_OF_FILES:
            raise  # the disk's
        reason = str(error) or type(error).__name__
        raise InputError(f"{path}: damaged ({reason}); remove it and get it again") from None


def place_split(split: Array, part: int, ids: Array) -> None:
    """Put nodes into a part of the split; refuses unknown nodes, and nodes in two parts."""
    if not ids.size:
        return
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= len(split):
        wrong = low if low < 0 else high
        raise InputError(f"it names node {wrong}; ids run from 0 to {len(split) - 1}")
    if (split[ids] >= 0).any() or np.bincount(ids - low).max() > 1:
        raise InputError("a node is named twice; a node is in one part of the split only")
    split[ids] = part


def check_num_nodes(num_nodes: int) -> None:
    if not 0 < num_nodes <= MOST_NODES:
        raise InputError(f"there are {num_nodes:,} nodes; expected 1 to {MOST_NODES:,}")


def as_classes(values: Array) -> Array:
    """Classes as whole numbers; NaN is no class."""
    known = ~np.isnan(values) if values.dtype.kind == "f" else np.ones(len(values), bool)
    if not known.all():
        values = np.where(known, values, -1)
    if values.size and not ((values >= -1) & (values < MOST_CLASSES)).all():
        raise InputError(f"a label is not in 0 to {MOST_CLASSES - 1}")
    classes: Array = values.astype(np.int64)
    if (classes != values).any():
        raise InputError("a label is not a whole number")
    return classes
