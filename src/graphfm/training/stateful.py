"""What the parts of a training have in common for checkpoints."""

from collections.abc import Mapping
from typing import Any, Protocol

from torch import Tensor


class Stateful(Protocol):
    """A part whose tensors a checkpoint keeps."""

    def state_dict(self) -> Mapping[str, Tensor]: ...

    def load_state_dict(self, state: Mapping[str, Tensor]) -> Any: ...
