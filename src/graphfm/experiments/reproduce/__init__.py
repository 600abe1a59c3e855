"""Run the paper's tables again and lay them beside the paper.

`ReproductionPlan` turns the recipes of a table into cells, `reproduce` runs what is missing,
`report` and `picture` show both. Imported by `graphfm.cli`; imports the engine in
`graphfm.experiments`, `graphfm.recipes` and what lies below them.
"""

from graphfm.experiments.reproduce.plan import Line, ReproductionPlan
from graphfm.experiments.reproduce.run import reproduce

__all__ = ["Line", "ReproductionPlan", "reproduce"]
