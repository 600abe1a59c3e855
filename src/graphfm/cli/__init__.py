"""The command line."""

from graphfm.cli.app import entry, main

__all__ = ["entry", "main"]
