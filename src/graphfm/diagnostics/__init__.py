"""Diagnostics: how far gradients and histories are from the exact ones, and the paper's theory.

Imported by: `experiments`, `cli`.
May import: every earlier room, recipes and before.
"""
