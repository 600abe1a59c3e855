"""Random graphs with communities, power-law degrees and features that need aggregation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from graphfm.batch import offsets
from graphfm.data.graph import Graph
from graphfm.errors import InputError
from graphfm.memory import available_memory

EDGES_AT_ONCE = 1 << 26  # bounds the memory needed beside the graph itself


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The size of a graph. `num_edges` counts both directions."""

    num_nodes: int
    num_edges: int
    num_features: int
    num_classes: int
    split: tuple[float, float, float]  # shares of all nodes; the rest is unlabelled
    multi_label: bool = False

    def times(self, scale: float) -> Shape:
        """Return the same shape with the numbers of nodes and edges multiplied by `scale`."""
        if not 0 < scale < math.inf:
            raise InputError(f"the scale is {scale}; expected a number above 0")
        num_pairs = max(round(self.num_edges * scale) // 2, 1)
        return replace(
            self, num_nodes=max(round(self.num_nodes * scale), 8), num_edges=2 * num_pairs
        )

    def num_bytes(self, dtype: torch.dtype = torch.float32) -> int:
        """Size of a graph of this shape."""
        labels = self.num_classes if self.multi_label else 8
        per_node = self.num_features * dtype.itemsize + labels + 8 + 3  # offsets and masks
        return self.num_nodes * per_node + 8 + 4 * self.num_edges


# Table 1 of the paper, which counts each undirected edge once, but those of Flickr twice.
# papers100M is not in the paper; 1.4 % of its nodes are labelled.
SHAPES: Mapping[str, Shape] = {
    "small": Shape(
        num_nodes=10_000, num_edges=200_000, num_features=64, num_classes=10,
        split=(0.5, 0.25, 0.25),
    ),
    "flickr": Shape(
        num_nodes=89_250, num_edges=899_756, num_features=500, num_classes=7,
        split=(0.5, 0.25, 0.25),
    ),
    "yelp": Shape(
        num_nodes=716_847, num_edges=2 * 6_997_410, num_features=300, num_classes=50,
        split=(0.75, 0.15, 0.10), multi_label=True,
    ),
    "reddit": Shape(
        num_nodes=232_965, num_edges=2 * 11_606_919, num_features=602, num_classes=41,
        split=(0.66, 0.10, 0.24),
    ),
    "arxiv": Shape(
        num_nodes=169_343, num_edges=2 * 1_166_243, num_features=128, num_classes=40,
        split=(0.537, 0.176, 0.287),
    ),
    "products": Shape(
        num_nodes=2_449_029, num_edges=2 * 61_859_140, num_features=100, num_classes=47,
        split=(0.10, 0.02, 0.88),
    ),
    "papers100m": Shape(
        num_nodes=111_059_956, num_edges=2 * 1_615_685_872, num_features=128, num_classes=172,
        split=(1_207_179 / 111_059_956, 125_265 / 111_059_956, 214_338 / 111_059_956),
    ),
}  # fmt: skip

COMMUNITIES_PER_CLASS = 3  # so that a class is not one cluster and its boundary must be learned
TYPICAL_LABELS = 6  # per community, in multi-label graphs
LATENT_WIDTH = 16  # dimensions in which communities differ
POWER = 2.5  # exponent of the degree distribution
LABEL_CHANCE = (0.9, 0.01)  # multi-label: of a typical label of the community, of any other


def synthetic(
    shape: str | Shape = "small",
    *,
    scale: float = 1.0,
    seed: int = 0,
    homophily: float = 0.6,
    signal: float = 0.5,
    dtype: torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
) -> Graph:
    """Draw a random undirected graph of the given shape, times `scale`, in linear time.

    The number of edges that a node starts follows a power law. An edge stays inside its community
    with probability `homophily` and otherwise ends anywhere. Features are the position of the
    community times `signal`, plus noise of deviation 1: one node says little about its class, the
    mean over many neighbours a lot. Equal seeds give equal graphs on the same kind of device.
    """
    name, shape = (shape, shape_of(shape)) if isinstance(shape, str) else ("synthetic", shape)
    if not 0 <= homophily <= 1:
        raise InputError(f"homophily is {homophily}; expected 0 to 1")
    shape = shape.times(scale)
    _check_memory(shape, dtype, torch.device(device))
    num_nodes, num_pairs = shape.num_nodes, shape.num_edges // 2
    rng = torch.Generator(device).manual_seed(seed)
    num_communities = COMMUNITIES_PER_CLASS * shape.num_classes
    community = torch.randint(num_communities, (num_nodes,), generator=rng, device=device)
    indptr, indices = _draw_edges(community, num_communities, num_pairs, homophily, rng)
    y = _draw_labels(community, num_communities, shape, rng)
    masks = _draw_split(num_nodes, shape.split, rng)
    y[~(masks[0] | masks[1] | masks[2])] = -1
    return Graph(
        indptr=indptr,
        indices=indices,
        x=_draw_features(community, num_communities, shape.num_features, signal, dtype, rng),
        y=y,
        num_classes=shape.num_classes,
        train_mask=masks[0],
        val_mask=masks[1],
        test_mask=masks[2],
        meta={"name": name, "source": "graphfm.synthetic", "scale": scale, "seed": seed},
    )


def shape_of(name: str) -> Shape:
    if name not in SHAPES:
        raise InputError(f"unknown synthetic shape {name!r}; choose one of {', '.join(SHAPES)}")
    return SHAPES[name]


def _check_memory(shape: Shape, dtype: torch.dtype, device: torch.device) -> None:
    """Refuse a graph that cannot fit before anything is allocated."""
    drawing = shape.num_nodes * 40 + shape.num_edges * 30  # freed before the features are drawn
    needed = max(shape.num_bytes(dtype), drawing)
    if device.type == "cuda":
        available = torch.cuda.get_device_properties(device).total_memory
    else:
        available = available_memory()
    if needed > available:
        raise InputError(
            f"making a graph of {shape.num_nodes:,} nodes and {shape.num_edges:,} edges takes "
            f"{needed / 2**30:.0f} GiB, but the {device.type} has {available / 2**30:.0f} GiB; "
            "use a smaller scale"
        )


def _draw_edges(
    community: Tensor, num_communities: int, num_pairs: int, homophily: float, rng: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Draw `num_pairs` undirected edges as CSR; only one number per pair is sorted."""
    device, n = community.device, community.numel()
    ids = torch.arange(n, dtype=torch.int32, device=device)
    share = 1 - torch.rand(n, generator=rng, device=device, dtype=torch.float64)
    share = share.pow(-1 / (POWER - 1)).clamp(max=n**0.5).cumsum(0)
    ends = (share * (num_pairs / share[-1])).round().long()
    ends[-1] = num_pairs
    own = ends.diff(prepend=ends.new_zeros(1))  # edges that each node starts
    first = ids.repeat_interleave(own, output_size=num_pairs)
    second = _draw_partners(first, own, community, num_communities, homophily, rng)
    received, order = second.sort(stable=True)
    indptr = offsets(own + torch.bincount(received, minlength=n))
    indices = torch.empty(2 * num_pairs, dtype=torch.int32, device=device)
    # A row holds first the ends of the edges that its node starts, then the starts of the others.
    pair = torch.arange(num_pairs, device=device)
    indices[pair + (indptr[:-1] - offsets(own)[:-1])[first]] = second
    indices[pair + (indptr[1:] - torch.bincount(received, minlength=n).cumsum(0))[received]] = (
        first[order]
    )
    return indptr, indices


def _draw_partners(
    first: Tensor,
    own: Tensor,
    community: Tensor,
    num_communities: int,
    homophily: float,
    rng: torch.Generator,
) -> Tensor:
    """Draw the other end of each edge, in the same community or anywhere, by power-law weight."""
    device, n = first.device, own.numel()
    members = torch.argsort(community, stable=True)
    deck = members.int().repeat_interleave(own[members], output_size=first.numel())
    size = torch.zeros(num_communities, dtype=torch.int64, device=device)
    size.index_add_(0, community, own)
    start = size.cumsum(0) - size
    second = torch.empty_like(first)
    for begin in range(0, first.numel(), EDGES_AT_ONCE):
        here = first[begin : begin + EDGES_AT_ONCE]
        near = torch.rand(here.numel(), generator=rng, device=device) < homophily
        where = torch.rand(here.numel(), generator=rng, device=device, dtype=torch.float64)
        group = community[here]
        card = torch.where(near, start[group] + (where * size[group]).long(), where * deck.numel())
        partner = deck[card.long()]
        loop = partner == here
        second[begin : begin + EDGES_AT_ONCE] = torch.where(loop, (here + 1) % n, partner)
    return second


def _draw_labels(
    community: Tensor, num_communities: int, shape: Shape, rng: torch.Generator
) -> Tensor:
    if not shape.multi_label:
        return community % shape.num_classes
    size = (num_communities, shape.num_classes)
    typical = (
        torch.rand(size, generator=rng, device=rng.device) < TYPICAL_LABELS / shape.num_classes
    )
    typical[torch.arange(num_communities), torch.arange(num_communities) % shape.num_classes] = True
    chance = torch.where(typical, *LABEL_CHANCE)[community]
    return (torch.rand(chance.shape, generator=rng, device=rng.device) < chance).to(torch.int8)


def _draw_features(
    community: Tensor,
    num_communities: int,
    width: int,
    signal: float,
    dtype: torch.dtype,
    rng: torch.Generator,
) -> Tensor:
    """Map the position of each community in a latent space to the features, and add noise."""
    latent = torch.randn(num_communities, LATENT_WIDTH, generator=rng, device=rng.device)
    basis = torch.randn(LATENT_WIDTH, width, generator=rng, device=rng.device)
    center = signal * latent @ torch.nn.functional.normalize(basis, dim=1)
    x = torch.empty(community.numel(), width, dtype=dtype, device=rng.device)
    step = max(EDGES_AT_ONCE // width, 1)
    for begin in range(0, community.numel(), step):
        here = center[community[begin : begin + step]]
        x[begin : begin + step] = here + torch.randn(here.shape, generator=rng, device=rng.device)
    return x


def _draw_split(
    num_nodes: int, split: tuple[float, float, float], rng: torch.Generator
) -> list[Tensor]:
    order = torch.randperm(num_nodes, generator=rng, device=rng.device)
    masks, begin = [], 0
    for share in split:
        end = min(begin + max(round(share * num_nodes), 1), num_nodes)
        mask = torch.zeros(num_nodes, dtype=torch.bool, device=rng.device)
        mask[order[begin:end]] = True
        masks.append(mask)
        begin = end
    return masks
