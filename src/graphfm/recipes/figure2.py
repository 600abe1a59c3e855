"""Figure 2: scores by number of neighbours and by number of layers.

The paper prints no numbers for this figure.
"""

from collections.abc import Iterator

from graphfm.recipes.recipe import AS_PUBLISHED, Recipe
from graphfm.recipes.recipe import recipe as make
from graphfm.recipes.table2_sage import IB_SOURCE, PUBLISHED_IB
from graphfm.recipes.table3 import BETA, chosen_for

SOURCE = f"{IB_SOURCE}; layers and neighbours from the figure"
NEIGHBORS = (1, 2, 4, 8, 16)
LAYERS = (2, 3, 4, 5)


def recipes() -> Iterator[Recipe]:
    for dataset in ("reddit", "flickr"):
        for method in ("graphsage", "graphfm-ib"):
            for fanout in NEIGHBORS:
                yield _recipe(dataset, method, 2, fanout)
    for fanout in (1, 2):
        for layers in LAYERS[1:]:
            yield _recipe("reddit", "graphfm-ib", layers, fanout)


def _recipe(dataset: str, method: str, layers: int, fanout: int) -> Recipe:
    options = {"dataset": dataset, "backbone": "sage", "method": method, **PUBLISHED_IB}
    options |= {"layers": layers, "fanout": (fanout,)}
    options |= AS_PUBLISHED
    if method == "graphfm-ib":
        options |= {"beta": (BETA,)}
    label = {"graphsage": "GraphSAGE", "graphfm-ib": "GraphFM-IB"}[method]
    row = f"{label}, {layers} layers, {fanout} neighbours"
    return make(
        f"figure2-{dataset}-{method}-{layers}x{fanout}", row, options, source=SOURCE,
        chosen=chosen_for(dataset, method),
    )  # fmt: skip
