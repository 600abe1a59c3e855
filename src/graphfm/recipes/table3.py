"""Table 3: score, memory and seconds per epoch of GraphSAGE with and without momentum.

The paper says nothing of how its full-batch rows were trained. An epoch of full batch is one step,
so the 110 epochs of the others would be 110 steps; these rows take 1,000 at a constant rate.
"""

from collections.abc import Iterator

from graphfm.recipes.recipe import AS_PUBLISHED, Recipe
from graphfm.recipes.recipe import recipe as make
from graphfm.recipes.table2_sage import IB_SOURCE, OF_REDDIT, PUBLISHED_IB

BETA = 0.9
SOURCE = f"{IB_SOURCE}; layers and neighbours from the table"
FULL = {"epochs": 1000, "schedule": "constant"}
CHOSEN_FULL = ("1,000 steps at a constant learning rate",)
OUT_OF_MEMORY = "OOM"
# Each row: label, method, layers, fanout, then (score, MiB, seconds) on Reddit and on Flickr; None
# means that the paper ran out of memory.
Cell = tuple[float, int, float] | None
ROWS: tuple[tuple[str, str, int, tuple[int, ...], Cell, Cell], ...] = (
    ("2-layer full batch", "full", 2, (), None, (0.513, 4860, 1.7)),
    ("GraphSAGE [25,10]", "graphsage", 2, (25, 10), (0.957, 3080, 6.5), (0.512, 1740, 1.6)),
    ("GraphSAGE [1,1]", "graphsage", 2, (1, 1), (0.931, 2250, 3.3), (0.490, 1310, 1.2)),
    ("GraphFM-IB [1,1]", "graphfm-ib", 2, (1, 1), (0.957, 2300, 3.9), (0.503, 1480, 1.4)),
    ("GraphSAGE [4,4]", "graphsage", 2, (4, 4), (0.955, 2320, 4.0), (0.507, 1390, 1.3)),
    ("GraphFM-IB [4,4]", "graphfm-ib", 2, (4, 4), (0.958, 2450, 4.2), (0.511, 1540, 1.5)),
    ("4-layer full batch", "full", 4, (), None, (0.514, 11000, 5.2)),
    ("GraphSAGE [25,10,10,10]", "graphsage", 4, (25, 10, 10, 10), (0.962, 10110, 53.0),
     (0.514, 6480, 3.6)),
    ("GraphSAGE [1,1,1,1]", "graphsage", 4, (1, 1, 1, 1), (0.951, 2700, 5.2), (0.502, 1360, 1.7)),
    ("GraphFM-IB [1,1,1,1]", "graphfm-ib", 4, (1, 1, 1, 1), (0.962, 2860, 6.2), (0.513, 1700, 2.0)),
    ("GraphSAGE [2,2,2,2]", "graphsage", 4, (2, 2, 2, 2), (0.958, 2870, 5.8), (0.509, 1470, 1.8)),
    ("GraphFM-IB [2,2,2,2]", "graphfm-ib", 4, (2, 2, 2, 2), (0.963, 3130, 7.5), (0.513, 1900, 2.4)),
)  # fmt: skip


def recipes() -> Iterator[Recipe]:
    """Yield all rows on Reddit, then on Flickr."""
    for column, dataset in enumerate(("reddit", "flickr")):
        for row, method, layers, fanout, *cells in ROWS:
            yield _recipe(row, method, layers, fanout, dataset, cells[column])


def chosen_for(dataset: str, method: str) -> tuple[str, ...]:
    """Say what no source gives: the example is of Reddit, and the table does not name its beta."""
    beta = (f"beta ({BETA})",) if method == "graphfm-ib" else ()
    full = CHOSEN_FULL if method == "full" else ()
    return (*beta, *full, *(() if dataset == "reddit" else (OF_REDDIT,)))


def _recipe(
    row: str, method: str, layers: int, fanout: tuple[int, ...], dataset: str, paper: Cell
) -> Recipe:
    options = {"dataset": dataset, "backbone": "sage", "method": method, **PUBLISHED_IB}
    options |= {"layers": layers, "fanout": fanout}
    if method == "graphfm-ib":
        options |= {"beta": (BETA,)}
    if method != "full":
        options |= AS_PUBLISHED
    else:
        options |= FULL
        del options["fanout"], options["batch_size"]
    score, mebibytes, seconds = paper or (None, None, None)
    sizes = "-".join(map(str, fanout)) or str(layers)
    return make(
        f"table3-{dataset}-{method}-{sizes}", row, options, paper=score,
        paper_mebibytes=mebibytes, paper_seconds=seconds,
        paper_instead="" if paper else OUT_OF_MEMORY, source=SOURCE,
        chosen=chosen_for(dataset, method),
    )  # fmt: skip
