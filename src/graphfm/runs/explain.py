"""Describe a run in words before it begins."""

from graphfm.data.graph import Graph
from graphfm.data.graph.size import GraphSize
from graphfm.runs.memory_plan import memory_plan
from graphfm.runs.run import Run
from graphfm.training.plan_step import plan_step


def explain(run: Run, graph: Graph) -> list[str]:
    """Say what a training of `run` on `graph` will do: what runs where, what is captured."""
    layers = run.backbone_settings["layers"]
    what = f"{run.method} on {run.backbone} with {layers} layers, on the graph {run.dataset}"
    backbone = run.new_backbone(graph.num_features, graph.num_classes)
    plan = plan_step(GraphSize.of(graph), graph.device, backbone, run.new_method(), run.training)
    return [what, *plan.explain(), str(memory_plan(run, graph))]
