"""Everything that the next step of a trainer depends on, as tensors by name and a few numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from graphfm.errors import InputError
from graphfm.training.position import Position

if TYPE_CHECKING:
    from graphfm.training.trainer import Trainer

Read = Callable[[str], Tensor]


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


def restore(trainer: Trainer, names: Iterable[str], read: Read, saved: Mapping[str, Any]) -> None:
    """Make a new trainer stand where an equal one was when it was saved; refuses what does not fit.

    Tensors are filled in place, one after the other: nothing is held twice.
    """
    names, position = set(names), saved["steps"]
    places = _places(trainer)
    moments = {name for name in names if name.startswith("optimizer.")}
    others = {"random.sampler", "random.model", *(() if position is None else ["random.epoch"])}
    if strange := names ^ (places.keys() | moments | others):
        raise InputError(f"it does not fit this training: {min(strange)}")
    for name, place in places.items():
        _fill(name, place, read(name))
    _restore_optimizer(trainer, moments, read, saved["lr"])
    _restore_schedule(trainer, saved)
    trainer.touched.clear()
    trainer.touched.update({key: int(value) for key, value in saved["touched"].items()})
    if trainer.ages is not None:
        trainer.ages.step = int(saved["age"])
    trainer.position = None
    if position is not None:
        trainer.rng.set_state(read("random.epoch"))  # which refuses what is no state
        trainer.position = Position(trainer.rng.get_state(), int(position))
    trainer.rng.set_state(read("random.sampler"))
    _generator(trainer).set_state(read("random.model"))


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


def _restore_optimizer(trainer: Trainer, names: set[str], read: Read, lr: list[float]) -> None:
    whole = trainer.optimizer.state_dict()
    parameters = [p for group in trainer.optimizer.param_groups for p in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for name in sorted(names):
        _, number, key = name.split(".")
        value, parameter = read(name).clone(), parameters[int(number)]
        if key != "step":
            _check_fits(name, parameter, value)
        state.setdefault(int(number), {})[key] = value
    trainer.optimizer.load_state_dict({**whole, "state": state})
    for group, rate in zip(trainer.optimizer.param_groups, lr, strict=True):
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(float(rate))
        else:
            group["lr"] = float(rate)


def _restore_schedule(trainer: Trainer, saved: Mapping[str, Any]) -> None:
    epochs, rates = int(saved["epochs"]), [float(rate) for rate in saved["lr"]]
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


def _fill(name: str, place: Tensor, value: Tensor) -> None:
    _check_fits(name, place, value)
    with torch.no_grad():
        place.copy_(value)


def _check_fits(name: str, place: Tensor, value: Tensor) -> None:
    if (place.shape, place.dtype) != (value.shape, value.dtype):
        raise InputError(
            f"{name} is {value.dtype} {list(value.shape)}; this training has "
            f"{place.dtype} {list(place.shape)}"
        )
