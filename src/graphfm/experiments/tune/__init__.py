"""Search the settings of every method in the same way, then compare the best of each.

`space` says what is searched, `TunePlan` settles it for each method, `probe` times a few epochs and
chooses the `Pace`, `Trials` keeps every trial in an Optuna journal that several processes may
share, `Budget` divides the time, `Searcher` runs the trials, `run_final` the trainings that follow.
Imported by `graphfm.api` and `graphfm.cli`; imports `graphfm.experiments.compare`, the engine in
`graphfm.experiments` and what lies below it. Only `trials` imports Optuna.
"""

from graphfm.experiments.tune.plan import TunePlan
from graphfm.experiments.tune.row import TunedRow
from graphfm.experiments.tune.run import Tuning, tune

__all__ = ["TunePlan", "TunedRow", "Tuning", "tune"]
