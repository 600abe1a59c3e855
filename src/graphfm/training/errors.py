"""Numbers that became none."""

from typing import Self

from graphfm.errors import InputError

ADVICE = "lower lr, or set clip"


class NonFiniteError(InputError):
    """Training cannot go on; says in which epoch, and what usually helps.

    `in_layers`: what a layer makes may show where it began.
    """

    def __init__(
        self, what: str, epoch: int, where: str = "", advice: str = ADVICE, in_layers: bool = True
    ) -> None:
        self.what, self.epoch, self.advice, self.in_layers = what, epoch, advice, in_layers
        super().__init__(f"{what} in epoch {epoch}{where}; {advice}")

    @classmethod
    def squares(cls, epoch: int) -> Self:
        """Adam divides by their root: where that is infinite a weight stays as it is for good."""
        what = "the squares of the gradients are beyond float32, and weights would not move"
        advice = "scale the features (to about 1; docs/reliability.md)"
        return cls(what, epoch, advice=advice, in_layers=False)
