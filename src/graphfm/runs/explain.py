"""Describe a run in words before it begins."""

from graphfm.data.graph import Graph
from graphfm.data.graph.edge_columns import edge_columns
from graphfm.data.graph.size import GraphSize
from graphfm.options import as_text
from graphfm.runs.memory_plan import memory_plan
from graphfm.runs.run import Run
from graphfm.training.plan_step import plan_step


def explain(run: Run, graph: Graph) -> list[str]:
    """Say what a training of `run` on `graph` will do: what runs where, what is captured."""
    sizes = graph.num_features, graph.num_classes, graph.num_nodes
    backbone = run.new_backbone(*sizes, edge_columns(graph), planned=True)
    layers = backbone.num_blocks
    what = f"{run.method} on {run.backbone} with {layers} layers, on the graph {run.dataset}"
    plan = plan_step(GraphSize.of(graph), graph.device, backbone, run.new_method(), run.training)
    rows = f"input of the network: {run.training.in_words(graph.num_features)}"
    made = [] if backbone.node_rows is None else [rows]
    return [what, *_settings(run), *made, *plan.explain(), str(memory_plan(run, graph))]


def _settings(run: Run) -> list[str]:
    """The method's settings in a line; none for a method without settings."""
    settings = run.method_settings
    listed = ", ".join(f"{name}={as_text(value)}" for name, value in settings.items())
    return [f"method's settings: {listed}"] if settings else []
