"""Kernels against their plain twins: on a GPU, or on a CPU through Triton's interpreter.

`make test` runs this folder a second time with TRITON_INTERPRET=1, which Triton reads when it is
imported. Without that variable and without a GPU every test here is skipped.
"""

import sys
from importlib.util import find_spec

import pytest
import torch

from graphfm.kernels import backend


@pytest.fixture(autouse=True)
def _kernels_run():
    if not (backend.INTERPRETED or torch.cuda.is_available()):
        pytest.skip("needs a GPU, or TRITON_INTERPRET=1")
    if find_spec("triton") is None and sys.platform != "linux":
        pytest.skip("there is no Triton for this system")
