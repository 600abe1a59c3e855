"""graphfm bench"""

from collections.abc import Sequence
from typing import Annotated

import torch
import typer

from graphfm.cli.output import Interrupted, print_json, say
from graphfm.errors import InputError
from graphfm.experiments.bench.case import Case
from graphfm.experiments.bench.machine import Machine
from graphfm.experiments.bench.measurement import Failure, Measurement
from graphfm.experiments.bench.profile import profile_step
from graphfm.experiments.bench.report import profile_table, profile_title, table
from graphfm.experiments.bench.run import CAUGHT, REPEATS, Graphs, free_memory, measure_all, reason
from graphfm.experiments.bench.suites import SUITES
from graphfm.experiments.compare.report import as_text
from graphfm.runs.run import known_name, pick_device


def bench(
    suite: Annotated[str, typer.Option(help=", ".join(SUITES) + ".")] = "quick",
    case: Annotated[
        str | None, typer.Option(help="Only cases whose dataset and name contain this, or are it.")
    ] = None,
    repeats: Annotated[int, typer.Option(help="Epochs of each side, in turns.")] = REPEATS,
    profile: Annotated[
        bool,
        typer.Option("--profile", help="Show where a step's time goes instead, recorded apart."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One line of JSON for each case.")] = False,
) -> None:
    """Measure how long an epoch takes, against a rival in the same run.

    quick takes a minute on two cores; cpu needs no GPU; gpu, scale and ablation (one thing switched
    off at a time) need one. Epochs are training alone. A ratio is our time by the rival's: below 1
    we are faster. The floor is the time that memory needs for the bytes a step must move.
    benchmarks/README.md explains each.
    Exit code 1: a case failed.
    """
    known_name("suite", suite, SUITES)
    if repeats < 1:
        raise InputError(f"repeats is {repeats}; expected 1 or more")
    cases = _chosen(suite, case)
    if any(case.device == "cuda" for case in cases) and not torch.cuda.is_available():
        raise InputError(
            f"suite {suite} needs a GPU, and torch sees none; use --suite quick or --suite cpu"
        )
    machine = Machine.of(pick_device(cases[0].device))
    say(str(machine))
    failed = _profile(cases, json) if profile else _measure(suite, cases, machine, repeats, json)
    if failed:
        raise typer.Exit(1)


def _chosen(suite: str, text: str | None) -> Sequence[Case]:
    cases = {f"{one.dataset} {one.name}": one for one in SUITES[suite]}
    if text in cases:  # a whole name may be a part of others
        return [cases[text]]
    chosen = [one for name, one in cases.items() if text is None or text in name]
    if not chosen:
        names = "; ".join(cases)
        raise InputError(f"no case of suite {suite} contains {text!r}; there is {names}")
    return chosen


def _measure(
    suite: str, cases: Sequence[Case], machine: Machine, repeats: int, json: bool
) -> list[Failure]:
    """A line when a case ends, the table when all have."""
    measured, failed = list[Measurement](), list[Failure]()
    try:
        for found in measure_all(suite, cases, machine, repeats):
            if json:
                print_json(found.to_json())
            if isinstance(found, Failure):
                failed.append(found)
                say(f"{found.case.dataset}, {found.case.name}: failed: {found.reason}")
            else:
                measured.append(found)
                say(_line(found))
    except KeyboardInterrupt:
        done = len(measured) + len(failed)
        raise Interrupted(f"interrupted; {done} of {len(cases)} cases were measured") from None
    finally:
        if measured and not json:
            typer.echo(as_text(table(measured)))
    return failed


def _line(found: Measurement) -> str:
    ratio = "" if found.ratio is None else f", {found.ratio:.3g} times the rival's"
    return f"{found.case.dataset}, {found.case.name}: {found.ours.seconds:.3g} s an epoch{ratio}"


def _profile(cases: Sequence[Case], json: bool) -> list[str]:
    """A table of each case as soon as it is there."""
    graphs, failed = Graphs(), list[str]()
    for one in cases:
        free_memory()
        try:
            found = profile_step(one, graphs(one))
        except CAUGHT as error:
            failed.append(one.name)
            say(f"{one.dataset}, {one.name}: failed: {reason(error)}")
            continue
        if json:
            print_json(found.to_json())
        else:
            typer.echo(f"{profile_title(found)}\n{as_text(profile_table(found))}\n")
    return failed
