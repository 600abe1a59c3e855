"""Estimators: how a layer's aggregate is computed from what a batch sees. One file per estimator.

The exact sum over the batch, momentum (GraphFM), control variates, histories of nodes outside.
Imported by: `methods` and every later room.
May import: every earlier room; not samplers.
"""
