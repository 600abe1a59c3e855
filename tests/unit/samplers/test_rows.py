import pytest
import torch

from graphfm import InputError
from graphfm.backbones import make_backbone
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.methods import Method
from graphfm.samplers.rows import RowSampler
from graphfm.step_plan import StepPlan
from graphfm.training.trainer import Trainer


def prepared(graph, batch_size):
    sampler = RowSampler(batch_size=batch_size)
    sampler.prepare(Adjacency.mean(graph), StepPlan(num_layers=0))
    return sampler


def epoch(sampler, seed):
    rng = torch.Generator().manual_seed(seed)
    return [sampler.sample(seeds, rng) for seeds in sampler.epoch(rng)]


@pytest.mark.parametrize("batch_size", [1, 7, 20, 500])
def test_every_training_node_once_an_epoch_and_nothing_else(make_graph, batch_size):
    graph = make_graph()
    batches = epoch(prepared(graph, batch_size), 0)
    assert [batch.input_ids.numel() for batch in batches[:-1]] == [batch_size] * (len(batches) - 1)
    seen = torch.cat([batch.target_ids for batch in batches])
    assert torch.equal(seen.sort().values, graph.train_mask.nonzero().flatten())
    assert all(batch.blocks == () and batch.num_edges == 0 for batch in batches)


def test_epochs_differ_in_order_and_the_seed_decides(make_graph):
    sampler = prepared(make_graph(), 500)
    (first,), (again,), (other,) = (epoch(sampler, seed) for seed in (1, 1, 2))
    assert torch.equal(first.input_ids, again.input_ids)
    assert not torch.equal(first.input_ids, other.input_ids)


def test_a_network_with_graph_layers_is_refused(make_graph):
    method = Method(RowSampler(batch_size=8))
    with pytest.raises(InputError, match="the network has 3 graph layers.*use backbone sign"):
        Trainer(make_graph(), make_backbone("gcn", 7, 4, layers=3), method)


def test_a_batch_of_nothing_is_refused():
    with pytest.raises(InputError, match="batch_size is 0; expected 1 or more"):
        RowSampler(batch_size=0)
