import time

import pytest
import torch

from graphfm.checkpointing.gpu_sync import GpuSync


@pytest.fixture
def gpu(monkeypatch):
    """A GPU that takes 0.1 s for each step it was given, while giving takes no time."""

    class Gpu:
        now, given, done, waits = 0.0, 0, 0, []

        def wait(self, device):
            self.now += (self.given - self.done) * 0.1
            self.waits.append(self.given - self.done)
            self.done = self.given

    gpu = Gpu()
    gpu.waits = []
    monkeypatch.setattr(torch.cuda, "synchronize", gpu.wait)
    monkeypatch.setattr(time, "monotonic", lambda: gpu.now)
    return gpu


@pytest.mark.parametrize("before", [0, 1000])
def test_a_program_is_a_second_ahead_at_most(gpu, before):
    gpu.given = gpu.done = before
    pace = GpuSync(torch.device("cuda"), before)
    for _ in range(100):
        gpu.given += 1
        pace.keep(gpu.given)
    assert gpu.waits[0] == 1  # to learn how long a step takes
    assert set(gpu.waits[1:]) <= {9, 10}
    assert gpu.now == pytest.approx(10, abs=1)  # the clock tells of steps that were taken


def test_steps_that_take_no_time_are_not_waited_for(gpu):
    pace = GpuSync(torch.device("cuda"))
    for steps in range(1, 10_000):
        pace.keep(steps)
    assert len(gpu.waits) == 1


def test_a_processor_is_never_ahead(gpu):
    pace = GpuSync(torch.device("cpu"))
    pace.keep(5)
    pace.wait()
    assert gpu.waits == []
