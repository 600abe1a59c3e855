"""Checkpoints: what a training must keep to continue after it was stopped, when, and where.

Imported by: `runs` and every later room.
May import: every earlier room, training and before.
"""
