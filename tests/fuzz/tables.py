"""Tables that nobody would write on purpose, and how the import reads tables."""

import json
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from graphfm.data.graph import Graph
from graphfm.data.sources.mapped_folder import open_graph
from graphfm.data.sources.tables.export import export_tables
from graphfm.data.sources.tables.importer import import_tables
from graphfm.data.sources.tables.joining import join_tables
from graphfm.data.sources.tables.request import read_request

MEMORY = 600 << 20
SQL = "\"; COPY (SELECT 1) TO 'evil.csv'; DROP TABLE node; --"
CELLS = (
    "", " ", '"', '""', '"a', 'a"b', "'", "NULL", "nan", "inf", "-inf", "1e400", "0x10", "\\", "\0",
    "9" * 40, "-" + "9" * 400, "true", "[1,2", "[]", "{}", "é" * 100, "\ufeff", "\r", "\n", "\t",
    ",", ",,,,", "train", "x" * 70_000, SQL, "'; ATTACH 'evil.db'; --", "https://example.org/evil.csv",
)  # fmt: skip
TOML = """
edges = { files = "edges.csv", source = "s", target = "t", weight = "w", duplicates = "sum" }
allow = ["unknown-ids", "missing-ids", "duplicate-ids", "bad-weights", "unlabelled"]
[nodes]
files = "nodes.*"
id = "id"
label = "label"
split = { train = 0.5, val = 0.3 }
[nodes.features]
number = "standard"
word = "one-hot"
flag = "boolean"
"""


def make_texts(folder: Path) -> None:
    """Edges as CSV, nodes as JSON lines, and what to do with them."""
    nodes = [
        {"id": f"n{n}", "label": "ab"[n % 2], "number": n / 3, "word": "xyz"[n % 3], "flag": n > 4}
        for n in range(12)
    ]
    (folder / "nodes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in nodes))
    lines = [f"n{n},n{n * 5 % 12},{n + 1}" for n in range(12)]
    (folder / "edges.csv").write_text("\n".join(["s,t,w", *lines]) + "\n")
    (folder / "graph.toml").write_text(TOML)


def make_parquet(folder: Path) -> None:
    graph = Graph.from_edges([[0, 1, 2], [1, 2, 0]], [[1.0], [2.0], [3.0]], [0, 1, 0])
    export_tables(graph, folder / "tables")
    for path in (folder / "tables").iterdir():
        path.rename(folder / path.name)
    (folder / "tables").rmdir()


def read_tables(folder: Path) -> None:
    import_tables(read_request(folder / "graph.toml"), folder / "out", memory=MEMORY)
    shutil.rmtree(folder / "out")


def make_joining(folder: Path) -> None:
    """A graph with two targets, made of tables, and new rows with the same columns."""
    make_texts(folder)
    request = TOML.replace('label = "label"', 'regress = ["number", "amount"]')
    (folder / "graph.toml").write_text(request.replace('number = "standard"', 'amount = "buckets"'))
    nodes = [json.loads(line) for line in (folder / "nodes.jsonl").read_text().splitlines()]
    rows = [{**row, "amount": n * 1.5} for n, row in enumerate(nodes)]
    (folder / "nodes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    import_tables(read_request(folder / "graph.toml"), folder / "graph", memory=MEMORY)
    for name in ("nodes.jsonl", "edges.csv", "graph.toml"):
        (folder / name).unlink()
    (folder / "new.csv").write_text("id,amount,word,flag\nm0,3,x,true\nm1,,y,false\n")
    (folder / "edges.csv").write_text("s,t,w\nm0,n3,1.5\nn4,m1,2\n")


def read_joining(folder: Path) -> None:
    graph = open_graph(folder / "graph")
    found = join_tables(
        graph, [str(folder / "new.csv")], [str(folder / "edges.csv")], memory=MEMORY
    )
    assert int(found.indptr[-1]) == found.num_edges


def hostile(name: str, content: bytes, dice: random.Random) -> bytes:
    """Another content for a table: other cells, lines, quotes, columns or another encoding."""
    ways: list[Callable[[str, random.Random], str]] = [other_cell, other_cell, other_lines]
    with suppress(UnicodeDecodeError, IndexError, ValueError):
        text = dice.choice(ways)(content.decode(), dice)
        kind = dice.choice(["utf-8"] * 6 + ["utf-16", "latin-1", "utf-8-sig", "cp500"])
        return text.encode(kind, "replace")
    return b""


def other_cell(text: str, dice: random.Random) -> str:
    """A cell, or what holds cells apart, is something else."""
    for _ in range(dice.choice([1, 1, 3, 20])):
        places = [i for i, letter in enumerate(text) if letter in ',:\n"']
        start = dice.choice(places) + 1
        end = min((place for place in places if place > start), default=len(text))
        text = text[:start] + dice.choice(CELLS) + text[end - dice.choice([0, 0, 0, 1]) :]
    return text


def other_lines(text: str, dice: random.Random) -> str:
    """Lines are missing, doubled, mixed, or end in another way."""
    lines = text.split("\n")
    match dice.randrange(6):
        case 0:
            del lines[dice.randrange(len(lines)) :]
        case 1:
            lines = [line for line in lines for _ in range(dice.choice([1, 2]))]
        case 2:
            dice.shuffle(lines)
        case 3:
            return dice.choice(["\r", "\r\n", "\0", "\n\n"]).join(lines)
        case 4:
            lines[0] = dice.choice(
                [lines[0].upper(), "s,s,s", ",,", SQL, "", "id" * 9000, "s\tt\tw"]
            )
        case _:
            lines.insert(dice.randrange(len(lines)), dice.choice(CELLS) * dice.choice([1, 3]))
    return "\n".join(lines)
