"""Sends waiting threads to sleep at once where other work takes the cores.

Alone, steps are fastest if a thread that waits stays awake for a moment; beside other work, if it
gives up its core. libgomp has no call for that. But it documents that threads stay awake for 100
spins at most (none, with the variables of `graphfm.waiting`) while there are more of them than
cores. So a thread that does nothing keeps a team of threads that do nothing. This also helps where
torch was loaded before graphfm, so that the variables came too late.
"""

from __future__ import annotations

import ctypes
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import torch

from graphfm import waiting

log = logging.getLogger("graphfm")
TASKS, MAPS = Path("/proc/self/task"), Path("/proc/self/maps")
SECONDS = 0.5  # between two looks
CROWDED = 0.05  # the share of its time that a thread is ready to run and has no core


@contextmanager
def patient_if_crowded(device: torch.device) -> Iterator[None]:
    """Watch for other work on the cores, unless the user has chosen how threads wait."""
    if waiting.CHOSEN or device.type != "cpu" or torch.get_num_threads() == 1:
        yield
        return
    over = threading.Event()
    watch = threading.Thread(target=_watch, args=(over, torch.get_num_threads()), daemon=True)
    watch.start()
    try:
        yield
    finally:
        over.set()
        watch.join()  # its team ends with it


def _watch(over: threading.Event, num_threads: int) -> None:
    """Wait until the cores are crowded; from then on keep the team, until the training is over."""
    began, waited = time.monotonic(), waited_for_a_core()
    while not over.wait(SECONDS):
        now, so_far = time.monotonic(), waited_for_a_core()
        if so_far - waited > CROWDED * num_threads * (now - began):
            if gather(num_threads):
                log.debug("other work takes the cores; threads that wait now sleep")
            elif waiting.TOO_LATE:
                _advise()
            over.wait()
            return
        began, waited = now, so_far


@cache
def _advise() -> None:  # once
    log.warning(
        "other work takes the cores, and torch's threads stay awake while they wait, which can "
        "slow down training many times; import graphfm before torch, or set "
        "OMP_WAIT_POLICY=PASSIVE"
    )


def waited_for_a_core() -> float:
    """Seconds that the threads of this process were ready to run and had no core; 0 if unknown."""
    total = 0
    for task in TASKS.glob("*/schedstat"):
        with suppress(OSError, ValueError, IndexError):  # a thread that has just ended
            total += int(task.read_text().split()[1])
    return total / 1e9


def gather(num_threads: int) -> bool:
    """Add idle threads to libgomp's, so that they are more than the cores.

    They last as long as the thread that calls this. False if torch's threads are not libgomp's.
    """
    try:
        mapped = {line.split()[-1] for line in MAPS.read_text().splitlines()}
        if any(name in path for path in mapped for name in ("libiomp", "libomp")):
            return False
        paths = [path for path in mapped if "libgomp" in path]
        for library in map(ctypes.CDLL, paths):
            idle = max(library.omp_get_num_procs() - num_threads + 2, 2)
            library.GOMP_parallel(library.omp_get_thread_num, None, idle, 0)  # any call would do
    except (OSError, IndexError, AttributeError):
        return False
    return bool(paths)
