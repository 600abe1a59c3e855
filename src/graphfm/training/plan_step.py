"""Plan a step, once, from the graph's size, the network, the method and the settings."""

from __future__ import annotations

from dataclasses import replace

import torch

from graphfm.backbones.base import Backbone
from graphfm.data.graph.size import GraphSize
from graphfm.errors import InputError
from graphfm.kernels.backend import execution
from graphfm.kernels.fused_aggregate import largest_fanout
from graphfm.layer import GraphLayer
from graphfm.methods import Method
from graphfm.step_plan import COPIED, GATHERED, IN_PLACE, UNREAD, StepPlan
from graphfm.tables.base import TablePlan, TableSpec
from graphfm.training.learned_rows import MOMENTS
from graphfm.training.own_parts import OwnParts
from graphfm.training.settings import NUMBER_TYPES, Training


def plan_step(
    size: GraphSize,
    device: torch.device,
    backbone: Backbone,
    method: Method,
    settings: Training,
    own: OwnParts = OwnParts(),
) -> StepPlan:
    """Plan the steps of a training on a graph of that size. Nothing is allocated or changed."""
    sampler, estimator, layers = method.sampler, method.estimator, backbone.layers
    with execution(kernels=settings.kernels):
        most_fused = largest_fanout(device)
    first_hop = estimator.exact_first_hop and backbone.begins_linear
    num_blocks = backbone.num_blocks
    fused = _fused_layers(size, backbone, method, most_fused, first_hop)
    crowded = sampler.crowded_layers(size, num_blocks, first_hop)
    features = _features(size, device, backbone, method, 0 in fused)
    plan = StepPlan(
        num_layers=num_blocks,
        device=device,
        kernels=most_fused > 0,
        first_hop=_first_hop(size, layers[0]) if first_hop else None,
        features=features,
        fused=fused,
        crowded=crowded,
        first_layer_ahead=features == GATHERED and estimator.first_layer_ahead(first_hop),
        whole_up_to=most_fused if all(layer.sums for layer in layers) else 0,
        recording_pass=estimator.keeps_history
        and backbone.is_noisy
        and not estimator.dropout_in_histories,
        learned=_learned(size, backbone, settings),
        note=estimator.note(num_blocks, first_hop),
        tables={
            name: TablePlan(
                spec=spec,
                num_rows=size.num_train
                if spec.seeds_only and sampler.starts_at_training_nodes
                else size.num_nodes,
                dtype=torch.float32 if spec.exact else NUMBER_TYPES[settings.history],
            )
            for name, spec in estimator.declare(layers, int(first_hop)).items()
        },
    )
    reason = _why_not_captured(size, plan, backbone, method, settings, own)
    return replace(plan, not_captured=reason)


def _first_hop(size: GraphSize, layer: GraphLayer) -> TablePlan:
    """The table of the first layer's aggregates, in the number type of the features."""
    spec = TableSpec(width=layer.agg_width)
    return TablePlan(spec=spec, num_rows=size.num_nodes, dtype=size.feature_type)


def _learned(size: GraphSize, backbone: Backbone, settings: Training) -> dict[str, TablePlan]:
    """The table of learned rows, and those of the moments that the optimizer keeps of them."""
    if backbone.learned_rows is None:
        return {}
    spec = TableSpec(width=backbone.learned_rows.size(1), exact=True)
    names = ("rows",) if settings.optimizer == "sgd" else ("rows", *MOMENTS)
    plan = TablePlan(spec=spec, num_rows=size.num_nodes, dtype=torch.float32)
    return dict.fromkeys(names, plan)


def _gathers(backbone: Backbone, method: Method) -> bool:
    """True if the first layer does nothing with the features but weighted sums."""
    if not backbone.begins_linear:
        return False
    first = backbone.layers[0]
    return first.sums and (first.joins or not first.residual) and method.estimator.can_fuse()


def _fused_layers(
    size: GraphSize, backbone: Backbone, method: Method, most: int, first_hop: bool
) -> frozenset[int]:
    """The layers that one kernel aggregates and blends; a second kernel writes their history."""
    fanouts = method.sampler.fixed_fanouts(size, backbone.num_blocks)
    fused = frozenset[int]()
    can_fuse = method.estimator.can_fuse() and any(layer.sums for layer in backbone.layers)
    if fanouts is not None and can_fuse:
        fits = zip(backbone.layers, fanouts, strict=True)
        fused |= {
            depth for depth, (layer, fanout) in enumerate(fits) if layer.sums and fanout <= most
        }
    if not first_hop:
        return fused
    # The first layer's aggregates are looked up, by its kernel if it has one.
    return fused | {0} if most and _gathers(backbone, method) else fused - {0}


def _features(
    size: GraphSize, device: torch.device, backbone: Backbone, method: Method, first_fused: bool
) -> str:
    """How features reach the first layer."""
    sums, known = _gathers(backbone, method), method.estimator.exact_first_hop
    if sums and first_fused:
        return GATHERED
    if known and backbone.begins_linear:
        alone = not (backbone.joins_layers or backbone.reads_h0)
        if alone and backbone.layers[0].affine() is not None:
            return UNREAD
    as_kept = size.feature_type == torch.float32  # needs no conversion
    in_place = method.sampler.reads_in_place(device, sums and not known)
    return IN_PLACE if as_kept and in_place else COPIED


def _why_not_captured(
    size: GraphSize,
    plan: StepPlan,
    backbone: Backbone,
    method: Method,
    settings: Training,
    own: OwnParts,
) -> str | None:
    """Why a step is not captured as a CUDA graph; None where it is."""
    if settings.capture == "off":
        return "capture is off"
    reason = None
    if plan.device.type != "cuda":
        reason = "there is no GPU"
    elif own.optimizer is not None:
        reason = "the optimizer is your own"
    elif settings.accumulate > 1:
        reason = "gradients are accumulated"
    elif not backbone.capturable:
        reason = "the network is your own, and its hooks run on the host"
    elif not method.sampler.static_shapes(size, plan):
        reason = "the size of this method's batches changes from step to step"
    elif not method.estimator.capturable:
        name = type(method.estimator).__name__
        reason = f"{name} does not declare that its step can be replayed (capturable = True)"
    elif plan.learned:
        reason = "how many learned rows a step moves changes from step to step"
    elif settings.staleness_every:
        reason = "the age of histories is measured (staleness_every), which runs on the host"
    if reason is not None and settings.capture == "on":
        raise InputError(f"capture is on, but {reason}; set capture to auto or off")
    return reason
