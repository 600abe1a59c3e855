"""Which processes work on a folder: each holds a lock for as long as it lives, however it ends."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from graphfm.files import make_folder

WORKERS, LOCK, CLAIMS = ".workers", "lock", "claims.lock"


@contextmanager
def alone(place: Path) -> Iterator[None]:
    """Let one process at a time into the block; the lock ends with the process."""
    try:
        import fcntl
    except ImportError:  # Windows has no fcntl
        yield
        return
    handle = os.open(place, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


class Lease:
    """The lock of this process, and a folder for its scratch files."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def name(self) -> str:
        return self.path.name

    def alone(self) -> AbstractContextManager[None]:
        """A block that one process at a time may be in."""
        return alone(self.path.parent / CLAIMS)

    @classmethod
    @contextmanager
    def take(cls, out: Path) -> Iterator[Lease]:
        """Join those who work on the folder `out`, and remove what dead processes left there."""
        folder = out / WORKERS
        make_folder(folder)
        lease = cls(folder / uuid.uuid4().hex[:12])
        with alone(folder / CLAIMS):  # otherwise the lock might be looked at before it is taken
            lease.path.mkdir()
            handle = os.open(lease.path / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
            _lock(handle)
            for other in folder.iterdir():
                if other.is_dir() and not lease.is_alive(other.name):
                    shutil.rmtree(other, ignore_errors=True)
        try:
            yield lease
        finally:
            os.close(handle)
            shutil.rmtree(lease.path, ignore_errors=True)

    def is_alive(self, name: str | None) -> bool:
        """True if the process of that name still runs."""
        if name == self.name:
            return True
        if not name or not (place := self.path.parent / name / LOCK).exists():
            return False
        try:
            handle = os.open(place, os.O_RDWR)
        except OSError:
            return False
        try:
            return not _lock(handle)
        finally:
            os.close(handle)


def _lock(handle: int) -> bool:
    """True if the lock was free; where there are no locks, every process is thought to be alone."""
    try:
        import fcntl
    except ImportError:  # Windows has no fcntl
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True
