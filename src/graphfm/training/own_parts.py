"""Parts of a training that the user writes: a loss, an optimizer, a learning-rate schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor, nn

from graphfm.errors import InputError

OwnLoss = Callable[[Tensor, Tensor], Tensor]  # outputs and labels of rows -> a loss for each row
OwnOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]
OwnSchedule = Callable[[int], float]  # epoch, counted from 0 -> factor of the learning rate
UNREAD = {  # settings that a part of the user's own replaces
    "loss": ("label_smoothing", "focal_gamma", "huber_delta"),
    "optimizer": ("lr", "weight_decay", "momentum"),
    "schedule": ("warmup", "lr_every", "lr_factor", "lr_patience"),
}


@dataclass(frozen=True, kw_only=True)
class OwnParts:
    """What replaces the setting of the same name; None leaves it to the setting."""

    loss: OwnLoss | None = None
    optimizer: OwnOptimizer | None = None
    schedule: OwnSchedule | None = None

    @classmethod
    def taken_from(cls, options: dict[str, Any]) -> OwnParts:
        """Take the functions out of a run's options; names of settings stay there."""
        names = [item.name for item in fields(cls)]
        return cls(**{name: options.pop(name) for name in names if callable(options.get(name))})

    def refuse_unread(self, options: Mapping[str, Any]) -> None:
        """Refuse settings that would have no effect beside these parts."""
        for name in self.given():
            for setting in UNREAD[name]:
                if options.get(setting) is not None:
                    raise InputError(
                        f"{setting} has no effect beside your own {name}; leave it out"
                    )

    def refuse_to_travel(self) -> None:
        """Refuse a comparison, whose trainings run in processes that cannot have these parts."""
        for name in self.given():
            raise InputError(
                f"{name} is a function, which cannot be sent to the processes of a comparison; "
                "give the name of a setting, or use graphfm.train"
            )

    def given(self) -> dict[str, Callable[..., Any]]:
        """The parts that there are, by name."""
        found = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: part for name, part in found.items() if part is not None}

    def require(self, recorded: Mapping[str, str], places: Mapping[str, str]) -> None:
        """Refuse to continue a run without the parts that it was made with, or with others.

        `places` are the modules and names of the parts that are given.
        """
        given = self.given()
        for name, place in recorded.items():
            if name in given and places[name] != place:
                raise InputError(
                    f"the run was made with the {name} {place}, but {places[name]} was given; "
                    f"give {place}"
                )
            if name not in given:
                raise InputError(
                    f"the run was made with your own {name}, {place}; give it again, in "
                    f"Python: resume(path, {name}=...)"
                )
        if more := given.keys() - recorded.keys():
            raise InputError(f"the run was made without your own {min(more)}; leave it out")


def make_own_optimizer(make: OwnOptimizer, network: nn.Module) -> torch.optim.Optimizer:
    """Call the user's function, and check what it returns."""
    parameters = [one for one in network.parameters() if one.requires_grad]
    made = make(parameters)
    if not isinstance(made, torch.optim.Optimizer):
        raise InputError(
            f"optimizer returned a {type(made).__name__}; expected a torch.optim.Optimizer"
        )
    known = {id(one) for one in parameters}
    held = [one for group in made.param_groups for one in group["params"]]
    if not all(id(one) in known for one in held):
        raise InputError("optimizer holds other parameters than those that it was given")
    return made


def settled_parts(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as Python programs give them, with what follows from parts of the user's own.

    Class weights may be a dictionary, or a list or tensor by class. With an optimizer of the user's
    own the learning rate stays as it is, unless a schedule is given.
    """
    settled = {name: value for name, value in options.items() if value is not None}
    for name, what in (("optimizer", "parameters"), ("schedule", "an epoch"), ("loss", "outputs")):
        value = settled.get(name)
        if value is not None and not callable(value) and not isinstance(value, str):
            raise InputError(
                f"{name} is a {type(value).__name__}; expected a name, or a function of {what}"
            )
    OwnParts.taken_from(dict(settled)).refuse_unread(settled)
    if callable(settled.get("optimizer")):
        settled.setdefault("schedule", "constant")
    weights = settled.get("class_weights")
    if isinstance(weights, Tensor):
        weights = weights.tolist()
    if isinstance(weights, Mapping):
        settled["class_weights"] = tuple(f"{name}={value}" for name, value in weights.items())
    elif isinstance(weights, list | tuple) and weights and not isinstance(weights[0], str):
        settled["class_weights"] = tuple(f"{n}={value}" for n, value in enumerate(weights))
    return settled
