"""GraphFM-IB as it is by default, written out node by node.

It differs from Algorithm 1 in two ways where nothing is dropped: the gradient is that of the fresh
aggregate, not a share of it, and a history moves along with the rows that it averages.
"""

from functools import partial

import pytest
import torch

from graphfm.kernels.momentum import were_seen
from tests.identities.slow_algorithm_1 import (
    BACKBONES,
    CLOSE,
    NUM_NODES,
    SEEDS,
    Fast,
    Slow,
    check_step_by_step,
    networks,
)

EVERYONE = torch.arange(NUM_NODES)


class SlowCorrected(Slow):
    """h~ = (1 - beta) (h~ + A^(h) - A^(h')) + beta A^(h), with the gradient of A^(h) or a share."""

    def __init__(self, graph, backbone, *, beta, whole_gradient=True):
        super().__init__(graph, backbone, beta=beta, start="fresh")
        self.whole_gradient = whole_gradient
        self.last = [{} for _ in range(self.K + 1)]  # h', by layer and node

    def blend(self, k, v, fresh, h, sample):
        known = self.visits[k][v] > 0  # a first visit has no history to correct
        beta, past = self.weight(k, v), self.h_tilde[k][v]
        if known:
            then = {u: self.last[k].get(u, h[u]) for u in (v, *sample)}  # never seen: no change
            past = (past + fresh - self.estimate(then, v, sample)).detach()
        moved = (1 - beta) * past + beta * fresh
        return moved.detach() + fresh - fresh.detach() if self.whole_gradient else moved

    def step(self, batch):
        found = super().step(batch)
        for k, block in enumerate(batch.blocks, start=1):
            for u in block.src_ids.tolist():  # the neighbours of all targets, and the targets
                self.last[k][u] = self.h_hat[k - 1][u].detach()
        return found


def both(kind, *, layers=2, beta=(0.3,), fanout=(2,), **options):
    graph, backbone = networks(kind, layers)
    fast = Fast(graph, backbone, fanout=fanout, beta=beta, **options)
    betas = beta if len(beta) == layers else beta * layers
    whole = options.get("whole_gradient", True)
    return fast, SlowCorrected(graph, backbone, beta=betas, whole_gradient=whole)


@pytest.mark.parametrize(
    "options",
    [{"fanout": (1,), "beta": (0.1,)}, {"fanout": (2, 3), "beta": (0.3, 0.6)},
     {"fanout": (1, 2, 1), "beta": (0.2,), "layers": 3},
     {"fanout": (2, 3), "beta": (0.3, 0.6), "whole_gradient": False}],
    ids=["fanout 1", "two layers", "three layers", "share of the gradient"],
)  # fmt: skip
@pytest.mark.parametrize("kind", BACKBONES)
def test_step_by_step(kind, options):
    check_step_by_step(*both(kind, **options))


@pytest.mark.parametrize("slow_of", [SlowCorrected, partial(Slow, start="fresh")])
@pytest.mark.parametrize("kind", BACKBONES)
def test_each_difference_shows(kind, slow_of):
    """The whole gradient without the correction is neither this form nor Algorithm 1."""
    graph, backbone = networks(kind)
    fast = Fast(graph, backbone, fanout=(2,), beta=(0.3,), correct_lag=False)
    with pytest.raises(AssertionError):
        check_step_by_step(fast, slow_of(graph, backbone, beta=(0.3, 0.3)))


@pytest.mark.parametrize("kind", BACKBONES)
def test_rows_are_kept_as_they_were_last_seen(kind):
    """By layer; nodes that no step has seen there are told from those whose row is zero."""
    fast, slow = both(kind, layers=3, fanout=(1,))
    inputs, never = fast.trainer.method.estimator.inputs, set()
    for seeds in SEEDS:
        slow.step(fast.sample(torch.tensor(seeds)))
        fast.step(torch.tensor(seeds))
        slow.backbone.load_state_dict(fast.backbone.state_dict())
        for k in (2, 3):
            rows = inputs[k - 1].pull(EVERYONE)
            for v in range(NUM_NODES):
                want = slow.last[k].get(v, torch.zeros(6))
                torch.testing.assert_close(rows[v], want, **CLOSE)
            seen = were_seen(rows).squeeze(1).nonzero().squeeze(1).tolist()
            assert seen == sorted(slow.last[k])
            never |= set(range(NUM_NODES)) - slow.last[k].keys()
    assert never


@pytest.mark.parametrize("corrected", [True, False])
@pytest.mark.parametrize("beta", [0.001, 0.3, 0.9])
@pytest.mark.parametrize("kind", BACKBONES)
def test_a_history_of_whole_neighbourhoods_never_lags(kind, beta, corrected):
    """h~ = A(h') before a step is A(h) after it, whatever beta is: every step is full batch."""
    graph, backbone = networks(kind, layers=3)
    options = {"fanout": (NUM_NODES,), "correct_lag": corrected}
    fast = Fast(graph, backbone, beta=(beta,), **options)
    exact = Fast(graph, backbone, beta=(1.0,), **options)  # without a past
    gaps = []
    for _ in range(6):
        for ours, theirs in zip(fast.step(EVERYONE), exact.step(EVERYONE), strict=True):
            gaps.append(float((ours - theirs).abs().max()))
        for k in (1, 2, 3):
            gaps.append(float((fast.history(k) - exact.history(k)).abs().max()))
        exact.backbone.load_state_dict(fast.backbone.state_dict())
    assert max(gaps) < 1e-5 if corrected else max(gaps) > 1e-3


@pytest.mark.parametrize("kind", BACKBONES)
def test_features_are_not_kept_as_they_never_change(kind):
    """The first layer reads them; what it keeps is its average alone."""
    fast, _ = both(kind, layers=3)
    estimator = fast.trainer.method.estimator
    assert sorted(estimator.histories) == [0, 1, 2]
    assert sorted(estimator.inputs) == [1, 2]
