"""The settings behind the paper's tables and figures, as runs.

Imported by: `experiments`, `cli`.
May import: every earlier room, runs and before.
"""

from collections.abc import Mapping
from functools import cache

from graphfm.errors import InputError, did_you_mean
from graphfm.recipes import figure2, table2, table3, table4
from graphfm.recipes.recipe import Recipe

TABLES = {"table2": table2, "table3": table3, "table4": table4, "figure2": figure2}


@cache
def recipes() -> Mapping[str, Recipe]:
    """Return every recipe by its name, in the order of the paper."""
    all_recipes = [recipe for table in TABLES.values() for recipe in table.recipes()]
    assert len({recipe.name for recipe in all_recipes}) == len(all_recipes)
    return {recipe.name: recipe for recipe in all_recipes}


def recipe_of(name: str) -> Recipe:
    """Return the recipe called `name`."""
    if name not in recipes():
        meant = did_you_mean(name, recipes())
        raise InputError(f"unknown recipe {name!r}; 'graphfm recipes' lists all names{meant}")
    return recipes()[name]
