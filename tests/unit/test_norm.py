import torch
from torch import nn

from graphfm.norm import BatchNorm


def pair(width: int = 5) -> tuple[BatchNorm, nn.BatchNorm1d]:
    ours, theirs = BatchNorm(width), nn.BatchNorm1d(width)
    for norm in (ours, theirs):
        nn.init.uniform_(norm.weight, generator=torch.Generator().manual_seed(1))
        nn.init.uniform_(norm.bias, generator=torch.Generator().manual_seed(2))
    return ours, theirs


def statistics(norm: nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
    return norm.running_mean, norm.running_var


def test_it_is_batch_norm():
    (ours, theirs), v = pair(), torch.randn(9, 5)
    for _ in range(2):
        torch.testing.assert_close(ours(v), theirs(v))
    torch.testing.assert_close(statistics(ours), statistics(theirs))
    torch.testing.assert_close(ours.eval()(v), theirs.eval()(v))


def test_one_row_is_normalised_to_the_bias():
    norm, _ = pair(3)
    row = torch.randn(1, 3)
    torch.testing.assert_close(norm(row), norm.bias.expand(1, 3))
    torch.testing.assert_close(norm.running_mean, 0.1 * row[0])
    torch.testing.assert_close(norm.running_var, torch.full((3,), 0.9))


def test_no_row_teaches_nothing():
    norm, _ = pair(3)
    norm(torch.randn(8, 3) * 2 + 5)
    before = [value.clone() for value in statistics(norm)]
    assert norm(torch.empty(0, 3)).shape == (0, 3)
    torch.testing.assert_close(list(statistics(norm)), before, rtol=0, atol=0)
