"""A run in words, before it begins."""

from graphfm.data.graph import Graph
from graphfm.runs.memory_plan import memory_plan
from graphfm.runs.run import Run


def explain(run: Run, graph: Graph) -> list[str]:
    """What a training of `run` on `graph` will do, a line each."""
    layers = run.backbone_settings["layers"]
    what = f"{run.method} on {run.backbone} with {layers} layers, on the graph {run.dataset}"
    return [what, str(memory_plan(run, graph))]
