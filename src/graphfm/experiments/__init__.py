"""Experiments: many trainings, one table.

`compare`, `reproduce`, `staleness` and `bench` share one engine. A `Cell` is one training and what
is measured of it; `runner` runs the cells that a `Store` does not hold yet; `process` and `child`
give a training a process of its own; `tables` writes every table (terminal, Markdown, CSV, LaTeX,
HTML).

Imported by `graphfm.api` and `graphfm.cli`. May import everything below them: `runs`, `recipes`,
`diagnostics`, `training`, `methods`, `data` and so on.
"""
