"""The errors of checkpointing: a checkpoint of another run, a request to stop."""

from graphfm.errors import InputError


class ForeignCheckpointError(InputError):
    """A checkpoint is intact but belongs to another program or another run.

    It stops the training, while a damaged checkpoint is skipped.
    """


class TrainingStopped(Exception):  # noqa: N818
    """A training stopped between two steps on request; `kept` tells if a checkpoint was written."""

    def __init__(self, kept: bool) -> None:
        self.kept = kept
        super().__init__("the training was asked to stop")
