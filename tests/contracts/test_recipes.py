"""Every recipe builds and takes two steps on a small graph of its dataset's shape."""

import pytest
import torch

from graphfm import InputError, synthetic
from graphfm.data.synthetic import SHAPES
from graphfm.recipes import TABLES, recipe_of, recipes
from graphfm.recipes.recipe import TWIN
from graphfm.recipes.table2_sage import AS_RELEASED
from graphfm.runs.run import Run, build

NODES = 300
GRAPHS = {}


def graph_of(dataset):
    if dataset not in GRAPHS:
        GRAPHS[dataset] = synthetic(dataset, scale=NODES / SHAPES[dataset].num_nodes)
    return GRAPHS[dataset]


@pytest.mark.parametrize("name", recipes())
def test_builds_and_takes_two_steps(name):
    recipe = recipe_of(name)
    trainer = build(recipe.run, graph_of(recipe.run.dataset))
    before = [p.detach().clone() for p in trainer.backbone.parameters()]
    trainer.backbone.train()
    steps = [*trainer.method.sampler.epoch(trainer.rng), *trainer.method.sampler.epoch(trainer.rng)]
    for seeds in steps[:2]:
        assert bool(torch.isfinite(trainer.step(seeds)))
    after = list(trainer.backbone.parameters())
    assert any(not torch.equal(old, new) for old, new in zip(before, after, strict=True))


def test_every_recipe_says_where_its_settings_come_from():
    assert all(recipe.source for recipe in recipes().values())
    assert {recipe.table for recipe in recipes().values()} == set(TABLES)


MOMENTUM = [
    name for name, recipe in recipes().items()
    if recipe.table == "table2" and recipe.run.method in ("graphfm-ob", "graphfm-ib")
    and not name.endswith(AS_RELEASED)
]  # fmt: skip


@pytest.mark.parametrize("name", MOMENTUM)
def test_the_twin_differs_in_nothing_but_momentum(name):
    recipe = recipe_of(name)
    base = {"graphfm-ob": "gas", "graphfm-ib": "graphsage"}[recipe.run.method]
    twin = recipe_of(name.replace(recipe.run.method, base) + f"-{TWIN}")
    assert twin.run.method == base
    assert twin.run.backbone_settings == recipe.run.backbone_settings
    ours, theirs = recipe.run.training, twin.run.training
    assert (ours.lr, ours.epochs, ours.clip, ours.seed) == (
        theirs.lr, theirs.epochs, theirs.clip, theirs.seed,
    )  # fmt: skip
    shared = {k: v for k, v in recipe.run.method_settings.items() if k in twin.run.method_settings}
    assert shared == dict(twin.run.method_settings)


def test_options_override_a_recipe():
    recipe = recipe_of("table2-gcn-flickr-graphfm-ob")
    run = Run.make(**recipe.options(hidden=8, seed=3, lr=None))
    assert (run.backbone_settings["hidden"], run.training.seed) == (8, 3)
    assert run.training.lr == recipe.run.training.lr
    other = Run.make(**recipe.options(method="graphsage"))
    assert other.method == "graphsage"
    assert other.backbone_settings == recipe.run.backbone_settings


def test_a_slip_in_a_name_is_refused_and_a_network_of_its_own_is_taken():
    recipe = recipe_of("table2-gcn-flickr-gas")
    with pytest.raises(InputError, match="unknown method 'foo'"):
        recipe.options(method="foo")
    with pytest.raises(InputError, match="unknown backbone 'foo'"):
        recipe.options(backbone="foo")
    assert Run.make(**recipe.options(method="sign")).backbone == "sign"


def test_a_recipe_misspelt_is_guessed():
    with pytest.raises(InputError, match=r"all names \(did you mean table3-reddit-full-2\?\)"):
        recipe_of("table3-redit-full-2")


def test_what_is_chosen_is_a_setting_of_the_run():
    """A row without momentum has no beta to be chosen."""
    for recipe in recipes().values():
        if any(text.startswith("beta") for text in recipe.chosen):
            assert "beta" in recipe.run.method_settings, recipe.name


def test_the_released_example_differs_from_the_papers_cell_in_its_depth_alone():
    cell = recipe_of("table2-sage-reddit-graphfm-ib")
    released = recipe_of(f"{cell.name}-{AS_RELEASED}")
    assert released.run == Run.make(**cell.options(layers=5))
    assert (cell.run.backbone_settings["layers"], released.paper) == (4, None)
