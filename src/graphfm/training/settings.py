"""How long and how fast to train."""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import torch

from graphfm.errors import InputError
from graphfm.options import Setting, check_choices

NUMBER_TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
NumberType = Literal["fp32", "bf16", "fp16"]


@dataclass(frozen=True, kw_only=True)
class Training:
    """How long and how fast: all that concerns neither the network nor the method."""

    epochs: Annotated[int, Setting("Most epochs to train.")] = 100
    lr: Annotated[float, Setting("Learning rate of Adam.")] = 0.01
    weight_decay: Annotated[float, Setting("Weight decay of Adam.")] = 0.0
    schedule: Annotated[
        Literal["constant", "cosine", "step"],
        Setting(
            "Learning rate over epochs: constant, cosine to zero, or halved every 30 epochs (step)."
        ),
    ] = "constant"
    clip: Annotated[float, Setting("Largest norm of the gradient; 0 leaves it as it is.")] = 0.0
    steps_per_epoch: Annotated[
        int, Setting("At most so many steps in an epoch; 0 is all that the method has.")
    ] = 0
    max_seconds: Annotated[
        float, Setting("Seconds, with preparation, after which no epoch begins; 0 is no limit.")
    ] = 0.0
    patience: Annotated[
        int,
        Setting(
            "Stop after so many epochs without a better validation score; 0 never stops early."
        ),
    ] = 50
    eval_every: Annotated[int, Setting("Epochs from one evaluation to the next.")] = 1
    features: Annotated[
        Literal["as-is", "fp32", "bf16", "fp16"],
        Setting("Number type of the features, and of what is computed from them once."),
    ] = "as-is"
    history: Annotated[
        NumberType, Setting("Number type of the histories, for methods that keep them.")
    ] = "fp32"
    refresh_histories: Annotated[
        bool, Setting("Rewrite all histories at each evaluation, as the paper's code does.")
    ] = False
    staleness_every: Annotated[
        int, Setting("Epochs between measurements of the histories' staleness; 0 is never.")
    ] = 0
    seed: Annotated[int, Setting("The same seed gives the same numbers.", most=(1 << 63) - 1)] = 0
    deterministic: Annotated[
        bool, Setting("The same seed gives the same bits; a GPU is faster without.")
    ] = True
    capture: Annotated[
        Literal["auto", "on", "off"],
        Setting(
            "Capture steps as CUDA graphs: where possible (auto), or fail (on), or never (off)."
        ),
    ] = "auto"
    kernels: Annotated[
        Literal["auto", "plain"],
        Setting("On a GPU: Triton's kernels where they fit (auto), or PyTorch's alone (plain)."),
    ] = "auto"
    precision: Annotated[
        Literal["fp32", "tf32", "bf16"], Setting("Precision of matrix products; tf32 is for a GPU.")
    ] = "fp32"

    def __post_init__(self) -> None:
        for name, least in (
            ("epochs", 1),
            ("eval_every", 1),
            ("patience", 0),
            ("steps_per_epoch", 0),
            ("staleness_every", 0),
        ):
            if (value := getattr(self, name)) < least:
                raise InputError(f"{name} is {value}; expected {least} or more")
        if not 0 <= self.max_seconds < math.inf:
            raise InputError(f"max_seconds is {self.max_seconds}; expected 0 or more")
        for name in ("lr", "weight_decay", "clip"):
            value = getattr(self, name)
            if not 0 <= value <= 1e6 or (name == "lr" and value == 0):
                wanted = "above 0, to a million" if name == "lr" else "0 or more, to a million"
                raise InputError(f"{name} is {value}; expected {wanted}")
        check_choices(self)

    @property
    def feature_type(self) -> torch.dtype | None:
        """What the features are to be turned into, if into anything."""
        return NUMBER_TYPES.get(self.features)

    def factor(self, epoch: int) -> float:
        """Of the learning rate, in the epoch counted from 0."""
        if self.schedule == "cosine":
            return (1 + math.cos(math.pi * epoch / self.epochs)) / 2
        return float(0.5 ** (epoch // 30)) if self.schedule == "step" else 1.0
