"""How much memory is available and was used, and whether an error means it ran out."""

import os
import sys
from contextlib import suppress
from pathlib import Path

import torch

OUT_OF_MEMORY = (
    "DefaultCPUAllocator: can't allocate memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
)


def available_memory() -> int:
    """Bytes of main memory that this process may still take; 2**50 if the system does not tell."""
    limits = [1 << 50]
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        limits += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvail")]
    with suppress(OSError, ValueError):
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    if len(limits) == 1:
        with suppress(AttributeError, ValueError, OSError):
            limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(limits)


def size(num_bytes: float) -> str:
    """Format a number of bytes: 1536 -> '1.5 KiB'."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if num_bytes < 1024:
            return f"{num_bytes:.0f} B" if unit == "B" else f"{num_bytes:.1f} {unit}"
        num_bytes /= 1024
    return f"{num_bytes:.1f} TiB"


def is_out_of_memory(error: BaseException) -> bool:
    """True if memory ran out; for the CPU torch raises a plain RuntimeError."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return any(message in str(error) for message in OUT_OF_MEMORY)


class PeakMemory:
    """Peak memory: allocated on a GPU since construction, or ever resident on the CPU."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)

    def peak(self) -> int:
        """Peak in bytes; 0 if the system does not tell."""
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device)
        with suppress(OSError, ValueError, IndexError):
            # getrusage would include the size of the parent process at the fork
            status = Path("/proc/self/status").read_text()
            return int(status.split("VmHWM:")[1].split()[0]) * 1024
        try:
            import resource
        except ImportError:  # Windows has no resource module
            return 0
        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return largest if sys.platform == "darwin" else largest * 1024
