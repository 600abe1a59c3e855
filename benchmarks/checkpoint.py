"""What a checkpoint costs: its size, the time to write it, and the share of a training by default.

python benchmarks/checkpoint.py --dataset debian --method graphfm-ob --layers 3
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

from graphfm.checkpointing import state
from graphfm.checkpointing.schedule import Interval
from graphfm.checkpointing.store import CheckpointStore
from graphfm.data.datasets import load
from graphfm.runs.run import Run, build, pick_device


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", default="debian")
    parser.add_argument("--method", default="graphfm-ob")
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--folder", help="where to write; by default a temporary folder")
    given = parser.parse_args()
    run = Run.make(
        dataset=given.dataset, method=given.method, layers=given.layers, device=given.device
    )
    trainer = build(run, load(run.dataset, device=pick_device(run.device)))
    started = time.perf_counter()
    trainer.epoch()
    epoch, seconds = time.perf_counter() - started, []
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        checkpoints = CheckpointStore(Path(name, "checkpoints"))
        for _ in range(5):
            started = time.perf_counter()
            checkpoints.write(state.tensors_of(trainer), {"training": state.numbers_of(trainer)})
            seconds.append(time.perf_counter() - started)
        newest = checkpoints.newest()
        assert newest is not None
        num_bytes = newest.tensors.stat().st_size
    cost = statistics.median(seconds)
    wait = Interval().wait(cost)
    record = {
        "dataset": given.dataset,
        "method": given.method,
        "layers": given.layers,
        "device": str(trainer.graph.device),
        "bytes": num_bytes,
        "seconds_to_write": round(cost, 4),
        "epoch_seconds": round(epoch, 3),
        "seconds_between": round(wait, 1),
        "share_of_the_time": round(cost / (wait + cost), 5),
    }
    print(json.dumps(record))


if __name__ == "__main__":
    main()
