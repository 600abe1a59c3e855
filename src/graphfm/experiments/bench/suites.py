"""The suites: what is measured, and with which settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from graphfm.experiments.bench.case import Case
from graphfm.kernels.backend import PARTS as SWITCHES

SAGE = {"backbone": "sage", "layers": 2, "hidden": 256, "batch_size": 512, "dropout": 0.0}
GCN = {"backbone": "gcn", "layers": 3, "hidden": 256, "dropout": 0.0, "deterministic": False}
# Random parts have the largest halo that is possible, and cost nothing to make.
PARTS = {"parts": 150, "parts_per_batch": 10, "partition": "random"}


def _sampled(
    method: str, dataset: str, fanout: tuple[int, ...], rival: str, device: str, **options: Any
) -> Case:
    """A method that samples neighbours, against a loader with the same fan-out."""
    workers = 12 if rival == "pyg" else 0
    settings = {**SAGE, "method": method, "layers": len(fanout), "fanout": fanout, **options}
    name = f"{method} {','.join(map(str, fanout))}"
    for option in ("capture", "precision"):
        name += f", {option} {options[option]}" if option in options else ""
    return Case(
        name=name, dataset=dataset, options=settings, rival=rival, workers=workers, device=device
    )


def _clustered(method: str, precision: str) -> Case:
    """A method that trains on parts of the graph, against one full-batch pass."""
    options = {**GCN, **PARTS, "method": method, "precision": precision}
    return Case(
        name=f"{method}, precision {precision}",
        dataset="synthetic:products",
        options=options,
        rival="full",
        device="cuda",
    )


def _ablation(method: str, fanout: tuple[int, ...]) -> list[Case]:
    """A method with everything on, without capture, and without one part of the kernels each.

    Kernels are compiled once in a process: to see what `without precompile` costs in the warm-up,
    run that case alone (`--case`), and with an empty folder as TRITON_CACHE_DIR.
    """
    whole, uncaptured = (
        replace(_sampled(method, "synthetic:reddit", fanout, "", "cuda", **options), rival=None)
        for options in ({}, {"capture": "off"})
    )
    switched_off = [
        replace(whole, name=f"{whole.name}, without {part}", without=(part,)) for part in SWITCHES
    ]
    return [whole, uncaptured, *switched_off]


QUICK = tuple(
    _sampled(method, dataset, fanout, "loader", "auto", steps_per_epoch=20)
    for dataset in ("synthetic:small", "debian")
    for method, fanout in (("graphsage", (5, 5)), ("graphfm-ib", (1, 1)))
)
CPU = tuple(
    _sampled(method, dataset, fanout, "loader", "cpu", steps_per_epoch=40)
    for dataset in ("debian", "synthetic:flickr")
    for method, fanout in (
        ("graphsage", (25, 10)),
        ("graphsage", (5, 5)),
        ("graphsage", (1, 1)),
        ("graphfm-ib", (1, 1)),
        ("graphfm-ib", (1, 1, 1, 1)),
    )
)
GPU = (
    _sampled("graphfm-ib", "synthetic:reddit", (1, 1), "pyg", "cuda"),
    _sampled("graphfm-ib", "synthetic:reddit", (1, 1), "pyg", "cuda", capture="off"),
    _sampled("graphfm-ib", "synthetic:reddit", (1, 1), "pyg", "cuda", precision="tf32"),
    _sampled("graphfm-ib", "synthetic:reddit", (1, 1, 1, 1), "pyg", "cuda"),
    _sampled("graphfm-ib", "synthetic:reddit", (1, 1, 1, 1), "pyg", "cuda", precision="tf32"),
    _sampled("graphsage", "synthetic:reddit", (25, 10), "pyg", "cuda"),
    _sampled("graphsage", "synthetic:reddit", (25, 10), "pyg", "cuda", precision="tf32"),
    *(
        _clustered(method, precision)
        for precision in ("fp32", "tf32")
        for method in ("gas", "graphfm-ob", "graphfm-delta")
    ),
)
SCALE = (
    Case(
        name="graphfm-ib 1,1,1",
        dataset="synthetic:papers100m",
        options={
            "backbone": "sage", "layers": 3, "hidden": 128, "dropout": 0.0,
            "method": "graphfm-ib", "fanout": (1, 1, 1), "batch_size": 1024, "features": "fp16",
            "history": "fp16",
        },
        device="cuda",
    ),
)  # fmt: skip

ABLATION = tuple(
    case
    for method, fanout in (
        ("graphfm-ib", (1, 1)),
        ("graphfm-ib", (1, 1, 1, 1)),
        ("graphsage", (25, 10)),
    )
    for case in _ablation(method, fanout)
)


def _networks_of_pyg(dataset: str, device: str, **options: Any) -> tuple[Case, ...]:
    """Unmodified networks of PyG by our methods, against the usual loop and our own network."""
    shape = {"hidden_channels": 256, "num_layers": 2}
    sage = Case(
        name="graphfm-ib 1,1 on PyG's GraphSAGE", dataset=dataset, device=device, workers=12,
        options={"method": "graphfm-ib", "fanout": (1, 1), "batch_size": 512, **options},
        model="torch_geometric.nn:GraphSAGE", model_options=shape, rival="same model",
    )  # fmt: skip
    attention = replace(
        sage, name="gas on PyG's GAT", options={"method": "gas", **PARTS, **options},
        model="torch_geometric.nn:GAT",
    )  # fmt: skip
    beside = replace(sage, name=f"{sage.name}, beside our own", rival="own sage")
    return sage, beside, attention


PYG = _networks_of_pyg("debian", "auto", steps_per_epoch=20)
PYG_GPU = _networks_of_pyg("synthetic:reddit", "cuda")

SUITES: Mapping[str, tuple[Case, ...]] = {
    "quick": QUICK,
    "cpu": CPU,
    "gpu": GPU,
    "scale": SCALE,
    "ablation": ABLATION,
    "pyg": PYG,
    "pyg-gpu": PYG_GPU,
}
