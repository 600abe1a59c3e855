"""The paper's datasets: catalog, download, readers of the published files, and the built graphs.

Imported by: `data.datasets`, `experiments`, `cli`.
May import: `errors`, `files`, `memory`, `data.formats`, `data.graph`, `data.matrix`.
"""
