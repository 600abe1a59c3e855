"""GraphFM: graph neural networks on large graphs, with feature momentum."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphfm import waiting  # noqa: F401 (sets variables that torch reads when it is loaded)
from graphfm.errors import InputError
from graphfm.version import VERSION

if TYPE_CHECKING:
    from graphfm.api import Result, check_model, load_model, resume, train
    from graphfm.comparing import compare
    from graphfm.data.datasets import join, load
    from graphfm.data.graph import Graph
    from graphfm.data.synthetic import synthetic
    from graphfm.methods import Method
    from graphfm.runs.model import Model
    from graphfm.runs.run import Run
    from graphfm.training.callbacks import Callback
    from graphfm.tuning import tune

__version__ = VERSION

__all__ = [
    "Callback",
    "Graph",
    "InputError",
    "Method",
    "Model",
    "Result",
    "Run",
    "check_model",
    "compare",
    "join",
    "load",
    "load_model",
    "resume",
    "synthetic",
    "train",
    "tune",
]

# Loaded when they are first used, because they load torch: `graphfm --help` does without.
_PLACES = {
    "Callback": "training.callbacks",
    "Graph": "data.graph",
    "Method": "methods",
    "Model": "runs.model",
    "Result": "api",
    "Run": "runs.run",
    "check_model": "api",
    "compare": "comparing",
    "join": "data.datasets",
    "load": "data.datasets",
    "load_model": "api",
    "resume": "api",
    "synthetic": "data.synthetic",
    "train": "api",
    "tune": "tuning",
}


def __getattr__(name: str) -> Any:
    """Load what the package offers, or a part of it, on first use."""
    if name in _PLACES:
        found = getattr(import_module(f"graphfm.{_PLACES[name]}"), name)
        globals()[name] = found
        return found
    if not name.startswith("_"):
        try:
            return import_module(f"graphfm.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"graphfm.{name}":
                raise
    raise AttributeError(f"module 'graphfm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
