"""The settings of the methods, each declared once: its type and what it does.

A method's function in `methods.py` gives the default: `fanout: setting.Fanout = (5,)`.
"""

from typing import Annotated, Literal

from graphfm.options import Setting

Fanout = Annotated[
    tuple[int, ...],
    Setting("Neighbours sampled per node: one number, or one per layer from the targets outward."),
]
Picks = Annotated[
    Literal["even", "independent"],
    Setting(
        "Neighbours at equal distances from a random start, or every set equally likely.", rare=True
    ),
]
BatchSize = Annotated[int, Setting("Training nodes in a step.")]
NodesPerLayer = Annotated[
    tuple[int, ...],
    Setting("Nodes drawn for a layer: one number, or one per layer from the targets outward."),
]
NormalizeRows = Annotated[
    bool,
    Setting("Scale the sampled weights of each matrix row to the row's true total.", rare=True),
]
Parts = Annotated[int, Setting("Parts that the graph is cut into, at most one per node.")]
PartsPerBatch = Annotated[int | None, Setting("Parts in a step; auto: a tenth of them.")]
Partition = Annotated[Literal["metis", "random"], Setting("How the graph is cut.")]
EdgeDrop = Annotated[float, Setting("Share of the edges that a step leaves out at random.")]
EdgeDropForm = Annotated[
    Literal["scaled", "released"],
    Setting(
        "scaled: edges that are left count more. released: self-loops are dropped too, and a mean "
        "is that of what is left.",
        rare=True,
    ),
]
DropoutInHistories = Annotated[bool, Setting("Write histories from rows with dropout.", rare=True)]
Untrained = Annotated[
    Literal["record", "skip"],
    Setting(
        "A batch without training nodes writes its histories (record), or nothing (skip).",
        rare=True,
    ),
]
Reach = Annotated[
    Literal["read", "all"],
    Setting(
        "Nodes outside a batch that it updates: those it reads, or all that read it (directed "
        "graphs).",
        rare=True,
    ),
]
Compensate = Annotated[bool, Setting("Estimate the gradients that come from beyond the batch.")]
SplitDropout = Annotated[
    bool,
    Setting(
        "Estimate the noise of dropout apart from the rows, as VR-GCN's paper does.", rare=True
    ),
]
ExactFirstHop = Annotated[
    bool, Setting("Aggregate raw features once, before training, where the network allows it.")
]
Beta = Annotated[
    tuple[float, ...],
    Setting(
        "Momentum: weight of the fresh value, 0 to 1; one number, or one per layer, input first "
        "(graphfm-ob: per hidden layer)."
    ),
]
Start = Annotated[Literal["fresh", "zero"], Setting("What a node's history begins as.", rare=True)]
StartWithFeatures = Annotated[
    Literal["fresh", "zero", "features"], Setting("What a node's history begins as.", rare=True)
]
WholeGradient = Annotated[
    bool, Setting("Do not scale the gradients of neighbours by beta.", rare=True)
]
CorrectLag = Annotated[
    bool, Setting("Move a node's average along with the neighbours that it samples.", rare=True)
]
DropAverage = Annotated[
    bool,
    Setting("Give the average the dropout that the neighbours behind it would have.", rare=True),
]
Partial = Annotated[
    Literal["rescaled", "sum", "released"],
    Setting(
        "A batch sees some neighbours of a node outside it. rescaled: their sum stands for that of "
        "all. sum: it stays as it is. released: as in the paper's code (sum; in sage and pna the "
        "seen ones count as all).",
        rare=True,
    ),
]
Threshold = Annotated[
    int,
    Setting(
        "Update a neighbour only if it has more than this many neighbours in the batch.", rare=True
    ),
]
SaintSubgraph = Annotated[
    Literal["node", "edge", "walk"],
    Setting("What is drawn to make a subgraph: nodes, edges or walks."),
]
SaintBudget = Annotated[int, Setting("Nodes, edges or walks drawn for a subgraph.")]
WalkLength = Annotated[int, Setting("Steps of a random walk.", rare=True)]
Coverage = Annotated[
    int,
    Setting(
        "Passes over the graph before training, to estimate sampling probabilities.", rare=True
    ),
]
ShadowSubgraph = Annotated[Literal["khop", "pagerank"], Setting("What a subgraph consists of.")]
ShadowDepth = Annotated[int, Setting("khop: steps from the target.", rare=True)]
ShadowBudget = Annotated[int, Setting("pagerank: nodes of a subgraph.")]
