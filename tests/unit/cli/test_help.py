"""Help and lists name every option, default, method, backbone and dataset."""

import inspect
import re
from dataclasses import fields

import pytest

from graphfm.backbones import BACKBONES
from graphfm.backbones.base import Settings
from graphfm.backbones.gcnii import GCNIISettings
from graphfm.backbones.pna import PNASettings
from graphfm.data.datasets import DATASETS
from graphfm.methods import METHODS
from graphfm.options import options_in
from graphfm.runs.run import Run
from graphfm.training.settings import Training
from tests.unit.cli.commands import graphfm

pytestmark = pytest.mark.usefixtures("here")


@pytest.mark.parametrize(
    ("name", "known"), [("datasets", DATASETS), ("methods", METHODS), ("backbones", BACKBONES)]
)
def test_what_there_is_is_listed(name, known):
    ended = graphfm(name, "--json")
    assert [entry["name"] for entry in ended.json] == list(known)
    assert all(entry["about"] for entry in ended.json)
    text = graphfm(name)
    assert (text.code, text.err) == (0, "")
    assert all(
        f"{entry['name']} " in text.out and entry["about"] in text.out for entry in ended.json
    )


CONTRACT = {
    "train": "dataset backbone method layers hidden fanout batch-size parts parts-per-batch beta "
    "dropout lr epochs seed device out json",
    "evaluate": "json",
    "predict": "dataset out nodes id top probabilities json",
    "embed": "dataset out nodes id layer json",
    "datasets": "json",
    "methods": "json",
    "backbones": "json",
    "info": "json",
}


@pytest.mark.parametrize("name", CONTRACT)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_mentions_every_option_of_the_contract(name, flag):
    ended = graphfm(name, flag)
    assert (ended.code, ended.err) == (0, "")
    shown = set(re.findall(r"--([a-z-]+)", ended.out))
    assert set(CONTRACT[name].split()) <= shown


def test_help_names_every_command():
    ended = graphfm("--help")
    assert ended.code == 0
    assert all(name in ended.out for name in CONTRACT)


def test_version():
    assert re.fullmatch(r"graphfm \d+\.\d+\S*\n", graphfm("--version").out)


def help_texts() -> dict[str, str]:
    """What the help of train says of each option, by name."""
    found, name = {}, None
    for line in graphfm("train", "--help-all").out.splitlines():
        if option := re.match(r"  (?:-\w, )?--(?:\[no-\])?([a-z-]+)", line):
            name = option[1].replace("-", "_")
        if name is not None:
            found[name] = f"{found.get(name, '')} {line.strip()}"
    return {name: text.replace("- ", "-") for name, text in found.items()}  # a line may end there


def help_defaults() -> dict[str, str]:
    texts = {name: re.search(r"\[default: (.*)\]", text) for name, text in help_texts().items()}
    return {name: found[1] for name, found in texts.items() if found}


def as_text(value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ",".join(map(as_text, value))
    if value is None:
        return "auto"
    return value if isinstance(value, str) else f"{value:g}"


def declared_by_methods(name: str) -> list[str]:
    """What methods have as their own default of a training or network setting."""
    groups: dict[str, list[str]] = {}
    for method, function in METHODS.items():
        if name in (own := getattr(function, "trains_with", {})):
            groups.setdefault(as_text(own[name]), []).append(method)
    return [f"{', '.join(methods)} {value}" for value, methods in groups.items()]


@pytest.mark.parametrize("kind", [Training, Settings, GCNIISettings, PNASettings])
def test_defaults_in_help_are_those_of_the_settings(kind):
    shown = help_defaults()
    layers = f"{Settings.layers}; gcnii {GCNIISettings.layers}"
    expected = {item.name: as_text(item.default) for item in fields(kind)}
    if "layers" in expected:
        expected["layers"] = layers
    expected = {
        name: "; ".join([text, *declared_by_methods(name)]) for name, text in expected.items()
    }
    assert {name: shown[name] for name in expected} == expected


def test_defaults_in_help_are_those_of_a_run():
    shown, parameters = help_defaults(), inspect.signature(Run.make).parameters
    for name in ("dataset", "method", "device"):
        assert shown[name] == parameters[name].default
    assert shown["backbone"] == Run.make().backbone


def test_defaults_that_differ_are_shown_with_their_owners():
    shown = help_defaults()
    assert shown["beta"] == "graphfm-ib 0.1; graphfm-ob 0.3"
    assert shown["fanout"] == "graphsage, shadow 5; graphfm-ib 1; vr-gcn 2"
    assert shown["dropout"] == "0.5; graphfm-ib 0.4; fastgcn, ladies, graphsaint 0.3"
    assert shown["parts_per_batch"] == "auto"


def test_the_options_of_train_are_the_declared_settings():
    declared = {name for kind in BACKBONES.values() for name in options_in(kind.Settings)}
    declared |= {name for method in METHODS.values() for name in options_in(method)}
    declared |= options_in(Training).keys()
    others = {
        "dataset", "method", "backbone", "model", "model_option", "device", "out", "recipe",
        "resume", "checkpoint_every", "explain", "config", "print_config", "json", "quiet",
        "verbose", "help", "help_all",
    }  # fmt: skip
    assert help_texts().keys() == declared | others


def test_every_setting_has_a_help_text():
    for owner in [*(kind.Settings for kind in BACKBONES.values()), *METHODS.values(), Training]:
        for option in options_in(owner).values():
            assert option.about.help.endswith("."), (owner, option.name)


@pytest.mark.parametrize("columns", ["80", "200"])
def test_help_fits_80_columns_with_the_common_options_first(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    lines = graphfm("train", "--help").out.splitlines()
    assert max(map(len, lines)) <= 80
    panels = [line for line in lines if re.fullmatch(r"\w[\w ]*:", line)]
    assert panels == [
        "Common options:", "Network options:", "Method options:", "Training options:",
        "Run options:", "More options:", "Options:",
    ]  # fmt: skip
    common = lines[lines.index(panels[0]) : lines.index(panels[1])]
    names = [line.split()[0] for line in common if line.startswith("  --")]
    assert names == [
        "--dataset", "--method", "--backbone", "--epochs", "--lr", "--hidden", "--layers",
        "--batch-size", "--device", "--out",
    ]  # fmt: skip
    assert len(lines) < 180
    more = " ".join(lines[lines.index("More options:") : lines.index("Options:")])
    shown = set(
        re.findall(
            r"--(?:\[no-\])?([a-z-]+)",
            "".join(line.strip() + " " for line in lines).replace("- ", "-"),
        )
    )
    assert "--[no-]fill-histories, " in more
    assert {name.replace("_", "-") for name in help_texts()} <= shown


def test_every_command_explains_all_of_its_options_on_request():
    for command in ("train", "compare"):
        text = graphfm(command, "--help-all").out
        assert "They are explained by" not in text
        assert "Update a neighbour only if it has more than this many" in " ".join(text.split())


def test_no_command_shows_the_help():
    ended = graphfm()
    assert ended.code == 0
    assert "Usage: graphfm" in ended.out
    assert ended.err == ""
