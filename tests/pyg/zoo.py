"""Networks of PyG as users write them, by name: what the tests of this folder run."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import torch_geometric.nn as pyg
from torch import nn

from tests.pyg import habits, published, users

IN, HIDDEN, OUT, ATTRIBUTES, TYPES = 6, 8, 3, 4, 3
WEIGHT, ATTR, TYPE = ("edge_weight",), ("edge_attr",), ("edge_type",)
DEGREES = torch.tensor([0, 5, 9, 12, 6, 3, 1, 1])  # how often each degree occurs, for PNA


@dataclass(frozen=True)
class Model:
    """How to make a network, and which data of edges it takes."""

    make: Callable[[], nn.Module]
    data: tuple[str, ...] = ()
    call: Callable | None = None


class Two(nn.Module):
    """Two convolutions with a rectifier between them; data of edges goes to both."""

    def __init__(self, make, norm=None):
        super().__init__()
        self.first, self.second = make(IN, HIDDEN), make(HIDDEN, OUT)
        self.norm = norm or nn.Identity()

    def forward(self, x, edge_index, edge_weight=None, edge_attr=None, edge_type=None):
        given = [one for one in (edge_weight, edge_type, edge_attr) if one is not None]
        x = self.norm(self.first(x, edge_index, *given)).relu()
        return self.second(x, edge_index, *given)


class Between(nn.Module):
    """An encoder, convolutions that keep the width, and a decoder."""

    def __init__(self, *convs, initial=False, positions=False):
        super().__init__()
        self.encode, self.decode = nn.Linear(IN, HIDDEN), nn.Linear(HIDDEN, OUT)
        self.convs = nn.ModuleList(convs)
        self.initial, self.positions = initial, positions

    def forward(self, x, edge_index, edge_weight=None):
        position, given = x[:, :3], [] if edge_weight is None else [edge_weight]
        x = first = self.encode(x).relu()
        for conv in self.convs:
            more = (first,) if self.initial else (position,) if self.positions else ()
            x = conv(x, *more, edge_index, *given)
        return self.decode(x.relu())


def rows(wide, narrow):
    """A network over rows, as GIN and others ask for."""
    return nn.Sequential(nn.Linear(wide, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, narrow))


def edge_widths(make):
    """Two convolutions that read attributes of edges, of whatever widths `make` is given."""
    return Model(lambda: Two(make), ATTR)


def two(make, *data, **options):
    return Model(lambda: Two(partial(make, **options)), data)


def built(make, *args, **options):
    """Two convolutions whose constructor takes networks instead of widths."""
    return Model(lambda: Two(lambda i, o: make(rows(i, o), *args, **options)))


def between(*makes, data=(), **options):
    return Model(lambda: Between(*[make() for make in makes], **options), data)


def ready(kind, *data, layers=3, **options):
    """One of the networks in `torch_geometric.nn.models`."""
    return Model(lambda: kind(IN, HIDDEN, layers, OUT, **options), data)


def own(kind, *data, **options):
    return Model(lambda: kind(IN, HIDDEN, OUT, **options), data)


SCALED = {
    "aggregators": ["mean", "min", "max", "std"],
    "deg": DEGREES,
    "scalers": ["identity", "amplification", "attenuation"],
}
SEVERAL = {"aggr": ["mean", "max", "std"]}
SOFT = {"aggr": pyg.aggr.SoftmaxAggregation(learn=True)}
DEGREE_SCALED = {"aggr": pyg.aggr.DegreeScalerAggregation("mean", "linear", DEGREES)}

CONVOLUTIONS = {
    "SAGEConv": two(pyg.SAGEConv),
    "SAGEConv sum": two(pyg.SAGEConv, aggr="sum"),
    "SAGEConv max": two(pyg.SAGEConv, aggr="max"),
    "SAGEConv min": two(pyg.SAGEConv, aggr="min"),
    "SAGEConv softmax": two(pyg.SAGEConv, **SOFT),
    "SAGEConv several": two(pyg.SAGEConv, **SEVERAL),
    "SAGEConv powermean": two(pyg.SAGEConv, aggr="powermean"),
    "SAGEConv degree scaler": two(pyg.SAGEConv, **DEGREE_SCALED),
    "SAGEConv project normalize": two(pyg.SAGEConv, project=True, normalize=True),
    "SAGEConv without root": two(pyg.SAGEConv, root_weight=False, bias=False),
    "GraphConv": two(pyg.GraphConv),
    "GraphConv mean weighted": two(pyg.GraphConv, *WEIGHT, aggr="mean"),
    "GCNConv": two(pyg.GCNConv),
    "GCNConv weighted": two(pyg.GCNConv, *WEIGHT),
    "GCNConv cached": two(pyg.GCNConv, cached=True),
    "GCNConv improved": two(pyg.GCNConv, *WEIGHT, improved=True),
    "GCNConv without loops": two(pyg.GCNConv, add_self_loops=False),
    "GCNConv plain": two(pyg.GCNConv, *WEIGHT, normalize=False),
    "GATConv": two(pyg.GATConv, heads=2, concat=False),
    "GATConv edges": two(pyg.GATConv, *ATTR, edge_dim=ATTRIBUTES),
    "GATConv residual": two(pyg.GATConv, residual=True, add_self_loops=False),
    "GATv2Conv": two(pyg.GATv2Conv, heads=2, concat=False, share_weights=True),
    "GATv2Conv edges": two(pyg.GATv2Conv, *ATTR, edge_dim=ATTRIBUTES, fill_value="mean"),
    "SuperGATConv": two(pyg.SuperGATConv, heads=2, concat=False, attention_type="MX"),
    "TransformerConv": two(pyg.TransformerConv, heads=2, concat=False, beta=True),
    "TransformerConv edges": two(pyg.TransformerConv, *ATTR, edge_dim=ATTRIBUTES),
    "GINConv": built(pyg.GINConv, train_eps=True),
    "GINEConv": edge_widths(lambda i, o: pyg.GINEConv(rows(i, o), edge_dim=ATTRIBUTES)),
    "EdgeConv": Model(lambda: Two(lambda i, o: pyg.EdgeConv(rows(2 * i, o)))),
    "NNConv": edge_widths(lambda i, o: pyg.NNConv(i, o, rows(ATTRIBUTES, i * o))),
    "GMMConv": two(pyg.GMMConv, *ATTR, dim=ATTRIBUTES, kernel_size=2),
    "PDNConv": two(pyg.PDNConv, *ATTR, edge_dim=ATTRIBUTES, hidden_channels=4),
    "ResGatedGraphConv": two(pyg.ResGatedGraphConv),
    "ResGatedGraphConv edges": two(pyg.ResGatedGraphConv, *ATTR, edge_dim=ATTRIBUTES),
    "GeneralConv": two(pyg.GeneralConv),
    "GeneralConv attention": two(
        pyg.GeneralConv, *ATTR, in_edge_channels=ATTRIBUTES, attention=True
    ),
    "TAGConv": two(pyg.TAGConv),
    "ARMAConv": two(pyg.ARMAConv, num_stacks=2, num_layers=2),
    "SGConv": two(pyg.SGConv, K=2),
    "SGConv cached": two(pyg.SGConv, K=2, cached=True),
    "SSGConv": two(pyg.SSGConv, alpha=0.1, K=3),
    "MixHopConv": Model(lambda: users.MixHop(IN, HIDDEN, OUT)),
    "MFConv": two(pyg.MFConv, max_degree=6),
    "LEConv": two(pyg.LEConv),
    "LEConv weighted": two(pyg.LEConv, *WEIGHT),
    "ClusterGCNConv": two(pyg.ClusterGCNConv),
    "GENConv": two(pyg.GENConv, learn_t=True),
    "GENConv edges": two(pyg.GENConv, *ATTR, edge_dim=ATTRIBUTES, aggr="powermean", learn_p=True),
    "FiLMConv": two(pyg.FiLMConv),
    "FeaStConv": two(pyg.FeaStConv, heads=2),
    "EGConv": between(
        partial(pyg.EGConv, HIDDEN, HIDDEN, num_heads=2),
        partial(pyg.EGConv, HIDDEN, HIDDEN, ["sum", "mean", "max"], add_self_loops=False),
    ),
    "RGCNConv": two(pyg.RGCNConv, *TYPE, num_relations=TYPES),
    "RGCNConv sum of bases": two(pyg.RGCNConv, *TYPE, num_relations=TYPES, num_bases=2, aggr="sum"),
    "FastRGCNConv": two(pyg.FastRGCNConv, *TYPE, num_relations=TYPES),
    "RGATConv": two(pyg.RGATConv, *TYPE, num_relations=TYPES),
    "CGConv": between(partial(pyg.CGConv, HIDDEN), partial(pyg.CGConv, HIDDEN, batch_norm=True)),
    "AGNNConv": between(pyg.AGNNConv, pyg.AGNNConv),
    "AntiSymmetricConv": between(partial(pyg.AntiSymmetricConv, HIDDEN, num_iters=2)),
    "GatedGraphConv": between(partial(pyg.GatedGraphConv, HIDDEN, 3)),
    "LGConv": between(pyg.LGConv, pyg.LGConv, pyg.LGConv),
    "SimpleConv": between(
        partial(pyg.SimpleConv, "mean", "self_loop"), partial(pyg.SimpleConv, "sum"), data=WEIGHT
    ),
    "WLConvContinuous": between(pyg.WLConvContinuous, pyg.WLConvContinuous, data=WEIGHT),
    "PNAConv": two(pyg.PNAConv, *ATTR, edge_dim=ATTRIBUTES, **SCALED),
    "GCN2Conv": between(
        *[partial(pyg.GCN2Conv, HIDDEN, 0.1, 0.5, layer=n + 1) for n in range(3)], initial=True
    ),
    "FAConv": between(partial(pyg.FAConv, HIDDEN), partial(pyg.FAConv, HIDDEN), initial=True),
    "PointNetConv": between(
        *[lambda: pyg.PointNetConv(rows(HIDDEN + 3, HIDDEN))] * 2, positions=True
    ),
    "PointTransformerConv": between(
        partial(pyg.PointTransformerConv, HIDDEN, HIDDEN), positions=True
    ),
    "PointGNNConv": between(
        lambda: pyg.PointGNNConv(rows(HIDDEN, 3), rows(HIDDEN + 3, HIDDEN), rows(HIDDEN, HIDDEN)),
        positions=True,
    ),
}


READY = {
    "GraphSAGE": ready(pyg.GraphSAGE),
    "GraphSAGE jk cat": ready(pyg.GraphSAGE, jk="cat", norm="batch_norm"),
    "GraphSAGE jk lstm": ready(pyg.GraphSAGE, jk="lstm"),
    "GraphSAGE dropout": ready(pyg.GraphSAGE, dropout=0.5),
    "GCN": ready(pyg.GCN),
    "GCN jk max": ready(pyg.GCN, *WEIGHT, jk="max", norm=pyg.LayerNorm(HIDDEN, mode="node")),
    "GCN act first": ready(pyg.GCN, act_first=True, norm="batch_norm", act="elu"),
    "GIN": ready(pyg.GIN, norm="batch_norm"),
    "GIN jk": ready(pyg.GIN, jk="lstm", train_eps=True),
    "GAT": ready(pyg.GAT, heads=2, layers=2),
    "GAT v2": ready(pyg.GAT, *ATTR, v2=True, heads=2, edge_dim=ATTRIBUTES, jk="cat"),
    "PNA": ready(pyg.PNA, **SCALED),
    "PNA edges": ready(pyg.PNA, *ATTR, layers=2, edge_dim=ATTRIBUTES, jk="max", **SCALED),
    "EdgeCNN": ready(pyg.EdgeCNN),
    "EdgeCNN jk": ready(pyg.EdgeCNN, layers=2, jk="cat", norm="batch_norm"),
}

OWN = {
    "one layer": Model(lambda: pyg.GCNConv(IN, OUT)),
    "no convolution": Model(lambda: users.Rows(IN, HIDDEN, OUT)),
    "the tutorial's GCN": own(users.TutorialNetwork),
    "the tutorial's edge convolution": own(users.TutorialEdges),
    "called three times": own(users.Thrice),
    "two branches": own(users.Branches),
    "parallel branches": own(users.Parallel),
    "DeepGCNLayer": own(users.Deeper),
    "DeepGCNLayer res": own(users.Deeper, block="res"),
    "pyg.Sequential": Model(lambda: users.sequence(IN, HIDDEN, OUT)),
    "lazy": Model(lambda: users.lazy(HIDDEN, OUT)),
    "takes data": own(users.TakesData),
    "edge encoder": own(habits.EdgeEncoder, *ATTR, edge_width=ATTRIBUTES),
    "edge weights of attributes": own(habits.EdgeGate, *ATTR, edge_width=ATTRIBUTES),
    "types and attributes": own(
        habits.TypesAndAttributes, *TYPE, *ATTR, types=TYPES, edge_width=ATTRIBUTES
    ),
    "weights and loop": own(habits.WeightedLoop, *WEIGHT),
    "input batch norm": own(habits.InputNorm),
    "functional dropout": own(habits.FunctionalDropout),
    "modules in modules": own(users.Nested),
    "shared batch norm": own(habits.SharedNorm),
    "group norm": own(habits.Normed, norm=lambda width: pyg.DiffGroupNorm(width, 2)),
    "message norm": own(habits.MessageNormed),
    "GCNII": own(published.GCNII),
    "JK-Net": own(published.JKNet),
    "APPNP": own(published.PersonalizedPages),
    "SAGE of products": own(published.ProductsSAGE),
    "GATv2 with skips": own(published.SkippingGAT),
    "UniMP": own(published.UniMP),
    "DNA": own(published.DNA),
    "ARMA": own(published.ARMA),
    "DAGNN": own(published.DAGNN),
    "GPR": own(published.GPR),
    "GCN of arxiv": own(published.ArxivGCN),
    "R-GCN": own(published.RelationalGCN, *TYPE, types=TYPES),
    "PPI GAT": own(published.ProteinGAT),
}

ZOO = CONVOLUTIONS | READY | OWN
