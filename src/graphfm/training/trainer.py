"""One step, one epoch, one evaluation."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR

from graphfm.backbones.base import Backbone
from graphfm.batch import Batch
from graphfm.data.graph import Graph
from graphfm.estimators.layer_step import LayerStep
from graphfm.kernels import backend as compiled
from graphfm.kernels import side_stream as branch
from graphfm.kernels.adam import Adam
from graphfm.kernels.cross_entropy import backward
from graphfm.kernels.precision import check_precision, rounded
from graphfm.memory import PeakMemory
from graphfm.methods import Method
from graphfm.norm import evaluating, without_noise
from graphfm.tables.device import DeviceTable, places
from graphfm.training.callbacks import Callback, Score
from graphfm.training.cuda_graphs import GROUP, CapturedSteps, groups, why_not_captured
from graphfm.training.drawn import StepInput
from graphfm.training.epoch_position import Position
from graphfm.training.inference import LayerwiseInference
from graphfm.training.loop import Loop
from graphfm.training.objective import Objective, gradient_norms, micro_f1
from graphfm.training.settings import NUMBER_TYPES, Training
from graphfm.training.setup import as_set, check_trainable, seeded, under_settings
from graphfm.training.staleness import AgeMeter
from graphfm.training.step_input import Features, Input

if TYPE_CHECKING:
    from graphfm.checkpointing.checkpointer import Checkpointer


class Trainer:
    """Trains a backbone on a graph by a method; the graph's device is where it happens."""

    def __init__(
        self, graph: Graph, backbone: Backbone, method: Method, training: Training | None = None
    ) -> None:
        check_trainable(graph)
        started = time.perf_counter()
        self.graph, self.method = graph, method
        self.training = training or Training()
        check_precision(self.training.precision, graph.device)
        self.backbone = backbone.to(graph.device)
        self.memory = PeakMemory(graph.device)
        adjacency = backbone.adjacency(graph)
        self.x = backbone.features(graph)  # once: it may take every edge of the graph
        self.infer = LayerwiseInference(adjacency)
        self._first_hop()
        with compiled.kernels(self.training.kernels == "auto"):
            sums = all(layer.sums for layer in backbone.layers)
            method.sampler.tells_where = sums and compiled.available(graph.device)
        method.sampler.prepare(adjacency, len(backbone.layers))
        self.place: Tensor | None = None  # of the nodes that steps begin with, where tables ask
        method.estimator.allocate(backbone.layers, self._new_table)
        method.estimator.begin(self._encoded)
        dropout = any(isinstance(m, torch.nn.Dropout) and m.p > 0 for m in backbone.modules())
        self.noisy = method.estimator.keeps_history and dropout
        with as_set(self.training):
            self.features = Features(self.x, backbone, method, self.training.precision)
        self.ages: AgeMeter | None = None
        if self.training.staleness_every:
            self.ages = AgeMeter(
                method.estimator, len(backbone.layers), graph.num_nodes, graph.device
            )
        self.optimizer = Adam.of(
            backbone, self.training.lr, self.training.weight_decay, graph.device
        )
        self.schedule = LambdaLR(self.optimizer, self.training.factor)
        seed = self.training.seed ^ 0x5EED  # not the stream that the weights were drawn from
        self.rng = torch.Generator(graph.device).manual_seed(seed)
        self.touched = Counter[str]()  # nodes, edges and steps so far
        self.totals = torch.zeros(2, device=graph.device)  # of the epoch: losses, what they weigh
        self.position: Position | None = None  # in the epoch, while there is one
        self.not_captured = why_not_captured(self)  # the reason, if there is one
        self.take: Callable[[Sequence[Tensor]], None] = self._take
        if self.not_captured is None:
            self.take = CapturedSteps(self.draw, self.learn, self.rng, self.touched)
        self.prepare_seconds = time.perf_counter() - started

    def _new_table(self, width: int, *, exact: bool = False, last: bool = False) -> DeviceTable:
        num_rows, place = self.graph.num_nodes, None
        if last and (ids := self.method.sampler.starting_ids()) is not None:
            self.place = places(ids, num_rows) if self.place is None else self.place
            num_rows, place = ids.numel(), self.place
        dtype = torch.float32 if exact else NUMBER_TYPES[self.training.history]
        return DeviceTable(num_rows, width, dtype=dtype, device=self.graph.device, place=place)

    @torch.no_grad()
    def _encoded(self) -> Tensor:
        """The encoder's output of all nodes, as in evaluation."""
        with evaluating(self.backbone):
            rows: Tensor = self.backbone.encode(self.x.float())
        return rows

    def _first_hop(self) -> None:
        """Aggregate raw features once for all, where the estimator asks and the network allows."""
        estimator, sampler = self.method.estimator, self.method.sampler
        estimator.first_hop, sampler.first_hop_known = None, False  # of an earlier training
        if estimator.exact_first_hop and self.backbone.begins_linear:
            with compiled.kernels(self.training.kernels == "auto"):
                table = self.infer.know_first_hop(self.backbone.layers[0], self.x)
            estimator.first_hop, sampler.first_hop_known = table, True

    def fit(
        self, callbacks: Sequence[Callback] = (), checkpointer: Checkpointer | None = None
    ) -> Score:
        """Train to the end, go back to the best epoch, and look at the test nodes there."""
        with seeded(self.training.seed, self.graph.device):
            return Loop(self, callbacks, checkpointer).run()

    def step(self, seeds: Tensor) -> Tensor:
        """One update of the weights; returns the loss, still on the device."""
        return self.learn(self.draw(seeds))

    @under_settings
    def draw(self, seeds: Tensor) -> StepInput:
        """What a step needs and no other step has a part in."""
        batch = self.method.sampler.sample(seeds, self.rng)
        self.touched.update(nodes=batch.num_inputs, edges=batch.num_edges, steps=1)
        return self._drawn(batch)

    def _drawn(self, batch: Batch) -> StepInput:
        graph = self.graph
        objective = Objective(graph.y, graph.train_mask, batch.target_ids, batch.loss_weight)
        return StepInput(batch, self.features(batch), objective)

    @under_settings
    def learn(self, drawn: StepInput) -> Tensor:
        """One update of the weights."""
        batch, loss = drawn.batch, self.loss(drawn)
        self.optimizer.zero_grad()
        backward(loss)
        if self.training.clip > 0:
            torch.nn.utils.clip_grad_norm_(self.backbone.parameters(), self.training.clip)
        self.optimizer.step()
        if self.ages is not None:
            self.ages.saw(batch)
        return loss.detach()

    def _take(self, group: Sequence[Tensor]) -> None:
        for seeds in group:
            self.step(seeds)

    def batch_loss(self, batch: Batch) -> Tensor:
        """The loss of a batch; histories are read and written on the way."""
        return self.loss(self._drawn(batch))

    def loss(self, drawn: StepInput) -> Tensor:
        """The loss of what was drawn; histories are read and written on the way."""
        batch, x, objective = drawn.batch, drawn.x, drawn.objective
        graph, estimator = self.graph, self.method.estimator
        if estimator.compensation is not None:
            estimator.compensation.scale = objective.weight.clamp(min=1)
        if self.noisy and estimator.records_first:
            self._record(x, batch)
        estimator.recording = not self.noisy
        with rounded(self.training.precision, graph.device):
            logits = self.backbone(x, batch, estimator)
        if self.noisy and not estimator.records_first:
            self._record(x, batch)
        loss = objective(logits, self.totals)
        if estimator.compensation is not None:
            branch.join()  # the value of the loss may be there
            missing = estimator.compensation.loss()
            loss = loss + (missing - missing.detach())  # a gradient, not a value
        return loss

    @torch.no_grad()
    def _record(self, x: Input, batch: Batch) -> None:
        """A second pass for the histories alone, so that no dropout gets into them."""
        self.method.estimator.recording = True
        with without_noise(self.backbone), rounded(self.training.precision, self.graph.device):
            self.backbone(x, batch, self.method.estimator)
        branch.join()  # a pass that follows reads them

    @under_settings
    @torch.no_grad()
    def refresh_histories(self) -> Tensor:
        """Write to every history what today's weights make of the whole graph.

        Returns what the decoder reads.
        """
        estimator, block = self.method.estimator, self.infer.adjacency.full_block()
        h = h0 = self._encoded()
        kept = [h]
        with evaluating(self.backbone):
            for depth, layer in enumerate(self.backbone.layers):
                agg = layer.aggregate(h, block)
                out = layer.update(agg, block.targets(h, h0))
                estimator.record(LayerStep(depth, layer, block, h, h0), agg, out)
                h = out
                kept = self.backbone.kept(kept, h)
        if self.ages is not None:
            self.ages.refreshed()
        return self.backbone.joined(kept)

    @torch.no_grad()
    def _snapshot(self) -> None:
        """Tell the sampler the norms of the training nodes' gradients, and renew the histories."""
        mask = self.graph.train_mask
        with evaluating(self.backbone):
            logits = self.backbone.decode(self.refresh_histories()[mask])
        self.method.sampler.snapshot(gradient_norms(logits, self.graph.y[mask]))

    @under_settings
    def epoch(self, after_step: Callable[[], None] = lambda: None) -> float:
        """One pass over the sampler's batches; returns the mean loss of training nodes.

        One that was left in `after_step`, by an error or in another process, is taken up again.
        """
        sampler = self.method.sampler
        if self.position is None:
            if sampler.wants_gradients:
                self._snapshot()
            self.totals.zero_()
            self.position = Position(self.rng.get_state())
        self.backbone.train()
        rest = self.position.rest(sampler, self.rng, self.training.steps_per_epoch)
        for group in groups(rest, GROUP if self.not_captured is None else 1):
            self.take(group)
            self.position.steps += len(group)
            after_step()
        self.position = None
        self.schedule.step()
        return float(self.totals[0] / self.totals[1])

    def evaluate(self, splits: Iterable[str] = ("train", "val", "test")) -> dict[str, float | None]:
        """Exact scores of the weights as they are."""
        there = {split: bool(self.graph.mask(split).any()) for split in splits}
        return {s: self.score(*self.outputs(s)) if there[s] else None for s in there}

    @under_settings
    def outputs(self, split: str) -> tuple[Tensor, Tensor]:
        """Exact outputs of the nodes of a split, and their labels."""
        ids = self.graph.mask(split).nonzero().squeeze(1)
        return self.infer(self.backbone, self.x, ids), self.graph.y[ids]

    def score(self, logits: Tensor, y: Tensor) -> float | None:
        """Micro-F1; None of no nodes."""
        return micro_f1(logits, y) if y.size(0) else None
