"""Waiting threads go to sleep at once when other work takes the cores."""

import logging
import os
import subprocess
import sys
import threading
import time

import pytest
import torch

from graphfm import waiting
from graphfm.training import crowding

CPU = torch.device("cpu")


@pytest.fixture
def gathered(monkeypatch) -> threading.Event:
    """Is set once idle threads are asked for. Torch has two threads; the user chose nothing."""
    event = threading.Event()
    monkeypatch.setattr(waiting, "CHOSEN", False)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(crowding, "SECONDS", 0.01)
    monkeypatch.setattr(crowding, "gather", lambda num_threads: event.set() or True)
    return event


def test_crowded_cores_are_noticed(gathered, monkeypatch):
    monkeypatch.setattr(crowding, "waited_for_a_core", time.monotonic)  # always one thread waits
    with crowding.patient_if_crowded(CPU):
        assert gathered.wait(30)


def test_on_an_idle_machine_nothing_happens(gathered, monkeypatch):
    looks = threading.Semaphore(0)
    monkeypatch.setattr(crowding, "waited_for_a_core", lambda: looks.release() or 0.0)
    with crowding.patient_if_crowded(CPU):
        assert all(looks.acquire(timeout=30) for _ in range(5))
    assert not gathered.is_set()


@pytest.mark.parametrize("reason", ["the user's choice", "one thread", "a GPU"])
def test_nobody_watches_where_nothing_is_to_be_done(gathered, monkeypatch, reason):
    if reason == "the user's choice":
        monkeypatch.setattr(waiting, "CHOSEN", True)
    if reason == "one thread":
        monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    before = threading.active_count()
    with crowding.patient_if_crowded(torch.device("cuda") if reason == "a GPU" else CPU):
        assert threading.active_count() == before


@pytest.mark.parametrize("too_late", [False, True])
def test_with_another_openmp_the_advice_is_given_once(gathered, monkeypatch, caplog, too_late):
    monkeypatch.setattr(waiting, "TOO_LATE", too_late)
    monkeypatch.setattr(crowding, "waited_for_a_core", time.monotonic)
    monkeypatch.setattr(crowding, "gather", lambda num_threads: gathered.set())
    crowding._advise.cache_clear()
    with caplog.at_level(logging.WARNING, logger="graphfm"):
        for _ in range(2):
            gathered.clear()
            with crowding.patient_if_crowded(CPU):
                assert gathered.wait(30)
    assert [r.getMessage().partition(";")[2][:28] for r in caplog.records] == (
        [" import graphfm before torch"] if too_late else []
    )


@pytest.mark.skipif(not crowding.TASKS.exists(), reason="needs Linux")
def test_the_time_without_a_core_only_grows():
    assert 0 <= crowding.waited_for_a_core() <= crowding.waited_for_a_core()


IDLE = """
import os, threading, time, torch
from graphfm.training import crowding
num_threads = lambda: len(list(crowding.TASKS.iterdir()))
before, during = num_threads(), []
thread = threading.Thread(target=lambda: during.append((crowding.gather(2), num_threads())))
thread.start(); thread.join()
if during[0][0]:  # torch's threads are libgomp's
    cores = len(os.sched_getaffinity(0))
    assert during[0][1] == before + 1 + max(cores - 2 + 2, 2) - 1, (before, during)
    until = time.monotonic() + 30
    while num_threads() > before and time.monotonic() < until:
        time.sleep(0.01)
    assert num_threads() == before
"""


@pytest.mark.skipif(not crowding.TASKS.exists(), reason="needs Linux")
def test_idle_threads_outnumber_the_cores_and_end_with_their_thread():
    subprocess.run([sys.executable, "-c", IDLE], check=True, env=os.environ)
