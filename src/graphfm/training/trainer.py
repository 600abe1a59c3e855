"""The trainer: takes steps and epochs, and evaluates."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from graphfm.backbones.base import Backbone
from graphfm.batch import Batch
from graphfm.data.graph import Graph
from graphfm.data.graph.size import GraphSize
from graphfm.estimators.layer_step import ForwardPass, Setup
from graphfm.kernels import side_stream
from graphfm.kernels.backend import execution
from graphfm.kernels.precision import check_precision
from graphfm.memory import PeakMemory
from graphfm.methods import Method
from graphfm.step_plan import Clock
from graphfm.tables.device import allocate
from graphfm.training import whole_graph
from graphfm.training.cuda_graphs import GROUP, CapturedSteps, groups
from graphfm.training.epoch_position import Position
from graphfm.training.inference import LayerwiseInference
from graphfm.training.learned_rows import LearnedRows
from graphfm.training.optimizers import make_optimizer
from graphfm.training.own_parts import OwnParts
from graphfm.training.plan_step import plan_step
from graphfm.training.schedule import Schedule
from graphfm.training.settings import Training
from graphfm.training.setup import autocast, check_trainable, executing, global_generator
from graphfm.training.staleness import AgeMeter
from graphfm.training.stateful import Stateful
from graphfm.training.step_input import StepInput, StepInputs
from graphfm.training.updates import Updates

logger = logging.getLogger("graphfm")


class Trainer:
    """Trains a backbone on a graph by a method, on the graph's device."""

    def __init__(
        self,
        graph: Graph,
        backbone: Backbone,
        method: Method,
        training: Training | None = None,
        own: OwnParts = OwnParts(),
    ) -> None:
        self.training = training = training or Training()
        self.question = check_trainable(graph, training).with_loss(own.loss)
        started = time.perf_counter()
        self.graph, self.method = graph, method
        self.executing = executing(training)
        check_precision(training.precision, graph.device)
        self.backbone = backbone.to(graph.device)
        self.memory = PeakMemory(graph.device)
        self.x = backbone.input_rows(graph)  # computed once: it may read every edge of the graph
        self.infer = LayerwiseInference(backbone.adjacency(graph))
        size = GraphSize.of(graph)
        self.plan = plan = plan_step(size, graph.device, backbone, method, training, own)
        plan.tell(logger)
        self.clock = Clock()
        self._prepare_method()
        self.autocast = autocast(training.precision, graph.device)
        self.inputs = StepInputs(
            graph, self.x, backbone, method.estimator, plan, self.autocast, self.question.loss
        )
        sizes = len(backbone.layers), graph.num_nodes, graph.device
        ages = AgeMeter(method.estimator, *sizes, depths=backbone.depths)
        self.ages = ages if training.staleness_every else None
        self.optimizer = make_optimizer(backbone, training, graph.device, own)
        rows = (backbone, self.x, plan.learned, self.optimizer)
        self.rows = LearnedRows(*rows) if plan.learned else None
        self.update = Updates(backbone, self.optimizer, training, self.rows)
        self.schedule = Schedule(self.optimizer, training, own.schedule)
        seed = training.seed ^ 0x5EED  # differs from the seed that drew the weights
        self.rng = torch.Generator(graph.device).manual_seed(seed)
        self.touched = Counter[str]()  # nodes, edges and steps so far
        self.totals = torch.zeros(2, device=graph.device)  # the epoch's losses and their weights
        self.position: Position | None = None  # in the current epoch, if there is one
        parts = self.draw, self.learn, self.rng, self.touched
        self.captured = CapturedSteps(*parts) if plan.captured else None
        self.prepare_seconds = time.perf_counter() - started

    def _prepare_method(self) -> None:
        """Compute the first hop if the plan says so; hand sampler and estimator what they need."""
        plan, sampler, estimator = self.plan, self.method.sampler, self.method.estimator
        layers, nodes, device = self.backbone.layers, self.graph.num_nodes, self.graph.device
        if plan.exact_first_hop:
            with execution(kernels=self.training.kernels):
                self.infer.know_first_hop(layers[0], self.x)
        sampler.prepare(self.infer.adjacency, plan)
        setup = Setup(
            layers=layers, tables=allocate(plan.tables, nodes, device, sampler.starting_ids()),
            plan=plan, first_hop=self.infer.first_hop, clock=self.clock,
            averages=self.infer.adjacency.averages,
        )  # fmt: skip
        estimator.prepare(setup)
        estimator.begin(partial(whole_graph.encode_all, self))
        self._shares_first_layer = bool(layers) and estimator.shares_first_layer(layers[0])

    def step(self, seeds: Tensor) -> Tensor:
        """Update the weights once; returns the loss, still on the device."""
        with self.executing():
            return self.learn(self.draw(seeds))

    def draw(self, seeds: Tensor) -> StepInput:
        """Sample a batch and prepare everything that does not depend on other steps."""
        batch = self.method.sampler.sample(seeds, self.rng)
        self.touched.update(nodes=batch.num_inputs, edges=batch.num_edges, steps=1)
        return self.inputs(batch)

    def learn(self, given: StepInput) -> Tensor:
        """Compute the loss and its gradient, and take one step of the optimizer."""
        self.clock.step = self.touched["steps"]
        if not given.batch.trains and self.method.estimator.compensation is None:
            return self._learn_nothing(given)
        loss = self.loss(given)
        self.update(loss, given)
        if self.ages is not None:
            self.ages.saw(given.batch)
        return loss.detach()

    def _learn_nothing(self, given: StepInput) -> Tensor:
        """Leave the weights alone where a batch has no training nodes; its histories may move."""
        if self.method.estimator.keeps_history and self.method.estimator.untrained == "record":
            self._record(given)
            if self.ages is not None:
                self.ages.saw(given.batch)
        return torch.zeros((), device=self.graph.device)

    def batch_loss(self, batch: Batch) -> Tensor:
        """The loss of a batch; histories are read and written on the way."""
        return self.loss(self.inputs(batch))

    def loss(self, given: StepInput) -> Tensor:
        """The loss of a step's input; histories are read and written on the way."""
        estimator, objective = self.method.estimator, given.objective
        apart = self.plan.recording_pass
        first = apart and estimator.records_first
        shared = list[Tensor]() if first and self._shares_first_layer else None
        if first:
            self._record(given, shared)
        weight = 1.0 if estimator.compensation is None else objective.weight.clamp(min=1)
        forward = ForwardPass(not apart, first, weight, shared)
        with self.autocast():
            logits = self.backbone(given.x, given.batch, estimator, forward)
        if apart and not first:
            self._record(given)
        loss = objective(logits, self.totals)
        if estimator.compensation is not None:
            side_stream.join()  # the value of the loss may still be computed there
            missing = estimator.compensation.loss(forward)
            loss = loss + (missing - missing.detach())  # adds a gradient and no value
        return loss

    @torch.no_grad()
    def _record(self, given: StepInput, first_output: list[Tensor] | None = None) -> None:
        """Write the histories in a second pass without dropout."""
        with self.backbone.without_noise(), self.autocast():
            forward = ForwardPass(first_output=first_output)
            self.backbone(given.x, given.batch, self.method.estimator, forward)
        if self.plan.kernels:  # some write on a side stream, and the next pass reads the rows
            side_stream.join()

    evaluate, outputs, score = whole_graph.evaluate, whole_graph.outputs, whole_graph.score
    refresh_histories = whole_graph.refresh_histories

    def parts(self) -> dict[str, Stateful]:
        """The parts that a checkpoint keeps, by the prefix of their tensors' names."""
        parts: dict[str, Any] = {
            "weights": self.backbone, "history": self.method.estimator,
            "sampler": self.method.sampler, "ages": self.ages, "rows": self.rows,
            "gathered": self.update if self.update.gathered else None,
        }  # fmt: skip
        return {name: part for name, part in parts.items() if part is not None}

    def state_dict(self) -> dict[str, Tensor]:
        """The trainer's own tensors: the epoch's losses and the states of random generators."""
        found = {
            "totals": self.totals,
            "random.sampler": self.rng.get_state(),
            "random.model": global_generator(self.graph.device).get_state(),
        }
        return found if self.position is None else {**found, "random.epoch": self.position.start}

    def numbers(self) -> dict[str, Any]:
        """What is not in tensors, of the trainer and its parts, as JSON values."""
        return {
            **self.schedule.numbers(),
            "steps": None if self.position is None else self.position.steps,
            "touched": dict(self.touched),
            "age": None if self.ages is None else self.ages.step,
            "estimator": self.method.estimator.checked_numbers(),
        }

    def load_state_dict(self, state: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        """Continue from its own saved tensors and from the numbers of all parts."""
        self.schedule.load_numbers(numbers)
        if self.ages is not None:
            self.ages.step = numbers["age"]
        self.method.estimator.numbers.update(numbers["estimator"])
        self.totals.copy_(state["totals"])
        steps = numbers["steps"]
        self.position = None if steps is None else Position(state["random.epoch"], steps)
        self.touched.clear()
        self.touched.update(numbers["touched"])
        self.clock.step = self.touched["steps"]
        self.rng.set_state(state["random.sampler"])
        global_generator(self.graph.device).set_state(state["random.model"])

    def epoch(self, after_step: Callable[[], None] = lambda: None) -> float:
        """Take one pass over the sampler's batches; returns the mean loss of training nodes.

        An epoch that an error in `after_step` or the end of a process interrupted is continued.
        """
        sampler = self.method.sampler
        self.clock.epoch = self.schedule.last_epoch
        with self.executing():
            if self.position is None:
                if self.training.fill_histories and self.clock.epoch == 0:
                    whole_graph.fill_histories(self)
                if sampler.wants_gradients:
                    whole_graph.snapshot_gradients(self)
                self.totals.zero_()
                self.position = Position(self.rng.get_state())
            self.backbone.train()
            rest = self.position.rest(sampler, self.rng, self.training.steps_per_epoch)
            take = self.captured or self._take
            for group in groups(rest, 1 if self.captured is None else GROUP):
                take(group)
                self.position.steps += len(group)
                after_step()
            self.update.finish()
        self.position = None
        self.schedule.step()
        # The weight is zero if no batch had training nodes.
        return float(self.totals[0] / self.totals[1].clamp(min=torch.finfo(torch.float32).tiny))

    def _take(self, group: Sequence[Tensor]) -> None:
        for seeds in group:
            self.step(seeds)
