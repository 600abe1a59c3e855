"""A training that was asked to stop, and did."""


class Stopped(Exception):  # noqa: N818
    """Between two steps; `kept` says whether a checkpoint could be written there."""

    def __init__(self, kept: bool) -> None:
        self.kept = kept
        super().__init__("the training was asked to stop")
