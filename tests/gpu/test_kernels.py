"""What only a GPU can show of kernels; `tests/kernels` compares them with their plain twins."""

import pytest
import torch

from graphfm.kernels import backend, matmul, precompile
from graphfm.kernels.linear import linear

pytestmark = pytest.mark.skipif(
    backend.INTERPRETED or not torch.cuda.is_available(), reason="needs a GPU"
)


def test_the_kernels_are_there():
    device = torch.device("cuda")
    assert backend.available(device)
    with backend.execution(kernels="plain"):
        assert not backend.available(device)


@pytest.mark.parametrize("num_rows", [40, 300, 3000])
@pytest.mark.parametrize("relu", [True, False])
def test_gradients_find_their_kernels_compiled(monkeypatch, num_rows, relu):
    """A layer of a shape that no other test has; what its gradient takes was expected."""
    triton = pytest.importorskip("triton")
    x = torch.randn(num_rows, 88 + 16 * relu, device="cuda", requires_grad=True)
    weight = torch.randn(num_rows // 20 + 65, x.size(1), device="cuda", requires_grad=True)
    bias = torch.randn(weight.size(0), device="cuda", requires_grad=True)
    compiling = []
    monkeypatch.setattr(
        triton.knobs.runtime, "jit_cache_hook", lambda **given: compiling.append(given["fn"].name)
    )
    out = linear(x, weight, bias, relu=relu)
    precompile.settle()
    assert {"gradient", "turned_product"} <= set(compiling)
    compiling.clear()
    out.sum().backward()
    assert not compiling


@pytest.mark.parametrize("shape", [(512, 512, 41), (1024, 512, 256), (2048, 512, 256)])
def test_products_have_the_same_bits_beside_other_work(shape):
    """Kernels that do not wait for all they have begun are wrong now and then, and only so."""
    num_rows, inner, width = shape
    rows, weight = torch.randn(num_rows, inner, device="cuda"), torch.randn(width, inner).to("cuda")
    grad, bias = torch.randn(num_rows, width, device="cuda"), torch.randn(width, device="cuda")
    table, ids = torch.randn(1 << 20, 64, device="cuda"), torch.randint(1 << 20, (1 << 16,))
    ids = ids.to("cuda")

    def all_products():
        return (
            matmul.multiply(rows, weight, bias, relu=True),
            matmul.multiply_back(grad, weight),
            *matmul.gradients(rows, matmul.turn(grad, None)[1]),
        )

    want = all_products()
    graph, trunk = torch.cuda.CUDAGraph(), torch.cuda.Stream(priority=-1)
    wrong, beside = torch.zeros((), dtype=torch.int64, device="cuda"), torch.cuda.Stream()
    with torch.cuda.graph(graph, stream=trunk):
        beside.wait_stream(trunk)
        with torch.cuda.stream(beside):
            for _ in range(20):
                table.index_select(0, ids)
        for _ in range(20):
            for found, wanted in zip(all_products(), want, strict=True):
                wrong += (found != wanted).any()
        trunk.wait_stream(beside)
    for _ in range(50):
        graph.replay()
    assert int(wrong) == 0
