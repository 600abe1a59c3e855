"""Principal neighbourhood aggregation (Corso et al., 2020)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from graphfm.backbones.base import Backbone, Settings, stack
from graphfm.batch import Block, Targets
from graphfm.data.graph import Graph
from graphfm.errors import InputError
from graphfm.kernels import segment_max, segment_min, weighted_sum
from graphfm.layer import GraphLayer
from graphfm.norm import BatchNorm
from graphfm.options import Setting

AGGREGATORS = ("mean", "max", "min", "std")
SCALERS = ("identity", "amplification", "attenuation")
SMALLEST_VARIANCE = 1e-5  # a smaller one is rounding error, and the deviation is set to zero


def _check_names(what: str, got: Sequence[str], known: Sequence[str]) -> None:
    if not got or not set(got) <= set(known) or len(set(got)) != len(got):
        said = ",".join(got) or "empty"
        raise InputError(f"{what} is {said}; expected some of {','.join(known)}, each once")


@dataclass(frozen=True, kw_only=True)
class PNASettings(Settings):
    """The settings of `PNA`."""

    aggregators: Annotated[tuple[str, ...], Setting("Some of mean,max,min,std.")] = ("mean", "max")
    scalers: Annotated[tuple[str, ...], Setting("Some of identity,amplification,attenuation.")] = (
        "identity",
        "amplification",
    )
    transform: Annotated[
        bool, Setting("Apply a layer to the rows of each aggregator and scaler first.", rare=True)
    ] = False
    separate: Annotated[
        bool,
        Setting(
            "With transform: one layer, with its own bias, per aggregator and scaler.", rare=True
        ),
    ] = False
    jump: Annotated[
        bool, Setting("Decode the rows of all layers side by side, not only the last.", rare=True)
    ] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_names("aggregators", self.aggregators, AGGREGATORS)
        _check_names("scalers", self.scalers, SCALERS)
        if self.separate and not self.transform:
            raise InputError(
                "separate is on, but transform is off; turn transform on too, or leave out separate"
            )


class PNALayer(GraphLayer):
    """W_1 [s(d_v) * a(h_u : u in N_v) for each aggregator a and scaler s] + W_2 h_v.

    Amplification is log(d + 1) / delta and attenuation its inverse, delta being the mean of
    log(d + 1) over the training graph.
    """

    mean_log_degree: Tensor

    def __init__(
        self,
        in_width: int,
        out_width: int,
        *,
        aggregators: Sequence[str],
        scalers: Sequence[str],
        **options: Any,
    ) -> None:
        super().__init__(in_width, in_width * len(aggregators), out_width, **options)
        self.aggregators, self.scalers = tuple(aggregators), tuple(scalers)
        self.neighbors = nn.Linear(self.agg_width * len(scalers), out_width)
        self.root = nn.Linear(in_width, out_width, bias=False)
        self.register_buffer("mean_log_degree", torch.ones(()))

    @property
    def is_linear(self) -> bool:
        return self.aggregators == ("mean",)

    def aggregate(self, h: Tensor, block: Block) -> Tensor:
        return torch.cat([aggregate(name, h, block) for name in self.aggregators], dim=1)

    def update(self, agg: Tensor, targets: Targets) -> Tensor:
        scales = self.scales(targets.degree)
        scaled = torch.cat([agg * scales[name] for name in self.scalers], dim=1)
        return self.finish(self.neighbors(scaled) + self.root(targets.h), targets)

    def scales(self, degree: Tensor) -> dict[str, Tensor]:
        """[num_dst, 1] what each scaler multiplies a target's aggregate by."""
        degree = degree.unsqueeze(1)
        return {
            "identity": torch.ones_like(degree),
            "amplification": degree.log1p() / self.mean_log_degree,
            "attenuation": self.mean_log_degree / degree.clamp(min=1).log1p(),
        }


class TransformingPNALayer(PNALayer):
    """sum over aggregators a and scalers s of W'_as s(d_v) a(relu(W_as h_u) : u in N_v), + W_2 h_v.

    Its aggregate is not a linear map of the rows. GNNAutoScale's code has a bias b_as inside the
    scaler as well, s(d_v) (W'_as a(...) + b_as), and one beside W_2: that is `separate`. The first
    weights are then those of one `nn.Linear` per aggregator and scaler.
    """

    def __init__(
        self,
        in_width: int,
        out_width: int,
        *,
        aggregators: Sequence[str],
        scalers: Sequence[str],
        separate: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(in_width, out_width, aggregators=aggregators, scalers=scalers, **options)
        number = len(aggregators) * len(scalers)
        self.agg_width = self.message_width = out_width * number
        self.before = nn.Linear(in_width, self.agg_width)
        self.biases: nn.Parameter | None = None  # [aggregators * scalers, out_width]
        if separate:
            after = [nn.Linear(out_width, out_width) for _ in range(number)]
            self.neighbors = nn.Linear(self.agg_width, out_width, bias=False)
            self.neighbors.weight = nn.Parameter(
                torch.cat([one.weight for one in after], 1).detach()
            )
            self.biases = nn.Parameter(torch.stack([one.bias for one in after]).detach())
            self.root = nn.Linear(in_width, out_width)
        else:
            self.neighbors = nn.Linear(self.agg_width, out_width)

    @property
    def is_linear(self) -> bool:
        return False

    def aggregate(self, h: Tensor, block: Block) -> Tensor:
        rows = self.before(h).relu()
        shares = rows.chunk(len(self.aggregators), dim=1)
        pairs = zip(self.aggregators, shares, strict=True)
        return torch.cat([aggregate(name, share, block) for name, share in pairs], dim=1)

    def update(self, agg: Tensor, targets: Targets) -> Tensor:
        scales = self.scales(targets.degree)
        shares = agg.chunk(len(self.aggregators) * len(self.scalers), dim=1)
        names = self.scalers * len(self.aggregators)
        pairs = zip(names, shares, strict=True)
        scaled = torch.cat([share * scales[name] for name, share in pairs], dim=1)
        out = self.neighbors(scaled) + self.root(targets.h)
        if self.biases is not None:
            out = out + torch.cat([scales[name] for name in names], dim=1) @ self.biases
        return self.finish(out, targets)


class PNA(Backbone):
    """Several aggregators at once (mean, max, min, std), scaled by degree. The most expressive.

    With `jump` it is an encoder, layers of equal width, and a decoder of the encoder's and all
    layers' rows side by side (jumping knowledge, Xu et al., 2018; PNA_JK in GNNAutoScale's code).
    """

    Settings = PNASettings

    def __init__(
        self, in_width: int, out_width: int, settings: PNASettings = PNASettings()
    ) -> None:
        kind: Callable[..., PNALayer] = PNALayer
        if settings.transform:
            kind = partial(TransformingPNALayer, separate=settings.separate)
        make_layer = partial(kind, aggregators=settings.aggregators, scalers=settings.scalers)
        if not settings.jump:
            layers = stack(make_layer, in_width, out_width, settings)
            super().__init__(nn.Identity(), layers, nn.Identity())
            return
        width, norm = settings.hidden, settings.batch_norm
        encode = nn.Sequential(
            nn.Dropout(settings.dropout if settings.dropout_input else 0.0),
            nn.Linear(in_width, width),
            BatchNorm(width) if norm else nn.Identity(),
            nn.ReLU(),
        )
        layers = [
            make_layer(
                width,
                width,
                dropout=settings.dropout if depth > 0 else 0.0,
                batch_norm=norm,
                residual=settings.residual,
                activation=True,
            )
            for depth in range(settings.layers)
        ]
        read = width * (settings.layers + 1)
        decode = nn.Sequential(nn.Dropout(settings.dropout), nn.Linear(read, out_width))
        super().__init__(encode, layers, decode)
        self.joins_layers = True

    def calibrate(self, graph: Graph) -> None:
        mean = graph.degree.float().log1p().mean().clamp(min=1e-6)  # 0 when no node has an edge
        for layer in self.layers:
            assert isinstance(layer, PNALayer)
            layer.mean_log_degree.copy_(mean)


def aggregate(name: str, h: Tensor, block: Block) -> Tensor:
    """Apply one aggregator to the rows along the edges."""
    if name == "max":
        return segment_max(h, block)
    if name == "min":
        return segment_min(h, block)
    mean = weighted_sum(h, block)
    return mean if name == "mean" else _deviation(weighted_sum(h.square(), block), mean)


def _deviation(mean_square: Tensor, mean: Tensor) -> Tensor:
    variance = mean_square - mean.square()
    deviation = variance.clamp(min=SMALLEST_VARIANCE).sqrt()
    return deviation.masked_fill(variance <= SMALLEST_VARIANCE, 0.0)
