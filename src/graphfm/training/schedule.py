"""The learning rate by epoch."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR


class Schedule(LambdaLR):
    """Torch's `LambdaLR`, whose state a checkpoint can hold as a few numbers.

    Its count of steps is one more than the true one: at 1 torch warns if the optimizer has taken
    no step, which is right in an epoch whose batches have no training nodes.
    """

    def __init__(self, optimizer: Optimizer, factor: Callable[[int], float]) -> None:
        super().__init__(optimizer, factor)
        self._step_count += 1

    def numbers(self) -> dict[str, Any]:
        """The epochs that have ended, and the learning rate of each group of parameters."""
        rates = [float(group["lr"]) for group in self.optimizer.param_groups]
        return {"epochs": self.last_epoch, "lr": rates}

    def load_numbers(self, saved: Mapping[str, Any]) -> None:
        """Continue after some epochs. The optimizer's rates are set too, in place on a GPU."""
        epochs, rates = saved["epochs"], [float(rate) for rate in saved["lr"]]
        count = {"last_epoch": epochs, "_step_count": epochs + 2, "_last_lr": rates}
        self.load_state_dict({**self.state_dict(), **count})
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
