"""Every case of every suite can be told from the others, and is a run that exists."""

import pytest
import torch

from graphfm.data.datasets import DATASETS
from graphfm.experiments.bench import contender
from graphfm.experiments.bench.case import RIVALS, Case
from graphfm.experiments.bench.floor import step_bytes
from graphfm.experiments.bench.suites import SUITES
from graphfm.kernels import backend
from graphfm.runs.run import build

CASES = [(name, case) for name, cases in SUITES.items() for case in cases]


@pytest.mark.parametrize(("suite", "case"), CASES)
def test_a_case_is_a_run_against_somebody_we_know(suite, case):
    run = case.run()
    assert run.backbone_settings.get("dropout", 0) == 0  # the rival drops nothing
    assert case.dataset in DATASETS
    assert case.rival is None or case.rival in RIVALS
    assert run.device == {"quick": "auto", "pyg": "auto", "cpu": "cpu"}.get(suite, "cuda")


@pytest.mark.parametrize("suite", SUITES)
def test_names_of_a_suite_differ(suite):
    names = [(case.dataset, case.name) for case in SUITES[suite]]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("suite", "case"), [one for one in CASES if one[1].model is None])
def test_every_case_of_our_own_networks_has_a_floor(suite, case, make_graph):
    assert step_bytes(case.run(), make_graph(400, 1600)).total > 0


def test_an_ablation_switches_off_one_thing_at_a_time():
    for whole, *others in (SUITES["ablation"][start : start + 6] for start in (0, 6, 12)):
        assert (whole.without, "capture" in whole.options) == ((), False)
        assert others[0].options == {**whole.options, "capture": "off"}
        assert [case.without for case in others[1:]] == [(part,) for part in backend.PARTS]
        assert all(case.options == whole.options for case in others[1:])


def test_what_a_case_switches_off_is_off_while_it_is_built_and_trained(make_graph, monkeypatch):
    seen, options = [], {"method": "graphfm-ib", "batch_size": 20}
    case = Case(name="x", dataset="x", device="cpu", options=options, without=("triton",))

    def looking(self):
        seen.append(backend.current().without)
        return build(self, make_graph())

    monkeypatch.setattr(contender, "build", lambda run, graph: looking(run))
    ours = contender.Ours(case.run(), make_graph(), case.without)
    epoch = ours.trainer.epoch
    monkeypatch.setattr(
        ours.trainer, "epoch", lambda: (seen.append(backend.current().without), epoch())[1]
    )
    assert ours.epoch() > 0
    assert seen == [{"triton"}] * 2
    assert not backend.current().without


def test_half_features():
    options = {"method": "graphfm-ib", "features": "fp16"}
    case = Case(name="half", dataset="synthetic:small:0.01", device="cpu", options=options)
    graph = case.graph()
    assert (graph.num_nodes, graph.x.dtype) == (100, torch.float16)
