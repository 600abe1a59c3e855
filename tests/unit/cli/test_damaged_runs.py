"""graphfm evaluate and graphfm predict refuse a damaged run with one line."""

import io
import json
import shutil
from pathlib import Path

import pytest
import torch

from tests.unit.cli.commands import TRAIN, graphfm, refused

pytestmark = pytest.mark.usefixtures("here")

CONFIGS = {
    "empty": b"",
    "not text": b"\xff\xfe\x00",
    "cut": b'{"run": {"dataset"',
    "list": b"[]",
    "nothing in it": b"{}",
    "nested": b"[" * 100_000,
    "empty parts": b'{"run": {}, "graph": {}}',
    "parts of lists": b'{"run": [], "graph": []}',
}
GRAPHS = [
    {"num_classes": "ten"},
    {"num_classes": -1},
    {"num_classes": 11},
    {"num_features": 10**30},
    {"num_features": 10**15},
    {"num_features": None},
    {"class_names": ["only one"]},
    {"class_names": list(range(10))},
    {"class_names": 5},
]
RUNS = [
    {"backbone": "nope"},
    {"backbone": []},
    {"method": "nope"},
    {"training": {"epochs": "x"}},
    {"training": {"epochs": -1}},
    {"backbone_settings": {"layers": 2.5}},
    {"backbone_settings": {"layers": 10**12}},
    {"backbone_settings": {"nope": 1}},
    {"backbone_settings": None},
]


def both_refuse(run: Path, reason: str) -> None:
    refused(graphfm("evaluate", run), reason)
    refused(graphfm("predict", run, "--out", "p.csv"), reason)
    assert not Path("p.csv").exists()


@pytest.mark.parametrize("content", CONFIGS.values(), ids=CONFIGS.keys())
def test_a_damaged_config_gets_one_line(run, content):
    (run / "config.json").write_bytes(content)
    both_refuse(run, r"config\.json")


@pytest.mark.parametrize(
    ("part", "change"), [("graph", c) for c in GRAPHS] + [("run", c) for c in RUNS]
)
def test_a_config_of_nonsense_gets_one_line(run, part, change):
    config = json.loads((run / "config.json").read_text())
    config[part].update(change)
    (run / "config.json").write_text(json.dumps(config))
    both_refuse(run, str(run))


def pickled() -> bytes:
    stream = io.BytesIO()
    torch.save({"weight": torch.ones(2)}, stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: b"",
        lambda raw: raw[:4],
        lambda raw: raw[:100],
        lambda raw: raw[:-1],
        lambda raw: raw + b"\0",
        lambda raw: b"\xff" * len(raw),
        lambda raw: raw.replace(b"F32", b"F99", 1),
        lambda raw: raw.replace(b"layers.0", b"layers.9", 1),
        lambda raw: pickled(),
    ],
    ids=["empty", "4 bytes", "in header", "cut", "long", "ones", "type", "name", "pickle"],
)
def test_damaged_weights_get_one_line(run, damage):
    weights = run / "model.safetensors"
    weights.write_bytes(damage(weights.read_bytes()))
    both_refuse(run, r"model\.safetensors is damaged or does not fit")


def test_weights_of_another_network_get_one_line(run):
    graphfm(*TRAIN, "--hidden", 8, "--out", "other")
    shutil.copy("other/model.safetensors", run)
    both_refuse(run, r"model\.safetensors is damaged or does not fit")


def test_a_run_without_weights_says_so(run):
    (run / "model.safetensors").unlink()
    both_refuse(run, "has no model.safetensors; the run ended before its first evaluation")
