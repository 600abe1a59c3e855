"""The learning rate by epoch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from graphfm.errors import InputError
from graphfm.training.own_parts import OwnSchedule

if TYPE_CHECKING:
    from graphfm.training.settings import Training

TAKEN_BY = {  # the schedules that read a setting; any other would ignore it
    "lr_every": ("step",),
    "lr_factor": ("step", "plateau"),
    "lr_patience": ("plateau",),
}


class Schedule(LambdaLR):
    """Torch's `LambdaLR`, whose state a checkpoint can hold as a few numbers.

    Its count of steps is one more than the true one: at 1 torch warns if the optimizer has taken
    no step, which is right in an epoch whose batches have no training nodes.
    """

    def __init__(
        self, optimizer: Optimizer, training: Training, own: OwnSchedule | None = None
    ) -> None:
        self.training, self.reductions, self.own = training, 0, own
        super().__init__(optimizer, self._factor)
        self._step_count += 1

    def _factor(self, epoch: int) -> float:
        if self.own is not None:
            return _checked(self.own, epoch)
        factor = self.training.factor(epoch)
        return factor * self.training.lr_factor**self.reductions if self.reductions else factor

    def look(self, scores: Sequence[float | None]) -> None:
        """Set the rate of the next epoch from the validation scores of all epochs before it.

        Only a schedule that waits for a plateau depends on them. It keeps no state of its own, so
        a training that is taken up again finds the same rate.
        """
        if self.training.schedule == "plateau" and self.own is None:
            self.reductions = plateaus(scores, self.training)
            factor = self._factor(self.last_epoch)
            self._set([float(rate) * factor for rate in self.base_lrs])

    def numbers(self) -> dict[str, Any]:
        """The epochs that have ended, and the learning rate of each group of parameters."""
        rates = [float(group["lr"]) for group in self.optimizer.param_groups]
        return {"epochs": self.last_epoch, "lr": rates}

    def load_numbers(self, saved: Mapping[str, Any]) -> None:
        """Continue after some epochs. The optimizer's rates are set too, in place on a GPU."""
        epochs, rates = saved["epochs"], [float(rate) for rate in saved["lr"]]
        self.last_epoch, self._step_count = epochs, epochs + 2
        self._set(rates)

    def _set(self, rates: list[float]) -> None:
        self._last_lr = [*rates]
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate


def _checked(own: OwnSchedule, epoch: int) -> float:
    """The factor that a schedule of the user's own gives an epoch."""
    try:
        found = own(epoch)
    except TypeError as error:
        raise InputError(
            f"the schedule cannot be called with an epoch ({error}); expected a function of the "
            "epoch, counted from 0, that returns the factor of the learning rate"
        ) from error
    if not isinstance(found, int | float) or not 0 <= found < math.inf:
        raise InputError(f"the schedule returned {found!r}; expected a number, 0 or more")
    return float(found)


def factor(training: Training, epoch: int) -> float:
    """The factor of the learning rate in an epoch, counted from 0; a plateau's is not known here.

    The rate grows evenly over the epochs of the warm-up, and the schedule begins after them.
    """
    if epoch < training.warmup:
        return (epoch + 1) / (training.warmup + 1)
    epoch, epochs = epoch - training.warmup, training.epochs - training.warmup
    if training.schedule == "cosine":
        return (1 + math.cos(math.pi * epoch / epochs)) / 2
    if training.schedule == "step":
        return float(training.lr_factor ** (epoch // training.lr_every))
    return 1.0


def plateaus(scores: Sequence[float | None], training: Training) -> int:
    """How often the validation score did not improve for `lr_patience` epochs after the warm-up.

    Every reduction is given as many epochs again. Epochs without an evaluation only pass.
    """
    best, since, found = -math.inf, training.warmup, 0
    for epoch, score in enumerate(scores, start=1):
        if score is not None and score > best:
            best, since = score, max(epoch, training.warmup)
        elif score is not None and epoch - since >= training.lr_patience:
            found, since = found + 1, epoch
    return found


def check_schedule(training: Training) -> None:
    """Refuse a warm-up that never ends, and a setting that the schedule does not read."""
    for name, least in (("warmup", 0), ("lr_every", 1), ("lr_patience", 1)):
        if (value := getattr(training, name)) < least:
            raise InputError(f"{name} is {value}; expected {least} or more")
    if training.warmup >= training.epochs:
        raise InputError(
            f"warmup is {training.warmup}; expected fewer than the {training.epochs} epochs"
        )
    if not 0 < training.lr_factor < 1:
        raise InputError(f"lr_factor is {training.lr_factor}; expected above 0 and below 1")
    for name, schedules in TAKEN_BY.items():
        differs = getattr(training, name) != getattr(type(training), name)
        if differs and training.schedule not in schedules:
            raise InputError(
                f"{name} belongs to schedule {' or '.join(schedules)}, but schedule is "
                f"{training.schedule}; set schedule, or leave it out"
            )
