"""Diagnostics: how far a method's estimates are from the exact values, such as of gradients.

Imported by: `experiments`, `cli`.
May import: every earlier room, recipes and before.
"""
