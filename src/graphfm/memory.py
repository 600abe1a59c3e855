"""How much memory is available and was used, and whether an error means it ran out."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import torch

OUT_OF_MEMORY = (
    "DefaultCPUAllocator: can't allocate memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
)
FORGET_PEAK = "5"  # tells Linux to reset the peak of resident memory


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
    """Peak memory of a training: of all of it (`peak`), and of what it measures (`measured`).

    It measures from construction to `stop`, and again from each `start` to the next `stop`. On a
    GPU memory is what is allocated there, since construction; on a CPU it is what is resident in
    the process, for `peak` since the process began. Nothing here waits for the GPU.
    """

    _ever_resident: ClassVar[int] = 0  # up to the last reset, which any of these may have made

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._highest = 0  # up to the last reset
        self.measured: int | None = 0  # None where the system does not reset its peak
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)  # what was before is not of this training
        self.start()

    def start(self) -> None:
        """Forget the peak so far, which still counts for `peak`, and measure."""
        if self.device.type == "cuda":
            self._highest = max(self._highest, torch.cuda.max_memory_allocated(self.device))
            torch.cuda.reset_peak_memory_stats(self.device)
            return
        PeakMemory._ever_resident = max(PeakMemory._ever_resident, _peak_resident())
        if not _forget_resident():
            self.measured = None

    def stop(self) -> None:
        """End a measurement: `measured` is the highest of all."""
        if self.measured is not None:
            self.measured = max(self.measured, self._since_start())

    def peak(self) -> int:
        """Peak in bytes; 0 if the system does not tell."""
        before = self._highest if self.device.type == "cuda" else PeakMemory._ever_resident
        return max(before, self._since_start())

    def _since_start(self) -> int:
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device)
        return _peak_resident()


def _peak_resident() -> int:
    """The most bytes that were resident in this process since `_forget_resident`; 0 if unknown."""
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


def _forget_resident() -> bool:
    """Reset the peak of resident memory; False where the system cannot. Only Linux can."""
    try:
        Path("/proc/self/clear_refs").write_text(FORGET_PEAK)
    except OSError:
        return False
    return True
