"""Checkpoint files: whole or not at all, the last two, and no trust in what was changed since."""

import json
import logging
import os
import resource
import subprocess
import sys

import pytest
import torch

from graphfm import InputError
from graphfm.checkpointing.store import CheckpointStore

ROWS = {"rows": torch.arange(6.0).view(2, 3), "none": torch.zeros(0, 4), "one": torch.tensor(7.0)}


@pytest.fixture
def kept(tmp_path):
    """A folder with the states 2 and 3, of three that were written."""
    kept = CheckpointStore(tmp_path / "checkpoints")
    for number in (1, 2, 3):
        kept.write(ROWS | {"one": torch.tensor(float(number))}, {"number": number})
    return kept


def names(kept):
    return sorted(path.name for path in kept.folder.iterdir())


def number_of(kept):
    newest = kept.newest()
    return None if newest is None else newest.record["number"]


def test_the_last_two_are_kept_and_the_newest_is_read(kept):
    assert names(kept) == ["2.json", "2.safetensors", "3.json", "3.safetensors"]
    with kept.newest().opened() as stream:
        assert float(stream.get_tensor("one")) == 3
        assert torch.equal(stream.get_tensor("rows"), ROWS["rows"])
        assert stream.get_tensor("none").shape == (0, 4)


def test_none_is_none(tmp_path):
    kept = CheckpointStore(tmp_path / "checkpoints")
    assert kept.newest() is None
    assert kept.is_empty
    kept.clean()
    kept.remove()
    assert not kept.folder.exists()


def test_every_truncation_of_the_newest_leads_to_the_one_before(kept, caplog):
    for name in ("3.json", "3.safetensors"):
        whole = (kept.folder / name).read_bytes()
        for size in {0, 1, 8, len(whole) // 2, len(whole) - 1}:
            (kept.folder / name).write_bytes(whole[:size])
            caplog.clear()
            assert number_of(kept) == 2
            assert "3.json cannot be used" in caplog.text
        (kept.folder / name).write_bytes(whole)
    assert number_of(kept) == 3


def test_every_flipped_byte_of_the_newest_is_found_out(kept):
    for name in ("3.json", "3.safetensors"):
        whole = (kept.folder / name).read_bytes()
        for place in range(0, len(whole), 7):
            changed = bytearray(whole)
            changed[place] ^= 1
            (kept.folder / name).write_bytes(changed)
            found = number_of(kept)
            assert found in (2, 3)
            assert found == 2 or name == "3.json"  # a space of the JSON may as well be another
        (kept.folder / name).write_bytes(whole)


def test_an_edited_number_is_found_out(kept):
    path = kept.folder / "3.json"
    path.write_text(path.read_text().replace('"number": 3', '"number": 9'))
    assert number_of(kept) == 2


@pytest.mark.parametrize("text", ["[]", "3", '{"state": []}', "{}"])
def test_json_that_is_no_object_is_said_to_be_none(kept, caplog, text):
    (kept.folder / "3.json").write_text(text)
    assert number_of(kept) == 2
    assert "3.json cannot be used (expected a JSON object with" in caplog.text


def test_one_without_its_tensors_is_passed_over(kept):
    (kept.folder / "3.safetensors").unlink()
    assert number_of(kept) == 2


def test_where_none_is_whole_training_starts_again_and_says_so(kept, caplog):
    for path in kept.folder.glob("*.safetensors"):
        path.write_bytes(b"")
    assert kept.newest() is None
    assert "starting from the beginning" in caplog.text


def test_after_a_damaged_one_two_good_ones_are_kept(kept):
    for name in ("3.safetensors", "3.json"):
        (kept.folder / name).write_bytes(b"")
    assert number_of(kept) == 2
    kept.write(ROWS, {"number": 4})
    assert names(kept) == ["2.json", "2.safetensors", "4.json", "4.safetensors"]
    kept.write(ROWS, {"number": 5})
    assert names(kept) == ["4.json", "4.safetensors", "5.json", "5.safetensors"]


def test_one_that_the_training_refuses_is_damaged(kept, caplog):
    def refuse_three(found):
        if found.record["number"] == 3:
            raise ValueError("it does not fit")

    assert kept.newest(refuse_three).record["number"] == 2
    assert "3.json cannot be used (it does not fit); trying the previous one" in caplog.text
    kept.write(ROWS, {"number": 4})
    assert names(kept) == ["2.json", "2.safetensors", "4.json", "4.safetensors"]


def test_the_one_before_is_spoken_of_where_there_is_one(kept, caplog):
    for path in kept.folder.glob("*.safetensors"):
        path.write_bytes(b"")
    assert kept.newest() is None
    assert kept.is_empty
    assert [line.split("; ")[1] for line in caplog.messages] == [
        "trying the previous one", "starting from the beginning",
    ]  # fmt: skip


def test_one_of_another_format_is_refused(kept, monkeypatch):
    monkeypatch.setattr("graphfm.checkpointing.store.FORMAT", 2)
    with pytest.raises(InputError, match="it has format 1; this program reads 2; continue with"):
        kept.newest()


def test_what_a_killed_process_left_is_removed(kept):
    (kept.folder / ".4.safetensors.123.unfinished").write_bytes(b"half")
    (kept.folder / ".tmpyLhSwA").write_bytes(b"half of that")
    (kept.folder / "4.safetensors").write_bytes(b"whole, but nobody vouches for it")
    kept.clean()
    assert names(kept) == ["2.json", "2.safetensors", "3.json", "3.safetensors"]


def test_at_the_end_only_the_newest_is_left(kept):
    kept.keep_last()
    assert names(kept) == ["3.json", "3.safetensors"]
    kept.remove()
    assert not kept.folder.exists()


@pytest.mark.parametrize("written", [0, 9])
def test_an_interrupted_write_leaves_those_before(kept, monkeypatch, written):
    def half(path, tensors):
        path.write_bytes(b"half of it"[:written])
        raise KeyboardInterrupt

    monkeypatch.setattr("graphfm.checkpointing.store.write_tensors", half)
    with pytest.raises(KeyboardInterrupt):
        kept.write(ROWS, {"number": 4})
    assert names(kept) == ["2.json", "2.safetensors", "3.json", "3.safetensors"]
    assert number_of(kept) == 3


def interrupted_in(place, interrupt, kept, monkeypatch):
    """Write a fourth checkpoint, with a function that interrupts at some place of it."""
    with monkeypatch.context() as patched:
        patched.setattr(place, interrupt)
        with pytest.raises(KeyboardInterrupt):
            kept.write(ROWS, {"number": 4})


def test_one_interrupted_between_its_two_files_is_not_one(kept, monkeypatch):
    def interrupt(state):
        raise KeyboardInterrupt

    interrupted_in("graphfm.checkpointing.store._digest", interrupt, kept, monkeypatch)
    assert number_of(kept) == 3
    assert names(kept) == ["2.json", "2.safetensors", "3.json", "3.safetensors"]


def test_one_interrupted_after_its_two_files_is_one(kept, monkeypatch):
    def interrupt(place):
        if (kept.folder / "4.json").exists():
            raise KeyboardInterrupt

    interrupted_in("graphfm.files._sync", interrupt, kept, monkeypatch)
    assert number_of(kept) == 4


FULL = """
import resource, sys, torch
from pathlib import Path
from graphfm.checkpointing.store import CheckpointStore
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    CheckpointStore(Path(sys.argv[1])).write({"rows": torch.zeros(5000)}, {"number": 4})
except OSError as error:
    print("refused:", error)
"""


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="no such limit here")
@pytest.mark.parametrize("room", [0, 100, 19_000])
def test_a_disk_that_is_full_leaves_those_before(kept, room):
    """A limit on the size of files stands for the disk: writes end as they would there."""
    before = {path.name: path.read_bytes() for path in kept.folder.iterdir()}
    command = [sys.executable, "-c", FULL, str(kept.folder), str(room)]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.stdout.startswith("refused: "), ended
    assert {path.name: path.read_bytes() for path in kept.folder.iterdir()} == before
    assert number_of(kept) == 3


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_read_only_is_an_error_of_the_disk(kept):
    kept.folder.chmod(0o500)
    with pytest.raises(OSError, match="ermission"):
        kept.write(ROWS, {"number": 4})
    kept.folder.chmod(0o700)
    assert number_of(kept) == 3


def test_the_json_is_for_people_too(kept):
    state = json.loads((kept.folder / "3.json").read_text())["state"]
    assert state["number"] == 3
    assert state["tensors"]["bytes"] == (kept.folder / "3.safetensors").stat().st_size


def test_damage_is_a_warning_not_a_note(kept, caplog):
    (kept.folder / "3.safetensors").write_bytes(b"")
    kept.newest()
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
