"""Tables with one row per node, such as histories: read by node ids, written by node ids.

Imported by: `estimators`, `training` and every later room.
May import: every earlier room, layer and before.
"""
