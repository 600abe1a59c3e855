"""Tables of a user's own: edges and nodes in CSV, JSON lines or Parquet become a mapped folder.

DuckDB reads the tables; it is imported here alone, and only when a table is read or written.
Imported by: `data.datasets`, `runs`, `cli`.
May import: what `data.sources` may import, and its modules.
"""
