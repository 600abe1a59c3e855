"""Diagnostics: measure how far a method's gradients are from the exact ones.

Imported by: `experiments`, `cli`.
May import: every earlier room, recipes and before.
"""
