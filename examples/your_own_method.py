"""A training method of your own: momentum whose beta decays while the training goes on.

A method is a sampler and an estimator. This one keeps GraphFM-IB's idea (a moving average of what a
node has sampled) and lowers beta with the step number. Run it as a script, or by name:

    python examples/your_own_method.py
    cd examples && graphfm train --method your_own_method:decaying --half-life 100 --epochs 5
    cd examples && graphfm compare --methods graphsage,your_own_method:decaying --budget-epochs 5
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch

import graphfm
from graphfm.estimators import Estimator
from graphfm.options import Setting
from graphfm.samplers import NeighborSampler
from graphfm.tables import TableSpec


@dataclass(kw_only=True)
class DecayingMomentum(Estimator):
    """h~ = (1 - beta) h~ + beta A^(h); beta is halved every `half_life` steps, down to 0.1."""

    keeps_history: ClassVar[bool] = True  # dropout stays out of the history
    history_of: ClassVar[str] = "aggregate"
    beta: float
    half_life: int

    def declare(self, layers, first):
        """One table per layer; checkpoints keep them."""
        return {f"past.{d}": TableSpec(width=layer.agg_width) for d, layer in enumerate(layers)}

    def aggregate(self, step):
        past = self.tables[f"past.{step.depth}"].pull(step.block.dst_ids)
        fresh = step.layer.aggregate(step.h, step.block)
        return torch.lerp(past, fresh, self.current_beta())

    def record(self, step, agg, out):
        self.tables[f"past.{step.depth}"].push(step.block.dst_ids, agg)
        self.numbers["smallest_beta"] = self.current_beta()  # checkpoints keep it too

    def current_beta(self) -> float:
        """The clock continues where it was when a run is resumed."""
        return max(self.beta * 0.5 ** (self.clock.step / self.half_life), 0.1)


def decaying(
    *,
    fanout: Annotated[tuple[int, ...], Setting("Neighbours sampled per node and layer.")] = (1,),
    batch_size: Annotated[int, Setting("Training nodes in a step.")] = 512,
    beta: Annotated[float, Setting("Weight of the fresh value in the first step.")] = 0.9,
    half_life: Annotated[int, Setting("Steps after which beta is half as large.")] = 200,
) -> graphfm.Method:
    """Momentum with a beta that decays. Its parameters are options of `train` and `compare`."""
    sampler = NeighborSampler(fanout=fanout, batch_size=batch_size)
    return graphfm.Method(sampler, DecayingMomentum(beta=beta, half_life=half_life))


def main() -> None:
    graph = graphfm.synthetic(scale=0.1)
    result = graphfm.train(graph, method=decaying, half_life=50, hidden=32, epochs=10)
    print(f"decaying  test {result.score.test:.4f}")
    print("what config.json says:", result.run.method, dict(result.run.method_settings))


if __name__ == "__main__":  # the child processes of graphfm.compare import this file
    main()
