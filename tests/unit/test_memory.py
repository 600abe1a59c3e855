"""Peak memory: of a whole training, and of its preparation and steps alone."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from graphfm import memory
from graphfm.memory import PeakMemory


class FakeGpu:
    """Memory that a test sets, with CUDA's counters of it."""

    def __init__(self) -> None:
        self.now = self.highest = 0

    def use(self, num_bytes: int) -> None:
        self.now, self.highest = num_bytes, max(self.highest, num_bytes)

    def install(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(torch.cuda, "max_memory_allocated", lambda device: self.highest)
        patch.setattr(torch.cuda, "reset_peak_memory_stats", lambda device: self.use_only_now())

    def use_only_now(self) -> None:
        self.highest = self.now


def test_on_a_gpu_what_was_not_measured_counts_for_the_whole_alone(monkeypatch):
    gpu = FakeGpu()
    gpu.install(monkeypatch)
    gpu.use(900)  # by what was before
    gpu.use(10)
    meter = PeakMemory(torch.device("cuda"))
    gpu.use(40)  # preparation
    gpu.use(20)
    meter.stop()
    assert (meter.measured, meter.peak()) == (40, 40)
    gpu.use(300)  # evaluation
    gpu.use(20)
    meter.start()
    gpu.use(70)  # steps
    gpu.use(20)
    meter.stop()
    assert (meter.measured, meter.peak()) == (70, 300)
    gpu.use(400)
    assert (meter.measured, meter.peak()) == (70, 400)


def test_where_the_peak_cannot_be_reset_only_that_of_the_whole_is_known(monkeypatch):
    monkeypatch.setattr(memory, "_forget_resident", lambda: False)
    meter = PeakMemory(torch.device("cpu"))
    meter.stop()
    meter.start()
    meter.stop()
    assert meter.measured is None
    assert meter.peak() > 0


def test_a_system_without_the_file_says_that_it_cannot_reset(monkeypatch):
    def refuse(path, text):
        raise PermissionError

    monkeypatch.setattr(Path, "write_text", refuse)
    assert not memory._forget_resident()


@pytest.mark.skipif(not memory._forget_resident(), reason="this system cannot reset its peak")
def test_on_a_cpu_what_was_not_measured_counts_for_the_whole_alone():
    """In a process of its own: the system may take back what a large one no longer uses."""
    script = """
import torch
from graphfm.memory import PeakMemory
meter = PeakMemory(torch.device("cpu"))
meter.stop()
print(meter.measured)
torch.ones(400 * 2**20, dtype=torch.uint8)  # given back to the system at once
meter.start()
torch.ones(150 * 2**20, dtype=torch.uint8)
meter.stop()
print(meter.measured)
print(meter.peak())
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    before, measured, whole = map(int, ended.stdout.split())
    assert before + 75 * 2**20 < measured < before + 300 * 2**20
    assert whole > before + 300 * 2**20
