"""What a network of PyG allows: found by a probe, and tested on a small graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.aggr import LSTMAggregation
from torch_geometric.nn.conv import ChebConv, DirGNNConv, GPSConv, HypergraphConv
from torch_geometric.nn.norm import (
    GraphNorm,
    GraphSizeNorm,
    InstanceNorm,
    LayerNorm,
    MeanSubtractionNorm,
    PairNorm,
)

from graphfm.errors import InputError
from graphfm.methods import METHODS
from graphfm.pyg.cut import MEAN, OTHER, SUM
from graphfm.pyg.model import OwnModel
from graphfm.pyg.trials import TOLERANCE, trials

SAMPLED = ("graphsage", "graphfm-ib")
WEIGHED = ("fastgcn", "ladies")
VARIATES = ("vr-gcn", "mvs-gcn")
HALO = ("gas", "graphfm-ob")
EVERYWHERE = "normalises over all nodes; batch norm, or layer norm by node, does not"
UNSUITABLE: dict[type[nn.Module], str] = {
    ChebConv: "makes a Laplacian of the edges it sees",
    LSTMAggregation: "needs all neighbours, in their order",
    GPSConv: "attends to all nodes of the graph",
    DirGNNConv: "sends messages against the direction of edges",
    HypergraphConv: "reads hyperedges",
    **dict.fromkeys([GraphNorm, InstanceNorm, MeanSubtractionNorm, PairNorm], EVERYWHERE),
    GraphSizeNorm: "divides by the number of nodes that it sees",
}
WORDS = {
    SUM: "a sum", MEAN: "a mean", OTHER: "neither a sum nor a mean",
}  # fmt: skip

LESS = (
    "on a small graph where nothing is left out its outputs differ by {:.1g}: it uses the edges "
    "outside of its MessagePassing modules, or normalises by weights that it makes itself"
)
WRONG = {
    "sampled": LESS,
    "halo": LESS,
    "alike": (
        "with fewer neighbours its outputs differ by {:.1g} although all neighbours are alike: a "
        "sum is mixed with other aggregates, or divided by a degree that the network counts"
    ),
}


@dataclass(frozen=True)
class Certificate:
    """How a network passes messages, and which methods can train it."""

    name: str
    num_hops: int
    cuts: tuple[str, ...]  # a line for each propagation
    refused: Mapping[str, str]  # methods, and why not
    warnings: Mapping[str, str]  # methods that run, and what is known against them
    errors: Mapping[str, float] = field(default_factory=dict)  # of the tests on a small graph

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that can train the network."""
        return tuple(name for name in METHODS if name not in self.refused)

    def require(self, method: str) -> None:
        """Refuse a method that would train the network wrongly."""
        if method in self.refused:
            raise InputError(
                f"{method} cannot train {self.name}: {self.refused[method]}; use one of "
                f"{', '.join(self.methods)}"
            )

    def to_json(self) -> dict[str, object]:
        return {
            "num_hops": self.num_hops, "cuts": list(self.cuts), "refused": dict(self.refused),
            "warnings": dict(self.warnings), "errors": dict(self.errors),
        }  # fmt: skip

    def __str__(self) -> str:
        lines = [
            f"{self.name}: an output depends on nodes up to {self.num_hops} hops away",
            *(f"  {line}" for line in self.cuts),
            f"can be trained by: {', '.join(self.methods)}",
            *_grouped(self.warnings),
        ]
        if self.refused:
            lines += ["cannot be trained by:", *_grouped(self.refused)]
        return "\n".join(lines)


def _grouped(reasons: Mapping[str, str]) -> list[str]:
    """A line for each reason, with all methods that share it."""
    methods = dict[str, list[str]]()
    for name, reason in reasons.items():
        methods.setdefault(reason, []).append(name)
    return [f"  {', '.join(names)}: {reason}" for reason, names in methods.items()]


def certify(model: OwnModel, width: int, data: Mapping[str, Tensor]) -> Certificate:
    """Examine a network, and test it where nothing is left out: it must then be exact."""
    found, bound = model.findings, model.whole
    rules, errors = _Rules(model), dict[str, float]()
    if not found.problems and not rules.by_name:
        try:
            errors = trials(model, width, data)
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            rules.failed.append(f"it fails on parts of a small graph: {reason}")
        finally:
            model.whole = bound
    cuts = tuple(
        f"{cut.place.name}, call {cut.place.call}, hop "
        f"{cut.place.hop}: {WORDS[cut.kind]}, {cut.depth} hops from the features, "
        f"{cut.in_width} numbers a node"
        for cut in found.cuts
    )
    refused = rules.refusals(errors)
    warnings = {name: text for name, text in rules.warnings().items() if name not in refused}
    name = type(model.net).__name__
    return Certificate(name, found.num_hops, cuts, refused, warnings, errors)


def check_kind(net: nn.Module) -> None:
    """Refuse what hooks do not work on."""
    compiled = isinstance(net, torch._dynamo.OptimizedModule) or any(
        isinstance(part, torch._dynamo.OptimizedModule) or part._compiled_call_impl is not None
        for part in net.modules()
    )
    if compiled or isinstance(net, torch.jit.ScriptModule):
        raise InputError(
            f"{type(net).__name__} is compiled, and compiled modules skip hooks; give the module "
            "as it was before torch.compile or torch.jit"
        )


class _Rules:
    """Which methods the findings forbid, and which they advise against."""

    def __init__(self, model: OwnModel) -> None:
        self.model, self.cuts = model, model.findings.cuts
        self.by_name, self.failed = _unsuitable(model.net), list[str]()

    def refusals(self, errors: Mapping[str, float]) -> dict[str, str]:
        found, refused = self.model.findings, dict[str, str]()
        own = "it has a network of its own"
        refused |= {"sign": own, "sgc": own}
        others = [name for name in METHODS if name not in ("full", "sign", "sgc")]
        reasons = [*self.by_name, *found.problems, *self.failed]
        if not errors.get("order", 0.0) <= TOLERANCE:  # NaN neither
            reasons.append("its outputs depend on the order of the nodes")
        if reasons:
            return refused | dict.fromkeys(others, reasons[0])
        if found.apart:
            alone = ("cluster-gcn", "shadow")
            refused |= {name: found.apart[0] for name in others if name not in alone}
        picked = (*SAMPLED, *WEIGHED, *VARIATES)
        for key, names in ("sampled", picked), ("halo", HALO), ("alike", picked):
            if not errors.get(key, 0.0) <= TOLERANCE:
                text = WRONG[key].format(errors[key])
                refused |= {name: text for name in names if name not in refused}
        for name in (*WEIGHED, *VARIATES):
            if (why := self._no_weights(name)) is not None:
                refused.setdefault(name, why)
        if not self.model.halo_follows:
            why = "rows outside of a batch need all their edges, not only their aggregates"
            refused.setdefault("graphfm-delta", why)
        if (why := self._not_linear()) is not None:
            refused.setdefault("graphfm-delta", why)
        return refused

    def _no_weights(self, method: str) -> str | None:
        for cut in self.cuts:
            if cut.kind == OTHER:
                return f"the aggregate of {cut.place.name} is {WORDS[OTHER]} of its messages"
            if method in VARIATES and (cut.inner or cut.call.last_depth > cut.call.depth):
                return f"{cut.place.name} has several hops"
            if method in VARIATES and not cut.can_repeat:
                return f"{cut.place.name} reads more than rows, edges and data of the graph"
        return None

    def _not_linear(self) -> str | None:
        for cut in self.cuts[:-1]:
            if not cut.can_repeat or not cut.is_linear:
                return f"the aggregate of {cut.place.name} is not linear, or has weights in it"
        return None

    def warnings(self) -> dict[str, str]:
        others = [cut.place.name for cut in self.cuts if cut.kind == OTHER]
        if not others:
            return {}
        biased = (
            f"the aggregate of {others[0]} is {WORDS[OTHER]} of its messages (attention or a "
            "maximum, say), so sampled neighbours give a biased one"
        )
        more = ", and an average of it is known to hurt attention; gas reads all neighbours"
        return {"graphsage": biased, "graphfm-ib": biased + more}


def _unsuitable(net: nn.Module) -> list[str]:
    """Parts that are known not to fit, by name."""
    found = list[str]()
    for name, part in net.named_modules():
        label = f"{name or 'the network itself'} ({type(part).__name__})"
        found += [f"{label} {why}" for kind, why in UNSUITABLE.items() if isinstance(part, kind)]
        if isinstance(part, LayerNorm) and part.mode == "graph":
            found.append(f"{label} normalises over all nodes; its mode='node' does not")
        if isinstance(part, _BatchNorm) and not part.track_running_stats:
            found.append(f"{label} keeps no running statistics, so evaluation mixes all nodes")
        if isinstance(part, MessagePassing) and part.flow != "source_to_target":
            found.append(f"{label} sends messages from target to source")
    return found
