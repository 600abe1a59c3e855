"""Products of float32 on a GPU: ours by three TF32 passes, and cuBLAS's.

    python benchmarks/products.py

Microseconds of one product inside a CUDA graph, and the largest error against float64.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from graphfm.kernels import matmul

SHAPES = ((512, 41, 512), (512, 256, 512), (1024, 256, 512), (2048, 256, 512), (4096, 256, 512),
          (8192, 256, 512), (1024, 256, 1204), (4096, 256, 1204), (163_000, 256, 256),
          (163_000, 47, 256))  # fmt: skip
IN_A_GRAPH, REPLAYS = 20, 10


def microseconds(work: Callable[[], Tensor]) -> float:
    work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(IN_A_GRAPH):
            work()
    graph.replay()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(REPLAYS):
        graph.replay()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / REPLAYS / IN_A_GRAPH * 1e3


def show(what: str, ours: Callable[[], Tensor], theirs: Callable[[], Tensor], want: Tensor) -> None:
    errors = [float((work() - want).abs().max()) for work in (ours, theirs)]
    times = [microseconds(work) for work in (ours, theirs)]
    print(
        f"  {what}: {times[0]:.1f} for {times[1]:.1f} us, error {errors[0]:.1e} for {errors[1]:.1e}"
    )


def main() -> None:
    torch.manual_seed(0)
    for num_rows, width, inner in SHAPES:
        rows, weight = (torch.randn(n, inner, device="cuda") for n in (num_rows, width))
        bias, grad = torch.zeros(width, device="cuda"), torch.randn(num_rows, width, device="cuda")
        print(f"{num_rows} rows of {inner} by {width}, ours for cuBLAS's")
        show(
            "layer",
            lambda x=rows, w=weight, b=bias: matmul.multiply(x, w, b, relu=True),
            lambda x=rows, w=weight, b=bias: torch._addmm_activation(b, x, w.t()),
            (rows.double() @ weight.double().t()).relu(),
        )
        show(
            "gradient of the rows",
            lambda g=grad, w=weight: matmul.multiply_back(g, w),
            lambda g=grad, w=weight: g @ w,
            grad.double() @ weight.double(),
        )
        show(
            "gradient of the matrix",
            lambda g=grad, x=rows: matmul.gradients(x, matmul.turn(g, None)[1])[0],
            lambda g=grad, x=rows: g.t() @ x,
            grad.double().t() @ rows.double(),
        )


if __name__ == "__main__":
    main()
