import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from graphfm.metrics.scores import micro_f1
from graphfm.training.objective import as_mean, probabilities, weighted_loss


def test_one_class_per_node_is_cross_entropy_over_the_weighted_rows():
    logits, y = torch.randn(6, 3), torch.tensor([0, 2, -1, 1, 0, 2])
    weight = torch.tensor([1.0, 1, 0, 1, 0, 0])
    chosen = weight > 0
    torch.testing.assert_close(
        weighted_loss(logits, y, as_mean(weight)), cross_entropy(logits[chosen], y[chosen])
    )


def test_many_labels_is_binary_cross_entropy_over_the_weighted_rows():
    logits = torch.randn(3, 4)
    y = torch.tensor([[0, 1, 1, 0], [-1, -1, -1, -1], [1, 0, 0, 0]], dtype=torch.int8)
    want = binary_cross_entropy_with_logits(logits[[0, 2]], y[[0, 2]].float())
    torch.testing.assert_close(weighted_loss(logits, y, as_mean(torch.tensor([1.0, 0, 1]))), want)


def test_no_weight_at_all_is_no_loss_and_no_gradient():
    logits = torch.randn(2, 3, requires_grad=True)
    loss = weighted_loss(logits, torch.tensor([-1, -1]), as_mean(torch.zeros(2)))
    loss.backward()
    assert loss.item() == 0
    assert torch.equal(logits.grad, torch.zeros(2, 3))


def test_micro_f1_of_one_class_is_accuracy():
    logits = torch.tensor([[2.0, 1.0], [0.0, 1.0], [3.0, 1.0], [0.0, 1.0]])
    assert micro_f1(logits, torch.tensor([0, 1, 1, 0])) == 0.5


def test_micro_f1_of_many_labels_counts_over_all_labels():
    logits = torch.tensor([[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]])  # claims 3
    y = torch.tensor([[1, 1, 0], [0, 0, 1]])  # there are 3, of which 2 are claimed
    assert micro_f1(logits, y) == pytest.approx(2 * 2 / (3 + 3))
    assert micro_f1(-torch.ones(1, 2), torch.zeros(1, 2)) == 1.0


def test_probabilities_sum_to_one_unless_labels_are_many():
    logits = torch.randn(5, 3)
    torch.testing.assert_close(probabilities(logits, False).sum(1), torch.ones(5))
    torch.testing.assert_close(probabilities(logits, True), 1 / (1 + torch.exp(-logits)))
