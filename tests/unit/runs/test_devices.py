"""Devices by name, with the number of a GPU."""

from dataclasses import replace

import pytest
import torch

from graphfm import InputError
from graphfm.experiments.cell import Cell
from graphfm.runs.devices import kind_of, pick_device
from graphfm.runs.run import Run


@pytest.fixture
def gpus(monkeypatch):
    """Pretend that there are so many GPUs; returns those that became torch's current one."""

    def pretend(number):
        chosen = []
        monkeypatch.setattr(torch.cuda, "is_available", lambda: number > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: number)
        monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
        return chosen

    return pretend


def test_a_gpu_is_chosen_by_its_number_and_becomes_the_current_one(gpus):
    chosen = gpus(2)
    assert pick_device("cuda:1") == torch.device("cuda", 1)
    assert chosen == [torch.device("cuda", 1)]


@pytest.mark.parametrize(("name", "expected"), [("auto", "cuda"), ("cuda", "cuda"), ("cpu", "cpu")])
def test_a_name_without_a_number_leaves_the_current_gpu(gpus, name, expected):
    chosen = gpus(2)
    assert pick_device(name) == torch.device(expected)
    assert chosen == []


@pytest.mark.parametrize(
    ("count", "name", "words"),
    [
        (0, "cuda:0", "device is cuda:0, but torch sees no GPU; use device cpu or auto"),
        (1, "cuda:1", "device is cuda:1, but torch sees only cuda:0; use such a one"),
        (4, "cuda:7", "device is cuda:7, but torch sees only cuda:0 to cuda:3; use such a one"),
    ],
)
def test_a_gpu_that_is_not_there_is_refused(gpus, count, name, words):
    chosen = gpus(count)
    with pytest.raises(InputError, match=words):
        pick_device(name)
    assert chosen == []


@pytest.mark.parametrize("name", ["cuda:", "cuda:-1", "cuda:x", "cuda:1 ", "cpu:0", "gpu", "", 1])
def test_a_name_that_no_device_has_is_refused(name):
    with pytest.raises(
        InputError, match="unknown device .*; choose one of auto, cpu, cuda, cuda:1"
    ):
        Run.make(device=name)


def test_a_run_keeps_the_number(gpus):
    run = Run.make(device="cuda:1")
    assert run.to_json()["device"] == "cuda:1"
    assert Run.from_json(run.to_json()) == run


def test_trainings_on_gpus_of_one_machine_are_the_same_cell():
    run = Run.make(device="cuda")
    keys = {Cell(replace(run, device=name), "").key for name in ("cuda", "cuda:0", "cuda:1")}
    assert len(keys) == 1
    assert Cell(replace(run, device="cpu"), "").key not in keys
    assert [kind_of(name) for name in ("auto", "cpu", "cuda:3")] == ["auto", "cpu", "cuda"]
