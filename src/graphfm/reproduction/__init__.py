"""The paper's tables, run again and laid beside the paper."""

from graphfm.reproduction.plan import Line, ReproductionPlan
from graphfm.reproduction.running import reproduce

__all__ = ["Line", "ReproductionPlan", "reproduce"]
