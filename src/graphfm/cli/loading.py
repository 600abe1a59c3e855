"""The commands by name. One is loaded when it is called, because most of them load torch."""

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import typer

# Module and name, and what the list of commands says: the first sentence of the docstring.
COMMANDS = {
    "train": ("train:train_command", "Train a network on a graph and report its test score."),
    "compare": (
        "compare:compare_command",
        "Compare methods on one graph, one network and one budget.",
    ),
    "tune": (
        "tune:tune_command",
        "Search the settings of every method in the same way, and compare the best of each.",
    ),
    "import": (
        "import_tables:import_command",
        "Make a graph of your tables: CSV, TSV, JSON lines (also .gz, .zst) or Parquet.",
    ),
    "export": (
        "import_tables:export",
        "Write a graph as tables of nodes and edges, with a graph.toml that imports them again.",
    ),
    "evaluate": (
        "evaluate:evaluate",
        "Score the model of a run on its own graph, or on another one.",
    ),
    "predict": (
        "results:predict",
        "Write the predicted class of each node, with its probability.",
    ),
    "embed": (
        "results:embed",
        "Write the rows that a layer of the network computes for each node.",
    ),
    "reproduce": (
        "reproduce:reproduce",
        "Run a table of the paper and print it beside the paper's numbers.",
    ),
    "recipes": (
        "reproduce:recipes",
        "List the settings of the paper's tables; 'graphfm train --recipe NAME' runs one.",
    ),
    "staleness": (
        "staleness:staleness_command",
        "Compare how stale histories get: the paper's Table 4 for one dataset.",
    ),
    "bench": ("bench:bench", "Measure how long an epoch takes, against a rival in the same run."),
    "methods": ("listing:methods", "List the training methods."),
    "backbones": ("listing:backbones", "List the networks."),
    "info": (
        "info:info",
        "Describe a graph: size, degrees, homophily, classes, splits, and the memory of a "
        "training.",
    ),
    "datasets": (
        "datasets:datasets",
        "List the graphs that can be loaded by name; fetch and check those of the paper.",
    ),
}


def called(arguments: Sequence[str]) -> str | None:
    """The command that the arguments call, or whose options a shell completes; None if none is."""
    words = list(arguments)
    if "_GRAPHFM_COMPLETE" in os.environ:  # bash has one of these, other shells the other
        line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
        words = line.split()[1:]
    name = next((word for word in words if not word.startswith("-")), None)
    return name if name in COMMANDS else None


def load(name: str) -> Any:
    """A command, a function that makes it, or a group of commands."""
    module, _, attribute = COMMANDS[name][0].partition(":")
    return getattr(import_module(f"graphfm.cli.{module}"), attribute)


def named_only(name: str) -> Callable[[], None]:
    """A command that is listed and never called."""

    def command() -> None:
        raise typer.Abort

    command.__name__, command.__doc__ = name, COMMANDS[name][1]
    return command
