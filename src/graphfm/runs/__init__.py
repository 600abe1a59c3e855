"""Runs: one training with all its settings, its memory plan, its folder and its model.

Imported by: `recipes` and every later room.
May import: every earlier room, checkpointing and before.
"""
