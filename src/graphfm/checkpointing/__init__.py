"""Checkpoints: the state a training needs to continue, when it is written, and where.

Imported by: `runs` and every later room.
May import: every earlier room, training and before.
"""
