"""Files of hops that are damaged or missing are computed again."""

import json
import logging

import pytest

from tests.unit.data.matrix.hop_folders import compute, contents

DAMAGE = {
    "empty": lambda raw: b"",
    "nonsense": lambda raw: b"nonsense",
    "cut short": lambda raw: raw[:-1],
    "a bit flipped": lambda raw: raw[:-9] + bytes([raw[-9] ^ 1]) + raw[-8:],
    "another type": lambda raw: raw.replace(b"<f4", b"<f8", 1),
    "another shape": lambda raw: raw.replace(b"(60, 7)", b"(70, 6)", 1),
}


@pytest.mark.parametrize("hop", [1, 2])
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_computed_again(adjacency, tmp_path, computed, caplog, damage, hop):
    compute(adjacency, 2, tmp_path)
    want = contents(tmp_path)
    (path,) = tmp_path.glob(f"*.{hop}.npy")
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    del computed[:]
    with caplog.at_level(logging.INFO, "graphfm"):
        compute(adjacency, 2, tmp_path)
    assert f"{path} cannot be used" in caplog.text
    assert len(computed) == (18 if hop == 1 else 9)
    assert contents(tmp_path) == want


def test_a_missing_file_is_computed_again(adjacency, tmp_path, computed):
    compute(adjacency, 2, tmp_path)
    want = contents(tmp_path)
    next(tmp_path.glob("*.2.npy")).unlink()
    del computed[:]
    compute(adjacency, 2, tmp_path)
    assert len(computed) == 9
    assert contents(tmp_path) == want


@pytest.mark.parametrize(
    "change",
    [
        {"format": 0},
        {"key": "of another graph"},
        {"hops": None},
        {"hops": [[61, 0]]},
        {"hops": [[-1, 0]]},
        {"hops": [[7, 0], [60, 0]]},
        {"hops": [["many", 0]]},
        None,
    ],
    ids=str,
)
def test_a_damaged_json_is_written_again(adjacency, tmp_path, computed, caplog, change):
    compute(adjacency, 2, tmp_path)
    want = contents(tmp_path)
    (path,) = tmp_path.glob("*.json")
    record = json.loads(path.read_text())
    path.write_text("{" if change is None else json.dumps(record | change))
    del computed[:]
    with caplog.at_level(logging.INFO, "graphfm"):
        compute(adjacency, 2, tmp_path)
    assert f"{path} cannot be used" in caplog.text
    assert len(computed) == 18
    assert contents(tmp_path) == want
