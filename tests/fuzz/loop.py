"""Bad inputs through every reader: no traceback, no hang, no memory, nothing half-written.

    python -m tests.fuzz.loop --inputs 20000 --seed 7

Ends with 0 where nothing fell. Each input follows from the seed and its number alone.
"""

import argparse
import base64
import json
import logging
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

from graphfm import InputError
from tests.fuzz.mutations import MARK, mutated, replaced
from tests.fuzz.readers import READERS

SECONDS = 5.0
BYTES = 1 << 30


UNMENDABLE = (ValueError, KeyError, TypeError, OSError, RecursionError)
SMALL, FEW = 3000, 6  # bytes of an input that goes into the corpus; inputs of a reader there


class Hang(BaseException):
    """Not an Exception: nobody may take it for a fault of the file."""


@dataclass
class Report:
    inputs: int = 0
    refused: int = 0
    read: int = 0
    slowest: float = 0.0  # seconds
    memory: int = 0  # bytes by which the address space grew at most
    fallen: list[str] = field(default_factory=list)


class Fuzz:
    """Keeps a good folder for each reader, and spoils a copy of it for each input."""

    def __init__(self, place: Path, seed: int, only: str | None = None) -> None:
        self.place, self.seed, self.report = place, seed, Report()
        self.names = [name for name in sorted(READERS) if only in (None, name)]
        self.distinct: dict[tuple[str, str], tuple[Path, bytes]] = {}  # an input for each refusal
        for name in self.names:
            folder = place / "good" / name
            folder.mkdir(parents=True)
            READERS[name].make(folder)
            shutil.copytree(folder, place / "input" / name)
            READERS[name].read(place / "input" / name)  # what is loaded at first is nobody's
        shutil.rmtree(place / "input")
        self.before = _address_space("VmPeak")

    def run(self, numbers: range) -> Report:
        for number in numbers:
            self.one(number)
        return self.report

    def one(self, number: int) -> None:
        """Spoil, read, look around."""
        dice = random.Random(f"{self.seed} {number}")
        name = self.names[number % len(self.names)]
        folder, report = self.place / "input" / "here", self.report
        shutil.rmtree(self.place / "input", ignore_errors=True)
        shutil.copytree(self.place / "good" / name, folder)
        path = self._spoil(name, folder, dice)
        problem, said = self._read(name, folder)
        if problem:
            report.fallen.append(f"{name}, number {number} ({path.name}): {problem}")
        elif said and path.is_file() and path.stat().st_size < SMALL:
            about = name, re.sub(r"[\d'\"/.]+", "", said)[-60:]
            self.distinct.setdefault(about, (path.relative_to(folder), path.read_bytes()))
        report.inputs += 1

    def again(self, name: str, file: str, content: bytes) -> str:
        """Read an input of the corpus; what is wrong with that, if anything."""
        folder = self.place / "input" / "here"
        shutil.rmtree(self.place / "input", ignore_errors=True)
        shutil.copytree(self.place / "good" / name, folder)
        (folder / file).write_bytes(content)
        with suppress(*UNMENDABLE):
            READERS[name].mend(folder)
        return self._read(name, folder)[0]

    def _spoil(self, name: str, folder: Path, dice: random.Random) -> Path:
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        path = dice.choice(files)
        if dice.random() < 0.03:
            replaced(path, dice)
        else:
            path.write_bytes(mutated(path.name, path.read_bytes(), dice))
            with suppress(*UNMENDABLE):
                READERS[name].mend(folder)
        return path

    def _read(self, name: str, folder: Path) -> tuple[str, str]:
        """What is wrong with how it was read, and what the reader said."""
        before, started, said = _files(self.place / "input"), time.monotonic(), ""
        signal.signal(signal.SIGALRM, _hang)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            READERS[name].read(folder)
            self.report.read += 1
        except InputError as error:
            said = str(error)
            self.report.refused += 1
        except Hang:
            return f"hangs: {traceback.format_exc(limit=-3)}", said
        except BaseException:
            return traceback.format_exc(limit=-4), said
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self.report.slowest = max(self.report.slowest, time.monotonic() - started)
        self.report.memory = max(self.report.memory, _address_space("VmPeak") - self.before)
        return self._around(before, bool(said)), said

    def _around(self, before: set[str], refused: bool) -> str:
        """What is wrong with what a reader left behind."""
        if self.report.memory > BYTES:
            return f"took {self.report.memory:,} bytes"
        if refused and (left := _files(self.place / "input") - before):
            return f"left {sorted(left)[0]}"
        if Path(MARK).exists() or list(self.place.rglob("evil*")):
            return "did what the file said"
        return ""


def _files(folder: Path) -> set[str]:
    names = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    # what a builder works in is removed at the end, and locks and caches are no half-written files
    return {name for name in names if not name.endswith((".lock", "cells.jsonl"))}


def _hang(number: int, frame: object) -> None:
    raise Hang


def _address_space(what: str) -> int:
    """Bytes, resident or not: what is allocated counts, even if it is never touched."""
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{what}:")[1].split()[0]) * 1024


def _entries(fuzz: Fuzz) -> Iterator[str]:
    left = Counter(dict.fromkeys(fuzz.names, FEW))
    for (name, _), (file, content) in fuzz.distinct.items():
        left[name] -= 1
        if left[name] < 0:
            continue
        data = base64.b64encode(content).decode()
        yield json.dumps({"reader": name, "file": str(file), "content": data}) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=sorted(READERS), help="the reader to try")
    parser.add_argument("--corpus", type=Path, help="write an input for each way of refusing")
    given = parser.parse_args()
    corpus = given.corpus and given.corpus.resolve()
    torch.set_num_threads(1)
    logging.getLogger("graphfm").setLevel(logging.ERROR)
    resource.setrlimit(resource.RLIMIT_AS, (8 * BYTES, 8 * BYTES))  # for the sake of others
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        os.environ["GRAPHFM_CACHE"] = str(Path(name, "cache"))
        fuzz = Fuzz(Path(name), given.seed, given.only)
        report = fuzz.run(range(given.first, given.first + given.inputs))
    if corpus:
        corpus.write_text("".join(_entries(fuzz)))
    sys.stdout.write(json.dumps(asdict(report)) + "\n")
    sys.exit(bool(report.fallen))


if __name__ == "__main__":
    main()
