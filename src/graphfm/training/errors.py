"""The error for NaN or infinite numbers in a training."""

from typing import Self

from graphfm.errors import InputError

ADVICE = "lower lr, or set clip"


class NonFiniteError(InputError):
    """Training cannot continue because of NaN or Inf; says in which epoch, and what usually helps.

    `in_layers` is True if the outputs of layers may show where the fault began.
    """

    def __init__(
        self, what: str, epoch: int, where: str = "", advice: str = ADVICE, in_layers: bool = True
    ) -> None:
        self.what, self.epoch, self.advice, self.in_layers = what, epoch, advice, in_layers
        super().__init__(f"{what} in epoch {epoch}{where}; {advice}")

    @classmethod
    def squares(cls, epoch: int) -> Self:
        """Squared gradients overflowed; Adam divides by their root, so weights stop moving."""
        what = "the squares of the gradients are too large for float32, so weights stop moving"
        advice = "scale the features (to about 1; docs/reliability.md)"
        return cls(what, epoch, advice=advice, in_layers=False)
