"""Readers of the files that GraphSAINT and OGB publish. No reader trusts what it reads.

Imported by: `data.sources`.
May import: `errors`, `files`, `memory`, `data.formats`, `data.graph`.
"""

from collections.abc import Mapping
from pathlib import Path

from graphfm.data.sources.raw.base import RawGraph
from graphfm.data.sources.raw.graphsaint import GraphSaintFiles
from graphfm.data.sources.raw.ogb_arrays import OgbArrays
from graphfm.data.sources.raw.ogb_tables import OgbTables

FORMS: Mapping[str, type[RawGraph]] = {
    "graphsaint": GraphSaintFiles,
    "ogb-tables": OgbTables,
    "ogb-arrays": OgbArrays,
}


def open_raw(form: str, folder: Path, scratch: Path, *, split: str = "") -> RawGraph:
    """Open the files in `folder`. The reader may write to `scratch`; the caller removes it."""
    return FORMS[form](folder, scratch, split=split)
