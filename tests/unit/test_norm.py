import torch
from torch import nn

from graphfm.norm import MaskedBatchNorm


def pair(width: int = 5) -> tuple[MaskedBatchNorm, nn.BatchNorm1d]:
    ours, theirs = MaskedBatchNorm(width), nn.BatchNorm1d(width)
    for norm in (ours, theirs):
        nn.init.uniform_(norm.weight, generator=torch.Generator().manual_seed(1))
        nn.init.uniform_(norm.bias, generator=torch.Generator().manual_seed(2))
    return ours, theirs


def statistics(norm: nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
    return norm.running_mean, norm.running_var


def test_without_padding_it_is_batch_norm():
    (ours, theirs), v = pair(), torch.randn(9, 5)
    for _ in range(2):
        torch.testing.assert_close(ours(v), theirs(v))
    torch.testing.assert_close(statistics(ours), statistics(theirs))
    torch.testing.assert_close(ours.eval()(v), theirs.eval()(v))


def test_padding_counts_for_nothing():
    (ours, theirs), v = pair(), torch.randn(9, 5)
    padded, valid = torch.cat([v, v * 9 + 3]), torch.arange(18) < 9
    torch.testing.assert_close(ours(padded, valid)[:9], theirs(v))
    torch.testing.assert_close(statistics(ours), statistics(theirs))


def test_plain_batch_norm_sees_padding():
    """Why the class exists."""
    (_, theirs), v = pair(), torch.randn(9, 5)
    assert not torch.allclose(theirs(torch.cat([v, v * 9 + 3]))[:9], theirs(v))


def test_one_row_or_none_stays_finite():
    for valid in (None, torch.tensor([True]), torch.tensor([False])):
        norm = MaskedBatchNorm(3)
        assert bool(torch.isfinite(norm(torch.randn(1, 3), valid)).all())
        assert bool(torch.isfinite(norm.running_var).all())


def test_a_batch_of_padding_teaches_nothing():
    norm = MaskedBatchNorm(3)
    norm(torch.randn(8, 3) * 2 + 5)
    before = [value.clone() for value in statistics(norm)]
    norm(torch.full((4, 3), torch.nan), torch.zeros(4, dtype=torch.bool))
    torch.testing.assert_close(list(statistics(norm)), before, rtol=0, atol=0)
