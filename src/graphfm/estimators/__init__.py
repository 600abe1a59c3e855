"""Estimators: how a layer's aggregate is computed from what a batch sees. One file per estimator.

The exact sum over the batch, momentum (GraphFM), control variates, histories of nodes outside.
Imported by: `methods` and every later room.
May import: every earlier room; not samplers.
"""

from graphfm.estimators.base import Estimator
from graphfm.estimators.exact import Exact
from graphfm.estimators.layer_step import ForwardPass, LayerStep, Setup

__all__ = ["Estimator", "Exact", "ForwardPass", "LayerStep", "Setup"]
