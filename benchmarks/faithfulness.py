"""What each choice between paper, released code and this project changes, one row for each.

    python benchmarks/faithfulness.py [--dataset debian] [--seeds 3] [--epochs 10] [--only norm]
        [--write docs/faithfulness.md]

Two settings that differ in that choice alone (`faithful_choices.py`) are trained side by side. A
choice that changes nothing on a small graph is an error: its patch or setting has lost its effect.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import torch
from faithful_choices import CHOICES, NOTHING, Choice, Options, Patch

from graphfm import Graph, load, synthetic
from graphfm.files import atomic_path
from graphfm.runs.run import Run, build
from graphfm.training.loop import fit
from graphfm.training.trainer import Trainer

HEAD = ("choice", "A", "B", "A, test", "B, test", "B - A")
BEGIN, END = "<!-- measured by benchmarks/faithfulness.py -->", "<!-- end of measured -->"


def train(options: Options, patches: Sequence[Patch], graph: Graph, seed: int) -> Trainer:
    """Train to the end; the trainer has the weights of the best epoch."""
    for patch in patches:
        graph = patch.prepare(graph)
    trainer = build(Run.make(**{**options, "seed": seed}), graph)
    for patch in patches:
        patch.change(trainer)
    fit(trainer)
    return trainer


def around(patches: Sequence[Patch]) -> ExitStack:
    """The contexts of all patches."""
    stack = ExitStack()
    for patch in patches:
        stack.enter_context(patch.around())
    return stack


def score(options: Options, patches: Sequence[Patch], graph: Graph, seed: int) -> float:
    with around(patches):
        test = train(options, patches, graph, seed).evaluate(("test",))["test"]
    assert test is not None
    return test


def sides(choice: Choice) -> Iterator[tuple[Options, list[Patch]]]:
    """The options and patches of both settings."""
    yield choice.base, [choice.graph]
    yield {**choice.base, **choice.changes}, [choice.graph, choice.patch]


def check_effect(choice: Choice, graph: Graph) -> None:
    """Refuse a choice whose second setting trains and evaluates as the first does."""
    if choice.same_weights:
        return
    options, patches = list(sides(choice))[1]
    patched = choice.patch is not NOTHING
    before = options if patched else choice.base  # the patch alone, or the settings alone
    outputs = []
    for given, with_patches in ((before, [choice.graph]), (options, patches)):
        with around(with_patches):
            for _ in range(2 if choice.patch.inherits else 1):
                trainer = train({**given, "epochs": 2, "eval_every": 1}, with_patches, graph, 0)
            outputs.append(trainer.outputs("val")[0])
    if torch.equal(*outputs):
        raise SystemExit(
            f"faithfulness.py: {choice.what!r}, {choice.second!r}: it changes nothing, so there is "
            "nothing to measure; mend its patch or its settings in faithful_choices.py"
        )


def measure(choice: Choice, graph: Graph, seeds: int, epochs: int) -> tuple[list[float], ...]:
    """Test scores of both settings, by seed."""
    found = []
    for options, patches in sides(choice):
        options = {**options, "epochs": epochs}
        key = json.dumps([options, [repr(patch) for patch in patches if patch is not NOTHING]])
        if key not in KNOWN:
            first = [seeds] if patches[-1].inherits else []  # a training before the first
            scores = [score(options, patches, graph, seed) for seed in [*first, *range(seeds)]]
            KNOWN[key] = scores[len(first) :]
        found.append(KNOWN[key])
    return tuple(found)


KNOWN: dict[str, list[float]] = {}


def row_of(choice: Choice, pair: tuple[list[float], ...]) -> str:
    """A row of the table; the last column is of the differences by seed."""
    differences = [after - before for before, after in zip(*pair, strict=True)]
    cells = [choice.what, choice.first, choice.second]
    for scores, form in ((pair[0], ".4f"), (pair[1], ".4f"), (differences, "+.4f")):
        spread = statistics.stdev(scores) if len(scores) > 1 else 0.0
        cells.append(f"{statistics.mean(scores):{form}} ± {spread:.4f}")
    return f"| {' | '.join(cells)} |"


def check_marks(path: Path) -> None:
    """Refuse a document without a place for the table, before anything is measured."""
    text = path.read_text()
    if BEGIN not in text or END not in text:
        raise SystemExit(f"faithfulness.py: {path} has no line {BEGIN!r} and {END!r}; add them")


def write_into(path: Path, lines: Sequence[str]) -> None:
    """Replace the table between two marks in a document."""
    text = path.read_text()
    head, tail = text.split(BEGIN)[0], text.split(END)[1]
    with atomic_path(path) as unfinished:
        unfinished.write_text("\n".join([f"{head}{BEGIN}", "", *lines, "", f"{END}{tail}"]))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dataset", default="debian")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--only", default="", help="choices that hold this")
    parser.add_argument("--write", type=Path, help="a document to write the table into")
    options = parser.parse_args(arguments)
    if options.write is not None:
        check_marks(options.write)
    graph, small = load(options.dataset), synthetic("small", scale=0.05)
    chosen = [choice for choice in CHOICES if options.only in choice.what]
    for choice in chosen:
        check_effect(choice, small)
    lines = [f"| {' | '.join(HEAD)} |", "|---|---|---|---:|---:|---:|"]
    print("\n".join(lines), flush=True)
    for choice in chosen:
        pair = measure(choice, graph, options.seeds, options.epochs)
        print(json.dumps({"choice": choice.what, "tests": pair}), file=sys.stderr, flush=True)
        lines.append(row_of(choice, pair))
        print(lines[-1], flush=True)
    if options.write is not None:
        write_into(options.write, lines)


if __name__ == "__main__":
    main()
