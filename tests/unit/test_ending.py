"""The line with which a training ends that was asked to stop."""

import pytest
import torch

from graphfm.cli.ending import stoppable
from graphfm.cli.output import Interrupted
from graphfm.training.checkpoints import Checkpoints
from graphfm.training.stopped import Stopped


def line(out, kept):
    with pytest.raises(Interrupted) as caught, stoppable(out):
        raise Stopped(kept)
    return str(caught.value)


def test_it_says_what_the_run_goes_on_from(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    way = f": graphfm train --resume {tmp_path}"
    assert line(tmp_path, kept=True) == f"interrupted; to go on{way}"
    assert line(tmp_path, kept=False) == f"interrupted; to go on from the beginning{way}"
    Checkpoints(tmp_path / "checkpoints").write({"rows": torch.zeros(1)}, {})
    assert line(tmp_path, kept=False) == (
        f"interrupted; to go on, as of the checkpoint before{way}"
    )
