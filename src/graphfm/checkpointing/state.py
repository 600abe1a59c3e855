"""Everything that the next step of a trainer depends on, as tensors by name and a few numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from graphfm.checkpointing import schema as forms
from graphfm.errors import InputError
from graphfm.training.epoch_position import Position

if TYPE_CHECKING:
    from graphfm.training.trainer import Trainer

Read = Callable[[str], Tensor]
ADAM = ("step", "exp_avg", "exp_avg_sq")  # what it remembers of a parameter
COUNTABLE = 1 << 24  # steps, of which Adam counts no more: they are float32
FINITE = (-forms.MOST, forms.MOST)
RANGES = {  # least and most of the numbers in tensors of such names
    "weights.*": FINITE,
    "best.*": FINITE,
    "totals": FINITE,
    "history.*": FINITE,
    "optimizer.*.exp_avg": FINITE,
    "optimizer.*.exp_avg_sq": (0, forms.MOST),
    "sampler.*": (0, 1),  # probabilities
}
FORM: forms.Form = {  # of `numbers_of`
    "epochs": forms.whole(),
    "lr": [forms.real(0)],
    "steps": forms.maybe(forms.whole(1)),
    "touched": {"nodes": forms.whole(), "edges": forms.whole(), "steps": forms.whole(1)},
    "age": forms.maybe(forms.whole()),
}


def tensors_of(trainer: Trainer) -> dict[str, Tensor]:
    """Weights, what Adam remembers, histories, random states: by name, not copied."""
    random = {
        "random.sampler": trainer.rng.get_state(),
        "random.model": _generator(trainer).get_state(),
    }
    found = _places(trainer) | _moments(trainer) | random
    if trainer.position is not None:
        found["random.epoch"] = trainer.position.start
    return found


def numbers_of(trainer: Trainer) -> dict[str, Any]:
    """What is not worth a tensor; JSON values."""
    return {
        "epochs": trainer.schedule.last_epoch,
        "lr": [float(group["lr"]) for group in trainer.optimizer.param_groups],
        "steps": None if trainer.position is None else trainer.position.steps,
        "touched": dict(trainer.touched),
        "age": None if trainer.ages is None else trainer.ages.step,
    }


def check(
    trainer: Trainer, names: Iterable[str], read: Read, saved: Mapping[str, Any], *, evaluated: bool
) -> None:
    """Refuse what an equal trainer cannot have saved; `evaluated`: with the best weights so far.

    The trainer stays as it is, and tensors are read one after the other. `saved` has its `FORM`.
    """
    expected, steps = _expected(trainer, saved, evaluated), saved["touched"]["steps"]
    if strange := set(names) ^ expected.keys():
        raise InputError(f"it does not fit this training: {min(strange)}")
    for name, like in expected.items():
        value = read(name)
        if (like.shape, like.dtype) != (value.shape, value.dtype):
            raise InputError(
                f"{name} is {value.dtype} {list(value.shape)}; this training has "
                f"{like.dtype} {list(like.shape)}"
            )
        if name.startswith("random."):
            torch.Generator(trainer.graph.device).set_state(value)  # which refuses what is none
        if impossible({name: value}):
            raise InputError(f"{name} has numbers that it cannot have")
        if fnmatchcase(name, "optimizer.*.step") and float(value) != min(steps, COUNTABLE):
            raise InputError(f"{name} is {float(value):g}; this training has taken {steps} steps")


def impossible(tensors: Mapping[str, Tensor]) -> str | None:
    """The first of these with numbers that it cannot have, if there is one; waits for the device.

    Of histories, which may fill a device, nothing is made on the way.
    """
    bounded = {
        name: bounds
        for name, rows in tensors.items()
        for form, bounds in RANGES.items()
        if rows.numel() and fnmatchcase(name, form)
    }
    if not bounded:
        return None
    ends = torch.stack([torch.stack(tensors[name].aminmax()).double() for name in bounded])
    for (name, (low, high)), (least, most) in zip(bounded.items(), ends.tolist(), strict=True):
        if not low <= least <= most <= high:  # as of NaN, which is both of them then
            return name
    return None


def restore(trainer: Trainer, read: Read, saved: Mapping[str, Any]) -> None:
    """Make a new trainer stand where an equal one was when it was saved.

    Tensors are filled in place, one after the other: nothing is held twice.
    """
    with torch.no_grad():
        for name, place in _places(trainer).items():
            place.copy_(read(name))
    _restore_optimizer(trainer, read, saved["lr"])
    _restore_schedule(trainer, saved)
    trainer.touched.clear()
    trainer.touched.update(saved["touched"])
    if trainer.ages is not None:
        trainer.ages.step = saved["age"]
    trainer.position = None
    if saved["steps"] is not None:
        trainer.position = Position(read("random.epoch"), saved["steps"])
    trainer.rng.set_state(read("random.sampler"))
    _generator(trainer).set_state(read("random.model"))


def _expected(trainer: Trainer, saved: Mapping[str, Any], evaluated: bool) -> dict[str, Tensor]:
    """A tensor like each that must be there."""
    if len(saved["lr"]) != len(trainer.optimizer.param_groups):
        raise InputError("it does not fit this training: lr")
    if (saved["age"] is None) != (trainer.ages is None):
        raise InputError("it does not fit this training: age")
    found, random = _places(trainer), trainer.rng.get_state()
    for number, parameter in enumerate(_parameters(trainer)):
        found[f"optimizer.{number}.step"] = torch.zeros(())
        found |= {f"optimizer.{number}.{key}": parameter for key in ADAM[1:]}
    if evaluated:
        found |= {f"best.{name}": rows for name, rows in trainer.backbone.state_dict().items()}
    if saved["steps"] is not None:
        found["random.epoch"] = random
    return found | {"random.sampler": random, "random.model": random}


def _places(trainer: Trainer) -> dict[str, Tensor]:
    """What an equal trainer has from its beginning."""
    found = {f"weights.{name}": rows for name, rows in trainer.backbone.state_dict().items()}
    for name, table in trainer.method.estimator.tables().items():
        found[f"history.{name}"] = table.rows
    found["totals"] = trainer.totals
    found |= {f"sampler.{name}": rows for name, rows in trainer.method.sampler.state().items()}
    if trainer.ages is not None:
        found["ages.written"] = trainer.ages.written
    return found


def _moments(trainer: Trainer) -> dict[str, Tensor]:
    state = trainer.optimizer.state_dict()["state"]
    return {
        f"optimizer.{number}.{key}": value
        for number, kept in state.items()
        for key, value in kept.items()
    }


def _parameters(trainer: Trainer) -> list[Tensor]:
    return [p for group in trainer.optimizer.param_groups for p in group["params"]]


def _restore_optimizer(trainer: Trainer, read: Read, lr: list[float]) -> None:
    state = {
        number: {key: read(f"optimizer.{number}.{key}").clone() for key in ADAM}
        for number, _ in enumerate(_parameters(trainer))
    }
    trainer.optimizer.load_state_dict({**trainer.optimizer.state_dict(), "state": state})
    for group, rate in zip(trainer.optimizer.param_groups, lr, strict=True):
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = float(rate)


def _restore_schedule(trainer: Trainer, saved: Mapping[str, Any]) -> None:
    epochs, rates = saved["epochs"], [float(rate) for rate in saved["lr"]]
    schedule = trainer.schedule.state_dict()
    # one more than steps: at 1 torch warns that it has seen no step of the optimizer
    schedule |= {"last_epoch": epochs, "_step_count": epochs + 2, "_last_lr": rates}
    trainer.schedule.load_state_dict(schedule)


def _generator(trainer: Trainer) -> torch.Generator:
    """Torch's own, of which dropout draws."""
    device = trainer.graph.device
    if device.type != "cuda":
        return torch.default_generator
    index = torch.cuda.current_device() if device.index is None else device.index
    return torch.cuda.default_generators[index]
