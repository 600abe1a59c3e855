"""A cell in its own process: what comes back, and what does not leak in."""

import os
import sys

import pytest

from graphfm import load
from graphfm.experiments import child, process
from graphfm.experiments.cell import Cell
from graphfm.experiments.outcome import BROKEN, FAILED, FINISHED, UNDEFINED
from graphfm.runs.run import Run

SMALL = {"dataset": "synthetic:small:0.02", "device": "cpu", "epochs": 2, "hidden": 8}


def request(**options):
    """What a child is asked."""
    run = Run.make(**{**SMALL, **options})
    return {"run": run.to_json(), "fingerprint": load(run.dataset).fingerprint}


def in_child(tmp_path, program: str, monkeypatch):
    monkeypatch.setattr(process, "PROGRAM", program)
    return process.run_in_child(Cell(Run.make(**SMALL), "cell"), "f", tmp_path / "scratch")


def test_a_child_finds_our_package_only_and_measures_itself_only(tmp_path, monkeypatch):
    for name in ("graphfm", "torch", "json", "numpy"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a file of the current folder')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    (tmp_path / "scratch").mkdir()
    large = bytearray(b"\1") * (900 << 20)  # what this process holds is not the child's
    cell = Cell(Run.make(**SMALL, method="gas", parts=4, parts_per_batch=2), "cell")
    scratch = tmp_path / "scratch"
    outcome = process.run_in_child(cell, load(SMALL["dataset"]).fingerprint, scratch)
    assert outcome.status == FINISHED, outcome
    assert 0 < outcome.score.peak_bytes < len(large)
    assert outcome.score.epochs == 2
    assert not scratch.exists()
    assert child.train_cell(request(method="gas", parts=4, parts_per_batch=2)).score.test == (
        outcome.score.test
    )


def test_the_path_of_modules_is_ours_without_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), "/elsewhere"])
    root, other = process._module_path()
    assert os.path.exists(os.path.join(root, "graphfm", "experiments", "process.py"))
    assert other == "/elsewhere"
    monkeypatch.setattr(sys, "path", ["/elsewhere", root])
    assert process._module_path() == ["/elsewhere", root]


@pytest.mark.parametrize(
    ("program", "error"),
    [
        (
            "import os; os.kill(os.getpid(), 9)",
            "ended by SIGKILL, perhaps because memory ran out",
        ),
        ("import os; os.kill(os.getpid(), 11)", "its process was ended by SIGSEGV"),
        ("raise SystemExit(3)", "its process ended with code 3"),
        ("raise RuntimeError('why')", "its process ended with code 1: RuntimeError: why"),
        ("print('half an answer', end='')", "its process ended with code 0"),
    ],
)
def test_a_process_that_dies_is_a_failed_cell(tmp_path, monkeypatch, program, error):
    outcome = in_child(tmp_path, program, monkeypatch)
    assert outcome.status == FAILED
    assert outcome.error.endswith(error)
    assert "\n" not in outcome.error


def test_a_method_that_the_network_does_not_allow_is_not_defined():
    outcome = child.train_cell(request(method="graphfm-delta", backbone="pna"))
    assert outcome.status == UNDEFINED
    assert "use sage, gcn or gcnii" in outcome.error


def test_a_training_that_does_not_fit_now_may_fit_another_time(monkeypatch):
    monkeypatch.setattr("graphfm.runs.memory_plan.available_memory", lambda: 100_000)
    outcome = child.train_cell(request(method="gas"))
    assert outcome.status == FAILED
    assert "beside the graph, and 97.7 KiB are free; lower" in outcome.error


def test_the_epochs_come_back(monkeypatch):
    outcome = child.train_cell(request(eval_every=2, epochs=3, lr=0.01, schedule="constant"))
    curve = outcome.curve
    assert list(curve) == ["epoch", "loss", "val", "lr", "seconds"]
    assert (curve["epoch"], curve["lr"]) == ([1, 2, 3], [0.01] * 3)
    assert [val is None for val in curve["val"]] == [True, False, False]
    score = outcome.score
    assert max(curve["val"][1:]) == score.val
    spent = score.prepare_seconds + sum(curve["seconds"][: score.best_epoch])
    assert spent == pytest.approx(score.seconds_to_best)


def test_the_epochs_of_a_training_that_fails_come_back_too(monkeypatch):
    losses = iter([2.0, float("nan")])
    monkeypatch.setattr("graphfm.training.trainer.Trainer.epoch", lambda self: next(losses))
    outcome = child.train_cell(request())
    assert (outcome.status, outcome.curve["loss"]) == (FAILED, [2.0])


def test_a_training_that_diverges_has_failed(monkeypatch):
    monkeypatch.setattr("graphfm.training.trainer.Trainer.epoch", lambda self: float("nan"))
    outcome = child.train_cell(request())
    assert (outcome.status, outcome.error) == (
        FAILED, "the loss is nan in epoch 1; lower lr, or set clip",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "there is not enough memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: 9"), "there is not enough mem"),
        (KeyError("two\nlines"), "KeyError: 'two\\nlines'"),
        (RuntimeError("two\nlines"), "RuntimeError: two lines"),
    ],
)
def test_what_goes_wrong_is_one_line(monkeypatch, capsys, error, said):
    def fail(self, callbacks=()):
        raise error

    monkeypatch.setattr("graphfm.experiments.child.fit", fail)
    outcome = child.train_cell(request())
    assert outcome.status == FAILED
    assert outcome.error.startswith(said)
    assert "Traceback" in capsys.readouterr().err  # and the rest for those who look


def test_a_graph_that_changed_meanwhile_has_failed():
    outcome = child.train_cell({**request(), "fingerprint": "another"})
    assert outcome.status == FAILED
    assert outcome.error == "synthetic:small:0.02 has changed since the comparison began"


def test_warming_up_leaves_no_trace():
    child._warm_up("cpu")
    before = child.train_cell(request()).score
    child._warm_up("cpu")
    assert child.train_cell(request()).score.test == before.test


def test_a_run_that_cannot_be_built_is_broken_and_not_failed():
    record = {**request(), "run": {**request()["run"], "method": "of.mine:method"}}
    outcome = child.train_cell(record)
    assert outcome.status == BROKEN
    assert "of.mine:method" in outcome.error


def test_a_module_that_cannot_be_imported_in_the_child_is_broken(monkeypatch, capsys):
    def from_json(record, **own):
        raise ModuleNotFoundError("No module named 'mine'")

    monkeypatch.setattr(child.Run, "from_json", from_json)
    outcome = child.train_cell(request())
    assert (outcome.status, outcome.error) == (
        BROKEN, "ModuleNotFoundError: No module named 'mine'",
    )  # fmt: skip
    assert "Traceback" in capsys.readouterr().err
