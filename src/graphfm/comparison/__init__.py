"""Many methods, one graph, one network, one budget: the table that compares them."""

from graphfm.comparison.observer import Observer
from graphfm.comparison.plan import Plan
from graphfm.comparison.row import Row
from graphfm.comparison.running import compare
from graphfm.comparison.sweep import Sweep

__all__ = ["Observer", "Plan", "Row", "Sweep", "compare"]
