"""Files of every kind, cut, flipped, replaced: hypothesis looks for one that nobody expected."""

import json
import os
import struct
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphfm import InputError, load_model
from tests.fuzz.loop import Fuzz
from tests.fuzz.readers import READERS, make_run


@pytest.fixture(scope="module")
def fuzz(tmp_path_factory):
    place, before = tmp_path_factory.mktemp("fuzz"), os.environ.get("GRAPHFM_CACHE")
    os.environ["GRAPHFM_CACHE"] = str(place / "cache")
    yield Fuzz(place, seed=0)
    os.environ.pop("GRAPHFM_CACHE")
    if before is not None:
        os.environ["GRAPHFM_CACHE"] = before


@st.composite
def changes(draw):
    """A function from good bytes to bad ones."""
    place, other = draw(st.integers(0, 1 << 16)), draw(st.binary(max_size=64))
    kind = draw(st.sampled_from(["cut", "flip", "insert", "overwrite", "replace"]))

    def change(content: bytes) -> bytes:
        here = place % (len(content) + 1)
        match kind:
            case "cut":
                return content[:here]
            case "flip":
                mask = other.ljust(1, b"\x01")
                mixed = bytes(a ^ b for a, b in zip(content[here:], mask, strict=False))
                return content[:here] + mixed + content[here + len(mixed) :]
            case "insert":
                return content[:here] + other + content[here:]
            case "overwrite":
                return content[:here] + other + content[here + len(other) :]
        return other

    return change


@settings(
    max_examples=240, deadline=5000, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(st.sampled_from(sorted(READERS)), st.integers(0, 99), changes())
def test_any_change_to_any_file_is_refused_or_harmless(fuzz, name, number, change):
    good = fuzz.place / "good" / name
    files = sorted(path for path in good.rglob("*") if path.is_file())
    path = files[number % len(files)]
    assert fuzz.again(name, str(path.relative_to(good)), change(path.read_bytes())) == ""


# Sizes that a file only claims

HUGE = """
import json, resource, sys
from pathlib import Path
import graphfm
from graphfm.runs.reader import read_run
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
path = Path(sys.argv[1], "config.json")
config = json.loads(path.read_text())
config["run"]["backbone_settings"] |= {"hidden": 8_000, "layers": 3}
path.write_text(json.dumps(config))
try:
    read_run(path.parent)
except graphfm.InputError:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_network_that_only_its_config_claims_is_not_made(tmp_path):
    make_run(tmp_path)
    command = [sys.executable, "-c", HUGE, str(tmp_path / "run")]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert int(ended.stdout) < 100_000, ended  # KiB; the network would take 500 MB


@pytest.mark.parametrize("shape", [[1 << 60], [1 << 31, 1 << 31], [-1, 4], [1.5], ["4"], None])
def test_a_shape_that_only_a_header_claims_is_refused(tmp_path, shape):
    make_run(tmp_path)
    path = tmp_path / "run" / "model.safetensors"
    content = path.read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])
    next(entry for name, entry in header.items() if name != "__metadata__")["shape"] = shape
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + size :])
    with pytest.raises(InputError, match="is damaged or does not fit its config"):
        load_model(tmp_path / "run")


@pytest.mark.parametrize("length", [0, 1 << 40, (1 << 63) - 1, (1 << 64) - 1])
def test_a_header_that_only_claims_to_be_long_is_refused(tmp_path, length):
    make_run(tmp_path)
    path = tmp_path / "run" / "model.safetensors"
    path.write_bytes(struct.pack("<Q", length) + path.read_bytes()[8:])
    with pytest.raises(InputError, match="is damaged or does not fit its config"):
        load_model(tmp_path / "run")
