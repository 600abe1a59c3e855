"""A network that ignores the edges, as a baseline."""

from torch import Tensor, nn

from graphfm.backbones.base import Backbone, Settings
from graphfm.norm import BatchNorm


class DenseLayer(nn.Module):
    """dropout -> linear -> norm -> residual -> ReLU."""

    def __init__(
        self, in_width: int, out_width: int, *, dropout: float, batch_norm: bool, residual: bool
    ) -> None:
        super().__init__()
        self.dropout, self.linear = nn.Dropout(dropout), nn.Linear(in_width, out_width)
        self.norm = BatchNorm(out_width) if batch_norm else nn.Identity()
        self.residual = residual and in_width == out_width

    def forward(self, h: Tensor) -> Tensor:
        h = self.dropout(h)
        out: Tensor = self.norm(self.linear(h))
        return (out + h if self.residual else out).relu()


class MLP(Backbone):
    """A multilayer perceptron on the features alone: the baseline that a graph should beat."""

    def __init__(self, in_width: int, out_width: int, settings: Settings = Settings()) -> None:
        widths = [in_width, *[settings.hidden] * (settings.layers - 1)]
        drop_first = settings.dropout if settings.dropout_input else 0.0
        hidden = [
            DenseLayer(
                widths[depth],
                widths[depth + 1],
                dropout=settings.dropout if depth > 0 else drop_first,
                batch_norm=settings.batch_norm,
                residual=settings.residual,
            )
            for depth in range(settings.layers - 1)
        ]
        drop_last = settings.dropout if hidden else drop_first
        decode = nn.Sequential(nn.Dropout(drop_last), nn.Linear(widths[-1], out_width))
        super().__init__(nn.Sequential(*hidden), [], decode)
