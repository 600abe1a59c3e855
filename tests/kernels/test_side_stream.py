"""Work on the side stream of a captured step, done as late as is allowed.

A GPU seldom shows that a result was read too early. So no CUDA graph is captured here: what goes to
the side stream is put off until it is joined, its outputs are NaN until then, and batches are drawn
one step ahead.
"""

from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch

from graphfm.kernels import backend, side_stream
from graphfm.runs.run import Run, build
from graphfm.step_plan import COPIED
from graphfm.training.setup import seeded
from tests.kernels.device import DEVICE, sized

STEPS = 3
BACKBONES = [("sage", 0.0), ("gcn", 0.3), *sized([("sage", 0.3), ("gcn", 0.0)], [])]
OUTPUT = {  # the argument of a kernel that it fills; rows of tables are not touched before
    "combine.keep": None,
    "step.add_up": 2,
    "step.sum_parts": 1,
    "matmul.gradient": 2,
}


class Late(side_stream.SideStream):
    """Does nothing before it is joined."""

    def __init__(self, monkeypatch):
        self.busy, self.read, self.gradients, self.disturbed = False, [], [], False
        self.putting_off, self.waiting, self.put_off = False, [], 0
        for place, output in OUTPUT.items():
            module, name = place.split(".")
            kernels = __import__(f"graphfm.kernels.triton_kernels.{module}", fromlist=[name])
            monkeypatch.setattr(kernels, name, self.launcher(getattr(kernels, name), output))
        add = torch._foreach_add_
        monkeypatch.setattr(torch, "_foreach_add_", lambda *given: self.launch(add, given, {}))

    def launcher(self, kernel, output):
        class Launcher:
            def __getitem__(_, grid):  # noqa: N805
                def launch(*given, **named):
                    if self.putting_off and output is not None:
                        given[output].fill_(torch.nan)
                    self.launch(kernel[grid], given, named)

                return launch

        return Launcher()

    def launch(self, do, given, named):
        if self.putting_off:
            self.put_off += 1  # other names, so that autograd has the only one of a gradient
            given = [a.detach() if isinstance(a, torch.Tensor) else a for a in given]
            self.waiting.append(lambda: do(*given, **named))
        else:
            do(*given, **named)

    @contextmanager
    def work(self, read):
        self.read.extend(read)
        self.putting_off = True
        try:
            yield
        finally:
            self.putting_off = False

    def join(self):
        for do in self.waiting:
            do()
        self.waiting.clear()
        super().join()


def trainer_of(graph, **options):
    sizes = {"hidden": sized(16, 6), "batch_size": sized(17, 5)}
    run = Run.make(dataset="x", device=DEVICE.type, capture="off", **sizes, **options)
    trainer = build(run, graph)
    sampler = trainer.method.sampler  # the layout of a GPU, also where this is interpreted
    sampler.distinct = None
    sampler.plan = replace(sampler.plan, features=COPIED)
    trainer.backbone.train()
    return trainer


def take_steps(trainer, late=None, number=STEPS):
    batches = list(trainer.method.sampler.epoch(trainer.rng))[:number]
    with seeded(0, DEVICE):
        if late is None:
            for seeds in batches:
                trainer.step(seeds)
            return
        with trainer.executing(), late.active():
            drawn = trainer.draw(batches[0])
            for seeds in (*batches[1:], None):
                following = None if seeds is None else trainer.draw(seeds)
                trainer.learn(drawn)
                drawn = following
            side_stream.join()


@pytest.mark.parametrize(
    "options",
    [
        {"method": "graphsage", "fanout": (3, 2)},
        {"method": "graphfm-ib"},
        {"method": "graphfm-ib", "layers": 4},
        {"method": "graphfm-ib", "exact_first_hop": False},
        {"method": "graphfm-ib", "history": "bf16", "weight_decay": 0.01, "clip": 0.1},
        {"method": "graphfm-ib", "batch_norm": True, "precision": "tf32"},
        {"method": "vr-gcn"},
    ],
    ids=str,
)
@pytest.mark.parametrize(("backbone", "dropout"), BACKBONES)
def test_nothing_is_read_before_it_is_there(make_graph, monkeypatch, options, dropout, backbone):
    graph = make_graph(num_nodes=sized(600, 60), num_edges=sized(4000, 250))
    options = {"layers": 3, "backbone": backbone, "dropout": dropout, **options}
    if len(options.get("fanout", ())) > 1:
        options["layers"] = len(options["fanout"])
    at_once, later = trainer_of(graph, **options), trainer_of(graph, **options)
    take_steps(at_once)
    late = Late(monkeypatch)
    take_steps(later, late)
    assert late.put_off >= STEPS
    assert not late.disturbed
    found, wanted = later.backbone.state_dict(), at_once.backbone.state_dict()
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)
    for name, table in at_once.method.estimator.histories_by_name().items():
        assert torch.equal(
            table.rows[:-1], later.method.estimator.histories_by_name()[name].rows[:-1]
        )
    for one, other in zip(
        at_once.optimizer.state.values(), later.optimizer.state.values(), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    assert torch.equal(at_once.totals, later.totals)
    assert torch.equal(at_once.rng.get_state(), later.rng.get_state())


def test_a_gradient_that_autograd_adds_to_is_noticed(make_graph, monkeypatch):
    graph, late = (
        make_graph(num_nodes=sized(600, 60), num_edges=sized(4000, 250)),
        Late(monkeypatch),
    )
    trainer = trainer_of(graph, method="graphfm-ib", layers=4)
    trainer.backbone.layers[2].weight = trainer.backbone.layers[1].weight
    take_steps(trainer, late, number=1)
    assert late.disturbed


def test_an_ablation_puts_nothing_off(make_graph, monkeypatch):
    graph = make_graph(num_nodes=sized(600, 60), num_edges=sized(4000, 250))
    late = Late(monkeypatch)
    with backend.without("side_stream"):
        take_steps(trainer_of(graph, method="graphfm-ib", layers=3), late)
    assert late.put_off == 0
