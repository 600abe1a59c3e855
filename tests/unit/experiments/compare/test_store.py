"""The folder: what it keeps, what it mends, what it refuses."""

import json
from dataclasses import replace

import pytest

from graphfm import InputError
from graphfm.experiments.outcome import FAILED, FINISHED, Outcome
from graphfm.experiments.store import CELLS, SETTINGS, Store

SAME = {"graph": {"fingerprint": "f"}, "training": {"epochs": 3}, "network": {"parts": (1, 2)}}


@pytest.fixture
def cells(make_plan):
    return make_plan().cells


@pytest.fixture
def filled(tmp_path, cells, make_score):
    """A folder with two cells in it."""
    with Store.open(tmp_path / "c", SAME, {}) as store:
        for cell in cells[:2]:
            store.add(cell, Outcome(status=FINISHED, score=make_score()))
    return tmp_path / "c"


def outcomes(path):
    with Store.open(path, SAME, {}) as store:
        return store.outcomes


def test_what_was_added_is_there_again(filled, cells, make_score):
    assert outcomes(filled) == {
        cell.key: Outcome(status=FINISHED, score=make_score()) for cell in cells[:2]
    }


def test_an_outcome_is_on_the_disk_before_the_store_is_closed(tmp_path, cells):
    with Store.open(tmp_path, SAME, {}) as store:
        store.add(cells[0], Outcome(status=FAILED, error="e"))
        assert (tmp_path / CELLS).read_bytes().count(b"\n") == 1


def test_the_last_word_on_a_cell_counts(filled, cells):
    with Store.open(filled, SAME, {}) as store:
        store.add(cells[0], Outcome(status=FAILED, error="e"))
    assert outcomes(filled)[cells[0].key].status == FAILED


@pytest.mark.parametrize("keep", [1, 50, -1])
def test_a_torn_last_line_is_removed_and_the_rest_is_kept(filled, cells, keep):
    path = filled / CELLS
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second[:keep])
    assert list(outcomes(filled)) == [cells[0].key]
    assert path.read_bytes() == first
    with Store.open(filled, SAME, {}) as store:
        store.add(cells[1], Outcome(status=FAILED, error="e"))
    assert path.read_bytes().startswith(first)
    assert list(outcomes(filled)) == [cells[0].key, cells[1].key]


@pytest.mark.parametrize("line", [b"", b"{}", b"[]", b"\0\0", b'{"run": 1, "status": "finished"}'])
def test_a_damaged_line_in_the_middle_is_named(filled, line):
    path = filled / CELLS
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + line + b"\n" + second)
    with pytest.raises(InputError, match=r"line 2 of .*cells.jsonl is damaged; remove it"):
        outcomes(filled)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"graph": {"fingerprint": "g"}}, "of another graph .*was f and is now g.*"),
        ({"training": {"epochs": 4}}, "with training epochs 3, but this command has 4"),
        (
            {"network": {"parts": (2, 2)}},
            r"with network parts \[1, 2\], but this command has \[2, 2\]",
        ),
        ({"more": 1}, "without more, but this command has 1"),
    ],
)
def test_other_settings_are_refused_by_name_and_change_nothing(filled, change, named):
    before = {path: path.read_bytes() for path in filled.iterdir()}
    with (
        pytest.raises(InputError, match=f"holds results {named}; choose another --out"),
        Store.open(filled, SAME | change, {}),
    ):
        pass
    assert {path: path.read_bytes() for path in filled.iterdir()} == before


def test_what_was_asked_may_change(filled):
    with Store.open(filled, SAME, {"seeds": 4}):
        pass
    assert json.loads((filled / SETTINGS).read_text())["asked"] == {"seeds": 4}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"settings": 3}', b"\xff"])
def test_settings_that_cannot_be_read_are_refused(filled, content):
    (filled / SETTINGS).write_bytes(content)
    with pytest.raises(InputError, match=r"comparison.json cannot be read; choose another"):
        outcomes(filled)


def test_two_at_once_are_refused(filled):
    pytest.importorskip("fcntl")
    with (
        Store.open(filled, SAME, {}),
        pytest.raises(InputError, match="another process works on"),
        Store.open(filled, SAME, {}),
    ):
        pass
    assert len(outcomes(filled)) == 2  # and then it is free again


def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match="is not empty and holds no results of this command"):
        outcomes(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


def test_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "c"):
        with pytest.raises(InputError, match="cannot write to"):
            outcomes(path)


def test_a_start_that_was_cut_short_is_no_obstacle(tmp_path):
    (tmp_path / CELLS).touch()
    (tmp_path / ".comparison.json.1.unfinished").touch()
    assert outcomes(tmp_path) == {}


def test_settings_that_an_older_version_did_not_know_were_at_their_default(filled, cells):
    lines = [json.loads(line) for line in (filled / CELLS).read_text().splitlines()]
    for line in lines:
        del line["seconds"], line["measured"], line["run"]["training"]["precision"]
    (filled / CELLS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    here = {**SAME, "training": {"epochs": 3, "precision": "fp32"}}
    defaults = {"training": {"precision": "fp32"}}
    with Store.open(filled, here, {}, defaults=defaults) as store:
        assert list(store.outcomes) == [cell.key for cell in cells[:2]]
    with (
        pytest.raises(InputError, match="precision fp32, but this command has tf32"),
        Store.open(filled, SAME | {"training": {"epochs": 3, "precision": "tf32"}}, {},
                   defaults=defaults),
    ):  # fmt: skip
        pass


def test_what_is_measured_tells_cells_apart(tmp_path, cells):
    stale = replace(cells[0], measure="staleness")
    outcome = Outcome(status=FINISHED, measured={"epochs": [[1.5]]})
    with Store.open(tmp_path, SAME, {}) as store:
        store.add(stale, outcome)
    assert outcomes(tmp_path) == {stale.key: outcome}
    assert stale.key != cells[0].key
