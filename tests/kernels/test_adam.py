"""Adam by one kernel, and torch's own."""

import pytest
import torch

from graphfm.kernels.adam import MOST_PARAMETERS, Adam
from tests.kernels.device import DEVICE, sized


@pytest.mark.parametrize("decoupled", [False, True])
def test_adam_is_torchs(decoupled):
    """Parameters of all sizes, more than one launch takes."""
    shapes = [(30, 50), (30,), (1,), (7, 3)] + [(2,)] * (MOST_PARAMETERS - 3)
    num_steps = sized(20, 3)
    ours = [torch.nn.Parameter(torch.randn(shape, device=DEVICE)) for shape in shapes]
    theirs = [torch.nn.Parameter(p.detach().clone()) for p in ours]
    rate = torch.tensor(0.01, device=DEVICE)
    mine = Adam(
        ours, lr=rate, weight_decay=0.1, foreach=False, capturable=DEVICE.type == "cuda",
        decoupled_weight_decay=decoupled,
    )  # fmt: skip
    kind = torch.optim.AdamW if decoupled else torch.optim.Adam
    other = kind(theirs, lr=0.01, weight_decay=0.1)
    for _ in range(num_steps):
        for p, q in zip(ours, theirs, strict=True):
            p.grad = torch.randn_like(p)
            q.grad = p.grad.clone()
        mine.step()
        other.step()
    assert mine._in_step  # the kernel has taken all steps but the first
    for p, q in zip(ours, theirs, strict=True):
        torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)
        assert float(mine.state[p]["step"]) == float(other.state[q]["step"]) == num_steps
