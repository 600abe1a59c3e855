"""The mean loss of a batch, by kernels and by plain code."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from graphfm.kernels.cross_entropy import backward, mean_cross_entropy, number_marked
from tests.kernels.device import DEVICE, with_and_without

CLOSE = {"rtol": 1e-5, "atol": 1e-6}  # sums in another order


@pytest.fixture
def batch():
    """Nodes that do not train, and nodes without a label, count for nothing."""
    ids = torch.randint(90, (50,), device=DEVICE)
    labels = torch.randint(-1, 7, (90,), device=DEVICE)
    mask = (torch.rand(90, device=DEVICE) < 0.5) & (labels >= 0)
    return ids, labels, mask


@pytest.mark.parametrize("many", [10, 1000])
def test_marked_nodes_are_counted(monkeypatch, batch, many):
    monkeypatch.setattr("graphfm.kernels.cross_entropy.MANY_ROWS", many)
    ids, _, mask = batch
    ours, plain = with_and_without(lambda: number_marked(ids, mask))
    assert float(ours) == float(plain) == float(mask[ids].sum())


def test_more_nodes_than_a_program_counts_at_once():
    ids = torch.randint(90, (2500,), device=DEVICE)
    mask = torch.rand(90, device=DEVICE) < 0.5
    assert float(number_marked(ids, mask)) == float(mask[ids].sum())


@pytest.mark.parametrize("num_classes", [1, 7, 130])
def test_the_mean_loss_its_gradient_and_the_totals(batch, num_classes):
    ids, labels, mask = batch
    labels = labels.clamp(max=num_classes - 1)
    number = number_marked(ids, mask)

    def loss_and_gradient():
        logits = torch.randn(50, num_classes, device=DEVICE, requires_grad=True)
        totals = torch.tensor([2.0, 3.0], device=DEVICE)
        loss = mean_cross_entropy(logits, ids, labels, mask, number, totals)
        backward(loss)
        return loss.detach(), logits.grad, totals

    ours, plain = with_and_without(loss_and_gradient)
    torch.testing.assert_close(ours, plain, **CLOSE)


def test_both_are_torchs(batch):
    ids, labels, mask = batch
    number = number_marked(ids, mask)
    logits = torch.randn(50, 7, device=DEVICE, requires_grad=True)
    want = cross_entropy(logits[mask[ids]], labels[ids][mask[ids]])
    (gradient,) = torch.autograd.grad(want, logits)
    for found in with_and_without(
        lambda: mean_cross_entropy(logits, ids, labels, mask, number, torch.zeros(2, device=DEVICE))
    ):
        torch.testing.assert_close(found, want, **CLOSE)
        (twice,) = torch.autograd.grad(2 * found, logits)
        torch.testing.assert_close(twice, 2 * gradient, **CLOSE)


def test_a_batch_without_marked_nodes_has_no_loss(batch):
    ids, labels, mask = batch
    nobody = torch.zeros_like(mask)
    number = number_marked(ids, nobody)
    logits = torch.randn(50, 7, device=DEVICE, requires_grad=True)
    ours, plain = with_and_without(
        lambda: mean_cross_entropy(
            logits, ids, labels, nobody, number, torch.zeros(2, device=DEVICE)
        ).detach()
    )
    assert float(ours) == float(plain) == 0.0
