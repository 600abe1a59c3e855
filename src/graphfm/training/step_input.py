"""How the features of a batch get to the first layer."""

from __future__ import annotations

import torch
from torch import Tensor

from graphfm.backbones.base import Backbone
from graphfm.batch import Batch, Rows
from graphfm.kernels import backend as compiled
from graphfm.kernels import fused_aggregate as fanout
from graphfm.kernels.fused_aggregate import Combined
from graphfm.kernels.precision import rounded
from graphfm.methods import Method

Input = Tensor | Rows | Combined  # features, where they lie, or what the first layer makes of them


class Features:
    """Reads them by a kernel on its way (`gathers`), in place, not at all (`unread`), or copies."""

    def __init__(self, x: Tensor, backbone: Backbone, method: Method, precision: str) -> None:
        self.x, self.backbone, self.estimator = x, backbone, method.estimator
        self.precision = precision
        first = backbone.layers[0] if backbone.begins_linear else None
        self.gathers = first is not None and first.sums and (first.joins or not first.residual)
        self.gathers = self.gathers and self.estimator.has_kernel
        known = self.estimator.first_hop is not None
        known = known and not (backbone.joins_layers or backbone.reads_h0)
        self.unread = known and first is not None and first.affine() is not None
        plain = x.dtype == torch.float32 and x.device.type == "cpu"
        method.sampler.reads_in_place = self.gathers and plain

    def __call__(self, batch: Batch) -> Input:
        """What the first layer reads of a batch; where it has a kernel that gathers, not yet."""
        if self.gathers and batch.blocks and compiled.available(self.x.device):
            known = self.estimator.first_hop is not None
            if known or fanout.fits(batch.blocks[0]):
                rows, first = Rows(self.x, batch.input_ids), self.backbone.layers[0]
                with rounded(self.precision, self.x.device):
                    return self.estimator.ahead(first, batch.blocks[0], rows)
        if self.unread:  # the first layer reads its aggregates, which are known, and no row
            return torch.empty(batch.input_ids.numel(), 0, device=self.x.device)
        return (self.x if batch.whole else self.x.index_select(0, batch.input_ids)).float()
