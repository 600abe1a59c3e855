"""Small graphs that every test may ask for."""

import logging
import signal
from collections.abc import Callable, Iterator

import pytest
import torch

from graphfm import Graph
from graphfm.backbones import BACKBONES

MakeGraph = Callable[..., Graph]
Taken = Callable[..., dict[str, object]]


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    """Small graphs: threads that wait for each other cost more than they save."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def _ctrl_c() -> None:
    """As in a terminal: a script that runs the tests in the background has it ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _log_level() -> Iterator[None]:
    """A command sets the level for its process; the next test wants to see every message."""
    yield
    logging.getLogger("graphfm").setLevel(logging.NOTSET)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions, hops and datasets are kept; those of the tests are nobody else's business."""
    monkeypatch.setenv("GRAPHFM_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.setenv("GRAPHFM_DATA", str(tmp_path_factory.getbasetemp() / "data"))


@pytest.fixture
def taken() -> Taken:
    """Of some options, those that a backbone has: SGC has no width to set."""

    def taken(name: str, **options: object) -> dict[str, object]:
        known = BACKBONES[name].Settings.__dataclass_fields__
        return {key: value for key, value in options.items() if key in known}

    return taken


@pytest.fixture
def make_graph() -> MakeGraph:
    """A random graph; loops, duplicates and isolated nodes included unless asked otherwise."""

    def make(
        num_nodes: int = 60,
        num_edges: int = 240,
        *,
        num_features: int = 7,
        num_classes: int = 4,
        multi_label: bool = False,
        weighted: bool = False,
        undirected: bool = False,
        seed: int = 0,
    ) -> Graph:
        rng = torch.Generator().manual_seed(seed)
        connected = max(num_nodes - 3, 1)  # the last three nodes are isolated
        edges = torch.randint(connected, (2, num_edges), generator=rng)
        split = torch.arange(num_nodes) % 3
        y = torch.randint(num_classes, (num_nodes,), generator=rng)
        if multi_label:
            y = torch.randint(2, (num_nodes, num_classes), generator=rng)
        weight = torch.rand(num_edges, generator=rng) + 0.1 if weighted else None
        return Graph.from_edges(
            edges,
            torch.randn(num_nodes, num_features, generator=rng) if num_features else None,
            y,
            num_nodes=num_nodes,
            train_mask=split == 0,
            val_mask=split == 1,
            test_mask=split == 2,
            edge_weight=weight,
            num_classes=num_classes,
            undirected=undirected,
        )

    return make
