"""Atomic writes, locks, folders of caches and data, and checks before reading or writing."""

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

# Temporary names of `atomic_path`, and of safetensors, which writes next to its target first.
UNFINISHED = re.compile(r"\..*\.\d+\.unfinished|\.tmp\w{6}")
log = logging.getLogger("graphfm")


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Give a temporary path to write to; it replaces `path` if the block ends without an error.

    Both the file and its name are flushed to disk, so the result survives a power failure.
    """
    if not path.parent.is_dir():
        raise InputError(f"cannot write {path}: no such folder {path.parent}; create it first")
    if path.exists() and not path.is_file():
        raise InputError(f"cannot write {path}: it is not a file; choose another name")
    try:
        path = path.resolve()  # a symbolic link stays, and its target is replaced
    except RuntimeError:  # a link to itself, in Python before 3.13
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from None
    unfinished = path.parent / f".{path.name}.{os.getpid()}.unfinished"
    try:
        yield unfinished
        os.chmod(unfinished, 0o666 & ~_umask())  # some writers create private files
        _sync(unfinished)
        os.replace(unfinished, path)
        _sync(path.parent)
    finally:
        unfinished.unlink(missing_ok=True)


def make_folder(path: Path, *, exist_ok: bool = True) -> None:
    """Create a folder and its parents, and flush their names to disk."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=exist_ok)
    for folder in missing:
        _sync(folder.parent)


@contextmanager
def folder_for(path: Path) -> Iterator[None]:
    """Create a folder and its parents for a block; remove those that stay empty."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        for folder in missing:
            with suppress(OSError):  # it is not empty
                folder.rmdir()


def disk_error(error: Exception) -> OSError:
    """Turn an error that safetensors raises about a disk into Python's OSError."""
    text = " ".join(str(error).split())
    if code := re.search(r"os error (\d+)", text):
        return OSError(int(code[1]), os.strerror(int(code[1])))
    return OSError(text)


def remove_unfinished(folder: Path) -> None:
    """Remove the temporary files of a killed process; no other process may use the folder."""
    for path in folder.iterdir():
        if UNFINISHED.fullmatch(path.name):
            path.unlink(missing_ok=True)


def check_file(path: Path) -> None:
    """Refuse a device, a pipe or a folder, which cannot be read like a file."""
    if path.exists() and not path.is_file():
        raise InputError("it is not a file")


def read_json(path: Path) -> Any:
    """Read a JSON file; the caller must check what it holds."""
    check_file(path)
    return json.loads(path.read_text(encoding="utf-8"))


def cache_folder(name: str) -> Path:
    """A folder inside $GRAPHFM_CACHE, or inside `graphfm` in the user's cache folder."""
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(os.environ.get("GRAPHFM_CACHE") or Path(user, "graphfm")) / name


def data_folder(root: str | Path | None = None) -> Path:
    """The folder of all datasets: `root`, $GRAPHFM_DATA, or a folder in the user's cache.

    $GRAPHFM_CACHE does not matter here: a cache may be emptied, but datasets took hours to fetch.
    """
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(root or os.environ.get("GRAPHFM_DATA") or Path(user, "graphfm", "data"))


@contextmanager
def sole_user(folder: Path) -> Iterator[None]:
    """Lock a folder for this process; refuse one that another process uses."""
    try:
        import fcntl
    except ImportError:  # Windows has no fcntl
        yield
        return
    handle = os.open(folder, os.O_RDONLY)  # locks the folder itself, so no lock file remains
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"another process uses {folder}; wait until it ends, or choose another folder"
            ) from None
        except OSError:  # a file system without locks
            log.info("%s cannot be locked; do not let another process use it", folder)
        yield
    finally:
        os.close(handle)


@contextmanager
def locked(path: Path, waiting: str) -> Iterator[None]:
    """Let one process at a time into the block; the others log `waiting` and wait.

    If `path` is not a folder, it is created as a lock file and stays.
    """
    try:
        import fcntl
    except ImportError:  # Windows has no fcntl
        yield
        return
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.info(waiting)
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(handle)  # this releases the lock; so does the end of the process


def check_room(folder: Path, num_bytes: int) -> None:
    """Refuse to write more than the disk has room for."""
    free = shutil.disk_usage(folder).free
    if num_bytes > free:
        raise InputError(
            f"{folder} needs {num_bytes:,} bytes, but only {free:,} are free; make room, or choose "
            "another folder"
        )


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    if os.name != "posix":  # Windows cannot open folders
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # not supported by the file system
            raise
    finally:
        os.close(handle)


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask
