"""Whole trainings with kernels and with plain code alone."""

from dataclasses import replace

import pytest
import torch

from graphfm.kernels import backend
from graphfm.runs.run import Run, build
from graphfm.step_plan import COPIED
from tests.kernels.device import DEVICE, sized

SAMPLED = {
    "graphsage": {"method": "graphsage", "fanout": (3, 2)},
    "ib": {"method": "graphfm-ib", "fanout": (2, 1)},
    "ib sampled first hop": {"method": "graphfm-ib", "exact_first_hop": False},
    "ib as published": {"method": "graphfm-ib", "as_published": True},
    "ib whole gradient": {"method": "graphfm-ib", "correct_lag": False, "beta": (0.2,)},
    "graphsage, independent": {"method": "graphsage", "fanout": (3, 2), "picks": "independent"},
    "ib of three layers": {"method": "graphfm-ib", "layers": 3, "fanout": (1, 2, 1)},
    "ib half tables": {"method": "graphfm-ib", "history": "fp16"},
    "ib beta 1": {"method": "graphfm-ib", "beta": (1.0,)},
    "ib beta 0": {"method": "graphfm-ib", "beta": (0.0,)},
    "vr-gcn": {"method": "vr-gcn"},
    "ib learned rows": {"method": "graphfm-ib", "node_features": "learned", "node_width": 3},
    "graphsage learned rows": {"method": "graphsage", "node_features": "learned", "node_width": 3},
    "vr-gcn learned rows": {"method": "vr-gcn", "node_features": "learned", "node_width": 3},
    "vr-gcn sampled first hop": {"method": "vr-gcn", "exact_first_hop": False},
}  # fmt: skip
CLUSTERED = {
    "gas": {"method": "gas"},
    "ob": {"method": "graphfm-ob", "beta": (0.3,)},
    "ob as published": {"method": "graphfm-ob", "as_published": True},
    "ob above a threshold": {"method": "graphfm-ob", "threshold": 2},
    "ob half tables": {"method": "graphfm-ob", "history": "fp16"},
    "delta": {"method": "graphfm-delta"},
    "delta half tables": {"method": "graphfm-delta", "history": "fp16"},
    "ob learned rows": {"method": "graphfm-ob", "node_features": "learned", "node_width": 3},
    "delta learned rows": {"method": "graphfm-delta", "node_features": "learned", "node_width": 3},
    "delta sampled first hop": {"method": "graphfm-delta", "exact_first_hop": False},
}  # fmt: skip

CLUSTERED_OPTIONS = [({}, False), ({"residual": True}, True), ({"backbone": "sage"}, False)]
CLUSTERED_OPTIONS += sized([(options, not twin) for options, twin in CLUSTERED_OPTIONS], [])


def trained(graph, epochs, **options):
    """Losses, weights and histories after a few epochs, with kernels and without."""
    found = []
    for kernels in ("auto", "plain"):
        run = Run.make(dataset="x", dropout=0.0, kernels=kernels, device=DEVICE.type, **options)
        trainer = build(run, graph)
        sampler = trainer.method.sampler  # the layout of a GPU, also where this is interpreted
        sampler.distinct = None
        sampler.plan = replace(trainer.plan, features=COPIED)
        losses = [trainer.epoch() for _ in range(epochs)]
        tables = trainer.method.estimator.histories_by_name()
        rows = {name: table.rows[:-1] for name, table in tables.items()}
        found.append((losses, (trainer.backbone.state_dict(), rows)))
    return found


@pytest.mark.parametrize("backbone", ["sage", "gcn", "gcnii", "pna"])
@pytest.mark.parametrize("name", SAMPLED)
def test_sampling_methods_are_the_same_with_and_without(make_graph, name, backbone):
    """Losses within 1e-4, weights and histories too (half tables: one part in 500)."""
    (losses, ours), (plain_losses, plain) = trained(
        make_graph(num_nodes=sized(500, 90), num_edges=sized(3000, 400)),
        epochs=1,
        **{
            "backbone": backbone,
            "residual": True,
            "layers": 2,
            "hidden": sized(16, 6),
            "lr": 0.001,
            "batch_size": sized(20, 7),
            "steps_per_epoch": sized(6, 3),
            **SAMPLED[name],
        },
    )
    assert losses == pytest.approx(plain_losses, rel=1e-4)
    half = "half" in name
    close = {"rtol": 2e-3, "atol": 2e-3} if half else {"rtol": 1e-3, "atol": 1e-4}
    torch.testing.assert_close(ours, plain, **close)


@pytest.mark.parametrize(("options", "undirected"), CLUSTERED_OPTIONS, ids=str)
@pytest.mark.parametrize("name", CLUSTERED)
def test_cluster_methods_are_the_same_with_and_without(make_graph, name, options, undirected):
    """Losses within 1e-4, weights and histories too (half tables: 1 in 200)."""
    num_nodes, num_edges = sized(300, 45), sized(2000, 200)
    (losses, ours), (plain_losses, plain) = trained(
        make_graph(num_nodes=num_nodes, num_edges=num_edges, undirected=undirected),
        epochs=2,
        **{
            "backbone": "gcn",
            "layers": 3,
            "hidden": sized(16, 6),
            "lr": 0.001,
            "parts": sized(6, 4),
            "parts_per_batch": 2,
            "partition": "random",
            **CLUSTERED[name],
            **options,
        },
    )
    half = "half" in name
    assert losses == pytest.approx(plain_losses, rel=1e-3 if half else 1e-4)
    close = {"rtol": 5e-3, "atol": 5e-3} if half else {"rtol": 1e-3, "atol": 1e-4}
    torch.testing.assert_close(ours, plain, **close)


@pytest.mark.parametrize("part", backend.PARTS)
def test_an_ablation_trains_the_same_network(make_graph, part):
    graph = make_graph(num_nodes=sized(500, 90), num_edges=sized(3000, 400))
    losses = []
    for parts in ((), (part,)):
        with backend.without(*parts):
            trainer = build(
                Run.make(
                    dataset="x", method="graphfm-ib", layers=2, hidden=70, lr=0.001, dropout=0.0,
                    batch_size=7, steps_per_epoch=2, device=DEVICE.type,
                ),
                graph,
            )  # fmt: skip
            losses.append(trainer.epoch())
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
