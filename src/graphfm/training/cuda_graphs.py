"""A whole training step as one CUDA graph: recorded once, then replayed by a single launch."""

from __future__ import annotations

import gc
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from graphfm.errors import InputError
from graphfm.kernels import precompile as ahead
from graphfm.kernels.side_stream import SideStream, join

if TYPE_CHECKING:
    from graphfm.training.drawn import StepInput
    from graphfm.training.trainer import Trainer

logger = logging.getLogger("graphfm")
GROUP = 8  # steps of a recording, where there are as many
WARM_UP = 3  # steps before the first recording: libraries load, optimisers make their state


@dataclass(frozen=True, slots=True)
class Recording:
    """Steps on batches of one size, and what they add to the counts that the host keeps."""

    graph: torch.cuda.CUDAGraph
    seeds: Tensor  # [num_steps, size]
    counts: Counter[str]


def why_not_captured(trainer: Trainer) -> str | None:
    """Why the steps of a training are not recorded; None where they are."""
    wanted, on_gpu = trainer.training.capture, trainer.graph.device.type == "cuda"
    if wanted == "off":
        return "capture is off"
    reason = None
    if not on_gpu:
        reason = "there is no GPU"
    elif not trainer.method.sampler.static_shapes:
        reason = "the size of this method's batches changes from step to step"
    elif trainer.ages is not None:
        reason = "the age of histories is measured, which the host does"
    if reason is not None and wanted == "on":
        raise InputError(f"capture is on, but {reason}; use --capture auto or off")
    if reason is not None and on_gpu:
        logger.info("steps are not captured as CUDA graphs: %s", reason)
    return reason


class CapturedSteps:
    """Takes steps; those on batches of one size are recorded after a few of the ordinary kind.

    Nothing is executed twice or for show: the steps before a recording are steps of the training,
    and random numbers go on where they were (`rng` is registered with every recording), so a
    training with capture takes the same steps as one without. A recording holds one step or, as a
    launch costs time too, a group of them; and a batch is drawn while the step before is taken.
    """

    def __init__(
        self,
        draw: Callable[[Tensor], StepInput],
        learn: Callable[[StepInput], Tensor],
        rng: torch.Generator,
        counts: Counter[str],
    ) -> None:
        self.draw, self.learn, self.rng, self.counts = draw, learn, rng, counts
        self.trunk, self.ahead, beside = _streams(rng.device)
        self.draws = False  # does the recording being made have draws on the stream ahead?
        self.branch: SideStream | None = SideStream(beside)
        self.pool: Any = None  # memory, which the recordings share
        self.recordings = dict[tuple[int, int], Recording]()  # by number of steps, and of seeds
        self.taken = Counter[int]()

    def __call__(self, group: Sequence[Tensor]) -> None:
        sizes = {seeds.numel() for seeds in group}
        if len(group) == GROUP and len(sizes) == 1 and self.taken[min(sizes)] >= WARM_UP:
            self._replay(group)
            return
        for seeds in group:
            if self.taken[seeds.numel()] >= (1 if self.recordings else WARM_UP):
                self._replay([seeds])
            else:
                # a copy begins where kernels like it, as in a recording
                self.learn(self.draw(seeds.clone()))
            self.taken[seeds.numel()] += 1

    def _replay(self, group: Sequence[Tensor]) -> None:
        key = (len(group), group[0].numel())
        if key not in self.recordings:
            self.recordings[key] = self._record(*key, group[0])
        recording = self.recordings[key]
        recording.seeds.copy_(torch.stack(list(group)))
        recording.graph.replay()
        self.counts.update(recording.counts)

    def _record(self, num_steps: int, size: int, like: Tensor) -> Recording:
        """Let steps write down what they would do. Nothing is done yet."""
        even = size + size % 2  # rows begin at multiples of 16 bytes: one kernel serves them all
        seeds = like.new_empty(num_steps, even)[:, :size].copy_(like)
        recording = self._recorded(seeds)
        if self.branch is not None and self.branch.disturbed:
            self.branch = None  # two layers share a matrix, say, and autograd adds what both want
            del recording
            recording = self._recorded(seeds)
        self.pool = recording.graph.pool()
        return recording

    def _recorded(self, seeds: Tensor) -> Recording:
        graph, before = torch.cuda.CUDAGraph(), self.counts.copy()
        graph.register_generator_state(self.rng)
        ahead.settle()  # what is loaded while a graph is recorded may do the same
        gc.collect()  # what dies while a graph is recorded may free memory, which it must not
        with (
            torch.cuda.graph(graph, pool=self.pool, stream=self.trunk),
            nullcontext() if self.branch is None else self.branch.active(),
        ):
            try:
                for drawn in self._drawn(seeds):
                    self.learn(drawn)
                    del drawn  # which frees memory for one that is yet to be drawn
            finally:  # with loose ends no recording can end, and an error would be lost in another
                self._meet()
        counts = self.counts - before
        self.counts.subtract(counts)
        return Recording(graph, seeds, counts)

    def _drawn(self, seeds: Tensor) -> Iterator[StepInput]:
        """What each step begins with, drawn while the step before it is taken."""
        drawn, done = self._draw_ahead(seeds[0])
        for number in range(1, len(seeds) + 1):
            following = self._draw_ahead(seeds[number]) if number < len(seeds) else None
            self.trunk.wait_event(done)
            yield drawn
            if following is not None:
                drawn, done = following

    def _draw_ahead(self, seeds: Tensor) -> tuple[StepInput, torch.cuda.Event]:
        # memory of earlier draws is used again: this waits for the steps that have read them
        self.ahead.wait_stream(self.trunk)
        self.draws = True
        with torch.cuda.stream(self.ahead):
            return self.draw(seeds), self.ahead.record_event()

    def _meet(self) -> None:
        """Let the trunk wait for all that has left it."""
        if self.draws:
            self.trunk.wait_stream(self.ahead)
            self.draws = False
        join()


@cache
def _streams(device: torch.device) -> tuple[torch.cuda.Stream, ...]:
    """Of all recordings: the trunk, one for draws ahead, one for a branch.

    What a step must wait for is on the trunk, and goes first wherever there is a choice.
    """
    return tuple(
        torch.cuda.Stream(device, priority=priority)  # type: ignore[no-untyped-call]
        for priority in (-1, 0, 0)
    )


def groups(batches: Iterable[Tensor], size: int) -> Iterator[list[Tensor]]:
    """The batches, so many at a time."""
    rest = iter(batches)
    while group := list(islice(rest, size)):
        yield group
