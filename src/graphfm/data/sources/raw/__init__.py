"""Readers of the files that others publish. None of them trusts what it reads."""

from collections.abc import Mapping
from pathlib import Path

from graphfm.data.sources.catalog import Source
from graphfm.data.sources.raw.base import RawGraph
from graphfm.data.sources.raw.graphsaint import GraphSaintFiles
from graphfm.data.sources.raw.ogb_arrays import OgbArrays
from graphfm.data.sources.raw.ogb_tables import OgbTables

FORMS: Mapping[str, type[RawGraph]] = {
    "graphsaint": GraphSaintFiles,
    "ogb-tables": OgbTables,
    "ogb-arrays": OgbArrays,
}


def open_raw(source: Source, folder: Path, scratch: Path) -> RawGraph:
    """The reader of a dataset's files in `folder`; `scratch` may be filled and is then removed."""
    return FORMS[source.form](folder, scratch, split=source.split)
