"""Worker processes of the rival's loader: spawned, waited for with a limit, and ended."""

import multiprocessing
import sys
import textwrap

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader

from graphfm.experiments.bench.pyg_rival import close_workers, worker_options

# A sampler that needs no compiled code. It must be in a module of its own: workers import it.
SAMPLER = """
import time

import torch
from torch_geometric.sampler import BaseSampler, SamplerOutput


FORKED = False  # set in the parent: a fork would copy it


class Sampler(BaseSampler):
    edge_permutation = None

    def __init__(self, edges, wait=0.0):
        self.edges, self.wait = edges, wait

    def sample_from_nodes(self, inputs):
        time.sleep(self.wait)
        assert not FORKED
        ids = inputs.node
        row = torch.arange(ids.numel())
        return SamplerOutput(
            node=ids, row=row, col=row, edge=row, batch=None,
            num_sampled_nodes=None, num_sampled_edges=None,
            metadata=(inputs.input_id, inputs.time),
        )

    def sample_from_edges(self, inputs, neg_sampling=None):
        raise NotImplementedError
"""


@pytest.fixture
def make_loader(tmp_path, monkeypatch):
    (tmp_path / "spawned_sampler.py").write_text(textwrap.dedent(SAMPLER))
    monkeypatch.syspath_prepend(tmp_path)
    made = []

    def make(workers: int, seconds: float, wait: float = 0.0) -> NodeLoader:
        import spawned_sampler

        spawned_sampler.FORKED = workers > 0
        edges = torch.arange(20).repeat(2, 1)
        data = Data(edge_index=torch.empty(2, 0).long(), num_nodes=20)
        loader = NodeLoader(
            data,
            spawned_sampler.Sampler(edges, wait),
            input_nodes=torch.arange(20),
            batch_size=5,
            shuffle=True,
            **worker_options(workers, seconds),
        )
        made.append(loader)
        return loader

    yield make
    for loader in made:
        close_workers(loader)
    sys.modules.pop("spawned_sampler", None)


def test_workers_are_spawned_serve_every_epoch_and_end_when_closed(make_loader):
    loader = make_loader(2, 60.0)
    for _ in range(2):
        seen = torch.cat([batch.n_id for batch in loader])
        assert seen.sort().values.tolist() == list(range(20))
        assert len(multiprocessing.active_children()) == 2  # the same ones
    batch = next(iter(loader))
    assert batch.edge_index.shape == (2, 5)
    assert (batch.batch_size, batch.num_nodes) == (5, 5)
    close_workers(loader)
    assert multiprocessing.active_children() == []
    close_workers(loader)  # a second time changes nothing


def test_workers_that_do_not_answer_are_given_up_and_ended(make_loader):
    loader = make_loader(1, 0.5, wait=3600.0)
    with pytest.raises(RuntimeError, match="DataLoader timed out"):
        next(iter(loader))
    close_workers(loader)
    assert multiprocessing.active_children() == []


def test_without_workers_there_is_nothing_to_close(make_loader):
    close_workers(make_loader(0, 1.0))
    close_workers([1, 2])
