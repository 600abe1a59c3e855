"""Products in three passes of TF32: as exact as the library's, and NaN stays NaN."""

import pytest
import torch

from graphfm.kernels import backend, matmul
from graphfm.kernels.halo_update import Affine
from tests.kernels.device import DEVICE, FLOAT_TYPES, sized, with_and_without

SHAPES = [(1, 64, 1), (70, 300, 33), (2000, 100, 130)]


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("tile", [matmul.SMALL, matmul.MEDIUM, matmul.LARGE])
def test_products_are_as_exact_as_the_librarys(monkeypatch, shape, tile, back):
    """Against float64, the largest error is at most twice that of the library."""
    num_rows, inner, width = shape
    num_rows = min(num_rows, sized(num_rows, 100))
    monkeypatch.setattr(matmul, "_tile", lambda *_: tile)
    rows = torch.randn(num_rows, 2 * inner, device=DEVICE)[:, :inner]
    weight, bias = torch.randn(width, inner, device=DEVICE), torch.randn(width, device=DEVICE)
    if back:
        want = rows.double() @ weight.double().t()
        found = matmul.multiply_back(rows, weight.t()).double()
        library = (rows @ weight.t()).double()
    else:
        want = (rows.double() @ weight.double().t() + bias.double()).relu()
        found = matmul.multiply(rows, weight, bias, relu=True).double()
        library = torch.addmm(bias, rows, weight.t()).relu().double()
    assert (found - want).abs().max() <= 2 * (library - want).abs().max() + 1e-6


@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_of_weights_are_as_exact_as_the_librarys(shape):
    """Against float64, the largest error is at most twice that of the library."""
    num_rows, inner, width = shape
    num_rows = min(num_rows, sized(num_rows, 300))
    rows = torch.randn(num_rows, 2 * inner, device=DEVICE)[:, :inner]
    grad = torch.randn(num_rows, width, device=DEVICE)
    of_weight, of_bias = matmul.gradients(rows, matmul.turn(grad, None)[1])
    want = grad.double().t() @ rows.double()
    library = (grad.t() @ rows).double()
    assert (of_weight.double() - want).abs().max() <= 2 * (library - want).abs().max() + 1e-6
    torch.testing.assert_close(of_bias, grad.sum(0), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("bits", [0x7FFFFFFF, 0x7FC00000, -1])  # a GPU's NaN, a CPU's, another
@pytest.mark.parametrize("where", ["rows", "gradient"])
def test_gradients_of_nan_are_nan(bits, where):
    rows, grad = torch.ones(20, 70, device=DEVICE), torch.ones(20, 5, device=DEVICE)
    (rows if where == "rows" else grad).view(torch.int32)[3, 2] = bits
    of_weight, of_bias = matmul.gradients(rows, matmul.turn(grad, None)[1])
    want = grad.t() @ rows
    assert want.isnan().any()
    assert torch.equal(of_weight.isnan(), want.isnan())
    assert torch.equal(of_bias.isnan(), grad.sum(0).isnan())


def test_a_relu_keeps_nan():
    rows, bias = torch.ones(3, 64, device=DEVICE), torch.zeros(2, device=DEVICE)
    rows[1, 5] = torch.nan
    found = matmul.multiply(rows, torch.ones(2, 64, device=DEVICE), bias, relu=True)
    assert found.isnan().tolist() == [[False] * 2, [True] * 2, [False] * 2]


@pytest.mark.parametrize("kind", FLOAT_TYPES)
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(("in_width", "out_width"), [(3, 1), (33, 130), (100, 64)])
def test_outputs_of_some_rows_of_a_table(kind, relu, in_width, out_width):
    ids = torch.randperm(300)[:150].to(DEVICE)
    weight, bias = torch.randn(out_width, in_width), torch.randn(out_width)
    affine = Affine(weight.to(DEVICE), bias.to(DEVICE), relu)
    sums = torch.randn(301, in_width).to(DEVICE, kind)

    def change():
        table = torch.randn(301, out_width, device=DEVICE).to(kind)
        matmul.put_product(table, ids, affine, sums)
        return table

    close = {"rtol": 1e-5, "atol": 1e-4} if kind == torch.float32 else {"rtol": 1e-2, "atol": 1e-2}
    torch.testing.assert_close(*with_and_without(change), **close)


def test_an_ablation_writes_outputs_by_plain_code(monkeypatch):
    monkeypatch.delattr(matmul, "_launch")
    affine = Affine(torch.ones(2, 3, device=DEVICE), torch.zeros(2, device=DEVICE), False)
    table, ids = torch.zeros(4, 2, device=DEVICE), torch.tensor([1], device=DEVICE)
    with backend.without("three_pass"):
        matmul.put_product(table, ids, affine, torch.ones(4, 3, device=DEVICE))
    assert table[1].tolist() == [3.0, 3.0]
