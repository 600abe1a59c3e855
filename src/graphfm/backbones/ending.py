"""Where inference ends: at the network's outputs, or at the rows of one of its layers."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from torch import Tensor, nn

from graphfm.backbones.base import Backbone
from graphfm.errors import InputError


class Ending(NamedTuple):
    """How many graph layers are applied, and what is made of the rows that `walk` returns."""

    num_layers: int
    finish: Callable[[Sequence[Tensor]], Tensor]


def outputs(backbone: Backbone) -> Ending:
    """Apply all layers and the decoder."""
    return Ending(len(backbone.layers), lambda rows: backbone.decode(backbone.joined(rows)))


def embedding(backbone: Backbone, layer: int | None = None) -> Ending:
    """Stop at a layer: 0 is what the first graph layer reads, k the output of the k-th.

    Negative numbers count from the last. None stands for the last hidden rows: what the last matrix
    of the network reads, whether that is in the last graph layer or in the decoder.
    """
    last, decode = len(backbone.layers), backbone.decode
    if layer is not None:
        if not -last - 1 <= layer <= last:
            raise InputError(
                f"the layer is {layer}; expected 0 to {last} (the network has {last} graph layers) "
                "or none, for the last hidden rows"
            )
        return Ending(layer % (last + 1), _last)
    if isinstance(decode, nn.Identity):  # the last graph layer computes the outputs
        return Ending(max(last - 1, 0), _last)
    before: nn.Module = nn.Identity()
    if isinstance(decode, nn.Sequential) and isinstance(decode[-1], nn.Linear):
        before = decode[:-1]
    return Ending(last, lambda rows: before(backbone.joined(rows)))


def _last(rows: Sequence[Tensor]) -> Tensor:
    return rows[-1]
