"""The paper's datasets: catalog, download, readers of the published files, and the built graphs.

Imported by: `data.datasets`, `experiments`, `cli`.
May import: `errors`, `version`, `files`, `memory`, `data.formats`, `data.graph`, `data.matrix`.
"""
