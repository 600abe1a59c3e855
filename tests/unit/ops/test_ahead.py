"""Compiling ahead of need: who rehearses what, how often, and who waits for it."""

import threading
from contextlib import nullcontext

import pytest
import torch

from graphfm.ops import ahead, compiled

ROWS = torch.zeros(6, 4)[:, :3]


class Kernel:
    """Writes down how it is called; `hold` keeps a rehearsal from ending."""

    def __init__(self):
        self.compiled, self.launched, self.hold = [], [], threading.Event()
        self.hold.set()

    def warmup(self, *args, grid, **options):
        assert self.hold.wait(10)
        self.compiled.append((args, grid, options))
        return self

    def run(self):
        raise AssertionError("loaded, not started")

    def __getitem__(self, grid):
        return lambda *args, **options: self.launched.append((args, grid, options))


@pytest.fixture
def kernel(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(compiled, "INTERPRETED", False)
    monkeypatch.setattr(ahead, "_expected", set())
    return Kernel()


def test_a_rehearsal_compiles_what_the_job_would_launch(kernel):
    def job(rows, bias):
        assert bias is None
        ahead.launch(kernel, (2, 1), rows, rows.stride(0), RELU=True)

    ahead.expect(job, ROWS, None, key="any")
    ahead.settle()
    (((rows, stride), grid, options),) = kernel.compiled
    assert (rows.shape, rows.device.type, stride) == (ROWS.shape, "meta", 4)
    assert (grid, options) == ((2, 1), {"RELU": True})
    assert not kernel.launched


def test_jobs_with_the_same_key_are_rehearsed_once(kernel):
    def job(rows):
        ahead.launch(kernel, (1,), rows)

    for key in (1, 2, 1, 1):
        ahead.expect(job, ROWS, key=key)
    ahead.settle()
    assert len(kernel.compiled) == 2


def test_a_launch_waits_for_what_is_being_compiled(kernel):
    def job(rows):
        ahead.launch(kernel, (1,), rows)

    kernel.hold.clear()
    ahead.expect(job, ROWS, key="any")
    threading.Timer(0.05, kernel.hold.set).start()
    ahead.launch(kernel, (3,), ROWS)
    assert len(kernel.compiled) == 1
    assert kernel.launched == [((ROWS,), (3,), {})]


def test_a_rehearsal_that_fails_leaves_the_error_to_the_launch(kernel):
    def job(rows):
        raise ValueError("no such kernel")

    ahead.expect(job, ROWS, key="any")
    ahead.launch(kernel, (1,), ROWS)
    assert len(kernel.launched) == 1
    ahead.expect(lambda rows: ahead.launch(kernel, (1,), rows), ROWS, key="another")
    ahead.settle()
    assert len(kernel.compiled) == 1
