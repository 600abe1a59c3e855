"""The paper's tables, run again and laid beside the paper."""

from graphfm.experiments.reproduce.plan import Line, ReproductionPlan
from graphfm.experiments.reproduce.run import reproduce

__all__ = ["Line", "ReproductionPlan", "reproduce"]
