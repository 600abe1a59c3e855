"""The recipes do what the paper's released code does, step by step."""

import pytest
import torch

from graphfm.recipes import recipe_of
from graphfm.runs.run import Run, build
from tests.identities.slow_released import LR, NUM_NODES, Released, small_graph

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
STEPS = [[0, 1], [2, 3], [0, 3], [1, 2], [3, 1], [2, 0]]  # parts of each batch
SMALL = {
    "layers": 3, "hidden": 6, "dropout": 0.0, "parts": 4, "parts_per_batch": 2, "lr": LR,
    "steps_per_epoch": 0, "clip": 0.0, "edge_drop": 0.0, "epochs": 1, "device": "cpu",
}  # fmt: skip
# With a larger beta than published, so that a wrong halo row shows.
RECIPES = ("gcn-flickr", "gcn-reddit", "gcnii-flickr", "gcnii-arxiv", "gcnii-yelp", "pna-flickr",
           "pna-arxiv", "pna-yelp")  # fmt: skip


def both(recipe, **changes):
    graph, neighbors = small_graph()
    torch.manual_seed(0)
    run = Run.make(**recipe_of(recipe).options(**{**SMALL, **changes}))
    trainer = build(run, graph)
    assert trainer.training.fill_histories
    with torch.no_grad():
        for name, parameter in trainer.backbone.named_parameters():
            if name.endswith(("bias", "biases")):  # so that a bias left out shows
                parameter.normal_(std=0.3)
    beta = run.method_settings.get("beta", (0.0,))[0]
    slow = Released(graph, neighbors, trainer.backbone, run.backbone, beta)
    return trainer, slow


def kept_entries(block):
    """The entries (target, source) of a block that were not dropped, those of the diagonal too."""
    ids, edges, own = block.src_ids.tolist(), block.edges, block.self_weight
    kept = {(ids[v], ids[u]) for v, u in zip(edges.row.tolist(), edges.col.tolist(), strict=True)}
    diagonal = [] if own is None else own.nonzero().squeeze(1).tolist()
    return kept | {(ids[v], ids[v]) for v in diagonal}


def agree(trainer, slow):
    """Outputs, histories, statistics and gradients of every step of an epoch."""
    sampler, outputs, taken = trainer.method.sampler, [], iter(STEPS)
    sample, batches = sampler.sample, []
    sampler.sample = lambda seeds, rng: batches.append(sample(seeds, rng)) or batches[-1]
    trainer.backbone.register_forward_hook(lambda module, given, out: outputs.append(out))
    sampler.epoch = lambda rng: [torch.tensor(parts) for parts in STEPS]
    everyone = torch.arange(NUM_NODES)

    def compare():
        next(taken)
        batch = batches[-1]
        want = slow.step(
            batch.target_ids.tolist(), kept_entries(batch.blocks[0]), sampler.edge_drop
        )
        torch.testing.assert_close(outputs[-1].detach(), want, **CLOSE)
        for k, table in enumerate(trainer.method.estimator.histories):
            torch.testing.assert_close(table.pull(everyone), torch.stack(slow.history[k]), **CLOSE)
        for layer, norm in zip(trainer.backbone.layers, slow.norms, strict=True):
            if norm is not None:
                torch.testing.assert_close(layer.norm.running_mean, norm.mean, **CLOSE)
                torch.testing.assert_close(layer.norm.running_var, norm.var, **CLOSE)
        ours, theirs = trainer.backbone.parameters(), slow.backbone.parameters()
        with torch.no_grad():
            for a, b in zip(ours, theirs, strict=True):
                torch.testing.assert_close(a.grad, b.grad, **CLOSE)
                b.copy_(a)  # Adam makes much of a gradient's last bit, or of one that is zero

    trainer.epoch(compare)
    assert len(outputs) == len(batches) == len(STEPS)
    assert next(taken, None) is None
    return [batch.blocks[0] for batch in batches]


@pytest.mark.parametrize("method", ["gas", "graphfm-ob"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_is_the_released_step(recipe, method):
    beta = {"beta": (0.4,)} if method == "graphfm-ob" else {}
    agree(*both(f"table2-{recipe}-{method}", **beta))


@pytest.mark.parametrize("recipe", ["gcnii-products", "pna-products", "gcn-flickr"])
def test_edges_are_dropped_as_in_the_released_code(recipe):
    """Self-loops too; and a row of the halo moves even if all its edges are dropped."""
    trainer, slow = both(f"table2-{recipe}-graphfm-ob", beta=(0.4,), edge_drop=0.6)
    blocks = agree(trainer, slow)
    views = [block.from_halo for block in blocks]
    assert any(bool((view.edges.indptr.diff() == 0).any()) for view in views)


@pytest.mark.parametrize("kind", ["gcn", "gcnii", "pna"])
def test_the_residual_connection_of_the_halo_is_left_out(kind):
    """The released code adds it to in-batch rows alone."""
    agree(*both(f"table2-{kind}-flickr-graphfm-ob", beta=(0.4,), residual=True))
