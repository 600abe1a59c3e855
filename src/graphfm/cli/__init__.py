"""The command line."""

from graphfm.cli.app import main

__all__ = ["main"]
