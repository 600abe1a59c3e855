"""Limit how far the host runs ahead of the GPU."""

import time

import torch

SECONDS = 1.0  # between two waits, about


class GpuSync:
    """Waits for the GPU about once a second, so that measured times belong to finished steps.

    The host queues work faster than the GPU does it, and the queue may grow to minutes. A wait at
    every step would leave the GPU idle; one per second has no measurable cost.
    """

    def __init__(self, device: torch.device, steps: int = 0) -> None:
        self.device = device
        self._steps, self._since, self._stride = steps, time.monotonic(), 1

    def keep(self, steps: int) -> None:
        """Wait if the last wait was about a second ago; `steps` have been queued in all."""
        taken = steps - self._steps
        if taken >= self._stride:
            self.wait()
            now = time.monotonic()
            self._stride = max(int(taken * SECONDS / max(now - self._since, 1e-6)), 1)
            self._steps, self._since = steps, now

    def wait(self) -> None:
        """Wait until the GPU has finished all queued work."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
