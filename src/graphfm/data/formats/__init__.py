"""Arrays in files: `.npy` headers, `.npz` archives, and arrays written or read in pieces.

Nothing here knows what a graph is, and nothing here trusts what a file says of itself.
Imported by: `data.graph`, `data.matrix` and `data.sources`.
May import: `errors`, `files`, `memory`.
"""
