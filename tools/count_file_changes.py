"""Count how often one training step on a CPU goes from one file of the package to another.

`graphfm train --method graphfm-ib` is traced with `sys.settrace`. Every call of a function of the
package counts as one call, and as one change of file where the function called before it stands in
another file.

    python tools/count_file_changes.py [--method graphfm-ib] [--verbose]
"""

import argparse
import itertools
import sys
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import graphfm

PACKAGE = str(Path(graphfm.__file__).parent)
WARM_UP = 5  # steps before the one that is traced: caches are full by then


class StepTrace:
    """Follows the calls within one `Trainer.step`."""

    def __init__(self) -> None:
        self.seen, self.inside = 0, False
        self.calls: list[CodeType] = []

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE):
            return None
        if code.co_qualname == "Trainer.step":
            self.seen += 1
            if self.seen == WARM_UP + 1:
                self.inside = True
                self.calls.append(code)
                return self._until_return
            return None
        if self.inside:
            self.calls.append(code)
        return None

    def _until_return(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "return":
            self.inside = False
            sys.settrace(None)
        return self._until_return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", default="graphfm-ib")
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    trace = StepTrace()
    sys.settrace(trace)
    graphfm.train("debian", method=given.method, epochs=1, device="cpu")
    sys.settrace(None)
    files = [code.co_filename.removeprefix(PACKAGE + "/") for code in trace.calls]
    changes = sum(before != after for before, after in itertools.pairwise(files))
    if given.verbose:
        for name, code in zip(files, trace.calls, strict=True):
            print(f"  {name:<40} {code.co_qualname}")
        for name, count in Counter(files).most_common():
            print(f"{count:>6} {name}")
    print(f"{len(files)} calls, {changes} changes of file, {len(set(files))} files")


if __name__ == "__main__":
    main()
