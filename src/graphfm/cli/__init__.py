"""The command line: one file per command of `graphfm`, and what the commands share.

Imported by: `__main__` and the entry point `graphfm`.
May import: every earlier room.
"""

from graphfm.cli.app import entry, main

__all__ = ["entry", "main"]
