"""What a network of PyG is given of a batch: rows, edges and their data, and how to call it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import Sequential

from graphfm.errors import InputError

CallModel = Callable[[nn.Module, Data], Any]
OPTIONAL = ("edge_weight", "edge_attr", "edge_type")


def default_call(net: nn.Module) -> CallModel:
    """How a network is called whose user does not say: by the names of its parameters."""
    names, needed = _parameters(net)
    if needed in (["x"], ["input"]) and "edge_index" not in names:
        return lambda net, batch: net(batch.x)
    if len(needed) == 1 and "edge_index" not in needed:
        return lambda net, batch: net(batch)
    first = names[:2]
    unknown = [name for name in needed if name not in (*first, *OPTIONAL)]
    if len(first) < 2 or unknown:
        what = (
            f"needs {', '.join(unknown)}" if unknown else f"takes {', '.join(first) or 'nothing'}"
        )
        raise InputError(
            f"{type(net).__name__}.forward {what}; expected x, edge_index and perhaps "
            f"{', '.join(OPTIONAL)}; say how to call it, as in call=lambda net, batch: "
            "net(batch.x, batch.edge_index)"
        )
    taken = [name for name in OPTIONAL if name in names]
    turned = first == ["edge_index", "x"]

    def call(net: nn.Module, batch: Data) -> Any:
        more = {name: batch[name] for name in taken if batch.get(name) is not None}
        both = (batch.edge_index, batch.x) if turned else (batch.x, batch.edge_index)
        return net(*both, **more)

    return call


def _parameters(net: nn.Module) -> tuple[list[str], list[str]]:
    """The names of all parameters of a network's forward, and of those without a default."""
    if isinstance(net, Sequential):
        names = list(net.signature.param_dict)
        return names, names
    found = inspect.signature(net.forward).parameters.values()
    named = [p for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return [p.name for p in named], [p.name for p in named if p.default is p.empty]


def run(
    net: nn.Module, call: CallModel, x: Tensor, edges: Tensor, data: Mapping[str, Tensor]
) -> Tensor:
    """Call the network on rows, edges and their data; it must return one row per node."""
    out = call(net, Data(x=x, edge_index=edges, num_nodes=x.size(0), **data))
    if not isinstance(out, Tensor) or out.dim() != 2 or out.size(0) != x.size(0):
        got = f"shape {list(out.shape)}" if isinstance(out, Tensor) else f"a {type(out).__name__}"
        raise InputError(
            f"{type(net).__name__} returned {got}; expected a tensor [num_nodes, num_outputs]; "
            "call= may pick it, as in call=lambda net, batch: net(batch.x, batch.edge_index)[0]"
        )
    return out
