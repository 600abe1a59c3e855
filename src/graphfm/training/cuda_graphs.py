"""A whole training step as one CUDA graph: captured once, then replayed by a single launch."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from graphfm.kernels import backend, precompile
from graphfm.kernels.side_stream import SideStream, join
from graphfm.training.step_input import StepInput

GROUP = 8  # steps in a CUDA graph, if an epoch has as many
WARM_UP = 3  # ordinary steps before the first capture: libraries load, optimizers make their state


@dataclass(frozen=True, slots=True)
class StepGraph:
    """Captured steps on batches of one size, and what they add to the counts on the host."""

    graph: torch.cuda.CUDAGraph
    seeds: Tensor  # [num_steps, size] the steps' input, filled before a replay
    counts: Counter[str]


class CapturedSteps:
    """Takes steps, and captures those on batches of one size after a few ordinary steps.

    No step is executed only to warm up: the steps before a capture are steps of the training, and
    `rng` is registered with every CUDA graph, so a training with capture takes the same steps as
    one without. A CUDA graph holds one step or, to save launches, a group of steps. Within it the
    input of a step is drawn on a separate stream while the previous step runs.
    """

    def __init__(
        self,
        draw: Callable[[Tensor], StepInput],
        learn: Callable[[StepInput], Tensor],
        rng: torch.Generator,
        counts: Counter[str],
    ) -> None:
        self.draw, self.learn, self.rng, self.counts = draw, learn, rng, counts
        self.main, self.ahead, beside = _streams(rng.device)
        if not backend.allows("side_stream"):  # an ablation: everything on one stream
            self.ahead = self.main
        self.draws = False  # the capture in progress has work on the stream `ahead`
        self.side_stream: SideStream | None = SideStream(beside)
        self.pool: Any = None  # the memory pool that all CUDA graphs share
        self.graphs = dict[tuple[int, int], StepGraph]()  # by number of steps and of seeds
        self.taken = Counter[int]()  # ordinary steps, by number of seeds

    def __call__(self, group: Sequence[Tensor]) -> None:
        sizes = {seeds.numel() for seeds in group}
        if len(group) == GROUP and len(sizes) == 1 and self.taken[min(sizes)] >= WARM_UP:
            self._replay(group)
            return
        for seeds in group:
            if self.taken[seeds.numel()] >= (1 if self.graphs else WARM_UP):
                self._replay([seeds])
            else:
                # The copy is aligned as in a capture, so the same kernels are compiled.
                self.learn(self.draw(seeds.clone()))
            self.taken[seeds.numel()] += 1

    def _replay(self, group: Sequence[Tensor]) -> None:
        key = (len(group), group[0].numel())
        if key not in self.graphs:
            self.graphs[key] = self._capture(*key, group[0])
        captured = self.graphs[key]
        captured.seeds.copy_(torch.stack(list(group)))
        captured.graph.replay()
        self.counts.update(captured.counts)

    def _capture(self, num_steps: int, size: int, like: Tensor) -> StepGraph:
        """Capture steps without running them."""
        even = size + size % 2  # rows start at multiples of 16 bytes: one kernel serves them all
        seeds = like.new_empty(num_steps, even)[:, :size].copy_(like)
        captured = self._captured(seeds)
        if self.side_stream is not None and self.side_stream.disturbed:
            # Autograd accumulated a gradient (two layers share a matrix, say), which is only safe
            # once the gradient is finished: capture again without the side stream.
            self.side_stream = None
            del captured
            captured = self._captured(seeds)
        self.pool = captured.graph.pool()
        return captured

    def _captured(self, seeds: Tensor) -> StepGraph:
        graph, before = torch.cuda.CUDAGraph(), self.counts.copy()
        graph.register_generator_state(self.rng)
        precompile.settle()  # loading a kernel during a capture may break it
        gc.collect()  # garbage collected during a capture may free memory, which breaks it
        with (
            torch.cuda.graph(graph, pool=self.pool, stream=self.main),
            nullcontext() if self.side_stream is None else self.side_stream.active(),
        ):
            try:
                for given in self._inputs(seeds):
                    self.learn(given)
                    del given  # frees memory for the next input
            finally:  # a capture that ends with unjoined streams would hide the error
                self._meet()
        counts = self.counts - before
        self.counts.subtract(counts)
        return StepGraph(graph, seeds, counts)

    def _inputs(self, seeds: Tensor) -> Iterator[StepInput]:
        """The input of each step, drawn while the previous step runs."""
        given, done = self._draw_ahead(seeds[0])
        for number in range(1, len(seeds) + 1):
            following = self._draw_ahead(seeds[number]) if number < len(seeds) else None
            self.main.wait_event(done)
            yield given
            if following is not None:
                given, done = following

    def _draw_ahead(self, seeds: Tensor) -> tuple[StepInput, torch.cuda.Event]:
        # Memory of earlier inputs is reused, so wait for the steps that read them.
        self.ahead.wait_stream(self.main)
        self.draws = True
        with torch.cuda.stream(self.ahead):
            return self.draw(seeds), self.ahead.record_event()

    def _meet(self) -> None:
        """Let the main stream wait for the other streams."""
        if self.draws:
            self.main.wait_stream(self.ahead)
            self.draws = False
        join()


@cache
def _streams(device: torch.device) -> tuple[torch.cuda.Stream, ...]:
    """The streams of all captures: the main stream, one for inputs, one for side work.

    The main stream has a higher priority, because steps wait for its work.
    """
    return tuple(
        torch.cuda.Stream(device, priority=priority)  # type: ignore[no-untyped-call]
        for priority in (-1, 0, 0)
    )


def groups(batches: Iterable[Tensor], size: int) -> Iterator[list[Tensor]]:
    """Cut the batches into groups of `size`; the last may be smaller."""
    rest = iter(batches)
    while group := list(islice(rest, size)):
        yield group
