"""The front door for Python programs: `train` and `load_model`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graphfm.data.graph import Graph
from graphfm.errors import InputError
from graphfm.model import Model
from graphfm.run import Run, build, load_graph
from graphfm.training.watcher import Score, Watcher

IN_MEMORY = "in-memory"  # the dataset of a run whose graph has no name and no file


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """A finished training: its settings, its score, its model, and its folder if it has one."""

    run: Run
    score: Score
    model: Model
    out: Path | None

    def to_json(self) -> dict[str, Any]:
        return {
            "dataset": self.run.dataset,
            "method": self.run.method,
            "backbone": self.run.backbone,
            "layers": self.run.backbone_settings["layers"],
            "seed": self.run.training.seed,
            **asdict(self.score),
            "out": None if self.out is None else str(self.out),
        }


def train(
    graph: Graph | str | Path,
    *,
    out: str | Path | None = None,
    watchers: Sequence[Watcher] = (),
    **options: Any,
) -> Result:
    """Train on a graph, a dataset's name or an `.npz` file. Options as on the command line.

    `train(graph, backbone="gcn", method="full", layers=2, hidden=64, lr=0.01, epochs=100)`.
    With `out` the run is written to that folder.
    """
    if not isinstance(graph, Graph | str | Path):
        raise InputError(
            f"cannot train on a {type(graph).__name__}; expected a Graph (Graph.from_pyg takes a "
            "PyG Data), the name of a dataset or an .npz file"
        )
    name = IN_MEMORY if isinstance(graph, Graph) else str(graph)
    run = Run.make(**{"dataset": name, **options})
    if not isinstance(graph, Graph):
        graph = load_graph(run)
    return start(run, graph, watchers, out)


def start(
    run: Run, graph: Graph, watchers: Sequence[Watcher] = (), out: str | Path | None = None
) -> Result:
    """Train a settled run. Nothing is written before everything is known to fit together."""
    trainer = build(run, graph)
    if out is None:
        score = trainer.fit(watchers)
    else:
        from graphfm.training.folder import RunFolder

        folder = RunFolder.create(Path(out), run, trainer.graph)
        try:
            score = trainer.fit([folder, *watchers])
        except Exception:
            folder.discard()
            raise
        folder.finish(score)
    model = Model(
        backbone=trainer.backbone,
        num_features=graph.num_features,
        num_classes=graph.num_classes,
        multi_label=graph.multi_label,
        class_names=graph.class_names,
    )
    return Result(run=run, score=score, model=model, out=None if out is None else Path(out))


def load_model(path: str | Path) -> Model:
    """The model of a run's folder."""
    from graphfm.training.folder import read_run

    return read_run(Path(path))[1]
