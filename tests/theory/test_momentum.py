"""What a moving average can and cannot do, against closed forms.

Every average here has a known expectation and a known or measured standard error; a test allows 5
of them (the seeds are fixed, so it passes always or never).
"""

import math

import pytest
import torch

from graphfm import Graph, methods
from graphfm.backbones.gcn import GCNLayer
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.estimators.layer_step import Setup
from graphfm.step_plan import StepPlan
from graphfm.tables.device import DeviceTable

MARGIN = 5.0


def graphfm_ib(**options):
    return methods.graphfm_ib(as_published=True, **options)


def bare_layer(width=1):
    """A(h) W with W = I and no bias: the layer's output is its aggregate."""
    layer = GCNLayer(width, width, dropout=0.0, batch_norm=False, residual=False, activation=False)
    with torch.no_grad():
        layer.linear.weight.copy_(torch.eye(width))
        layer.linear.bias.zero_()
    return layer.requires_grad_(False)


def momentum(layer, num_nodes, beta, start):
    return with_tables(graphfm_ib(beta=(beta,), start=start).estimator, layer, num_nodes)


def with_tables(estimator, layer, num_nodes):
    specs = estimator.declare([layer], 0)
    tables = {
        name: DeviceTable(num_nodes, spec.width, unwritten=spec.unwritten)
        for name, spec in specs.items()
    }
    estimator.prepare(Setup(layers=[layer], tables=tables))
    return estimator


# ---- the error floor: minimise exp(u) - 2u, where all that is known of u = w is w + N(0, 1)

NODES = 10_000  # copies of u, each with noise of its own, that share one w


def through_the_table(beta):
    """One step: the mean over nodes of d/dw (exp(u) - 2u), u kept by `NodeTable.blend`."""
    table, ids = DeviceTable(NODES, 1), torch.arange(NODES)

    def gradient(w, noise):
        table.blend(ids, w + noise, beta)
        return float((table.pull(ids).exp() - 2).mean())

    return gradient


def through_the_estimator(beta, start):
    """The same by GraphFM-IB and autograd, over nodes that read only themselves."""
    graph = Graph.from_edges(torch.empty(2, 0, dtype=torch.long), torch.zeros(NODES, 1))
    block, layer = Adjacency.symmetric(graph).full_block(), bare_layer()
    estimator = momentum(layer, NODES, beta, start)

    def gradient(w, noise):
        w = torch.tensor(w, requires_grad=True)
        u = estimator(0, layer, block, w + noise, noise)
        (u.exp() - 2 * u).mean().backward()
        return float(w.grad) / beta  # only the fresh part, a share of beta, has a gradient

    return gradient


def floor_reached(gradient, *, beta, lr, steps):
    """|F'(w)| where gradient descent comes to rest: the mean of w over the last `steps`."""
    rng = torch.Generator().manual_seed(round(1000 * beta))
    w, total = math.log(2.0), 0.0
    settle = math.ceil(6 / beta + 6 / (2 * lr))  # of the average, and of w (F'' = 2)
    for step in range(settle + steps):
        w -= lr * gradient(w, torch.randn(NODES, 1, generator=rng))
        total += w if step >= settle else 0.0
    return abs(math.exp(total / steps) - 2)


def floor_expected(beta):
    """u ~ N(w, v), so E exp(u) = exp(w + v / 2), which is 2 at rest."""
    variance = beta / (2 - beta)
    return 2 * (1 - math.exp(-variance / 2))


def floor_margin(steps, lr):
    """The mean of w over time strays by 1 / sqrt(NODES * steps), F' by twice that, up to the
    fluctuation of w itself, whose variance is lr / NODES at most."""
    return MARGIN * 2 / math.sqrt(NODES * steps) + 2 * lr / NODES


@pytest.mark.parametrize("lr", [0.05, 0.2])
@pytest.mark.parametrize(
    ("beta", "stated"), [(0.9, 0.6715), (0.5, 0.3070), (0.1, 0.0519), (0.03, 0.0152)]
)
def test_the_error_floor_grows_with_beta_and_ignores_the_step_size(beta, stated, lr):
    steps = 600
    got = floor_reached(through_the_table(beta), beta=beta, lr=lr, steps=steps)
    margin = floor_margin(steps, lr)
    assert got == pytest.approx(stated, abs=margin + 5e-5)
    assert got == pytest.approx(floor_expected(beta), abs=margin)
    assert margin < stated / 3


@pytest.mark.parametrize("start", ["zero", "fresh"])
@pytest.mark.parametrize("beta", [0.9, 0.3])
def test_the_error_floor_of_graphfm_ib(beta, start):
    steps, lr = 400, 0.1
    gradient = through_the_estimator(beta, start)
    got = floor_reached(gradient, beta=beta, lr=lr, steps=steps)
    assert got == pytest.approx(floor_expected(beta), abs=floor_margin(steps, lr))


# ---- the tracking lemma: Y = sum_v |u_v - f_v|^2, B of n nodes are visited at each step


def rate(beta, batch, n):
    """E Y' = rate * Y + B beta^2 sigma^2 for fixed f and independent noise of variance sigma^2."""
    return 1 - batch / n * beta * (2 - beta)


@pytest.mark.parametrize(("beta", "batch"), [(0.1, 50), (0.3, 10), (0.8, 25), (1.0, 5)])
def test_a_moving_average_contracts_as_the_lemma_says(beta, batch):
    """The whole curve E Y_t from a start far off, over 300 copies with visits of their own."""
    n, copies, sigma, steps = 50, 300, 0.7, 60
    rng = torch.Generator().manual_seed(5)
    target = (3 + torch.randn(n, 1, generator=rng)).repeat(copies, 1)
    table, ids = DeviceTable(n * copies, 1), torch.arange(n * copies)
    first = torch.arange(copies).unsqueeze(1) * n

    def distance():
        """[copies]"""
        return (table.pull(ids) - target).square().view(copies, n).sum(1)

    y, now = float(target[:n].square().sum()), distance()
    rest = n * sigma**2 * beta / (2 - beta)
    for step in range(1, steps + 1):
        order = torch.rand(copies, n, generator=rng).argsort(dim=1)
        chosen = (first + order[:, :batch]).flatten()
        noise = sigma * torch.randn(chosen.numel(), 1, generator=rng)
        table.blend(chosen, target[chosen] + noise, beta)
        before, now = now, distance()
        standard = float(now.std()) / copies**0.5
        want = rest + rate(beta, batch, n) ** step * (y - rest)
        assert float(now.mean()) == pytest.approx(want, abs=MARGIN * standard + 1e-3)
        over = now - (1 - beta * batch / (2 * n)) * before - beta**2 * n * sigma**2  # the lemma
        assert float(over.mean()) <= MARGIN * float(over.std()) / copies**0.5 + 1e-3


@pytest.mark.parametrize("beta", [0.1, 0.4, 0.9])
def test_the_noise_floor_of_randomly_visited_nodes(beta):
    """Steady state n sigma^2 beta / (2 - beta), far below the lemma's 2 beta n^2 sigma^2 / B."""
    n, copies, batch, sigma = 40, 250, 16, 0.5
    rng = torch.Generator().manual_seed(8)
    table, ids, target = DeviceTable(n, copies), torch.arange(n), torch.randn(n, copies)
    table.push(ids, target)
    settle = math.ceil(8 / (1 - rate(beta, batch, n)))
    samples = []
    for step in range(4 * settle):
        chosen = torch.randperm(n, generator=rng)[:batch]
        noise = sigma * torch.randn(batch, copies, generator=rng)
        table.blend(chosen, target[chosen] + noise, beta)
        if step >= settle and step % settle == 0:  # far enough apart to be independent
            samples.append((table.pull(ids) - target).square().sum(0))
    y = torch.cat(samples)
    want = n * sigma**2 * beta / (2 - beta)
    standard = float(y.std()) / y.numel() ** 0.5
    assert float(y.mean()) == pytest.approx(want, abs=MARGIN * standard)
    assert MARGIN * standard < 0.1 * want
    assert want < 2 * beta * n**2 * sigma**2 / batch
    assert rate(beta, batch, n) < 1 - beta * batch / (2 * n)


@pytest.mark.parametrize("beta", [0.2, 0.7])
def test_a_moving_target_is_followed_at_a_distance(beta):
    """Drift delta a step leaves a lag of delta (1 - p) / p on average, p = beta B / n."""
    n, batch, delta, steps = 4000, 1000, 0.01, 300
    rng = torch.Generator().manual_seed(3)
    table, ids, lags = DeviceTable(n, 1), torch.arange(n), []
    for step in range(1, steps + 1):
        chosen = torch.randperm(n, generator=rng)[:batch]
        table.blend(chosen, torch.full((batch, 1), delta * step), beta)
        lags.append(delta * step - table.pull(ids).mean())
    p = beta * batch / n
    settled = torch.stack(lags[steps // 2 :])
    assert float(settled.mean()) == pytest.approx(delta * (1 - p) / p, rel=0.02)


@pytest.mark.parametrize("start", ["zero", "fresh"])
@pytest.mark.parametrize("beta", [0.2, 0.6])
def test_graphfm_ib_tracks_sampled_neighbours_to_the_floor(beta, start):
    """The noise is the sampler's own: one neighbour of each node, whose variance is known."""
    n, batch, width, steps = 60, 20, 4, 900
    rng = torch.Generator().manual_seed(11)
    graph = Graph.from_edges(
        torch.randint(n, (2, 400), generator=rng), torch.randn(n, width, generator=rng)
    )
    adjacency, layer = Adjacency.symmetric(graph), bare_layer(width)
    method = graphfm_ib(fanout=(1,), batch_size=batch, beta=(beta,), start=start)
    method.sampler.prepare(adjacency, StepPlan(num_layers=1))
    estimator, whole, ids = method.estimator, adjacency.full_block(), torch.arange(n)
    with_tables(estimator, layer, n)
    target = layer.aggregate(graph.x, whole)

    # a neighbour u is drawn with chance 1 / d and counts d A_vu: variance sum d A_vu^2 x_u^2 - m^2
    source, row = whole.edges.col.long(), whole.edges.row.long()
    message = whole.edges.weight.unsqueeze(1) * graph.x[source]
    mean = torch.zeros(n, width).index_add(0, row, message)
    degree = graph.degree.unsqueeze(1)
    square = torch.zeros(n, width).index_add(0, row, message.square()) * degree
    variance = float((square - mean.square()).sum())

    settle, samples = math.ceil(8 / (1 - rate(beta, batch, n))), []
    for step in range(settle + steps):
        chosen = torch.randperm(n, generator=rng)[:batch]
        drawn = method.sampler.sample(chosen, rng)
        estimator(0, layer, drawn.blocks[0], graph.x[drawn.input_ids], graph.x)
        if step >= settle:
            samples.append((estimator.histories[0].pull(ids) - target).square().sum())
    y = torch.stack(samples)
    batches = y.view(20, -1).mean(1)  # neighbours in time are alike, means of 45 hardly
    standard = float(batches.std()) / 20**0.5
    want = variance * beta / (2 - beta)
    assert float(y.mean()) == pytest.approx(want, abs=MARGIN * standard)
    assert MARGIN * standard < 0.35 * want
    assert float(y.mean()) < 2 * beta * n * variance / batch  # the lemma, with sum for n sigma^2
