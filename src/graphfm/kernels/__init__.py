"""The operations of a training step, and the kernels that execute them.

This package alone decides which kernel runs: everything else calls an operation. Each one tests
the backend itself (`backend.available`: there is a GPU, Triton works, the settings want it) and
has a twin in plain PyTorch in the same file, which every other device and shape uses. Tests in
`tests/kernels` compare the two, on a GPU or, through Triton's interpreter, on a CPU; those of
`sparse_sum` are in `tests/unit/kernels`.

Kernels named `module.kernel` are in `triton_kernels/`. Where the twin has the operation's own name,
all its kernels are PyTorch's.

==================== ================================ ========================= ====================
operation            which kernel runs, and when      plain twin                test
==================== ================================ ========================= ====================
sparse_sum
  weighted_sum       PyTorch: CSR product on a CPU;   weighted_sum              test_sparse_sum
                     on a GPU sums in fixed order, or
                     cuSPARSE if not deterministic
  table_sum          as weighted_sum                  table_sum                 test_sparse_sum
  sum_of_rest        as weighted_sum                  sum_of_rest               test_sparse_sum
  segment_max        PyTorch: CSR product on a CPU,   segment_max               test_sparse_sum
                     segment_reduce on a GPU
  segment_min        as segment_max                   segment_min               test_sparse_sum
neighbor_pick
  pick               pick.pick, or for independent    pick_plain                test_neighbor_pick
                     picks pick.pick_independent:
                     fan-out up to 64
  pick_distinct      PyTorch: CPU, or crowded picks   pick_distinct             test_neighbor_pick
  expand             graph.expand                     expand_plain              test_neighbor_pick
  sum_of_all         graph.sum_of_all                 sum_of_all_plain          test_neighbor_pick
fused_aggregate
  combine            graph.combine: fixed fan-out up  combine_plain             test_fused_aggregate
                     to 64, or known aggregates
  keep               graph.keep, on the side stream   keep_plain                test_fused_aggregate
table_write
  put_rows           graph.put: int64 ids, rows of    put_rows_plain            test_table_write
                     more than one number
halo_update
  spread             halo.spread                      spread_plain              test_halo_update
matmul
  put_product        matmul.product: three passes of  put_product_plain         test_matmul
                     TF32, one if not fp32
linear
  linear             float32, up to 2^18 rows. fp32:  linear_plain              test_linear
                     matmul.* in three passes of
                     TF32; else cuBLAS and
                     step.mask_and_sum. Weights'
                     gradients: side stream
cross_entropy
  number_marked      step.count_marked: up to 2^15    number_marked_plain       test_cross_entropy
                     rows
  mean_cross_entropy step.cross_entropy; step.add_up  mean_cross_entropy_plain  test_cross_entropy
                     on the side stream
adam
  Adam.step          step.adam: a state exists, all   torch.optim.Adam.step     test_adam
                     parameters at the same step;
                     also AdamW
==================== ================================ ========================= ====================

`backend` holds the settings and the probe for Triton, `precompile` compiles kernels before a
backward pass needs them, `side_stream` runs work beside a captured CUDA graph. Imports only
`errors` and `batch`; `norm`, `layer` and everything after them may import it.
"""

from graphfm.kernels.sparse_sum import (
    segment_max,
    segment_min,
    sum_of_rest,
    table_sum,
    weighted_sum,
)

__all__ = [
    "segment_max",
    "segment_min",
    "sum_of_rest",
    "table_sum",
    "weighted_sum",
]
