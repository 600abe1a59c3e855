"""GraphFM: graph neural networks on large graphs, with feature momentum."""

from graphfm import waiting  # noqa: F401 (sets variables that torch reads when it is loaded)
from graphfm.api import Result, compare, load_model, resume, train
from graphfm.data.datasets import load
from graphfm.data.graph import Graph
from graphfm.data.synthetic import synthetic
from graphfm.errors import InputError
from graphfm.methods import Method
from graphfm.runs.model import Model
from graphfm.runs.run import Run
from graphfm.tuning import tune
from graphfm.version import VERSION

__version__ = VERSION

__all__ = [
    "Graph",
    "InputError",
    "Method",
    "Model",
    "Result",
    "Run",
    "compare",
    "load",
    "load_model",
    "resume",
    "synthetic",
    "train",
    "tune",
]
