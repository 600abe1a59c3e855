"""Proposition 2: the rows of GraphFM-OB's halo, and what bounds their error.

A row that was last in a batch with h and was updated T times since, to g_1, ..., g_T, is (1 -
beta)^T h + sum beta (1 - beta)^(T - i) g_i. The paper prints (1 - beta)^(i - 1): its oldest update
would weigh most. Rows are float32, so 1e-5 is allowed; the mean aggregator, ReLU, real trainings.
"""

from statistics import fmean

import pytest
import torch

from benchmarks.theory_cases import epochs_of, halo_terms, two_layers, with_threshold
from graphfm import Graph
from graphfm.diagnostics.halo_terms import HaloTerms
from graphfm.errors import InputError
from graphfm.estimators.halo_history import HaloHistory
from graphfm.methods import Method
from graphfm.samplers.cluster import ClusterSampler
from graphfm.training.settings import Training
from graphfm.training.trainer import Trainer

RELATIVE, ABSOLUTE = 1e-4, 1e-5


def holds(error, bound):
    return error <= bound * (1 + RELATIVE) + ABSOLUTE


def trained(seed, epochs=4, **options):
    watched = halo_terms(seed, **options)
    return [terms for seeds in epochs_of(watched, epochs) for terms in watched.step(seeds)]


@pytest.mark.parametrize(
    ("seed", "options"),
    [(0, {}), (1, {"beta": 0.8}), (2, {"parts": 12}), (3, {"num_edges": 500}), (4, {"lr": 0.2})],
)
def test_every_row_is_its_updates_and_within_the_bound(seed, options):
    rows = trained(seed, **options)
    assert len(rows) > 400
    assert max(terms.updates for terms in rows) > 3
    for terms in rows:
        torch.testing.assert_close(terms.row, terms.rebuilt, atol=ABSOLUTE, rtol=0)
        assert holds(terms.error, terms.bound)
        assert holds(terms.error, terms.as_printed)  # by luck: see the next but one test
    assert fmean(terms.error for terms in rows) > 0.01  # something is claimed
    several = [terms for terms in rows if terms.updates > 1]
    wrong = [float((terms.row - terms.rebuilt_as_printed).norm()) for terms in several]
    assert fmean(wrong) > 0.01, "the printed weights are not those of the algorithm"


def test_the_bound_carries_over_to_the_rows_in_the_batch():
    """The proposition itself: ||h_v - full|| <= C C_A times the sum of its halo's bounds."""
    watched = halo_terms(7)
    trainer, outputs = watched.trainer, []
    trainer.backbone.register_forward_hook(lambda module, args, out: outputs.append(out.detach()))
    block, checked = trainer.infer.adjacency.full_block(), 0
    for step, seeds in enumerate(epochs_of(watched, 4)):
        first, second = trainer.backbone.layers
        with torch.no_grad():
            hidden = first.update(watched.matrix @ trainer.x, block.targets(trainer.x, trainer.x))
            full = second.update(watched.matrix @ hidden, block.targets(hidden, hidden))
            largest = float(torch.linalg.matrix_norm(second.linear.weight, 2))
        bound = {terms.node: terms.bound for terms in watched.step(seeds)}
        if step < 6:  # some rows of the halo were in no batch yet
            continue
        inside = trainer.method.sampler.sample(seeds, trainer.rng).target_ids
        for v, got in zip(inside.tolist(), outputs[-1], strict=True):
            total = sum(bound.get(u, 0.0) * float(watched.matrix[v, u]) for u in range(len(full)))
            assert holds(float((got - full[v]).norm()), largest * total)
            checked += total > 0
    assert checked > 150


def five_parts(beta=0.5):
    """Node 0 with neighbours 2 to 5, in a part each, and 1 in its own; node 4 is an outlier."""
    edges = torch.tensor([[0, 0, 0, 0, 0], [1, 2, 3, 4, 5]])
    x = torch.zeros(6, 5)
    x[4], x[1] = 1.0, -1.0  # the mean of node 0's neighbours is 0, like 2, 3 and 5
    kept = torch.arange(6) == 1  # for validation
    masks = {"train_mask": ~kept, "val_mask": kept}
    y = torch.zeros(6, dtype=torch.long)
    graph = Graph.from_edges(edges, x, y, num_classes=3, undirected=True, **masks)
    estimator = HaloHistory(beta=(beta,), exact_first_hop=False)
    method = Method(ClusterSampler(parts=5, how="random"), estimator)
    trainer = Trainer(graph, two_layers(0), method, Training(lr=1e-12))
    method.sampler.members, method.sampler.bounds = torch.arange(6), [0, 2, 3, 4, 5, 6]
    with torch.no_grad():  # far from where ReLU bends, and as wide in all directions
        weight = trainer.backbone.layers[0].linear.weight
        torch.nn.init.orthogonal_(weight)
        trainer.backbone.layers[0].linear.bias.fill_(100.0)
    return HaloTerms(trainer)


def test_the_printed_weights_give_no_bound():
    """Of 4 updates the third is off: beta (1 - beta) of it is left, not beta (1 - beta)^2."""
    watched = five_parts(beta=0.5)
    for part in range(5):
        rows = watched.step(torch.tensor([part]))
    (terms,) = [terms for terms in rows if terms.node == 0]
    assert terms.updates == 4
    far = 5**0.5  # the norm of the outlier's row
    assert terms.error == pytest.approx(0.25 * far, rel=1e-3)
    assert terms.bound == pytest.approx(0.25 * far, rel=1e-3)  # and no smaller one would do
    assert terms.as_printed == pytest.approx(0.125 * far, rel=1e-3)
    assert not holds(terms.error, terms.as_printed)


def test_a_threshold_trades_bias_for_staleness():
    """Weights take the same walk for every c. Bias falls by a fifth or more at each step of c,
    staleness grows by 5 % or more until hardly a row is updated; GNNAutoScale's error stays."""
    found = {c: with_threshold(c, seeds=1, epochs=6) for c in (0, 1, 2, 3, 4)}
    stale = [fmean(terms.staleness for terms in rows) for rows in found.values()]
    bias = [fmean(terms.bias for terms in rows) for rows in found.values()]
    alone = [fmean(terms.stale_error for terms in rows) for rows in found.values()]
    for c in range(4):
        assert bias[c + 1] < 0.8 * bias[c]
        assert stale[c + 1] > 1.05 * stale[c]
    assert alone == pytest.approx([alone[0]] * 5, rel=1e-3)
    assert stale[-1] < alone[0]


def test_only_graphfm_ob_can_be_watched():
    trainer = halo_terms(0).trainer
    trainer.method.estimator.partial = "sum"
    with pytest.raises(InputError, match="expected graphfm-ob"):
        HaloTerms(trainer)
