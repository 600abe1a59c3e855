"""A backbone is encode -> graph layers -> decode."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import torch
from torch import Tensor, nn

from graphfm.backbones.input_rows import InputRows
from graphfm.batch import Batch, Rows
from graphfm.data.graph import CARRIED, Graph
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.errors import InputError
from graphfm.estimators.base import Estimator
from graphfm.estimators.layer_step import ForwardPass, LayerStep
from graphfm.kernels.fused_aggregate import Combined
from graphfm.layer import GraphLayer
from graphfm.norm import without_noise
from graphfm.options import Setting

Layers = Annotated[
    int, Setting("Layers (sign and sgc: hops): how far away a node sees.", most=1000)
]


@dataclass(frozen=True, kw_only=True)
class DepthSettings:
    """The settings of every backbone."""

    layers: Layers = 2

    def __post_init__(self) -> None:
        if self.layers < 1:
            raise InputError(f"layers is {self.layers}; expected 1 or more")


@dataclass(frozen=True, kw_only=True)
class HiddenSettings(DepthSettings):
    """The settings of a backbone with hidden rows."""

    hidden: Annotated[int, Setting("Width of hidden rows.", most=1 << 20)] = 256
    dropout: Annotated[float, Setting("Share of hidden values dropped in training.")] = 0.5
    dropout_input: Annotated[bool, Setting("Drop input features too, not only hidden rows.")] = (
        False
    )
    batch_norm: Annotated[bool, Setting("Normalise hidden rows over the batch.")] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden < 1:
            raise InputError(f"hidden is {self.hidden}; expected 1 or more")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout is {self.dropout}; expected 0 or more and below 1")


@dataclass(frozen=True, kw_only=True)
class Settings(HiddenSettings):
    """The settings of a backbone that is a stack of equal layers."""

    residual: Annotated[
        bool, Setting("Add a layer's input to its output, where both have the same width.")
    ] = False


Init = Annotated[
    Literal["torch", "glorot"],
    Setting(
        "First weights of the layers: torch's own, or Glorot's with biases of zero.", rare=True
    ),
]
T = TypeVar("T")  # rows, or a function that reads them
Tell = Callable[[str, int, int], None]  # reports progress: what, how much is done, of how much


def tell_nobody(what: str, done: int, total: int) -> None:
    """Report no progress."""


class Backbone(nn.Module):
    """A network over a graph; `encode` and `decode` are row-wise.

    Subclasses are built as `Subclass(in_width, out_width, settings)` and say in `adjacency` which
    matrix their layers aggregate with.
    """

    Settings: ClassVar[type[DepthSettings]] = Settings
    reads_h0: ClassVar[bool] = False  # some layer reads the encoder's output
    joins_layers: bool = False  # `decode` reads the rows of all layers, not only the last
    hop_width: int = 0  # numbers per node that `features` computes; 0 if it returns `graph.x`
    capturable: ClassVar[bool] = True  # a step may be replayed as a CUDA graph
    infers_itself: ClassVar[bool] = False  # `infer` replaces inference layer by layer

    def __init__(self, encode: nn.Module, layers: Sequence[GraphLayer], decode: nn.Module) -> None:
        super().__init__()
        self.encode, self.decode = encode, decode
        self.node_rows: InputRows | None = None  # makes its input; None: it reads the features
        self.layers: Sequence[GraphLayer] = nn.ModuleList(layers)  # type: ignore[assignment]
        if layers:
            layers[0].reads_features = isinstance(encode, nn.Identity)

    def adjacency(self, graph: Graph) -> Adjacency:
        """The matrix the layers aggregate with."""
        return Adjacency.mean(graph)

    def features(self, graph: Graph) -> Tensor:
        """[num_nodes, width] input rows of the network, on the graph's device."""
        return graph.x

    def read_through(self, node_rows: InputRows) -> None:
        """Read the rows that `node_rows` makes of a graph, instead of its features."""
        self.node_rows = node_rows
        if self.learned_rows is not None:
            for layer in self.layers:
                layer.reads_features = False

    @property
    def learned_rows(self) -> Tensor | None:
        """[num_nodes, width] rows of its input that are trained with it; None without any."""
        return None if self.node_rows is None else self.node_rows.rows

    def input_rows(self, graph: Graph) -> Tensor:
        """`features` of the graph, or of the rows that `node_rows` makes of it."""
        return self.features(
            graph if self.node_rows is None else graph.with_x(self.node_rows(graph))
        )

    @property
    def begins_linear(self) -> bool:
        """True if the first aggregate is a linear map of input rows that never change."""
        if not self.layers or not isinstance(self.encode, nn.Identity):
            return False
        if self.learned_rows is not None:
            return False
        return self.layers[0].is_linear and self.layers[0].dropout.p == 0

    @property
    def depths(self) -> Sequence[int]:
        """For each layer the number of the block whose edges it reads, input first."""
        return range(len(self.layers))

    @property
    def num_blocks(self) -> int:
        """How many blocks a batch has: how far away the nodes are that an output depends on."""
        return len(self.layers)

    @property
    def is_noisy(self) -> bool:
        """True if values are dropped at random in training."""
        return any(isinstance(part, nn.Dropout) and part.p > 0 for part in self.modules())

    def without_noise(self) -> AbstractContextManager[None]:
        """Switch dropout off; batch norms use the batch's statistics without learning from them."""
        return without_noise(self)

    def unread_data(self, graph: Graph) -> Sequence[str]:
        """The data of the graph's edges that the network does not read, by name."""
        return CARRIED

    def calibrate(self, graph: Graph) -> None:
        """Compute statistics of the training graph that the layers need, once."""

    def walk(
        self, first: T, output: Callable[[int, GraphLayer, T], T], num_layers: int | None = None
    ) -> list[T]:
        """Apply the layers in order to the encoder's rows; returns what `joined` reads.

        `output(depth, layer, h)` computes a layer's rows from those of the layer before. No other
        code loops over layers: training, inference, the refresh of histories and the measurement
        of staleness differ in `output` alone. With `num_layers` only the first so many are applied.
        """
        h, kept = first, [first]
        for depth, layer in enumerate(self.layers[:num_layers]):
            h = output(depth, layer, h)
            kept = [*kept, h] if self.joins_layers else [h]
        return kept

    def forward(
        self,
        x: Tensor | Rows | Combined,
        batch: Batch,
        estimator: Estimator,
        forward: ForwardPass | None = None,
    ) -> Tensor:
        """The outputs of a batch's targets. `x` may be rows that the first layer gathers itself."""
        assert len(batch.blocks) == len(self.layers)
        first: Any = self.encode(x) if isinstance(x, Tensor) else x
        rows = self.walk(first, partial(estimator.output, batch.blocks, first, forward))
        out: Tensor = self.decode(self.joined(rows) if self.joins_layers else rows[0])
        return out

    def infer(
        self, adjacency: Adjacency, x: Tensor, num_layers: int, chunk_edges: int, tell: Tell
    ) -> Tensor:
        """Exact outputs of all nodes, or the rows that a later layer reads, in its own way."""
        raise AssertionError(f"{type(self).__name__} is computed layer by layer")

    def whole_pass(
        self, x: Tensor, adjacency: Adjacency, see: Callable[[LayerStep, Tensor, Tensor], None]
    ) -> Tensor:
        """Compute every layer of the whole graph; returns the rows that `decode` reads.

        `see` is told each layer's step, aggregate and output.
        """
        block, first = adjacency.full_block(), self.encode(x.float())

        def output(depth: int, layer: GraphLayer, h: Tensor) -> Tensor:
            agg = layer.aggregate(h, block)
            out = layer.update(agg, block.targets(h, first))
            see(LayerStep(depth, layer, block, h, first, ForwardPass()), agg, out)
            return out

        return self.joined(self.walk(first, output))

    def joined(self, rows: Sequence[Tensor]) -> Tensor:
        """What `decode` reads: the last rows, joined with those of all layers if it reads them."""
        number = rows[-1].size(0)  # a layer's targets are the first of what it reads
        return torch.cat([h[:number] for h in rows], dim=1) if len(rows) > 1 else rows[-1]


def initialize(linear: nn.Linear, init: str) -> nn.Linear:
    """Draw the weights again if they are to be Glorot's; `nn.Linear` has drawn its own."""
    if init == "glorot":
        nn.init.xavier_uniform_(linear.weight)
        if linear.bias is not None:
            nn.init.zeros_(linear.bias)
    return linear


def stack(
    make_layer: Callable[..., GraphLayer], in_width: int, out_width: int, settings: Settings
) -> list[GraphLayer]:
    """Layers from features to classes; the last has no norm, residual or activation."""
    last = settings.layers - 1
    widths = [in_width, *[settings.hidden] * last, out_width]
    return [
        make_layer(
            *pair,
            dropout=settings.dropout if depth > 0 or settings.dropout_input else 0.0,
            batch_norm=settings.batch_norm and depth < last,
            residual=settings.residual and depth < last,
            activation=depth < last,
        )
        for depth, pair in enumerate(pairwise(widths))
    ]
