"""The paper's datasets: catalog, download, readers of the published files, and the built graphs.

A user's own tables become such graphs in `tables`.

Imported by: `data.datasets`, `experiments`, `cli`.
May import: `errors`, `version`, `files`, `memory`, `metrics`, `data.formats`, `data.graph`,
`data.matrix`.
"""
