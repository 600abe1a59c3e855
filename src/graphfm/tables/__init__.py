"""Tables with one row per node, such as histories: read by node ids, written by node ids.

Imported by: `estimators`, `training` and every later room.
May import: every earlier room, layer and before.
"""

from graphfm.tables.base import NodeTable, TablePlan, TableSpec
from graphfm.tables.device import DeviceTable

__all__ = ["DeviceTable", "NodeTable", "TablePlan", "TableSpec"]
