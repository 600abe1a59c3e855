"""How long and how fast to train."""

import math
from dataclasses import dataclass

import torch

from graphfm.errors import InputError

NUMBER_TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
SCHEDULES = ("constant", "cosine", "step")
CAPTURES = ("auto", "on", "off")
KERNELS = ("auto", "plain")
PRECISIONS = ("fp32", "tf32", "bf16")


@dataclass(frozen=True, kw_only=True)
class Training:
    """How long and how fast: all that concerns neither the network nor the method."""

    epochs: int = 100
    lr: float = 0.01
    weight_decay: float = 0.0
    schedule: str = "constant"  # "cosine" to zero; "step" halves every 30 epochs
    clip: float = 0.0  # largest norm of the gradient; 0 leaves it as it is
    steps_per_epoch: int = 0  # at most so many; 0 is all that the method has
    max_seconds: float = 0.0  # with preparation; the epoch that reaches it is the last; 0: no limit
    patience: int = 50  # epochs without a better validation score; 0 never stops early
    eval_every: int = 1  # epochs between evaluations
    features: str = "as-is"  # type of the features, and of what is computed of them once
    history: str = "fp32"  # type of the histories, where the method keeps any
    refresh_histories: bool = False  # rewrite them all at each evaluation, as the paper's code does
    staleness_every: int = 0  # epochs between measurements of the histories' staleness; 0 is never
    seed: int = 0
    deterministic: bool = True  # same seed, same bits; without it a GPU is faster
    capture: str = "auto"  # "on": a step is one CUDA graph, or an error; "off": never
    kernels: str = "auto"  # Triton's where they fit; "plain": PyTorch's own alone
    precision: str = "fp32"  # of matrix products: "tf32" on a GPU; "bf16", with tables as they are

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
        for name, known in (
            ("features", ("as-is", *NUMBER_TYPES)),
            ("history", tuple(NUMBER_TYPES)),
            ("schedule", SCHEDULES),
            ("capture", CAPTURES),
            ("kernels", KERNELS),
            ("precision", PRECISIONS),
        ):
            if getattr(self, name) not in known:
                raise InputError(f"{name} is {getattr(self, name)}; expected {', '.join(known)}")

    @property
    def feature_type(self) -> torch.dtype | None:
        """What the features are to be turned into, if into anything."""
        return NUMBER_TYPES.get(self.features)

    def factor(self, epoch: int) -> float:
        """Of the learning rate, in the epoch counted from 0."""
        if self.schedule == "cosine":
            return (1 + math.cos(math.pi * epoch / self.epochs)) / 2
        return float(0.5 ** (epoch // 30)) if self.schedule == "step" else 1.0
