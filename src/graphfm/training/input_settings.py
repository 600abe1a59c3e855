"""The settings that say which rows a network reads: features, and rows made beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from graphfm.backbones.input_rows import LEARNED, NONE, InputRows
from graphfm.data.graph.node_features import check_width
from graphfm.errors import InputError
from graphfm.options import Setting

WIDTH = 64


@dataclass(frozen=True, kw_only=True)
class InputSettings:
    """What happens to a graph's features before a network reads them, and what joins them."""

    node_features: Annotated[
        Literal["none", "degree", "random", "learned"],
        Setting("Rows made for nodes: none, degree, random or learned."),
    ] = "none"
    node_width: Annotated[int, Setting("Width of random and learned rows.", rare=True)] = WIDTH
    standardize: Annotated[bool, Setting("Standardise the features.")] = False

    def check_inputs(self) -> None:
        """Refuse a width that is none, or that nothing has."""
        check_width("node_width", self.node_width)
        if self.node_width != WIDTH and self.node_features not in ("random", LEARNED):
            raise InputError(
                "node_width belongs to node_features random and learned, but node_features is "
                f"{self.node_features}; leave node_width out"
            )

    def refuse_gathered(self, accumulate: int) -> None:
        """Refuse to gather gradients of learned rows, which move at every step."""
        if accumulate > 1 and self.node_features == LEARNED:
            raise InputError(
                "accumulate gathers gradients of weights, but learned rows move at every step; "
                "leave accumulate out, or use node_features degree or random"
            )

    def input_rows(self, num_features: int, num_nodes: int, seed: int) -> InputRows | None:
        """What makes the network's input rows; None if it reads the features as they are."""
        if self.node_features == NONE and not self.standardize:
            return None
        return InputRows(
            num_features, num_nodes, standardize=self.standardize, kind=self.node_features,
            width=self.node_width, seed=seed,
        )  # fmt: skip

    def in_words(self, num_features: int) -> str:
        """What a network reads of each node: "12 features (standardised), 64 learned"."""
        words = f"{num_features} features{' (standardised)' if self.standardize else ''}"
        if (inputs := self.input_rows(num_features, 0, 0)) is None or not inputs.added:
            return words
        return f"{words}, {inputs.added} {self.node_features}"
