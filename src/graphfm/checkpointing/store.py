"""Checkpoint files: written under another name and renamed, verified before they are used."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from graphfm.checkpointing.errors import ForeignCheckpointError
from graphfm.checkpointing.tensor_file import Pieces, write_tensors
from graphfm.files import (
    atomic_path,
    check_file,
    disk_error,
    make_folder,
    read_json,
    remove_unfinished,
)
from graphfm.memory import is_out_of_memory

FORMAT = 1  # to be raised when the meaning of a state of the same form changes
KEPT = 2  # checkpoints in a folder
MALFORMED = (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
log = logging.getLogger("graphfm")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint whose files are complete and unchanged."""

    tensors: Path
    record: Mapping[str, Any]

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """Open the file of tensors, for `keys()` and `get_tensor(name)`."""
        try:
            with safe_open(self.tensors, framework="pt") as stream:
                yield stream
        except SafetensorError as error:
            raise disk_error(error) from None


class CheckpointStore:
    """The last two checkpoints in a folder: `3.safetensors`, and `3.json` with all other state.

    The JSON is written last and holds the digest of the tensors and its own. So a process that is
    killed while it writes leaves the previous checkpoint, and later changes are detected.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._rejected = set[int]()  # numbers of checkpoints that cannot be used

    def write(self, tensors: Mapping[str, Tensor | Pieces], record: Mapping[str, Any]) -> None:
        """Write a checkpoint and keep the previous one; an OSError leaves the old ones."""
        make_folder(self.folder)
        number = max(self._numbers("*"), default=0) + 1
        path = self._path(number, "safetensors")
        try:
            with atomic_path(path) as unfinished:
                digest = write_tensors(unfinished, tensors)
            about = {"bytes": path.stat().st_size, "sha256": digest}
            state = {"format": FORMAT, "tensors": about, **record}
            with atomic_path(self._path(number, "json")) as unfinished:
                unfinished.write_text(json.dumps({"state": state, "sha256": _digest(state)}))
        except BaseException as error:
            whole = self._path(number, "json").exists()  # a signal came after the last file
            if isinstance(error, Exception) or not whole:
                self._remove(number)
            raise
        self._prune(KEPT)

    def newest(self, check: Callable[[Checkpoint], None] = lambda found: None) -> Checkpoint | None:
        """The newest checkpoint that is complete and that `check` accepts, or None.

        Logs a warning for each one that cannot be used.
        """
        if not self.folder.is_dir():
            return None
        left = sorted(self._numbers("*.json"))
        while left:
            number = left.pop()
            path = self._path(number, "json")
            try:
                found = self._read(number)
                check(found)
                return found
            except ForeignCheckpointError as error:
                raise ForeignCheckpointError(f"{path}: {error}") from None
            except MALFORMED as error:
                if is_out_of_memory(error):
                    raise
                self._rejected.add(number)
                reason = " ".join(str(error).split())[:200] or type(error).__name__
                rest = "trying the previous one" if left else "starting from the beginning"
                log.warning("%s cannot be used (%s); %s", path, reason, rest)
        return None

    def clean(self) -> None:
        """Remove incomplete files that a killed process left behind."""
        if self.folder.is_dir():
            remove_unfinished(self.folder)
            for number in set(self._numbers("*.safetensors")) - set(self._numbers("*.json")):
                self._remove(number)

    def keep_last(self) -> None:
        """Remove all checkpoints except the newest."""
        self._prune(1)

    def remove(self) -> None:
        """Remove all checkpoints and the folder."""
        if self.folder.is_dir():
            self._prune(0)
            remove_unfinished(self.folder)
            self.folder.rmdir()

    @property
    def is_empty(self) -> bool:
        """True if there is no checkpoint that may be used."""
        return self._rejected.issuperset(self._numbers("*.json"))

    def _read(self, number: int) -> Checkpoint:
        whole, path = read_json(self._path(number, "json")), self._path(number, "safetensors")
        if not isinstance(whole, dict) or not isinstance(whole.get("state"), dict):
            raise ValueError("expected a JSON object with an object 'state'")
        state = whole["state"]
        check_file(path)
        if whole["sha256"] != _digest(state):
            raise ValueError("its contents have changed since it was written")
        if state["format"] != FORMAT:
            raise ForeignCheckpointError(
                f"it has format {state['format']}; this program reads {FORMAT}; continue with the "
                "version of graphfm that wrote it (config.json names it), or start a new run"
            )
        if path.stat().st_size != state["tensors"]["bytes"]:
            raise ValueError(f"{path.name} is truncated")
        if _sha256(path) != state["tensors"]["sha256"]:
            raise ValueError(f"the contents of {path.name} have changed since it was written")
        return Checkpoint(path, state)

    def _prune(self, kept: int) -> None:
        """Remove all rejected checkpoints, and all but the newest `kept` of the others."""
        good = sorted(set(self._numbers("*")) - self._rejected)
        for number in self._rejected.union(good[: len(good) - kept]):
            self._remove(number)

    def _remove(self, number: int) -> None:
        with suppress(OSError):
            self._path(number, "json").unlink(
                missing_ok=True
            )  # first: without it the tensors do not count
            self._path(number, "safetensors").unlink(missing_ok=True)

    def _numbers(self, pattern: str) -> list[int]:
        names = {path.stem for path in self.folder.glob(pattern) if not path.name.startswith(".")}
        return [int(name) for name in names if name.isascii() and name.isdecimal()]

    def _path(self, number: int, kind: str) -> Path:
        return self.folder / f"{number}.{kind}"


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _digest(state: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()
