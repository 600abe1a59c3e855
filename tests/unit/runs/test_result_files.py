"""A table that is written piece by piece reads back as it was."""

import csv
import gzip
import io
from pathlib import Path

import duckdb
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfm.errors import InputError
from graphfm.runs import result_files
from graphfm.runs.result_columns import as_texts, distinct
from graphfm.runs.result_files import ending_of, write_results

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)


def tabled(names):
    """Columns of rows that have these names."""

    def columns(piece, start):
        end = start + piece.size(0)
        numbers = {f"v{place}": column for place, column in enumerate(piece.t().numpy())}
        return {"node": np.arange(start, end), "name": as_texts(names[start:end]), **numbers}

    return columns


def written(out: Path, names, rows) -> None:
    write_results(out, torch.split(rows, 3), len(names), tabled(names), "%.9g")


@given(names=st.lists(TEXT, min_size=1, max_size=9), seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_csv_is_what_the_csv_module_reads(tmp_path_factory, names, seed):
    rows = torch.randn(len(names), 2, generator=torch.Generator().manual_seed(seed))
    rows[0, 1] = float("nan")
    out = tmp_path_factory.mktemp("csv") / "t.csv"
    written(out, names, rows)
    with out.open(newline="", encoding="utf-8") as stream:
        header, *lines = csv.reader(stream)
    assert header == ["node", "name", "v0", "v1"]
    assert [line[:2] for line in lines] == [[str(n), name] for n, name in enumerate(names)]
    assert lines[0][3] == ""
    values = torch.tensor([[float(cell or "nan") for cell in line[2:]] for line in lines])
    assert torch.equal(values.nan_to_num(9), rows.nan_to_num(9))  # to the last bit


def test_the_csv_is_byte_for_byte_that_of_the_csv_module(tmp_path):
    names = ["a", 'b"c', "d,e", "f\ng", "", "h\ri", " j ", "ß"]
    written(tmp_path / "t.csv", names, torch.arange(8.0).unsqueeze(1))
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow(["node", "name", "v0"])
    writer.writerows([node, name, f"{node:.9g}"] for node, name in enumerate(names))
    assert (tmp_path / "t.csv").read_bytes() == stream.getvalue().encode()
    written(tmp_path / "t.csv.gz", names, torch.arange(8.0).unsqueeze(1))
    packed = (tmp_path / "t.csv.gz").read_bytes()
    assert gzip.decompress(packed) == stream.getvalue().encode()
    assert b"unfinished" not in packed


def test_parquet_and_npy_hold_the_same_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(result_files, "VALUES_AT_ONCE", 8)  # pieces of two rows
    rows = torch.randn(7, 4, generator=torch.Generator().manual_seed(0))
    names = ["a", None, 'x"', "", "ß", "f", "g"]
    written(tmp_path / "t.parquet", names, rows)
    written(tmp_path / "t.npy", names, rows)
    found = duckdb.sql(f"SELECT * FROM '{tmp_path / 't.parquet'}'")
    assert [str(kind) for kind in found.types] == ["BIGINT", "VARCHAR"] + ["FLOAT"] * 4
    columns = list(zip(*found.fetchall(), strict=True))
    assert columns[:2] == [tuple(range(7)), tuple(names)]
    assert torch.equal(torch.tensor(columns[2:]).t(), rows)
    assert np.array_equal(np.load(tmp_path / "t.npy", mmap_mode="r"), rows.numpy())
    assert {path.name for path in tmp_path.iterdir()} == {"t.parquet", "t.npy"}


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet", ".npy"])
@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError])
def test_what_is_interrupted_leaves_nothing_and_keeps_the_old_file(tmp_path, ending, failure):
    out = tmp_path / f"t{ending}"
    out.write_text("old")

    def parts():
        yield torch.ones(2, 2)
        raise failure

    with pytest.raises(failure):
        write_results(out, parts(), 4, tabled(["a"] * 4), "%.9g")
    assert [path.name for path in tmp_path.iterdir()] == [out.name]
    assert out.read_text() == "old"


@pytest.mark.parametrize("name", ["t", "t.txt", "t.npz", ".csv", "t.gz", "csv", "t.csv.zst"])
def test_other_endings_are_refused(name):
    with pytest.raises(InputError, match=r"expected a file that ends in \.csv, "):
        ending_of(Path(name))


def test_endings_are_found_whatever_their_case():
    endings = [ending_of(Path(f"a.b{name}")) for name in (".CSV", ".csv.GZ", ".Parquet", ".npy")]
    assert endings == [".csv", ".csv.gz", ".parquet", ".npy"]


@given(st.lists(st.sampled_from(["a", "A", "a_2", "node", "class"]), max_size=8))
def test_columns_stay_apart_whatever_their_names(names):
    columns = distinct([(name, np.array([place])) for place, name in enumerate(names)])
    assert [int(values[0]) for values in columns.values()] == list(range(len(names)))
    assert len({name.casefold() for name in columns}) == len(names)
