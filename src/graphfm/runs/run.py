"""A run: all settings of a training, and the function that builds its trainer."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from graphfm.backbones.base import Backbone
from graphfm.data.datasets import load
from graphfm.data.graph import Graph
from graphfm.data.graph.edge_columns import EdgeColumns, edge_columns
from graphfm.errors import InputError
from graphfm.method_forms import AS_PUBLISHED
from graphfm.methods import Method
from graphfm.options import options_in, settle
from graphfm.runs.carried import carried
from graphfm.runs.devices import check_device
from graphfm.runs.devices import pick_device as pick_device  # others import it from here
from graphfm.runs.earlier import FORMAT, own_updated, updated
from graphfm.runs.memory_plan import MemoryPlan, foresee, memory_plan
from graphfm.runs.named import (
    BackboneLike,
    MethodLike,
    Named,
    as_tuples,
    choose_again,
    choose_backbone,
    choose_method,
    make_method,
    refuse_unnamed,
)
from graphfm.runs.options import refusal
from graphfm.runs.own_code import place_of
from graphfm.runs.settling import (
    HISTORY_SETTINGS,
    check_apart,
    network_for,
    published,
    refuse_history_settings,
    refuse_learned_rows,
    suited,
)
from graphfm.runs.settling import OWN_NETWORK as OWN_NETWORK
from graphfm.runs.settling import backbone_of as backbone_of
from graphfm.training.own_parts import OwnParts
from graphfm.training.settings import Training
from graphfm.training.setup import check_capture, check_trainable, seeded, warn_unread
from graphfm.training.trainer import Trainer

RECORDED = ("dataset", "backbone", "method", "device", "backbone_settings", "method_settings")


@dataclass(frozen=True, kw_only=True)
class Run:
    """All settings of one training, with every default filled in."""

    dataset: str
    backbone: str
    method: str
    device: str
    backbone_settings: Mapping[str, Any] = field(default_factory=dict)
    method_settings: Mapping[str, Any] = field(default_factory=dict)
    training: Training = field(default_factory=Training)
    # The code behind the two names. It is not part of the record.
    named_backbone: Named = field(compare=False, repr=False)
    named_method: Named = field(compare=False, repr=False)
    made_method: Method | None = field(compare=False, repr=False)
    own_parts: OwnParts = field(default=OwnParts(), compare=False, repr=False)

    @classmethod
    def make(
        cls,
        *,
        dataset: str = "debian",
        backbone: BackboneLike | None = None,
        method: MethodLike = "full",
        device: str = "auto",
        **options: Any,
    ) -> Run:
        """Assign flat options (`hidden=64, lr=0.01`) to their owners; None means not given.

        A method is a name, "package.module:function", a function that returns a `Method`, or a
        `Method`; a backbone is a name, "package.module:Class" or a subclass of `Backbone`.
        """
        how = choose_method(method)
        network = network_for(how, backbone)
        check_device(device)
        given = {name: value for name, value in options.items() if value is not None}
        parts = OwnParts.taken_from(given)
        check_apart(how, network)
        known = {n: o for n, o in how.options.items() if not (how.published and n == AS_PUBLISHED)}
        given = {**suited(how, network), **published(how, given)}
        network_settings = settle(given, network.options, f"backbone {network.name}")
        method_settings = settle(given, known, f"method {how.name}")
        training = Training(**settle(given, options_in(Training), "the training"))
        if given:
            raise InputError(refusal(next(iter(given)), network, how))
        if network.code is not None:
            network.code.Settings(**network_settings)  # a bad value is refused here, not at step 1
            refuse_learned_rows(how.name, network, training)
        made = None if how.code is None else make_method(how, method_settings)
        refuse_history_settings(how.name, made, training)
        return cls(
            dataset=dataset,
            backbone=network.name,
            method=how.name,
            device=device,
            backbone_settings={**network.fixed, **network_settings},
            method_settings={**how.fixed, **method_settings},
            training=training,
            named_backbone=network,
            named_method=how,
            made_method=made,
            own_parts=parts,
        )

    def to_json(self) -> dict[str, Any]:
        record = {name: copy.deepcopy(getattr(self, name)) for name in RECORDED}
        own = {name: place_of(part) for name, part in self.own_parts.given().items()}
        parts = {"own_parts": own} if own else {}
        return {"format": FORMAT, **record, "training": asdict(self.training), **parts}

    @classmethod
    def from_json(
        cls,
        record: Mapping[str, Any],
        *,
        method: MethodLike | None = None,
        backbone: BackboneLike | None = None,
        own_parts: OwnParts = OwnParts(),
    ) -> Run:
        """The inverse of `to_json`, also of earlier versions, through the same checks as `make`.

        Nothing that a record names is imported. The user's own code has to be given again; without
        it the run can be inspected, and `require` says what is missing.
        """
        flat = as_tuples(updated(record))
        settings = {name: flat.pop(f"{name}_settings") for name in ("backbone", "method")}
        if flat.pop("format", 1) != FORMAT and method is not None:
            how = choose_method(method)
            if how.name == flat["method"]:  # otherwise it is refused below
                settings["method"] = own_updated(how, settings["method"])
        chosen = {
            "backbone": choose_again("backbone", flat["backbone"], backbone, settings["backbone"]),
            "method": choose_again("method", flat["method"], method, settings["method"]),
        }
        flat |= flat.pop("training")
        flat.pop("own_parts", None)  # `own_parts` are those that are given again
        flat |= own_parts.given()
        for name, named in chosen.items():
            flat |= {} if named.fixed else settings[name]
        return cls.make(**{**flat, **chosen})

    def require(self, *what: str) -> None:
        """Refuse to continue without the code of the "method" or the "backbone"."""
        for name in what:
            named: Named = getattr(self, f"named_{name}")
            if named.code is None:
                refuse_unnamed(name, named.name)

    def new_method(self) -> Method:
        """A copy of the run's method, so that trainers share no state."""
        self.require("method")
        return copy.deepcopy(self.made_method)  # type: ignore[return-value]

    def new_backbone(
        self,
        num_features: int,
        num_classes: int,
        num_nodes: int,
        edges: EdgeColumns | None = None,
        *,
        planned: bool = False,
    ) -> Backbone:
        """The network for a graph of that size, with new weights; a `planned` one is not trained.

        `edges` describes the data of edges, which a model of the user's own may read.
        """
        self.require("backbone")
        kind: Any = self.named_backbone.code
        inputs = self.training.input_rows(num_features, num_nodes, self.training.seed)
        width = num_features if inputs is None else inputs.width
        backbone: Backbone
        if self.named_backbone.is_model:
            make = kind.planned if planned else kind.make
            backbone = make(width, num_classes, edges or {})
            kind.check(self.method, told=not planned)
        else:
            backbone = kind(width, num_classes, kind.Settings(**self.backbone_settings))
        if inputs is not None:
            backbone.read_through(inputs)
        return backbone

    def digests(self) -> dict[str, str]:
        """Hashes of the user's own method and backbone; empty if there are none."""
        found = {"method": self.named_method.digest, "backbone": self.named_backbone.digest}
        return {what: digest for what, digest in found.items() if digest is not None}

    def code(self) -> dict[str, Any]:
        """What a child process needs to find the user's own code; empty if there is none."""
        self.own_parts.refuse_to_travel()
        return carried(self.named_method, self.named_backbone)


def load_graph(run: Run) -> Graph:
    """Load the graph of a run on its device; refuses one that is known not to fit."""
    device = pick_device(run.device)
    check_capture(run.training, device)
    if plan := foresee(run, device):
        plan.check(run)
    return load(run.dataset, device=device, dtype=run.training.feature_type)


def build(run: Run, graph: Graph, plan: MemoryPlan | None = None) -> Trainer:
    """Build the trainer of `run` on `graph`, which is moved to the run's device.

    With a `plan` that was checked for this graph, the graph and its memory are not checked again.
    """
    if plan is None:
        check_trainable(graph, run.training)
    graph = graph.with_features(run.training.feature_type or graph.x.dtype)
    graph = graph.to(pick_device(run.device))
    if plan is None:
        memory_plan(run, graph).check(run)
    with seeded(run.training.seed, graph.device):
        sizes = graph.num_features, graph.num_classes, graph.num_nodes
        backbone = run.new_backbone(*sizes, edge_columns(graph))
    if backbone.node_rows is not None:
        backbone.node_rows.fit(graph)
    backbone.calibrate(graph)
    warn_unread(graph, backbone)
    return Trainer(graph, backbone, run.new_method(), run.training, run.own_parts)


def options_of(method: MethodLike, backbone: BackboneLike) -> frozenset[str]:
    """The names of all options of a run of this method on this backbone."""
    how, network = choose_method(method), choose_backbone(backbone)
    names = frozenset({*how.options, *network.options, *options_in(Training)})
    settings = {name: option.default for name, option in how.options.items()}
    if not all(option.has_default for option in how.options.values()):
        return names
    try:
        keeps_history = make_method(how, settings).estimator.keeps_history
    except InputError:  # its defaults alone may not be valid
        return names
    return names if keeps_history else names.difference(HISTORY_SETTINGS)
