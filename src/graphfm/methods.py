"""Every training method, as a sampler and an estimator. Start reading here.

The sampler says which nodes and edges a step sees; the estimator says how a layer's output is
computed from what it sees. Backbones know neither, so any method runs on any of them.
"""

from collections.abc import Callable, Mapping

from graphfm import method_settings as setting
from graphfm.estimators.aggregate_momentum import AggregateMomentum
from graphfm.estimators.control_variate import ControlVariate
from graphfm.estimators.halo_difference import HaloDifference
from graphfm.estimators.halo_history import HaloHistory
from graphfm.method_forms import Method as Method
from graphfm.method_forms import published_form, trains_with
from graphfm.samplers.cluster import ClusterSampler
from graphfm.samplers.full import FullSampler
from graphfm.samplers.layerwise import LayerSampler
from graphfm.samplers.minimal_variance import MinimalVarianceSampler
from graphfm.samplers.neighbor import NeighborSampler
from graphfm.samplers.rows import RowSampler
from graphfm.samplers.saint import SaintSampler
from graphfm.samplers.shadow import ShadowSampler


@trains_with(lr=0.01, epochs=400)
def full() -> Method:
    """Full batch: every node and edge at every step. Exact, and limited by memory."""
    return Method(FullSampler())


@published_form(picks="independent")
def graphsage(
    *, fanout: setting.Fanout = (5,), batch_size: setting.BatchSize = 512,
    picks: setting.Picks = "even",
) -> Method:  # fmt: skip
    """GraphSAGE: a few sampled neighbours per node and layer. Cheap, unbiased, noisy."""
    return Method(NeighborSampler(fanout=fanout, batch_size=batch_size, picks=picks))


@trains_with(lr=0.002, dropout=0.4, epochs=150)
@published_form(
    beta=(0.9,), start="zero", whole_gradient=False, correct_lag=False, drop_average=False,
    exact_first_hop=False, picks="independent",
)  # fmt: skip
def graphfm_ib(
    *,
    fanout: setting.Fanout = (1,),
    batch_size: setting.BatchSize = 512,
    beta: setting.Beta = (0.1,),
    start: setting.StartWithFeatures = "fresh",
    whole_gradient: setting.WholeGradient = True,
    correct_lag: setting.CorrectLag = True,
    drop_average: setting.DropAverage = True,
    exact_first_hop: setting.ExactFirstHop = True,
    picks: setting.Picks = "even",
) -> Method:
    """GraphFM-IB: GraphSAGE with a moving average of what each node has sampled so far."""
    estimator = AggregateMomentum(
        beta=beta, start=start, whole_gradient=whole_gradient, correct_lag=correct_lag,
        drop_average=drop_average, exact_first_hop=exact_first_hop,
    )  # fmt: skip
    return Method(NeighborSampler(fanout=fanout, batch_size=batch_size, picks=picks), estimator)


def vr_gcn(
    *, fanout: setting.Fanout = (2,), batch_size: setting.BatchSize = 512,
    picks: setting.Picks = "even", split_dropout: setting.SplitDropout = False,
    exact_first_hop: setting.ExactFirstHop = True,
) -> Method:  # fmt: skip
    """VR-GCN: past rows of all neighbours, plus a sampled estimate of how they changed."""
    sampler = NeighborSampler(
        fanout=fanout, batch_size=batch_size, picks=picks, every_neighbor=True
    )
    estimator = ControlVariate(split_dropout=split_dropout, exact_first_hop=exact_first_hop)
    return Method(sampler, estimator)


@trains_with(dropout=0.3)
def fastgcn(
    *, nodes_per_layer: setting.NodesPerLayer = (2000,), batch_size: setting.BatchSize = 512
) -> Method:
    """FastGCN: nodes drawn for each layer by importance, shared by all that read them."""
    return Method(LayerSampler(nodes_per_layer=nodes_per_layer, batch_size=batch_size))


@trains_with(dropout=0.3)
def ladies(
    *,
    nodes_per_layer: setting.NodesPerLayer = (1000,),
    batch_size: setting.BatchSize = 512,
    normalize_rows: setting.NormalizeRows = True,
) -> Method:
    """LADIES: nodes drawn for each layer among the neighbours of the layer above."""
    sampler = LayerSampler(
        nodes_per_layer=nodes_per_layer, batch_size=batch_size, dependent=True,
        normalize_rows=normalize_rows,
    )  # fmt: skip
    return Method(sampler)


def mvs_gcn(
    *, nodes_per_layer: setting.NodesPerLayer = (1000,), batch_size: setting.BatchSize = 512,
    exact_first_hop: setting.ExactFirstHop = True,
) -> Method:  # fmt: skip
    """MVS-GCN: training nodes drawn by gradient norm; past rows for their neighbours."""
    sampler = MinimalVarianceSampler(
        nodes_per_layer=nodes_per_layer, batch_size=batch_size, dependent=True, every_neighbor=True
    )
    return Method(sampler, ControlVariate(exact_first_hop=exact_first_hop))


@trains_with(dropout=0.3)
def graphsaint(
    *, subgraph: setting.SaintSubgraph = "walk", budget: setting.SaintBudget = 2000,
    walk_length: setting.WalkLength = 2, coverage: setting.Coverage = 50,
) -> Method:  # fmt: skip
    """GraphSAINT: random subgraphs, corrected for how often they contain each node."""
    return Method(
        SaintSampler(subgraph=subgraph, budget=budget, walk_length=walk_length, coverage=coverage)
    )


def shadow(
    *, subgraph: setting.ShadowSubgraph = "khop", depth: setting.ShadowDepth = 2,
    fanout: setting.Fanout = (5,), budget: setting.ShadowBudget = 20,
    batch_size: setting.BatchSize = 512, picks: setting.Picks = "even",
) -> Method:  # fmt: skip
    """SHADOW: a small subgraph around every target, whatever the depth of the network."""
    sampler = ShadowSampler(
        subgraph=subgraph, depth=depth, fanout=fanout, budget=budget, batch_size=batch_size,
        picks=picks,
    )  # fmt: skip
    return Method(sampler)


@trains_with(epochs=200)
def cluster_gcn(
    *,
    parts: setting.Parts = 200,
    parts_per_batch: setting.PartsPerBatch = None,
    partition: setting.Partition = "metis",
) -> Method:
    """Cluster-GCN: parts of the graph, without their edges to the rest."""
    return Method(
        ClusterSampler(parts=parts, parts_per_batch=parts_per_batch, how=partition, halo=False)
    )


@trains_with(epochs=200)
@published_form(
    exact_first_hop=False, edge_drop_form="released", dropout_in_histories=True, untrained="skip"
)
def gas(
    *,
    parts: setting.Parts = 200,
    parts_per_batch: setting.PartsPerBatch = None,
    partition: setting.Partition = "metis",
    edge_drop: setting.EdgeDrop = 0.0,
    edge_drop_form: setting.EdgeDropForm = "scaled",
    compensate: setting.Compensate = False,
    exact_first_hop: setting.ExactFirstHop = True,
    dropout_in_histories: setting.DropoutInHistories = False,
    untrained: setting.Untrained = "record",
) -> Method:
    """GNNAutoScale: parts of the graph; neighbours outside are read from histories."""
    estimator = HaloHistory(
        compensate=compensate, exact_first_hop=exact_first_hop,
        dropout_in_histories=dropout_in_histories, untrained=untrained,
    )  # fmt: skip
    sampler = ClusterSampler(
        parts=parts, parts_per_batch=parts_per_batch, how=partition, edge_drop=edge_drop,
        edge_drop_form=edge_drop_form, edges_back=compensate,
    )  # fmt: skip
    return Method(sampler, estimator)


@trains_with(epochs=200)
@published_form(
    start="zero", partial="released", reach="all", exact_first_hop=False,
    edge_drop_form="released", dropout_in_histories=True, untrained="skip",
)  # fmt: skip
def graphfm_ob(
    *,
    parts: setting.Parts = 200,
    parts_per_batch: setting.PartsPerBatch = None,
    partition: setting.Partition = "metis",
    edge_drop: setting.EdgeDrop = 0.0,
    edge_drop_form: setting.EdgeDropForm = "scaled",
    beta: setting.Beta = (0.3,),
    partial: setting.Partial = "rescaled",
    threshold: setting.Threshold = 0,
    reach: setting.Reach = "read",
    start: setting.Start = "fresh",
    compensate: setting.Compensate = False,
    exact_first_hop: setting.ExactFirstHop = True,
    dropout_in_histories: setting.DropoutInHistories = False,
    untrained: setting.Untrained = "record",
) -> Method:
    """GraphFM-OB: GNNAutoScale, where a batch also updates the histories of its neighbours."""
    estimator = HaloHistory(
        beta=beta, partial=partial, threshold=threshold, start=start, compensate=compensate,
        exact_first_hop=exact_first_hop, dropout_in_histories=dropout_in_histories,
        untrained=untrained,
    )  # fmt: skip
    sampler = ClusterSampler(
        parts=parts, parts_per_batch=parts_per_batch, how=partition, edge_drop=edge_drop,
        edge_drop_form=edge_drop_form, reach=reach,
    )  # fmt: skip
    return Method(sampler, estimator)


@trains_with(epochs=200)
def graphfm_delta(
    *,
    parts: setting.Parts = 200,
    parts_per_batch: setting.PartsPerBatch = None,
    partition: setting.Partition = "metis",
    compensate: setting.Compensate = False,
    exact_first_hop: setting.ExactFirstHop = True,
) -> Method:
    """GraphFM-delta (ours): neighbours outside are computed from aggregates kept up to date."""
    estimator = HaloDifference(compensate=compensate, exact_first_hop=exact_first_hop)
    return Method(
        ClusterSampler(parts=parts, parts_per_batch=parts_per_batch, how=partition), estimator
    )


def sign(*, batch_size: setting.BatchSize = 512) -> Method:
    """SIGN: features of each hop are computed once. It has its own network (sign)."""
    return Method(RowSampler(batch_size=batch_size))


@trains_with(lr=0.01)
def sgc(*, batch_size: setting.BatchSize = 512) -> Method:
    """SGC: features are carried over all hops once. It has its own network (sgc)."""
    return Method(RowSampler(batch_size=batch_size))


METHODS: Mapping[str, Callable[..., Method]] = {
    method.__name__.replace("_", "-"): method
    for method in (
        full, graphsage, graphfm_ib, vr_gcn, fastgcn, ladies, mvs_gcn, graphsaint, shadow,
        cluster_gcn, gas, graphfm_ob, graphfm_delta, sign, sgc,
    )
}  # fmt: skip
