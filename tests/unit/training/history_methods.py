"""The methods that keep a history, and small trainers of them."""

from graphfm.runs.run import Run, build

CLUSTER = ("gas", "graphfm-ob", "graphfm-delta")
METHODS_WITH_HISTORY = (*CLUSTER, "graphfm-ib", "vr-gcn", "mvs-gcn")


def trainer_of(graph, method, **options):
    if method in CLUSTER:
        options = {"parts": 6, "parts_per_batch": 2, **options}
    elif method == "mvs-gcn":
        options = {"nodes_per_layer": (5,), "batch_size": 8, **options}
    elif method != "full":
        options = {"fanout": (2,), "batch_size": 8, **options}
    options = {"backbone": "gcn", "layers": 3, "hidden": 8, "dropout": 0.0, **options}
    return build(Run.make(method=method, device="cpu", **options), graph)
