"""A graph of one's own, from tables to a first step: time and memory of each command.

python benchmarks/own_graph.py                                # 100 million edges: 4 GB of disk
python benchmarks/own_graph.py --edges 5000000 --nodes 500000
python benchmarks/own_graph.py --whole                        # also an epoch, evaluate, predict

Peaks are those of resident memory, of which a part is anonymous and the rest are pages of files,
which the system takes back when it needs them. They are read from /proc, so this needs Linux.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import duckdb
import torch

from graphfm.memory import size
from graphfm.runs.memory_plan import MemoryPlan, foresee
from graphfm.runs.run import Run

PRIME = (1 << 31) - 1
FACTORS = 48271, 16807  # of sources and targets: both depend on the whole number of an edge
POLL = 0.01
COMMAND = "from graphfm.cli import entry; entry()"
NOTHING = "import graphfm.training.trainer"
LOAD = "import sys, graphfm; graphfm.load(sys.argv[1])"
# Ends the process after its first step, when its peak has been seen.
FIRST_STEP = f"""
import os, time
from graphfm.training.trainer import Trainer
before = Trainer.step
def step(self, seeds):
    before(self, seeds)
    time.sleep({5 * POLL})
    os._exit(0)
Trainer.step = step
{COMMAND}
"""


@dataclass(frozen=True)
class Measured:
    """Seconds, and peaks of memory in bytes, of one process."""

    wall: float
    cpu: float
    resident: int
    anonymous: int
    output: str


def write_tables(folder: Path, num_nodes: int, num_edges: int) -> None:
    """Nodes and edges as Parquet. Ids are texts; the table of nodes has them backwards."""
    db = duckdb.connect(str(folder / "made.db"), config={"memory_limit": "1GB", "threads": 2})
    text = "'user-' || lpad(({})::VARCHAR, 14, '0')"
    columns = (
        f"{text.format(f'{num_nodes - 1} - i')} AS id, (i % 3)::VARCHAR AS label, "
        "(i * 7919 % 1000)::DOUBLE / 10 AS age, 'c' || (i * 31 % 5) AS country"
    )
    db.execute(f"COPY (SELECT {columns} FROM range({num_nodes}) t(i)) TO '{folder}/nodes.parquet'")
    source, target = (text.format(f"i * {factor} % {PRIME} % {num_nodes}") for factor in FACTORS)
    half = num_edges // 2
    for part, (first, end) in enumerate([(0, half), (half, num_edges)]):
        db.execute(
            f"COPY (SELECT {source} AS a, {target} AS b FROM range({first}, {end}) t(i)) "
            f"TO '{folder}/edges{part}.parquet'"
        )
    db.close()
    (folder / "made.db").unlink()


def import_command(tables: Path, out: Path, memory: str) -> list[str]:
    """The arguments of `graphfm` that import these tables."""
    return [
        "import", "--edges", f"{tables}/edges*.parquet", "--source", "a", "--target", "b",
        "--nodes", f"{tables}/nodes.parquet", "--label", "label", "--shares", "0.5,0.2",
        "--feature", "age=standard", "--feature", "country=one-hot", "--out", str(out),
        "--memory", memory, "--json", "-q",
    ]  # fmt: skip


def train_settings(graph: Path | str, hidden: int) -> dict[str, object]:
    """The settings whose plan is compared with what the first step needs."""
    return {"dataset": str(graph), "method": "graphfm-ib", "hidden": hidden, "device": "cpu"}


def as_options(settings: dict[str, object]) -> list[str]:
    return [word for name, value in settings.items() for word in (f"--{name}", str(value))]


def until_first_step(plan: MemoryPlan) -> int:
    """What the plan gives for all that there is when the first step ends: no evaluation yet."""
    return plan.graph + plan.needed - max(plan.step, plan.evaluation) + plan.step


def measure(program: str, *arguments: str) -> Measured:
    """Run Python code in a process of its own."""
    with tempfile.TemporaryFile("w+") as said:
        started = time.perf_counter()
        command = [sys.executable, "-c", program, *arguments]
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)
        resident = anonymous = 0
        while True:
            ended, status, used = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            numbers = _memory(process.pid)
            resident = max(resident, numbers.get("VmHWM", 0))
            anonymous = max(anonymous, numbers.get("RssAnon", 0))
            time.sleep(POLL)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - started
        said.seek(0)
        output = said.read()
    if process.returncode != 0:
        raise RuntimeError(f"{arguments} ended with {process.returncode}: {output[-2000:]}")
    return Measured(wall, used.ru_utime + used.ru_stime, resident, anonymous, output)


def _memory(process: int) -> dict[str, int]:
    """The numbers of a process in /proc, in bytes; empty once it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return {}
    return {
        name: 1024 * int(value.split()[0])
        for name, _, value in (line.partition(":") for line in lines)
        if value.endswith(" kB")
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, default=100_000_000)
    parser.add_argument("--nodes", type=int, default=20_000_000)
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--folder", help="where to write; by default a temporary folder")
    parser.add_argument("--whole", action="store_true", help="also train, evaluate and predict")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        graph, run = folder / "graph", folder / "run"
        write_tables(folder, given.nodes, given.edges)
        settings = train_settings(graph, given.hidden)
        train = ["train", *as_options(settings), "--epochs", "1", "--steps-per-epoch", "3", "-q"]
        print(f"{'':26} wall s   CPU s  resident    anonymous")
        _show("graphfm import", measure(COMMAND, *import_command(folder, graph, given.memory)))
        _show("nothing but imports", measure(NOTHING))
        _show("graphfm.load", measure(LOAD, str(graph)))
        _show("graphfm info", measure(COMMAND, "info", str(graph)))
        first = measure(FIRST_STEP, *train, "--out", str(folder / "begun"))
        _show("graphfm train, first step", first)
        plan = foresee(Run.make(**settings), torch.device("cpu"))  # type: ignore[arg-type]
        assert plan is not None
        planned = until_first_step(plan)
        print(f"{plan}\nfirst step: {size(planned)} planned, {first.resident / planned:.2f} of it")
        if given.whole:
            _show("graphfm train, 1 epoch", measure(COMMAND, *train, "--out", str(run)))
            _show("graphfm evaluate", measure(COMMAND, "evaluate", str(run)))
            out = str(folder / "predictions.csv")
            _show("graphfm predict", measure(COMMAND, "predict", str(run), "--out", out))


def _show(what: str, found: Measured) -> None:
    sizes = f"{size(found.resident):>11} {size(found.anonymous):>11}"
    print(f"{what:26} {found.wall:6.1f} {found.cpu:7.1f} {sizes}", flush=True)


if __name__ == "__main__":
    main()
