"""The optimizers of a training: Adam, AdamW and SGD."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from graphfm.backbones.input_rows import LEARNED
from graphfm.errors import InputError
from graphfm.kernels.adam import Adam
from graphfm.training.own_parts import OwnParts, make_own_optimizer

if TYPE_CHECKING:
    from graphfm.training.settings import Training


class SGD(torch.optim.SGD):
    """`torch.optim.SGD`, whose momentum exists before the first step.

    It begins at zero, which gives the same first step as torch's, and every parameter has a state:
    so a CUDA graph can hold it, and a checkpoint always has the same tensors.
    """

    def __init__(self, params: Any, **settings: Any) -> None:
        super().__init__(params, **settings)
        self.kept = ("momentum_buffer",) if self.defaults["momentum"] else ()
        for group in self.param_groups:
            for parameter in group["params"] if self.kept else ():
                self.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)

    def overflowed(self) -> bool:
        """False: no squares are kept, and gradients that overflow break the weights."""
        return False


def make_optimizer(
    backbone: nn.Module, training: Training, device: torch.device, own: OwnParts = OwnParts()
) -> torch.optim.Optimizer:
    """Make a network's optimizer; on a GPU its state lives there, so a CUDA graph can hold it."""
    if own.optimizer is not None:
        if training.node_features == LEARNED:
            raise InputError(
                "an optimizer of your own moves weights, not learned rows; leave it out, or use "
                "node_features degree or random"
            )
        return make_own_optimizer(own.optimizer, backbone)
    on_gpu, decay = device.type == "cuda", training.weight_decay
    rate = torch.tensor(training.lr, device=device) if on_gpu else training.lr
    if training.optimizer == "sgd":  # torch's fused kernel reads the rate from the GPU
        return SGD(
            backbone.parameters(), lr=rate, momentum=training.momentum, weight_decay=decay,
            fused=on_gpu,
        )  # fmt: skip
    return Adam(
        backbone.parameters(), lr=rate, weight_decay=decay, fused=True, capturable=on_gpu,
        decoupled_weight_decay=training.optimizer == "adamw",
    )  # fmt: skip


def overflowed(optimizer: torch.optim.Optimizer) -> bool:
    """True if an optimizer keeps squares of gradients that are infinite; one's own is not asked."""
    return isinstance(optimizer, Adam | SGD) and optimizer.overflowed()


def kept_state(optimizer: torch.optim.Optimizer) -> tuple[str, ...] | None:
    """The names of a parameter's state; None if they are not known, as of a user's optimizer."""
    return optimizer.kept if isinstance(optimizer, Adam | SGD) else None


def check_optimizer(training: Training) -> None:
    """Refuse a momentum that is none, or that the optimizer does not read."""
    if not 0 <= training.momentum < 1:
        raise InputError(f"momentum is {training.momentum}; expected 0 or more, and below 1")
    if training.momentum and training.optimizer != "sgd":
        raise InputError(
            f"momentum belongs to optimizer sgd, but optimizer is {training.optimizer}; set "
            "optimizer to sgd, or leave it out"
        )
