"""Every case of every suite can be told from the others, and is a run that exists."""

import pytest
import torch

from graphfm.data.datasets import DATASETS
from graphfm.experiments.bench.case import RIVALS, Case
from graphfm.experiments.bench.floor import step_bytes
from graphfm.experiments.bench.suites import SUITES

CASES = [(name, case) for name, cases in SUITES.items() for case in cases]


@pytest.mark.parametrize(("suite", "case"), CASES)
def test_a_case_is_a_run_against_somebody_we_know(suite, case):
    run = case.run()
    assert run.backbone_settings["dropout"] == 0  # the rival drops nothing
    assert case.dataset in DATASETS
    assert case.rival is None or case.rival in RIVALS
    assert run.device == {"quick": "auto", "cpu": "cpu"}.get(suite, "cuda")


@pytest.mark.parametrize("suite", SUITES)
def test_names_of_a_suite_differ(suite):
    names = [(case.dataset, case.name) for case in SUITES[suite]]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("suite", "case"), CASES)
def test_every_case_has_a_floor(suite, case, make_graph):
    assert step_bytes(case.run(), make_graph(400, 1600)).total > 0


def test_half_features():
    options = {"method": "graphfm-ib", "features": "fp16"}
    case = Case(name="half", dataset="synthetic:small:0.01", device="cpu", options=options)
    graph = case.graph()
    assert (graph.num_nodes, graph.x.dtype) == (100, torch.float16)
