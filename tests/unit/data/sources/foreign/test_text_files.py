"""MatrixMarket, METIS and plain lists of edges, and what is refused of them."""

import gzip

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import io, sparse

from graphfm import InputError, load
from graphfm.data.sources.foreign import number_text


def edges_of(graph):
    weight = [None] * graph.num_edges if graph.edge_weight is None else graph.edge_weight.tolist()
    return sorted((*pair, w) for pair, w in zip(graph.edge_index.T.tolist(), weight, strict=True))


def write(path, text):
    content = text.encode("latin-1")
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch):
    monkeypatch.setattr(number_text, "BYTES_AT_ONCE", 7)  # every line is cut somewhere


# Lists of edges


@pytest.mark.parametrize("name", ["g.txt", "g.tsv", "g.edges", "g.edgelist", "g.txt.gz", "G.TXT"])
@pytest.mark.parametrize(
    "text",
    ["0 1\n1 2\n", "# Nodes: 3\n0\t1\n\n1\t2", "% x\n0,1\r\n1,2\r\n", "// x\n  0   1\n1 2  \n\n",
     "\xef\xbb\xbf0 1\n1 2\n"],
)  # fmt: skip
def test_a_list_of_edges_is_read(tmp_path, name, text):
    graph = load(write(tmp_path / name, text))
    assert edges_of(graph) == [(0, 1, None), (1, 2, None)]
    assert (graph.num_nodes, graph.num_features, graph.node_names) == (3, 0, None)


def test_ids_that_are_not_numbered_from_zero_become_names(tmp_path):
    graph = load(write(tmp_path / "g.txt", f"7 5\n{2**53 - 1} 7\n"))
    assert graph.node_names == ("5", "7", str(2**53 - 1))
    assert edges_of(graph) == [(1, 0, None), (2, 1, None)]


def test_a_third_column_is_a_weight(tmp_path):
    assert edges_of(load(write(tmp_path / "g.txt", "0 1 0.5\n1 0 2\n"))) == [(0, 1, 0.5), (1, 0, 2)]
    assert load(write(tmp_path / "h.txt", "0 1 1\n1 0 1\n")).edge_weight is None


# MatrixMarket


@settings(derandomize=True, deadline=None, max_examples=40)
@given(
    st.integers(1, 6), st.integers(0, 99), st.sampled_from(["pattern", "real", "integer"]),
    st.sampled_from(["general", "symmetric"]),
)  # fmt: skip
def test_what_scipy_writes_is_read(tmp_path_factory, n, seed, field, symmetry):
    rng = np.random.default_rng(seed)
    dense = rng.integers(1, 5, (n, n)) * (rng.random((n, n)) < 0.4)
    dense = np.maximum(dense, dense.T) if symmetry == "symmetric" else dense
    matrix = sparse.coo_array(dense if field != "real" else dense / 2)
    path = tmp_path_factory.mktemp("mtx") / "g.mtx"
    io.mmwrite(path, matrix, field=field, symmetry=symmetry, comment="one\ntwo")
    graph = load(path)
    expected = (dense > 0).astype(float) if field == "pattern" else matrix.toarray()
    assert np.array_equal(graph.to_scipy().toarray(), expected)
    assert graph.num_nodes == n


def test_a_mark_of_the_byte_order_is_skipped(tmp_path):
    text = "\xef\xbb\xbf%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n"
    assert edges_of(load(write(tmp_path / "g.mtx.gz", text))) == [(0, 1, None)]


# METIS


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.integers(1, 7), st.integers(0, 99), st.booleans(), st.integers(0, 2), st.booleans())
def test_a_metis_file_is_read(tmp_path_factory, n, seed, weighted, num_weights, sized):
    network = nx.gnp_random_graph(n, 0.4, seed=seed)
    nx.set_edge_attributes(network, {e: 2 + sum(e) for e in network.edges}, "weight")
    lines = [f"% a comment\n{n} {network.number_of_edges()}"]
    lines[0] += f" {int(sized)}{int(num_weights > 0)}{int(weighted)} {max(num_weights, 1)}"
    for node in network:
        own = [9] * (sized + num_weights)
        for other, data in network[node].items():
            own += [other + 1] + [data["weight"]] * weighted
        lines.append(" ".join(map(str, own)))
    path = write(tmp_path_factory.mktemp("metis") / "g.graph", "\n".join(lines) + "\n")
    graph = load(path)
    expected = nx.to_numpy_array(network, weight="weight" if weighted else None)
    assert np.array_equal(graph.to_scipy().toarray(), expected)
    assert graph.num_nodes == n


MM = "%%MatrixMarket matrix coordinate"
WRONG = {
    "no.txt": (None, "no.txt: no such file"),
    "empty.txt": ("", "it has no edges"),
    "words.txt": ("source target\n0 1\n", "it holds 's', which is no part of a number"),
    "four.txt": ("0 1 2 3\n", "a line has 4 numbers; expected source, target"),
    "ragged.txt": ("0 1\n1\n", "a line has 1 numbers; expected 2"),
    "negative.txt": ("0 -1\n", "it holds node id -1; expected whole numbers 0"),
    "fraction.txt": ("0 1.5\n", "it holds node id 1.5"),
    "rounded.txt": (f"0 {2**53}\n1 {2**53 + 1}\n", "node id 9007199254740992; .*graphfm import"),
    "commas.txt": ("0,1\n1,,2\n", "a number is missing beside a comma"),
    "first.txt": ("0,1\n ,2\n", "a number is missing beside a comma"),
    "last.txt": ("0,1,\n1,2,5\n", "a number is missing beside a comma"),
    "huge.txt": ("0 1e300\n", r"it holds node id 1.*e\+300"),
    "endless.txt": ("0 1e400\n", "it holds node id inf"),
    "glued.txt": ("0 1-2\n", "not a number"),
    "signs.txt": ("0 --1\n", "not a number"),
    "nul.txt": ("0 1\x00\n", r"it holds '\\x00'"),
    "weight.txt": ("0 1 -3\n", "edge_weight holds -3; expected positive"),
    "cut.txt.gz": (b"\x1f\x8b\x08\x00", "damaged"),
    "head.mtx": ("3 3 1\n1 1\n", "does not begin with %%MatrixMarket"),
    "array.mtx": ("%%MatrixMarket matrix array real general\n1 1\n1\n", "holds a matrix array"),
    "complex.mtx": (
        f"{MM} complex general\n1 1 1\n1 1 1 1\n",
        "header has complex general after coord",
    ),
    "skew.mtx": (f"{MM} real skew-symmetric\n1 1 0\n", "has real skew-symmetric after coord"),
    "short.mtx": (f"{MM}\n1 1 0\n", "has nothing after coordinate; expected pattern or "),
    "bare.mtx": (f"{MM} pattern general\n", "ends before its first line of numbers"),
    "wide.mtx": (f"{MM} pattern general\n2 3 0\n", "the matrix is 2 x 3; expected a square one"),
    "few.mtx": (f"{MM} pattern general\n2 2 2\n1 1\n", "it has 1 entries; expected 2"),
    "zero.mtx": (f"{MM} pattern general\n2 2 1\n0 1\n", "node id 0; expected whole numbers 1 to 2"),
    "many.mtx": (f"{MM} pattern general\n2147483647 2147483647 1\n1 1\n", "nearly all would be is"),
    "more.mtx": (f"{MM} pattern general\n9999999999 9999999999 1\n1 1\n", "declares 9,999,999,999"),
    "edges.mtx": (f"{MM} pattern general\n2 2 999999999999999\n1 1\n", "takes more memory than"),
    "size.mtx": (f"{MM} pattern general\n2 2\n", "its header is '2 2'; expected 3 whole"),
    "none.graph": ("", "ends before its first line"),
    "zero.graph": ("0 0\n", "its header declares no nodes"),
    "lines.graph": ("3 1\n2\n1\n", "it has 2 lines of nodes; expected 3"),
    "extra.graph": ("1 0\n\n1\n", "it has 2 lines of nodes; expected 1"),
    "huge.graph": ("999999999999 1\n2\n1\n", "it has 2 lines of nodes; expected 999,999,999,999"),
    "count.graph": ("2 2\n2\n1\n", "it lists 2 neighbours; expected 4"),
    "id.graph": ("2 1\n3\n1\n", "node id 3; expected whole numbers 1 to 2"),
    "form.graph": ("2 1 7\n2\n1\n", "has the form 007"),
    "pairs.graph": ("2 1 1\n2 5\n1\n", "node 2 has 1 numbers; expected 0 of its own, and a weight"),
    "weights.graph": ("2 1 10 2\n1 1 2\n\n", "node 2 has 0 numbers; expected 2 of its own"),
    "vector.graph": ("2 1 10 99999999\n2\n1\n", "declares 99,999,999 weights per node"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_files_are_refused_in_one_line(tmp_path, name):
    content, message = WRONG[name]
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        write(path, content)
    with pytest.raises(InputError, match=message) as error:
        load(path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def test_weights_of_nodes_are_not_left_out_silently(tmp_path, caplog):
    load(write(tmp_path / "g.graph", "2 1 10\n5 2\n6 1\n"))
    assert "the weights and sizes of nodes are not used" in caplog.text


def test_a_line_without_an_end_is_not_read_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(number_text, "LONGEST_LINE", 50)
    with pytest.raises(InputError, match="a line is longer than 50 bytes"):
        load(write(tmp_path / "g.txt", "1 " * 100))
