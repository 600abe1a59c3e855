"""Pieces that samplers share: importance sampling, deduplication, edges inside a set of nodes.

Imported by: `samplers`.
May import: every room before samplers.
"""
