"""How much memory a training took."""

import sys

import torch


class PeakMemory:
    """The most allocated on a GPU since this was made; on the CPU, the most the process ever held."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)

    def peak(self) -> int:
        """Bytes; 0 where the system does not tell."""
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device)
        try:
            import resource
        except ImportError:  # not on Windows
            return 0
        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return largest if sys.platform == "darwin" else largest * 1024
