"""What is compared of two runs that should be the same, and how one is stopped on its way."""

import json
import re
from pathlib import Path

import torch
from safetensors.torch import load_file

from graphfm.checkpointing.signals import StopSignal

OPTIONS = {"method": "graphfm-ib", "batch_size": 7, "hidden": 6, "layers": 3, "epochs": 4}
TIMES = {  # of a line of metrics, or of a result
    "seconds", "seconds_per_epoch", "seconds_to_best", "prepare_seconds", "epoch_seconds",
    "peak_bytes", "train_bytes",
}  # fmt: skip


class StopAfter(StopSignal):
    """Asks to stop when it was looked at so often: after a step, or after an epoch."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.left = looks

    def __call__(self) -> bool:
        self.left -= 1
        return self.left <= 0


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key not in TIMES}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def outcome(run: Path) -> dict[str, object]:
    """Everything a finished run left behind, times apart: bytes of every tensor, every number."""
    (saved,) = (run / "checkpoints").glob("*.json")
    state = json.loads(saved.read_text())["state"]
    lines = (run / "metrics.jsonl").read_text().splitlines()
    tensors = load_file(saved.with_suffix(".safetensors"))
    return {
        "model": (run / "model.safetensors").read_bytes(),
        "metrics": [without_times(json.loads(line)) for line in lines],
        "result": without_times(json.loads((run / "result.json").read_text())),
        "numbers": without_times({key: state[key] for key in ("training", "progress")}),
        **{name: (rows.dtype, rows.shape, as_bytes(rows)) for name, rows in tensors.items()},
    }


def as_bytes(rows: torch.Tensor) -> bytes:
    return rows.reshape(-1).view(torch.uint8).numpy().tobytes()


def differences(one: Path, other: Path) -> list[str]:
    """The names of what two finished runs do not agree on."""
    first, second = outcome(one), outcome(other)
    return sorted(key for key in {**first, **second} if first.get(key) != second.get(key))


def files(folder: Path) -> list[str]:
    """All there is, whatever the number of a checkpoint, which says how often one was written."""
    names = (str(path.relative_to(folder)) for path in folder.rglob("*"))
    return sorted(re.sub(r"/\d+\.", "/N.", name) for name in names)
