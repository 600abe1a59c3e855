"""How far a program may run ahead of its GPU."""

import time

import torch

SECONDS = 1.0


class GpuSync:
    """Waits for the GPU about once a second, so that clocks tell of steps that were taken.

    A GPU is given work and does it later; minutes of it may be waiting. A wait at every step would
    leave it idle, one in a second costs nothing that can be measured.
    """

    def __init__(self, device: torch.device, steps: int = 0) -> None:
        self.device = device
        self._steps, self._since, self._stride = steps, time.monotonic(), 1

    def keep(self, steps: int) -> None:
        """So many steps were given out."""
        taken = steps - self._steps
        if taken >= self._stride:
            self.wait()
            now = time.monotonic()
            self._stride = max(int(taken * SECONDS / max(now - self._since, 1e-6)), 1)
            self._steps, self._since = steps, now

    def wait(self) -> None:
        """Until everything is done that was given out."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
