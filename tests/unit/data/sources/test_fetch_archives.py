"""Archives in place are unpacked, or refused where they are damaged or hostile."""

import zipfile

import pytest

from graphfm import InputError, load
from graphfm.data.sources import catalog
from graphfm.data.sources.fetch import fetch


@pytest.mark.parametrize(
    ("name", "archive"), [("arxiv", "arxiv"), ("papers100m", "papers100M-bin")]
)
def test_an_archive_in_place_is_unpacked(published, root, tmp_path, offline, name, archive):
    example = published.example(12, 30)
    published.write(catalog.CATALOG[name].form, tmp_path / "files", example)
    (root / name).mkdir(parents=True)
    (root / name / f"{archive}.zip").write_bytes(published.zipped(tmp_path / "files", archive))
    fetch(name, root)
    assert load(name, root=root).num_nodes == 12
    assert offline == []
    assert not (root / name / "RELEASE_v1.txt").exists()


def arxiv_zip(published, root, tmp_path, change) -> None:
    published.tables(tmp_path / "files", published.example())
    path = root / "arxiv" / "arxiv.zip"
    path.parent.mkdir(parents=True)
    path.write_bytes(published.zipped(tmp_path / "files", "arxiv"))
    with zipfile.ZipFile(path, "a") as archive:
        change(archive)


@pytest.mark.parametrize(
    "name", ["../evil.txt", "/evil.txt", "arxiv/../../evil.txt", "a\\evil.txt"]
)
def test_an_archive_that_leads_out_of_its_folder_is_refused(
    published, root, tmp_path, offline, name
):
    arxiv_zip(published, root, tmp_path, lambda archive: archive.writestr(name, "evil"))
    with pytest.raises(InputError, match=r"arxiv.zip: it holds .*evil.*, a path outside"):
        fetch("arxiv", root)
    assert not list(tmp_path.parent.rglob("evil.txt"))


def test_an_archive_that_holds_a_file_twice_is_refused(published, root, tmp_path, offline):
    arxiv_zip(published, root, tmp_path, lambda archive: archive.writestr("b/raw/edge.csv.gz", b""))
    with pytest.raises(InputError, match="it holds 'raw/edge.csv.gz' twice"):
        fetch("arxiv", root)


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
def test_an_archive_cut_short_is_refused(published, root, tmp_path, offline, kept):
    arxiv_zip(published, root, tmp_path, lambda archive: None)
    path = root / "arxiv" / "arxiv.zip"
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * kept)])
    with pytest.raises(InputError, match="arxiv.zip: damaged .* download it again"):
        fetch("arxiv", root)
    assert {path.name for path in (root / "arxiv").iterdir()} == {"arxiv.zip"}


def test_an_archive_without_a_file_is_refused(root, offline):
    (root / "arxiv").mkdir(parents=True)
    with zipfile.ZipFile(root / "arxiv" / "arxiv.zip", "w") as archive:
        archive.writestr("arxiv/raw/edge.csv.gz", b"")
    with pytest.raises(InputError, match="it does not hold raw/num-node-list.csv.gz;"):
        fetch("arxiv", root)
