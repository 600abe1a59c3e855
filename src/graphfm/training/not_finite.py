"""Numbers that became none."""

from graphfm.errors import InputError


class NotFinite(InputError):  # noqa: N818
    """Training cannot go on; says in which epoch, and what usually helps."""

    def __init__(self, what: str, epoch: int, where: str = "") -> None:
        self.what, self.epoch = what, epoch
        super().__init__(f"{what} in epoch {epoch}{where}; lower lr, or set clip")
