"""A linear layer by kernels and by plain code, with its gradients."""

import pytest
import torch

from graphfm.kernels import backend, matmul
from graphfm.kernels.linear import linear
from tests.kernels.device import DEVICE, with_and_without

SHAPES = [(1, 3, 1), (70, 33, 17), (300, 64, 130)]


def layer_and_gradients(num_rows, width, out, relu):
    x = torch.randn(num_rows, width, device=DEVICE, requires_grad=True)
    weight = torch.randn(out, width, device=DEVICE, requires_grad=True)
    bias = torch.randn(out, device=DEVICE, requires_grad=True)
    rows = linear(x, weight, bias, relu=relu)
    change = torch.randn(num_rows, out, device=DEVICE)
    return rows.detach(), *torch.autograd.grad(rows, (x, weight, bias), change)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(("num_rows", "width", "out"), SHAPES)
@pytest.mark.parametrize("programs", [1, 132])
def test_a_layer_and_its_gradients(monkeypatch, num_rows, width, out, relu, programs):
    monkeypatch.setattr(matmul, "PROGRAMS", programs)
    ours, plain = with_and_without(lambda: layer_and_gradients(num_rows, width, out, relu))
    torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(("num_rows", "width", "out"), SHAPES)
@pytest.mark.parametrize("parts", [1, 512])
def test_without_three_passes_the_library_multiplies(
    monkeypatch, num_rows, width, out, relu, parts
):
    """The gradient of the bias is still summed by our kernel, or by torch if it has many parts."""
    monkeypatch.setattr("graphfm.kernels.linear.MANY_PARTS", parts)
    for name in ("multiply", "multiply_back", "turn", "gradients", "expect_gradients"):
        monkeypatch.delattr(matmul, name)
    with backend.without("three_pass"):
        ours, plain = with_and_without(lambda: layer_and_gradients(num_rows, width, out, relu))
    torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-4)


def test_what_has_no_gradient_gets_none():
    x, weight = torch.randn(5, 70, device=DEVICE), torch.randn(3, 70, device=DEVICE)
    bias = torch.zeros(3, device=DEVICE, requires_grad=True)
    linear(x, weight, bias, relu=False).sum().backward()
    assert (x.grad, weight.grad) == (None, None)
    assert bias.grad.tolist() == [5.0] * 3


def test_nothing_is_multiplied_of_no_rows():
    x = torch.empty(0, 70, device=DEVICE)
    out = linear(x, torch.ones(3, 70, device=DEVICE), torch.ones(3, device=DEVICE), relu=True)
    assert out.shape == (0, 3)
