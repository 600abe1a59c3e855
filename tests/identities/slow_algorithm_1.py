"""The paper's Algorithm 1 written out node by node, and the project's own step beside it."""

import copy
from collections import defaultdict

import torch
from torch.nn.functional import cross_entropy

from graphfm import Graph, methods
from graphfm.backbones.gcn import GCN
from graphfm.backbones.sage import SAGE
from graphfm.batch import Targets
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.training.settings import Training
from graphfm.training.trainer import Trainer

NUM_NODES, LR = 12, 0.05
CLOSE = {"atol": 2e-6, "rtol": 2e-5}
SEEDS = [[0, 3, 7, 11], [5, 3, 1], [0, 2, 4, 6, 8], [11], [3, 7, 9, 10], [0, 3, 7, 11]]


class PaperGCN(GCN):
    """sigma(W mean(h_u : u in N_v and v)): the case the paper spells out (equations 4 to 8)."""

    def adjacency(self, graph):
        share = 1 / (graph.degree.float() + 1)
        return Adjacency(graph, row_scale=share, self_weight=share)


BACKBONES = {"mean with v": PaperGCN, "concat": SAGE}


def twelve_nodes(seed=0):
    """Directed, no pair twice, degrees from 0 (node 11) to 7."""
    rng = torch.Generator().manual_seed(seed)
    pairs = []
    for v in range(NUM_NODES - 1):
        others = [u for u in range(NUM_NODES) if u != v]
        order = torch.randperm(len(others), generator=rng).tolist()
        pairs += [(others[i], v) for i in order[: 1 + v % 7]]
    train = torch.arange(NUM_NODES) != 1  # node 1 is drawn, but does not teach
    return Graph.from_edges(
        torch.tensor(pairs).T,
        torch.randn(NUM_NODES, 5, generator=rng),
        torch.randint(3, (NUM_NODES,), generator=rng),
        train_mask=train,
        val_mask=~train,
        num_classes=3,
    )


class Fast:
    """The project's own training step, watched."""

    def __init__(self, graph, backbone, **options):
        method = methods.graphfm_ib(batch_size=4, exact_first_hop=False, **options)
        method.sampler.starting_ids = lambda: None  # these steps begin anywhere
        self.trainer = Trainer(graph, copy.deepcopy(backbone), method, Training(lr=LR, seed=2))
        self.backbone, self.rows = self.trainer.backbone, []
        self.backbone.register_forward_hook(lambda module, args, out: self.rows.append(out))

    def sample(self, seeds):
        """The batch that the next step will draw."""
        state = self.trainer.rng.get_state()
        batch = self.trainer.method.sampler.sample(seeds, self.trainer.rng)
        self.trainer.rng.set_state(state)
        return batch

    def step(self, seeds):
        loss = self.trainer.step(seeds)
        return self.rows[-1].detach(), loss

    def history(self, k):
        return self.trainer.method.estimator.histories[k - 1].pull(torch.arange(NUM_NODES))


class Slow:
    """Algorithm 1 with the paper's indices: k counts layers from 1, t steps from 1."""

    def __init__(self, graph, backbone, *, beta, start):
        self.graph, self.backbone = graph, copy.deepcopy(backbone)
        self.K, self.beta, self.start = len(backbone.layers), beta, start
        self.optimizer = torch.optim.Adam(self.backbone.parameters(), lr=LR)
        self.h_tilde = [  # h~^{k,0}_v = 0 for all v; h_tilde[0] is not used
            {v: torch.zeros(self.width(k)) for v in range(NUM_NODES)} for k in range(self.K + 1)
        ]
        self.visits = [defaultdict(int) for _ in range(self.K + 1)]
        self.seen = [defaultdict(list) for _ in range(self.K + 1)]  # every A^ a node was given

    def width(self, k):
        return self.backbone.layers[max(k, 1) - 1].agg_width

    def draw(self, batch):
        """D_k and B_v for v in D_k, as the sampler drew them."""
        drawn = [None]
        for block in batch.blocks:
            sample = {}
            first = block.edges.indptr.tolist()
            for i, v in enumerate(block.dst_ids.tolist()):
                edges = range(first[i], first[i + 1])
                sample[v] = [
                    int(block.src_ids[block.edges.col[e]])
                    for e in edges
                    if block.edges.weight[e] != 0  # else only there to fill the shape
                ]
            drawn.append(sample)
        return drawn

    def estimate(self, h, v, sample):
        """A^({h_u : u in B_v and v})"""
        size = int(self.graph.degree[v])  # |N_v|
        mean = sum(h[u] for u in sample) / len(sample) if sample else torch.zeros_like(h[v])
        if isinstance(self.backbone, PaperGCN):
            return h[v] / (size + 1) + size / (size + 1) * mean
        return mean

    def weight(self, k, v):
        beta = self.beta[k - 1]
        if self.start == "zero":
            return beta
        self.visits[k][v] += 1
        return beta / (1 - (1 - beta) ** self.visits[k][v])

    def blend(self, k, v, fresh, h, sample):
        """h~ = (1 - beta) h~ + beta A^"""
        beta = self.weight(k, v)
        return (1 - beta) * self.h_tilde[k][v] + beta * fresh

    def step(self, batch):
        drawn = self.draw(batch)
        h_hat = [{v: self.graph.x[v] for v in range(NUM_NODES)}]  # h^^{0,t}_v = x_v
        for k in range(1, self.K + 1):
            layer, h_hat_k = self.backbone.layers[k - 1], {}
            for v, sample in drawn[k].items():  # v in D_k
                fresh = self.estimate(h_hat[k - 1], v, sample)
                h_tilde = self.blend(k, v, fresh, h_hat[k - 1], sample)
                targets = Targets(h_hat[k - 1][v][None], None, self.graph.degree[v][None])
                h_hat_k[v] = layer.update(h_tilde[None], targets)[0]
                self.h_tilde[k][v] = h_tilde.detach()
                self.seen[k][v].append(fresh.detach())
            h_hat.append(h_hat_k)
        self.h_hat = h_hat
        nodes = batch.target_ids.tolist()
        losses = [cross_entropy(h_hat[self.K][v], self.graph.y[v]) for v in nodes if v != 1]
        loss = sum(losses) / len(losses)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return torch.stack([h_hat[self.K][v] for v in nodes]).detach(), loss.detach()

    def history(self, k):
        return torch.stack([self.h_tilde[k][v] for v in range(NUM_NODES)])


def networks(kind, layers=2):
    """A small graph, and a network for it."""
    torch.manual_seed(6)
    settings = BACKBONES[kind].Settings(layers=layers, hidden=6, dropout=0.0)
    return twelve_nodes(), BACKBONES[kind](5, 3, settings)


def check_step_by_step(fast, slow):
    """Outputs, loss, gradients, histories and weights, with an update of Adam in between."""
    before = [parameter.detach().clone() for parameter in slow.backbone.parameters()]
    visited = set()
    for seeds in SEEDS:
        batch = fast.sample(torch.tensor(seeds))
        want, want_loss = slow.step(batch)
        got, loss = fast.step(torch.tensor(seeds))
        torch.testing.assert_close(got, want, **CLOSE)
        torch.testing.assert_close(loss, want_loss, **CLOSE)
        for (key, ours), theirs in zip(
            fast.backbone.named_parameters(), slow.backbone.parameters(), strict=True
        ):
            torch.testing.assert_close(ours.grad, theirs.grad, **CLOSE, msg=key)
        for k in range(1, slow.K + 1):
            torch.testing.assert_close(fast.history(k), slow.history(k), **CLOSE)
        visited |= set(batch.blocks[0].dst_ids.tolist())
        copy_weights(fast.backbone, slow.backbone)  # Adam makes much of a gradient's last bit
    assert len(visited) > 6
    after = list(fast.backbone.parameters())
    assert all(not torch.equal(a, b) for a, b in zip(before, after, strict=True))


def copy_weights(source, target):
    """Check that the weights agree to what Adam leaves of rounding, then make them the same."""
    for ours, theirs in zip(source.parameters(), target.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-3 * LR, rtol=1e-4)
    target.load_state_dict(source.state_dict())
