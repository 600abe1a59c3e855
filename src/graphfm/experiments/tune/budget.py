"""How the budget is shared: between methods, and between the search and the final trainings."""

from __future__ import annotations

import heapq
import os
import time
from collections.abc import Iterable, Sequence
from statistics import fmean

import torch

from graphfm.experiments.tune.plan import Search, TunePlan
from graphfm.experiments.tune.record import (
    COMPLETE,
    RUNNING,
    Records,
    TrialRecord,
    best,
    gave_up,
    of,
)
from graphfm.runs.memory_plan import MemoryPlan, by_need

RESERVE = 1 / 3  # of the minutes, for the final trainings, until trials tell how long they take
MARGIN = 1.15  # seeds differ in when they stop
WORTH = 0.2  # a trial is not started if the time does not reach to where it may first be stopped
MOST_ON_GPU = 8
PROCESS = 500 << 20  # bytes of Python, torch and, on a GPU, its context


class Budget:
    """Says which method may have the next trial, and when the search is over."""

    def __init__(self, plan: TunePlan, jobs: int, started: float) -> None:
        self.plan, self.jobs = plan, jobs
        self._started = started

    def choose(self, records: Records) -> Search | None:
        """The next method to try; None if there is none now.

        First every method has its defaults. Then, with a budget in minutes, comes the method that
        has had the least time, else the one that has had the fewest trials.
        """
        by_method = {search: of(search.method, records) for search in self._open(records)}
        for search, found in by_method.items():
            if not found:
                return search
        if self.plan.minutes is None:
            return min(by_method, key=lambda search: len(by_method[search]), default=None)
        left = self.seconds_left(records)
        assert left is not None
        spent = {search: sum(r.cost for r in found) for search, found in by_method.items()}
        for search in sorted(spent, key=lambda search: spent[search]):
            typical = _typical(by_method[search])
            if left > (WORTH * typical if typical is not None else 0):
                return search
        return None

    def seconds_left(self, records: Records) -> float | None:
        """Of the search; None without a budget in minutes.

        It ends so early that the final trainings fit. Time that other processes, or an earlier
        start, spent on the same folder counts too.
        """
        if self.plan.minutes is None:
            return None
        whole = 60 * self.plan.minutes - self.reserve(records)
        before = 0.0 if self.plan.pace is None else self.plan.pace.seconds
        spent = before + sum(record.cost for record in records)
        return whole - max(time.monotonic() - self._started, spent)

    def overrun(self, records: Records) -> float:
        """Seconds by which everything will take longer than the minutes that were given."""
        if self.plan.minutes is None:
            return 0.0
        elapsed = time.monotonic() - self._started
        return elapsed + self.reserve(records) - 60 * self.plan.minutes

    def reserve(self, records: Records) -> float:
        """Seconds that the final trainings will take, from the time of each method's best trial.

        Where there is none yet, from the few epochs that were timed before the search, if any.
        """
        timed = {} if self.plan.pace is None else self.plan.pace.expected
        known = {search.method: best(of(search.method, records)) for search in self.plan.searches}
        seconds = {method: timed[method] for method in known if method in timed}
        seconds |= {method: found.seconds for method, found in known.items() if found is not None}
        given_up = {m for m in known if gave_up(of(m, records)) is not None}
        waiting = known.keys() - seconds.keys() - given_up
        share = 60 * RESERVE * (self.plan.minutes or 0.0)
        if not seconds:
            return share
        average = fmean(seconds.values())
        all_of_them = [seconds.get(method, average) for method in known if method not in given_up]
        estimate = MARGIN * makespan(all_of_them * self.plan.base.seeds, self.jobs)
        return max(estimate, share) if waiting else estimate

    def _open(self, records: Records) -> list[Search]:
        """The methods that may have another trial as far as their number goes."""
        found = []
        for search in self.plan.searches:
            own = of(search.method, records)
            if len(own) < self.plan.most(search) and gave_up(own) is None:
                found.append(search)
        return found


def _typical(records: Sequence[TrialRecord]) -> float | None:
    """Seconds of a training of this method to its end."""
    known = [record.seconds for record in records if record.state == COMPLETE]
    known = known or [record.seconds for record in records if record.state == RUNNING]
    return fmean(known) if known else None


def makespan(seconds: Iterable[float], jobs: int) -> float:
    """When the last of some trainings ends, if the next begins wherever one has ended."""
    ends = [0.0] * jobs
    for duration in seconds:
        heapq.heapreplace(ends, ends[0] + duration)
    return max(ends)


def choose_jobs(plans: Sequence[MemoryPlan], device: torch.device) -> int:
    """Trainings at a time: one for each core, on a GPU at most 8, as far as memory allows."""
    most = num_cores() if device.type != "cuda" else min(MOST_ON_GPU, num_cores())
    if not plans:
        return 1
    largest = max(plans, key=by_need)
    each = largest.graph + largest.needed + PROCESS
    return max(1, min(most, largest.free // each))


def threads_of(jobs: int) -> int:
    """Threads of each training: together as many as there are cores."""
    return max(1, min(torch.get_num_threads(), num_cores() // jobs))


def num_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
