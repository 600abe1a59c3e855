"""How much memory there is, was used, and will be needed."""

import os
import sys
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import torch

OUT_OF_MEMORY = (
    "DefaultCPUAllocator: can't allocate memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
)


def available_memory() -> int:
    """Bytes of main memory this process may still take; a petabyte where the system is silent."""
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


def full_batch_bytes(
    num_nodes: int, num_edges: int, num_features: int, num_classes: int, layers: int, hidden: int
) -> int:
    """What a full-batch training step of SAGE takes beside the graph, to within a factor of two.

    Per node and layer: the input, the aggregate, the output before and after the activation, and
    the gradients of the widest two rows. Per edge: both CSR forms. Errs on the side of too much.
    """
    widths = [num_features, *[hidden] * (layers - 1), num_classes]
    rows = sum(2 * first + 2 * second for first, second in pairwise(widths))
    return 4 * num_nodes * (rows + 2 * max(widths)) + 28 * num_edges


def size(num_bytes: float) -> str:
    """1536 -> '1.5 KiB'."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if num_bytes < 1024:
            return f"{num_bytes:.0f} B" if unit == "B" else f"{num_bytes:.1f} {unit}"
        num_bytes /= 1024
    return f"{num_bytes:.1f} TiB"


def is_out_of_memory(error: BaseException) -> bool:
    """Did memory run out? Torch has no type of its own for that of the CPU."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return any(sign in str(error) for sign in OUT_OF_MEMORY)


class PeakMemory:
    """The most allocated on a GPU since this was made; on the CPU, the most ever resident."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)

    def peak(self) -> int:
        """Bytes; 0 where the system does not tell."""
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device)
        with suppress(OSError, ValueError, IndexError):
            # getrusage also counts the program that started this one, as large as it was then
            status = Path("/proc/self/status").read_text()
            return int(status.split("VmHWM:")[1].split()[0]) * 1024
        try:
            import resource
        except ImportError:  # not on Windows
            return 0
        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return largest if sys.platform == "darwin" else largest * 1024
