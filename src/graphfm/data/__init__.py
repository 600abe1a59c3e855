"""Graphs, where they come from, and the matrices made from them.

Inside, imports go one way: `formats` -> `graph` -> `matrix` -> `sources` -> `synthetic`,
`datasets`.
Imported by: `samplers`, `estimators` and every later room.
May import: `errors`, `version`, `files`, `memory`, `batch`, `metrics`, `kernels`, `norm`, `layer`,
`tables`.
"""
