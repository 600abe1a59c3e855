"""Tables that cannot be read: one line that names the file, what is wrong and what to do."""

import gzip
import re

import pytest

from graphfm import InputError, load
from graphfm.data.sources.tables.importer import import_tables
from graphfm.data.sources.tables.request import EdgeTable, NodeTable, Request
from graphfm.data.sources.tables.unreadable import in_our_words
from tests.unit.data.sources.tables.writing import MEMORY

HEAD = b"source,target\n"
MANY = HEAD + b"a,b\n" * 40_000  # more rows than DuckDB looks at before it reads
PACKED = gzip.compress(MANY + b"".join(b"%d,b\n" % n for n in range(9999)))


def made(folder, name: str, content: bytes, **more):
    path = folder / name
    path.write_bytes(content)
    request = Request(edges=EdgeTable(files=(str(path),), **more))
    import_tables(request, folder / "graph", memory=MEMORY)
    return load(folder / "graph")


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("e.csv", HEAD + b"a,b\nc\n", "line 3: it has 1 column, but .* 2 names"),
        ("e.csv", HEAD + b"a,b,c\n", "line 2: it has 3 columns, but .* 2 names"),
        ("e.csv.gz", gzip.compress(HEAD + b"a\n"), "line 2: it has 1 column, but .* 2 names"),
        ("e.csv", MANY + b"c\n", "line 40002: it has 1 column, but .* 2 names"),
        ("e.csv", MANY + b"a,b,c\n", "line 40002: it has 3 columns, but .* 2 names"),
        ("e.csv", HEAD + b'a,b\nc,"d\ne,f\n', "line 3: a quote is not closed"),
        ("e.csv", MANY + b'c,"d\n', "line 40002: a quote is not closed"),
        ("e.csv", HEAD + "a,é\n".encode("latin-1"), "line 2: it is not UTF-8; save it as UTF-8"),
        ("e.csv", MANY + "a,é\n".encode("latin-1"), "line 40002: it is not UTF-8"),
        ("e.csv", "source,target\na,b\n".encode("utf-16"), "it is not UTF-8; save it as UTF-8"),
        ("e.parquet", MANY, "it is not a whole Parquet file"),
        ("e.parquet", b"PAR1", "it is not a whole Parquet file"),
        ("e.csv.gz", MANY, "not compressed as its ending says"),
        ("e.csv.gz", PACKED[:-999], "it is damaged, or not compressed"),
        ("e.csv.gz", gzip.compress(b""), "begins with an empty line"),
        ("e.csv.zst", MANY, "not compressed as its ending says"),
        ("e.jsonl", b'{"source": 1}\n{"source": 1,\n', "near line [23]: it is not JSON"),
        ("e.jsonl", '{"source": "é"}\n'.encode("latin-1"), "it is not UTF-8"),
    ],
)  # fmt: skip
def test_one_line_says_which_file_and_what_is_wrong(tmp_path, name, content, reason):
    with pytest.raises(InputError, match=reason) as error:
        made(tmp_path, name, content)
    text = str(error.value)
    assert str(tmp_path / name) in text
    assert not re.search(r"\n|LINE|\^|Possible|sniff|strict_mode|encoding|SELECT|read_", text)


def test_words_of_duckdb_lose_their_sql_and_their_advice():
    text = "Binder Error: it is odd\n\nPossible fixes:\n* use x=1\n\nLINE 1: SELECT 1\n        ^^^"
    assert in_our_words(text, ["e.csv"], ",") == "'e.csv' cannot be read: it is odd"
    assert in_our_words("", [], ",") == "the tables cannot be read: DuckDB does not say why"


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_a_line_of_names_tells_what_separates_columns(tmp_path, mark):
    rows = f"source{mark}target{mark}weight\na{mark}b{mark}1,5\n"  # a comma in a value is no matter
    assert list(made(tmp_path, "e.csv", rows.encode()).node_names) == ["a", "b"]


@pytest.mark.parametrize(
    "text",
    ["source,target\ra,b\ra,b\r", "\ufeffsource;target\na;b\n", 'source,target,"x\ny"\na,b,1\n',
     f"source,target,{'x' * 200_000}\na,b,1\n", '"source"|"target"\na|b\n'],
)  # fmt: skip
def test_lines_of_names_may_be_odd(tmp_path, text):
    assert list(made(tmp_path, "e.csv", text.encode()).node_names) == ["a", "b"]


def test_edges_and_nodes_may_be_separated_differently(tmp_path):
    (tmp_path / "e.csv").write_text("source;target\na;b\n")
    (tmp_path / "n.csv").write_text("id,kind\na,x\nb,y\n")
    request = Request(
        edges=EdgeTable(files=(str(tmp_path / "e.csv"),)),
        nodes=NodeTable(files=(str(tmp_path / "n.csv"),), label="kind"),
    )
    import_tables(request, tmp_path / "graph", memory=MEMORY)
    assert load(tmp_path / "graph").y.tolist() == [0, 1]


def test_a_wrong_delimiter_is_named(tmp_path):
    with pytest.raises(InputError, match="seem to be separated by ','; say so with --delimiter"):
        made(tmp_path, "e.csv", HEAD + b"a,b\n", delimiter=";")


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (b"source,target,y,y", "two columns 'y'; give each its own name"),
        (b"source,target,y,Y", r"two columns 'Y' \('y' but for capitals\)"),
        (b'source;target;"a;b";"a;b"', "two columns 'a;b'"),
        (b"\nsource,target,y,z", "begins with an empty line"),
    ],
)
def test_names_that_are_no_names_are_refused(tmp_path, names, reason):
    with pytest.raises(InputError, match=reason):
        made(tmp_path, "e.csv", names + b"\n1,2,3,4\n")
