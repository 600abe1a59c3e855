"""Ways to sum neighbours' rows, as multiples of the time of the one that GraphFM uses.

python benchmarks/aggregate.py [--device cpu|cuda] [--dataset debian] [--width 128]
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from graphfm import load
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.kernels import weighted_sum

warnings.filterwarnings("ignore", message="Sparse")


def seconds(work: Callable[[], Tensor], device: str, repeats: int = 9) -> float:
    """Median time of one call."""
    times = []
    for _ in range(repeats + 2):
        started = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - started)
    return statistics.median(times[2:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dataset", default="debian")
    parser.add_argument("--width", type=int, default=128)
    options = parser.parse_args()
    graph = load(options.dataset, device=options.device)
    block = Adjacency.mean(graph).full_block()
    edges, n = block.edges, graph.num_nodes
    h = torch.randn(n, options.width, device=options.device)
    row, col, weight = edges.row.long(), edges.col.long(), edges.weight.unsqueeze(1)
    int64 = torch.sparse_csr_tensor(edges.indptr.long(), col, edges.weight, (n, n))
    int32 = torch.sparse_csr_tensor(edges.indptr, edges.col, edges.weight, (n, n))
    ways: dict[str, Callable[[], Tensor]] = {
        "graphfm.kernels.weighted_sum": lambda: weighted_sum(h, block),
        "CSR product, int32": lambda: int32 @ h,
        "CSR product, int64": lambda: int64 @ h,
        "embedding_bag": lambda: embedding_bag(
            edges.col, h, edges.indptr[:-1], mode="sum", per_sample_weights=edges.weight
        ),
        "index_add": lambda: torch.zeros_like(h).index_add_(0, row, h[col] * weight),
        "segment_reduce": lambda: torch.segment_reduce(
            h[col] * weight, "sum", offsets=edges.indptr.long(), axis=0
        ),
    }
    times = {name: seconds(work, options.device) for name, work in ways.items()}
    ours = times["graphfm.kernels.weighted_sum"]
    print(f"{options.dataset}, width {options.width}, {options.device}, torch {torch.__version__}")
    for name, taken in times.items():
        print(f"{name:<26} {taken / ours:6.2f}")


if __name__ == "__main__":
    main()
