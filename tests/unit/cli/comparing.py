"""graphfm compare in this process, with settings that take seconds."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout

import pytest

from graphfm.cli import main

SMALL = ("--dataset", "synthetic:small:0.02", "--device", "cpu", "--hidden", "8")
FEW = (*SMALL, "--methods", "full,graphsage", "--seeds", "2")
OUT = "runs/compare-synthetic-small-0.02-sage"


def compare(*arguments) -> tuple[int, str, str]:
    """Run the command in this process."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["graphfm", "compare", *map(str, arguments)]
    try:
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as end:
            main()
    finally:
        sys.argv = before
    return end.value.code, out.getvalue(), err.getvalue()
