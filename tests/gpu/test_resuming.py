"""Runs on a GPU that are stopped and taken up again. Run where there is one: `pytest tests/gpu`."""

import pytest
import torch

from graphfm import resume
from graphfm.api import start
from graphfm.checkpointing.errors import TrainingStopped
from graphfm.methods import METHODS
from graphfm.runs.run import Run, backbone_of
from tests.reliability.runs import StopAfter, differences

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize("stops", [1, 3, 8])
@pytest.mark.parametrize("method", METHODS)
def test_stopped_on_the_gpu_it_ends_the_same(make_graph, tmp_path, caplog, method, stops):
    takes = Run.make(method=method)
    options = {"batch_size": 16, "parts": 6, "parts_per_batch": 1, "budget": 20}
    options = {name: value for name, value in options.items() if name in takes.method_settings}
    if "dropout" in takes.backbone_settings:
        options["dropout"] = 0.3
    run = Run.make(
        dataset="in-memory", method=method, backbone=backbone_of(method), device="cuda", epochs=4,
        schedule="cosine", layers=3, **options,
    )  # fmt: skip
    graph = make_graph(num_nodes=600, num_edges=4000).to("cuda")
    start(run, graph, out=tmp_path / "whole")
    with pytest.raises(TrainingStopped):
        start(run, graph, out=tmp_path / "parts", stop_signal=StopAfter(stops))
    resume(tmp_path / "parts", graph)
    assert differences(tmp_path / "whole", tmp_path / "parts") == []
    assert "the beginning" not in caplog.text  # which would end the same too
