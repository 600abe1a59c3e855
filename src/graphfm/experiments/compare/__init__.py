"""Compare methods on one graph, one network and one budget.

`Plan` settles every training before the first starts, `compare` runs what is missing, `Row` is one
method over all seeds, `differences` and `best` tell rows apart, `report`, `picture` and
`curve_picture` write what people look at. Imported by `graphfm.api` and `graphfm.cli`; imports the
engine in `graphfm.experiments` and what lies below it.
"""

from graphfm.experiments.compare.plan import Plan
from graphfm.experiments.compare.row import Row
from graphfm.experiments.compare.run import compare
from graphfm.experiments.compare.sweep import Sweep
from graphfm.experiments.runner import Observer

__all__ = ["Observer", "Plan", "Row", "Sweep", "compare"]
