"""Files that appear whole or not at all."""

import errno
import json
import logging
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from graphfm.errors import InputError

# What `atomic_path` writes to, and what safetensors writes beside that before it renames it.
UNFINISHED = re.compile(r"\..*\.\d+\.unfinished|\.tmp\w{6}")
log = logging.getLogger("graphfm")


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A path to write to; it takes the place of `path` when the block ends without an error.

    It is on the disk before it takes that place, and stays there: it outlives a loss of power.
    """
    if not path.parent.is_dir():
        raise InputError(f"cannot write {path}: there is no folder {path.parent}; make it first")
    if path.exists() and not path.is_file():
        raise InputError(f"cannot write {path}: it is not a file; choose another name")
    try:
        path = path.resolve()  # a link stays a link, and what it leads to is replaced
    except RuntimeError:  # of Python before 3.13
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from None
    unfinished = path.parent / f".{path.name}.{os.getpid()}.unfinished"
    try:
        yield unfinished
        os.chmod(unfinished, 0o666 & ~_umask())  # some writers make private files
        _sync(unfinished)
        os.replace(unfinished, path)
        _sync(path.parent)
    finally:
        unfinished.unlink(missing_ok=True)


def make_folder(path: Path, *, exist_ok: bool = True) -> None:
    """Make a folder, and those above it, that outlive a loss of power."""
    missing = [place for place in (path, *path.parents) if not place.exists()]
    path.mkdir(parents=True, exist_ok=exist_ok)
    for place in missing:
        _sync(place.parent)


@contextmanager
def folder_for(path: Path) -> Iterator[None]:
    """A folder to write to; it, and those above it, are gone again where nothing was written."""
    missing = [place for place in (path, *path.parents) if not place.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        for place in missing:
            with suppress(OSError):  # it is not empty
                place.rmdir()


def disk_error(error: Exception) -> OSError:
    """What safetensors says of a disk, as Python says it."""
    text = " ".join(str(error).split())
    if found := re.search(r"os error (\d+)", text):
        return OSError(int(found[1]), os.strerror(int(found[1])))
    return OSError(text)


def remove_unfinished(folder: Path) -> None:
    """Remove what a process that was killed had begun to write to a folder; nobody may be at it."""
    for path in folder.iterdir():
        if UNFINISHED.fullmatch(path.name):
            path.unlink(missing_ok=True)


def check_file(path: Path) -> None:
    """Refuse what has no end, or never begins, in the place of a file: a device, a pipe."""
    if path.exists() and not path.is_file():
        raise InputError("it is not a file")


def read_json(path: Path) -> Any:
    """What a JSON file holds, of which nothing is believed yet."""
    check_file(path)
    return json.loads(path.read_text(encoding="utf-8"))


def cache_folder(name: str) -> Path:
    """Where things of a kind are kept: in $GRAPHFM_CACHE, or else in the user's cache folder."""
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(os.environ.get("GRAPHFM_CACHE") or Path(user, "graphfm")) / name


def data_folder(root: str | Path | None = None) -> Path:
    """Where datasets are: at `root`, in $GRAPHFM_DATA, or else in the user's cache folder.

    $GRAPHFM_CACHE has no say in it: a cache may be emptied, and datasets took hours to get.
    """
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(root or os.environ.get("GRAPHFM_DATA") or Path(user, "graphfm", "data"))


@contextmanager
def sole_user(folder: Path) -> Iterator[None]:
    """A folder for this process alone, however it ends; refuses one that another process uses."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    place = os.open(folder, os.O_RDONLY)  # the folder itself: no file of locks is left behind
    try:
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"another process works on {folder}; wait until it ends, or choose another folder"
            ) from None
        except OSError:  # a file system without locks
            log.info("%s cannot be locked: let no other process use it", folder)
        yield
    finally:
        os.close(place)


@contextmanager
def locked(path: Path, waiting: str) -> Iterator[None]:
    """One process at a time comes past here; another one says why it waits, and waits.

    A folder is locked itself; a file is made for it, and stays.
    """
    try:
        import fcntl
    except ImportError:  # not on Windows, where nobody waits
        yield
        return
    place = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.info(waiting)
            fcntl.flock(place, fcntl.LOCK_EX)
        except OSError:  # a file system without locks, where nobody waits
            pass
        yield
    finally:
        os.close(place)  # the lock ends with it, or with the process


def check_room(folder: Path, num_bytes: int) -> None:
    """Refuse what the disk has no room for."""
    free = shutil.disk_usage(folder).free
    if num_bytes > free:
        raise InputError(
            f"{num_bytes:,} bytes are to be written to {folder}, where {free:,} are free; "
            "make room, or choose another folder"
        )


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    if os.name != "posix":  # Windows opens no folders
        return
    place = os.open(path, os.O_RDONLY)
    try:
        os.fsync(place)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that cannot
            raise
    finally:
        os.close(place)


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask
