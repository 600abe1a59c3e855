"""The interface of all readers of published files, and the checks that they share."""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from graphfm.data.graph.conversion import MOST_CLASSES, MOST_NODES
from graphfm.errors import InputError
from graphfm.files import check_file

Array = np.ndarray[Any, Any]
EDGES_AT_ONCE = 1 << 20
NUMBERS_AT_ONCE = 1 << 22  # feature values


# Caused by the file itself: an invalid seek, a link to itself. Other errors come from the disk.
ERRORS_OF_THE_FILE = (None, errno.EINVAL, errno.ELOOP)


class RawGraph(ABC):
    """The published files of one dataset; the constructor checks all sizes against the files.

    Only labels and split are loaded whole. Edges may be read more than once.
    """

    num_nodes: int
    num_edges: int
    num_features: int

    def __init__(self, folder: Path, scratch: Path, *, split: str = "") -> None:
        self.folder, self.scratch, self.split_name = folder, scratch, split

    @abstractmethod
    def features(self) -> Iterator[Array]:
        """Yield all rows of features, in pieces."""

    @abstractmethod
    def labels(self) -> Array:
        """Return [num_nodes] int64, or [num_nodes, num_classes] int8; -1 means unlabelled."""

    @abstractmethod
    def split(self) -> Array:
        """Return [num_nodes] int8: 0 train, 1 validation, 2 test, -1 none."""

    @abstractmethod
    def edges(self) -> Iterator[tuple[Array, Array]]:
        """Yield sources and targets of all edges, in pieces; ids are not checked yet."""


@contextmanager
def reading(path: Path, advice: str = "remove it and download it again") -> Iterator[None]:
    """Turn every error that a damaged file causes into an InputError that names the file."""
    try:
        check_file(path)
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except MemoryError:
        raise InputError(f"{path}: it takes more memory than is available") from None
    except Exception as error:  # gzip, zlib, zip, json and numpy have errors of their own
        if isinstance(error, OSError) and error.errno not in ERRORS_OF_THE_FILE:
            raise
        reason = str(error) or type(error).__name__
        raise InputError(f"{path}: damaged ({reason}); {advice}") from None


def assign_split(split: Array, part: int, ids: Array) -> None:
    """Assign nodes to a part of the split; refuse unknown nodes and nodes in two parts."""
    if not ids.size:
        return
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= len(split):
        wrong = low if low < 0 else high
        raise InputError(f"it holds node id {wrong}; expected 0 to {len(split) - 1}")
    if (split[ids] >= 0).any() or np.bincount(ids - low).max() > 1:
        raise InputError("it lists a node twice; a node may be in one part of the split only")
    split[ids] = part


def check_num_nodes(num_nodes: int) -> None:
    """Refuse an empty graph and one whose ids do not fit into int32."""
    if not 0 < num_nodes <= MOST_NODES:
        raise InputError(f"it declares {num_nodes:,} nodes; expected 1 to {MOST_NODES:,}")


def as_classes(values: Array) -> Array:
    """Convert classes to int64; NaN becomes -1, unlabelled."""
    known = ~np.isnan(values) if values.dtype.kind == "f" else np.ones(len(values), bool)
    if not known.all():
        values = np.where(known, values, -1)
    if values.size and not ((values >= -1) & (values < MOST_CLASSES)).all():
        raise InputError(f"a label is out of range; expected 0 to {MOST_CLASSES - 1}")
    classes: Array = values.astype(np.int64)
    if (classes != values).any():
        raise InputError("a label is not a whole number; expected class numbers")
    return classes
