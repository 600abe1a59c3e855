"""The settings of a training: epochs, optimizer, evaluation, precision."""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import torch

from graphfm.errors import InputError
from graphfm.options import Setting, check_choices
from graphfm.training.input_settings import InputSettings
from graphfm.training.optimizers import check_optimizer
from graphfm.training.question_settings import QuestionSettings
from graphfm.training.schedule import check_schedule, factor

NUMBER_TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
NumberType = Literal["fp32", "bf16", "fp16"]


@dataclass(frozen=True, kw_only=True)
class Training(QuestionSettings, InputSettings):
    """The settings that belong neither to the network nor to the method."""

    epochs: Annotated[int, Setting("Largest number of epochs.")] = 100
    optimizer: Annotated[
        Literal["adam", "adamw", "sgd"],
        Setting("Adam, Adam with decoupled weight decay (adamw), or plain steps (sgd)."),
    ] = "adam"
    lr: Annotated[float, Setting("Learning rate.")] = 0.003
    momentum: Annotated[
        float, Setting("Of sgd: how much of the last change is kept.", rare=True)
    ] = 0.0
    weight_decay: Annotated[float, Setting("Weight decay of the optimizer.")] = 0.0
    schedule: Annotated[
        Literal["constant", "cosine", "step", "plateau"],
        Setting(
            "Learning rate over epochs: constant, cosine to zero, lower every lr_every epochs "
            "(step), or lower when the validation score stops improving (plateau)."
        ),
    ] = "cosine"
    warmup: Annotated[
        int, Setting("Epochs in which the learning rate grows, before the schedule begins.")
    ] = 0
    lr_every: Annotated[
        int, Setting("Of step: epochs from one lower rate to the next.", rare=True)
    ] = 30
    lr_factor: Annotated[
        float, Setting("Of step and plateau: the factor of a lower rate.", rare=True)
    ] = 0.5
    lr_patience: Annotated[
        int, Setting("Of plateau: epochs without a better score before a lower rate.", rare=True)
    ] = 10
    accumulate: Annotated[
        int, Setting("Steps whose gradients are averaged before the weights move.", rare=True)
    ] = 1
    clip: Annotated[float, Setting("Clip the gradient to this norm; 0 does not clip.")] = 0.0
    steps_per_epoch: Annotated[int, Setting("Most steps in an epoch; 0 is no limit.")] = 0
    max_seconds: Annotated[
        float,
        Setting("Start no epoch after this many seconds, preparation included; 0 is no limit."),
    ] = 0.0
    patience: Annotated[
        int,
        Setting(
            "Stop after this many epochs without a better validation score; 0 never stops early."
        ),
    ] = 50
    eval_every: Annotated[int, Setting("Epochs from one evaluation to the next.")] = 1
    features: Annotated[
        Literal["as-is", "fp32", "bf16", "fp16"],
        Setting("Number type of the features and of aggregates computed from them once."),
    ] = "as-is"
    history: Annotated[
        NumberType, Setting("Number type of the histories, for methods that keep them.")
    ] = "fp32"
    fill_histories: Annotated[
        bool,
        Setting(
            "Compute all histories exactly before the first step, as the paper's code does.",
            rare=True,
        ),
    ] = False
    refresh_histories: Annotated[
        bool,
        Setting("Rewrite all histories at each evaluation, as the paper's code does.", rare=True),
    ] = False
    staleness_every: Annotated[
        int,
        Setting("Epochs between measurements of the histories' staleness; 0 is never.", rare=True),
    ] = 0
    seed: Annotated[int, Setting("The same seed gives the same numbers.", most=(1 << 63) - 1)] = 0
    deterministic: Annotated[
        bool, Setting("Give the same bits for the same seed; a GPU is faster without it.")
    ] = True
    capture: Annotated[
        Literal["auto", "on", "off"],
        Setting(
            "Capture steps as CUDA graphs: if possible (auto), always or fail (on), never (off).",
            rare=True,
        ),
    ] = "auto"
    kernels: Annotated[
        Literal["auto", "plain"],
        Setting(
            "On a GPU: Triton kernels where they fit (auto), or PyTorch only (plain).", rare=True
        ),
    ] = "auto"
    precision: Annotated[
        Literal["fp32", "tf32", "bf16"], Setting("Precision of matrix products; tf32 is for a GPU.")
    ] = "fp32"

    def __post_init__(self) -> None:
        for name, least in (
            ("epochs", 1),
            ("accumulate", 1),
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
                wanted = "above 0" if name == "lr" else "0 or more"
                raise InputError(f"{name} is {value}; expected {wanted}, and at most a million")
        check_choices(self)
        self.check_question()
        self.check_inputs()
        self.refuse_gathered(self.accumulate)
        check_schedule(self)
        check_optimizer(self)

    @property
    def feature_type(self) -> torch.dtype | None:
        """The number type to convert the features to; None leaves them as they are."""
        return NUMBER_TYPES.get(self.features)

    def factor(self, epoch: int) -> float:
        """The factor of the learning rate in an epoch, counted from 0; see `schedule.factor`."""
        return factor(self, epoch)
