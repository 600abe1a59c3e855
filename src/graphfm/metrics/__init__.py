"""Metrics in torch: their names and directions, scores of predictions, and reports for people.

Imported by: `training` and every later room.
May import: `errors`.
"""
