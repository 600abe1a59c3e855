"""The command line: one file per command, and the options that commands build from settings.

Imported by: `__main__` and the `graphfm` script alone. May import every other room.
"""

from graphfm.cli.app import entry, main

__all__ = ["entry", "main"]
