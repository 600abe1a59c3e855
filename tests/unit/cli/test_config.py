"""`--config` and `--print-config` of train and compare."""

import json
import tomllib
from pathlib import Path

import pytest

from graphfm.backbones import BACKBONES
from graphfm.methods import METHODS
from graphfm.recipes import recipe_of
from tests.unit.cli.commands import SMALL, TRAIN, graphfm, refused, tree

pytestmark = pytest.mark.usefixtures("here")
EXAMPLE = Path(__file__).parents[3] / "examples" / "run.toml"


def printed(*arguments):
    ended = graphfm(*arguments, "--print-config")
    assert (ended.code, ended.err) == (0, ""), ended
    return ended.out


@pytest.mark.parametrize("name", [*METHODS, *BACKBONES])
def test_what_is_printed_is_read_back(name):
    given = ["--method", name] if name in METHODS else ["--backbone", name]
    if name in ("sign", "sgc"):
        given = ["--method", name]
    text = printed("train", *given, "--lr", "1e-5", "--optimizer", "sgd", "--momentum", 0.9)
    Path("run.toml").write_text(text)
    assert printed("train", "--config", "run.toml") == text
    assert tree(Path()) == {"run.toml"}  # nothing was trained


def test_names_of_classes_with_commas_are_read_back():
    Path("weights.json").write_text('{"Arts, \\"fine\\"": 0.123456789, "b": 2}')
    text = printed("train", "--class-weights", "weights.json")
    Path("run.toml").write_text(text)
    assert printed("train", "--config", "run.toml") == text
    assert tomllib.loads(text)["training"]["class_weights"] == ['Arts, "fine"=0.123456789', "b=2"]


def test_a_file_trains_the_same_run_as_options():
    options = ("--method", "graphfm-ib", "--hidden", 8, "--no-correct-lag", "--fanout", "2,1",
               "--batch-norm", "--beta", 0.3)  # fmt: skip
    assert graphfm(*TRAIN, *options, "--out", "by-options").code == 0
    Path("run.toml").write_text(printed(*TRAIN, *options))
    assert graphfm("train", "--config", "run.toml", "--out", "by-file").code == 0
    configs = [
        json.loads(Path(f"{name}/config.json").read_text()) for name in ("by-options", "by-file")
    ]
    assert configs[0]["run"] == configs[1]["run"]
    assert (
        Path("by-options/model.safetensors").read_bytes()
        == Path("by-file/model.safetensors").read_bytes()
    )


def test_defaults_recipe_file_and_command_line_come_in_this_order():
    recipe = "table2-sage-flickr-graphfm-ib"
    known = recipe_of(recipe).run
    Path("run.toml").write_text(
        f'recipe = "{recipe}"\n[training]\nepochs = 7\nseed = 3\n[network]\nbatch_norm = true\n'
    )
    found = tomllib.loads(printed("train", "--config=run.toml", "--seed", 4, "--no-batch-norm"))
    assert found["training"]["seed"] == 4  # the command line
    assert found["network"]["batch_norm"] is False
    assert found["training"]["epochs"] == 7  # the file
    assert found["training"]["lr"] == known.training.lr  # the recipe
    assert found["data"]["dataset"] == known.dataset
    assert found["training"]["eval_every"] == known.training.eval_every


def test_a_comparison_is_read_back():
    given = ("--methods", "full,graphsage", "--fanout", "2,2", "--dropout", 0.1, "--set",
             "graphsage.batch_size=100", "--sweep", "lr=0.1,0.01", "--seeds", 2,
             "--budget-epochs", 3, "--patience", 2, "--batch-norm")  # fmt: skip
    text = printed("compare", "--dataset", SMALL, *given)
    Path("compare.toml").write_text(text)
    assert printed("compare", "--config", "compare.toml") == text
    found = tomllib.loads(text)
    assert found["seeds"] == 2
    assert found["sweep"] == ["lr=0.1,0.01"]
    assert found["network"]["dropout"] == 0.1
    swept = tomllib.loads(printed("compare", "--config", "compare.toml", "--sweep", "hidden=4,8"))
    assert swept["sweep"] == ["hidden=4,8"]  # not both


def test_own_code_is_named_on_the_command_line_alone(monkeypatch):
    Path("users_config.py").write_text(
        "from graphfm.methods import full\ndef mine(*, depth: int = 3):\n    return full()\n"
    )
    text = printed("train", "--method", "users_config:mine", "--depth", 5)
    assert "# A file names no code; give it again: --method users_config:mine" in text
    Path("run.toml").write_text(text)
    assert printed("train", "--config", "run.toml", "--method", "users_config:mine") == text
    Path("run.toml").write_text('method = "users_config:other"\n')
    refused(graphfm("train", "--config", "run.toml"), "a file may not name code to run")


@pytest.mark.parametrize("command", ["train", "compare"])
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "hiden = 4",
            r"run.toml: hiden is not an option that a file may give \(did you mean hidden\?\)",
        ),
        ("lr = 'fast'", "run.toml: lr is 'fast'; expected a number"),
        ("resume = 'run'", "resume is not an option that a file may give"),
        ("json = true", "json is not an option that a file may give"),
        ("warmup = 1000", "warmup is 1000; expected fewer than the"),
        ("[data", "run.toml is not a TOML file"),
    ],
)
def test_a_wrong_file_gets_one_line_and_leaves_nothing(command, text, reason):
    Path("run.toml").write_text(text)
    refused(graphfm(command, "--config", "run.toml"), reason)
    assert tree(Path()) == {"run.toml"}


def test_a_missing_file_is_refused():
    refused(graphfm("train", "--config", "no.toml"), "cannot read no.toml: No such file")


def test_a_run_continues_with_its_own_settings():
    Path("run.toml").write_text("lr = 1")
    refused(graphfm("train", "--resume", "run", "--config", "run.toml"), "leave out --config")
    refused(graphfm("train", "--resume", "run", "--print-config"), "leave out --resume")


def test_the_example_is_a_file_that_trains():
    ended = graphfm(
        "train", "--config", EXAMPLE, "--dataset", SMALL, "--epochs", 6, "--device", "cpu"
    )
    assert ended.code == 0, ended.err
    assert tomllib.loads(printed("train", "--config", EXAMPLE))["training"]["optimizer"] == "adamw"
