"""Backbones: the networks, as stacks of layers. A new one needs a file here and a line below.

Imported by: `methods`, `training` and every later room.
May import: every earlier room, estimators and before.
"""

from collections.abc import Mapping
from typing import Any

from graphfm.backbones.base import Backbone
from graphfm.backbones.gcn import GCN
from graphfm.backbones.gcnii import GCNII
from graphfm.backbones.mlp import MLP
from graphfm.backbones.pna import PNA
from graphfm.backbones.sage import SAGE
from graphfm.backbones.sgc import SGC
from graphfm.backbones.sign import SIGN

BACKBONES: Mapping[str, type[Backbone]] = {
    "sage": SAGE,
    "gcn": GCN,
    "gcnii": GCNII,
    "pna": PNA,
    "mlp": MLP,
    "sign": SIGN,
    "sgc": SGC,
}


def make_backbone(name: str, in_width: int, out_width: int, **options: Any) -> Backbone:
    """Make a backbone by name, with the settings of its `Settings` class as keywords."""
    kind: Any = BACKBONES[name]  # each has its own Settings class
    backbone: Backbone = kind(in_width, out_width, kind.Settings(**options))
    return backbone


__all__ = [
    "BACKBONES", "GCN", "GCNII", "MLP", "PNA", "SAGE", "SGC", "SIGN", "Backbone", "make_backbone",
]  # fmt: skip
