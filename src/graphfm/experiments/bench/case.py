"""One training to measure, and the rival to compare it with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from graphfm.data.datasets import load
from graphfm.data.graph import Graph
from graphfm.experiments.bench.contender import Contender, Ours
from graphfm.experiments.bench.machine import Machine
from graphfm.experiments.bench.model_rival import ModelRival
from graphfm.experiments.bench.pyg_rival import PyGRival, has_pyg
from graphfm.experiments.bench.rival import NumpyRival
from graphfm.runs.own_model import choose_model
from graphfm.runs.run import Run, options_of, pick_device


@dataclass(frozen=True, kw_only=True)
class Case:
    """A training as `graphfm train` would run it, and the name of a rival."""

    name: str
    dataset: str
    options: Mapping[str, Any] = field(default_factory=dict)  # as `Run.make` takes them
    rival: str | None = None  # of RIVALS
    workers: int = 0  # processes that sample for the rival, where it can use them
    device: str = "auto"
    without: tuple[str, ...] = ()  # of `kernels.backend.PARTS`, what is switched off
    model: str | None = None  # a class of PyG, as package.module:Class
    model_options: Mapping[str, Any] = field(default_factory=dict)

    def run(self) -> Run:
        network = {}
        if self.model is not None:
            network["backbone"] = choose_model(self.model, self.model_options)
        return Run.make(dataset=self.dataset, device=self.device, **self.options, **network)

    def graph(self) -> Graph:
        """The graph, on the device that trains."""
        kind = self.run().training.feature_type
        return load(self.dataset, device=pick_device(self.device), dtype=kind)

    def make_rival(self, graph: Graph) -> Contender | None:
        return None if self.rival is None else RIVALS[self.rival](self, graph)

    def to_json(self, suite: str, machine: Machine) -> dict[str, Any]:
        """What every record of this case says, whether it was measured or failed."""
        return {
            "suite": suite,
            "case": self.name,
            "dataset": self.dataset,
            "options": dict(self.options),
            **({} if self.model is None else {"model": self.model, **self.model_options}),
            "machine": asdict(machine),
        }


def _loader(case: Case, graph: Graph) -> Contender:
    """PyG's loader where its compiled sampler is installed, else the one in NumPy."""
    kind = PyGRival if has_pyg() else NumpyRival
    return kind(case.run(), graph, case.workers)


def _pyg(case: Case, graph: Graph) -> Contender:
    return PyGRival(case.run(), graph, case.workers)


def _full_batch(case: Case, graph: Graph) -> Contender:
    """The same network and settings, with all nodes and edges in one step."""
    run = case.run()
    shared = options_of("full", run.backbone)
    options = {name: value for name, value in case.options.items() if name in shared}
    options |= {"backbone": run.backbone, "method": "full"}
    return Ours(Run.make(dataset=case.dataset, device=case.device, **options), graph)


def _same_model(case: Case, graph: Graph) -> Contender:
    return ModelRival(case.run(), graph, case.workers)


def _own_sage(case: Case, graph: Graph) -> Contender:
    """Our own network of the same shape, by the same method."""
    shape = case.model_options
    options = {"hidden": shape["hidden_channels"], "layers": shape["num_layers"], "dropout": 0.0}
    run = Run.make(
        dataset=case.dataset, device=case.device, backbone="sage", **options, **case.options
    )
    return Ours(run, graph)


RIVALS: Mapping[str, Callable[[Case, Graph], Contender]] = {
    "loader": _loader,
    "pyg": _pyg,
    "full": _full_batch,
    "same model": _same_model,
    "own sage": _own_sage,
}
