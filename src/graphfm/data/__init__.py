"""Graphs, where they come from, and the matrices made of them."""
