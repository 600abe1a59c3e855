"""What a shell is told when a user presses Tab."""

import pytest

from graphfm.backbones import BACKBONES
from graphfm.data.datasets import DATASETS
from graphfm.methods import METHODS
from tests.unit.cli.commands import graphfm


@pytest.fixture
def completed(monkeypatch):
    """Returns the words that bash would offer for the last word of a line."""

    def complete(line: str) -> list[str]:
        monkeypatch.setenv("_GRAPHFM_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        ended = graphfm()
        assert (ended.code, ended.err) == (0, "")
        return ended.out.split()

    return complete


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("graphfm train --method gr", [name for name in METHODS if name.startswith("gr")]),
        ("graphfm train --method=vr", ["vr-gcn"]),
        ("graphfm train --backbone ", [*BACKBONES]),
        ("graphfm train --dataset ", [*DATASETS]),
        ("graphfm evaluate run --device c", ["cpu", "cuda"]),
        ("graphfm train --schedule co", ["constant", "cosine"]),
        ("graphfm compare --schedule pl", ["plateau"]),
        ("graphfm train --optimizer ad", ["adam", "adamw"]),
        ("graphfm train --lr-", ["--lr-every", "--lr-factor", "--lr-patience"]),
        ("graphfm train --print", ["--print-config"]),
        ("graphfm compare --conf", ["--config"]),
        ("graphfm train --config ./ru", []),  # then bash completes files
        ("graphfm compare --methods full,gas,sg", ["full,gas,sgc"]),
        ("graphfm compare --methods al", ["all"]),
        ("graphfm staleness --backbone gcn", ["gcn", "gcnii"]),
        ("graphfm reproduce fig", ["figure2"]),
        ("graphfm datasets fetch fl", ["flickr"]),
        ("graphfm st", ["staleness"]),
        ("graphfm em", ["embed"]),
        ("graphfm embed run --la", ["--layer"]),
        ("graphfm train --batch", ["--batch-size", "--batch-norm"]),
        ("graphfm train --dataset ./mine", []),  # then bash completes files
    ],
)
def test_names_are_completed(completed, line, words):
    assert completed(line) == words


def test_graphsage_is_among_the_methods(completed):
    assert {"graphsage", "graphfm-ib", "graphsaint"} <= set(completed("graphfm train --method gr"))


def test_tab_runs_no_code_of_the_users_own(completed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "users_tab.py").write_text("open('ran', 'w')")
    assert "--lr" in completed("graphfm train --method users_tab:m --l")
    assert not (tmp_path / "ran").exists()


def test_completion_can_be_installed():
    shown = graphfm("--help").out
    assert "--install-completion" in shown
    assert "--show-completion" in shown
    assert "completion" not in graphfm("train", "--help").out
