"""Many methods, one graph, one network, one budget: the table that compares them."""

from graphfm.experiments.compare.observer import Observer
from graphfm.experiments.compare.plan import Plan
from graphfm.experiments.compare.row import Row
from graphfm.experiments.compare.run import compare
from graphfm.experiments.compare.sweep import Sweep

__all__ = ["Observer", "Plan", "Row", "Sweep", "compare"]
