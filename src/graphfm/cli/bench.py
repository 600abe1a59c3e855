"""The command `graphfm bench`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from graphfm.cli.experiment_view import ExperimentView
from graphfm.cli.output import Interrupted, print_json, say, terminal_width
from graphfm.cli.shared_options import option
from graphfm.errors import InputError, known_name
from graphfm.experiments.bench.case import Case
from graphfm.experiments.bench.machine import Machine
from graphfm.experiments.bench.profile import profile_step
from graphfm.experiments.bench.report import bench_table, profile_table, profile_title
from graphfm.experiments.bench.run import run_suite, summarise
from graphfm.experiments.bench.suites import SUITES
from graphfm.experiments.bench.turns import CAUGHT, REPEATS, Graphs, free_memory
from graphfm.experiments.outcome import reason
from graphfm.experiments.tables import as_text
from graphfm.runs.run import pick_device


def bench(
    suite: Annotated[str, option(", ".join(SUITES) + ".", "NAME", names=SUITES)] = "quick",
    case: Annotated[
        str | None,
        option("Run only the cases whose dataset and name contain this text.", "TEXT"),
    ] = None,
    repeats: Annotated[int, option("Epochs to time on each side, in turns.", "N")] = REPEATS,
    profile: Annotated[
        bool,
        typer.Option("--profile", help="Show where the time of a step goes instead."),
    ] = False,
    out: Annotated[
        Path | None,
        option("Folder for tables and records; a measured case is not run twice.", "FOLDER"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One line of JSON for each case.")] = False,
) -> None:
    """Measure how long an epoch takes, against a rival in the same run.

    quick takes a minute on two cores; cpu needs no GPU; gpu, scale and ablation (which switches off
    one thing at a time) need one. Only training is timed. The ratio is our time divided by the
    rival's: below 1 we are faster. The floor is the time that memory needs for the bytes that a
    step must move. benchmarks/README.md explains each.
    Exit code 1: a case failed.
    """
    known_name("suite", suite, SUITES)
    if repeats < 1:
        raise InputError(f"repeats is {repeats}; expected 1 or more")
    if profile and out is not None:
        raise InputError("--profile writes no folder; leave out --out, or use --json > FILE")
    cases = _chosen(suite, case)
    if any(case.device == "cuda" for case in cases) and not torch.cuda.is_available():
        raise InputError(
            f"suite {suite} needs a GPU, and torch sees none; use --suite quick or --suite cpu"
        )
    machine = Machine.of(pick_device(cases[0].device))
    say(str(machine))
    if profile:
        num_failed = _profile(cases, json)
    else:
        num_failed = _measure(suite, cases, machine, repeats, out, json)
    if num_failed:
        raise typer.Exit(1)


def _chosen(suite: str, text: str | None) -> Sequence[Case]:
    cases = {f"{one.dataset} {one.name}": one for one in SUITES[suite]}
    if text in cases:  # a full name may be part of other names
        return [cases[text]]
    chosen = [one for name, one in cases.items() if text is None or text in name]
    if not chosen:
        names = "; ".join(cases)
        raise InputError(f"no case of suite {suite} contains {text!r}; choose one of {names}")
    return chosen


def _measure(
    suite: str, cases: Sequence[Case], machine: Machine, repeats: int, out: Path | None, json: bool
) -> int:
    """Say a line when a case ends, print the table at the end; return how many cases failed."""
    # Lines, not a live view: that would take processor time from what is measured.
    view, found = ExperimentView("cases", summarise), list[Mapping[str, Any]]()
    try:
        with view:
            for record in run_suite(suite, cases, machine, repeats, out, observer=view):
                found.append(record)
                if json:
                    print_json(record)
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted; {len(found)} of {len(cases)} cases were measured"
        ) from None
    finally:
        measured = [record for record in found if record["status"] == "measured"]
        if measured and not json:
            rest = "--json prints them" if out is None else f"the files in {out} hold them"
            typer.echo(as_text(bench_table(measured), terminal_width(), rest))
    return len(found) - len(measured)


def _profile(cases: Sequence[Case], json: bool) -> int:
    """Print a table after each case; return how many failed."""
    graphs, num_failed = Graphs(), 0
    for one in cases:
        free_memory()
        try:
            found = profile_step(one, graphs(one))
        except CAUGHT as error:
            num_failed += 1
            say(f"{one.dataset}, {one.name}: failed: {reason(error)}")
            continue
        if json:
            print_json(found.to_json())
        else:
            table = as_text(profile_table(found), terminal_width())
            typer.echo(f"{profile_title(found)}\n{table}\n")
    return num_failed
