"""What leaves the chain of a step's kernels, done as late as is allowed.

A GPU seldom shows that a result was read too early. So nothing is recorded here: what goes on a
branch is put off until the branch is joined, its outputs are no numbers until then, and batches
are drawn a step ahead. Run on a machine with a GPU, or as Python: `TRITON_INTERPRET=1`.
"""

from contextlib import contextmanager

import pytest
import torch

from graphfm.kernels import backend as compiled
from graphfm.kernels import side_stream as branch
from graphfm.runs.run import Run, build
from graphfm.training.setup import seeded

DEVICE = torch.device("cpu" if compiled.INTERPRETED else "cuda")
pytestmark = pytest.mark.skipif(
    not (compiled.INTERPRETED or torch.cuda.is_available()), reason="needs a GPU"
)
STEPS = 4
OUTPUT = {  # the argument of a kernel that it fills; rows of tables are not touched before
    "graph.keep": None,
    "step.add_up": 2,
    "step.sum_parts": 1,
    "matmul.gradient": 2,
}


class Late(branch.SideStream):
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
    run = Run.make(
        dataset="x", device=DEVICE.type, capture="off", hidden=16, batch_size=17, **options
    )
    trainer = build(run, graph)
    sampler = trainer.method.sampler  # a GPU's layout, where this runs as Python
    sampler.distinct, sampler.reads_in_place = None, False
    trainer.backbone.train()
    return trainer


def take_steps(trainer, late=None, number=STEPS):
    batches = list(trainer.method.sampler.epoch(trainer.rng))[:number]
    with seeded(0, DEVICE):
        if late is None:
            for seeds in batches:
                trainer.step(seeds)
            return
        with late.growing():
            drawn = trainer.draw(batches[0])
            for seeds in (*batches[1:], None):
                following = None if seeds is None else trainer.draw(seeds)
                trainer.learn(drawn)
                drawn = following
            branch.join()


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
@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("backbone", ["sage", "gcn"])
def test_nothing_is_read_before_it_is_there(make_graph, monkeypatch, options, dropout, backbone):
    graph = make_graph(num_nodes=600, num_edges=4000)
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
    graph, late = make_graph(num_nodes=600, num_edges=4000), Late(monkeypatch)
    trainer = trainer_of(graph, method="graphfm-ib", layers=4)
    trainer.backbone.layers[2].weight = trainer.backbone.layers[1].weight
    take_steps(trainer, late, number=1)
    assert late.disturbed
