"""The state that the next step of a trainer depends on, by name.

Each part owns its state (`state_dict`, `load_state_dict`). This module gives the tensors of all
parts names in one file, and refuses a file that does not fit the trainer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor

from graphfm.checkpointing import schema
from graphfm.errors import InputError
from graphfm.training.optimizers import kept_state
from graphfm.training.trainer import Trainer

Read = Callable[[str], Tensor]
MOST_STEPS = 1 << 24  # Adam counts steps in float32, which cannot count further
FINITE = (-schema.MOST, schema.MOST)
RANGES = {  # smallest and largest number allowed in tensors whose names match
    "weights.*": FINITE,
    "best.*": FINITE,
    "totals": FINITE,
    "history.*": FINITE,
    "optimizer.*.exp_avg": FINITE,
    "optimizer.*.exp_avg_sq": (0, schema.MOST),
    "optimizer.*.momentum_buffer": FINITE,
    "gathered.*": FINITE,
    "rows.average": FINITE,
    "rows.square": (0, schema.MOST),
    "rows.steps": (0, schema.MOST),
    "sampler.*": FINITE,  # unless the sampler says something else (`Sampler.ranges`)
}
OWN = ("totals", "random.sampler", "random.model", "random.epoch")  # the trainer's own tensors
FORM: schema.Form = {  # the form of what `Trainer.numbers` returns
    "epochs": schema.whole(),
    "lr": [schema.real(0)],
    "steps": schema.maybe(schema.whole(1)),
    "touched": {"nodes": schema.whole(), "edges": schema.whole(), "steps": schema.whole(1)},
    "age": schema.maybe(schema.whole()),
    "estimator": schema.each(schema.real()),
}


class SavedPart(Mapping[str, Tensor]):
    """The tensors of one part in a checkpoint; each is read on access."""

    def __init__(self, read: Read, prefix: str, names: Iterable[str]) -> None:
        self.read, self.prefix, self.names = read, prefix, tuple(names)

    def __getitem__(self, name: str) -> Tensor:
        return self.read(self.prefix + name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def tensors_of(trainer: Trainer) -> dict[str, Tensor]:
    """The tensors of every part by name, not copied."""
    found = dict(trainer.state_dict()) | _of_parts(trainer)
    for number, kept in trainer.optimizer.state_dict()["state"].items():
        for key, value in kept.items():
            found[f"optimizer.{number}.{key}"] = _as_tensor(key, value)
    return found


def _as_tensor(key: str, value: Any) -> Tensor:
    """The state of an optimizer of the user's own: tensors, or numbers in double precision."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, int | float):
        kind = torch.float64 if isinstance(value, float) else torch.int64
        return torch.tensor(value, dtype=kind)
    raise InputError(
        f"the optimizer keeps {key}, a {type(value).__name__}; a checkpoint can hold tensors and "
        "numbers: use another optimizer, or checkpoint_every='0'"
    )


def _as_value(saved: Tensor) -> Any:
    """What `_as_tensor` was given."""
    is_number = saved.dim() == 0 and saved.dtype in (torch.float64, torch.int64)
    return saved.item() if is_number else saved.clone()


def restore(trainer: Trainer, names: Iterable[str], read: Read, saved: Mapping[str, Any]) -> None:
    """Load a saved state into a new trainer with the same settings.

    Tables are filled in place, one after the other, so that none is in memory twice.
    """
    with torch.no_grad():
        for prefix, part in trainer.parts().items():
            part.load_state_dict(SavedPart(read, f"{prefix}.", part.state_dict()))
    _restore_optimizer(trainer, frozenset(names), read)
    trainer.load_state_dict(SavedPart(read, "", OWN), saved)


def check(
    trainer: Trainer, names: Iterable[str], read: Read, saved: Mapping[str, Any], *, evaluated: bool
) -> None:
    """Refuse a saved state that does not fit this trainer. The trainer is not changed.

    `evaluated` means that the best weights so far are saved too. `saved` must have its `FORM`.
    """
    names, steps = frozenset(names), saved["touched"]["steps"]
    expected = _expected(trainer, names, saved, evaluated, read)
    if strange := names ^ expected.keys():
        raise InputError(f"it does not fit this training: {min(strange)}")
    for name, like in expected.items():
        value = read(name)
        if (like.shape, like.dtype) != (value.shape, value.dtype):
            raise InputError(
                f"{name} is {value.dtype} {list(value.shape)}; this training has "
                f"{like.dtype} {list(like.shape)}"
            )
        if name.startswith("random."):
            generator = torch.Generator(trainer.graph.device)
            generator.set_state(value)  # raises if it is not a valid state
        if impossible(trainer, {name: value}):
            raise InputError(f"{name} has numbers outside its range")
        if fnmatchcase(name, "optimizer.*.step"):
            least = steps if _always_moves(trainer) else 1
            if not min(least, MOST_STEPS) <= float(value) <= min(steps, MOST_STEPS):
                taken = f"this training has taken {steps} steps"
                raise InputError(f"{name} is {float(value):g}; {taken}")


def impossible(trainer: Trainer, tensors: Mapping[str, Tensor]) -> str | None:
    """The first tensor with NaN, Inf or a number outside its range, or None. Waits for the GPU.

    Histories may fill the device, so this allocates nothing of their size.
    """
    own = trainer.method.sampler.ranges.items()
    ranges = RANGES | {f"sampler.{name}": bounds for name, bounds in own}  # a later one decides
    bounded = {
        name: bounds
        for name, rows in tensors.items()
        for form, bounds in ranges.items()
        if rows.numel() and fnmatchcase(name, form)
    }
    if not bounded:
        return None
    ends = torch.stack([torch.stack(tensors[name].aminmax()).double() for name in bounded])
    for (name, (low, high)), (least, most) in zip(bounded.items(), ends.tolist(), strict=True):
        if not low <= least <= most <= high:  # NaN makes both ends NaN
            return name
    return None


def _of_parts(trainer: Trainer) -> dict[str, Tensor]:
    return {
        f"{prefix}.{name}": rows
        for prefix, part in trainer.parts().items()
        for name, rows in part.state_dict().items()
    }


def _expected(
    trainer: Trainer, names: frozenset[str], saved: Mapping[str, Any], evaluated: bool, read: Read
) -> dict[str, Tensor]:
    """For each tensor that a checkpoint must have, one of the same shape and type."""
    if len(saved["lr"]) != len(trainer.optimizer.param_groups):
        raise InputError("it does not fit this training: lr")
    if (saved["age"] is None) != (trainer.ages is None):
        raise InputError("it does not fit this training: age")
    found = _of_parts(trainer) | dict(trainer.state_dict())
    for number, parameter in _stepped(trainer, names).items():
        for key in kept_state(trainer.optimizer) or ():
            found[f"optimizer.{number}.{key}"] = torch.zeros(()) if key == "step" else parameter
    if kept_state(trainer.optimizer) is None:
        found |= {
            name: read(name) for names in _own_state(trainer, names).values() for name in names
        }
    if evaluated:
        found |= {f"best.{name}": rows for name, rows in trainer.backbone.state_dict().items()}
    if saved["steps"] is not None:
        found["random.epoch"] = found["random.sampler"]
    return found


def _parameters(trainer: Trainer) -> list[Tensor]:
    return [p for group in trainer.optimizer.param_groups for p in group["params"]]


def _stepped(trainer: Trainer, names: frozenset[str]) -> dict[int, Tensor]:
    """The parameters that have a state, by number. Adam has none of one that never had a gradient.

    Where batches may lack training nodes, Adam may not have moved any.
    """
    kept, numbered = kept_state(trainer.optimizer) or (), dict(enumerate(_parameters(trainer)))
    if "exp_avg" not in kept:  # SGD has made its state before the first step, or keeps none
        return numbered if kept else {}
    moved = {n: p for n, p in numbered.items() if f"optimizer.{n}.exp_avg" in names}
    return moved or (numbered if _always_moves(trainer) else {})


def _always_moves(trainer: Trainer) -> bool:
    """True if the optimizer takes a step in every step of the training."""
    return trainer.method.sampler.always_trains and trainer.training.accumulate == 1


def _own_state(trainer: Trainer, names: frozenset[str]) -> dict[int, list[str]]:
    """The names of the state that an optimizer of the user's own keeps, by parameter."""
    found = dict[int, list[str]]()
    for number in range(len(_parameters(trainer))):
        own = sorted(name for name in names if name.startswith(f"optimizer.{number}."))
        found |= {number: own} if own else {}
    return found


def _restore_optimizer(trainer: Trainer, names: frozenset[str], read: Read) -> None:
    kept = kept_state(trainer.optimizer)
    if kept is None:
        state = {
            number: {name.split(".", 2)[2]: _as_value(read(name)) for name in own}
            for number, own in _own_state(trainer, names).items()
        }
    else:
        state = {
            number: {key: read(f"optimizer.{number}.{key}").clone() for key in kept}
            for number in _stepped(trainer, names)
        }
    trainer.optimizer.load_state_dict({**trainer.optimizer.state_dict(), "state": state})
