"""Writes graphs as folders of mapped arrays: beside their place, all of a graph or nothing."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from graphfm.data.formats.array_file import write_array
from graphfm.data.formats.text_column import as_text_arrays
from graphfm.data.graph import SPLITS, Graph
from graphfm.data.graph.summary import class_shares, label_warning, node_summary, targets
from graphfm.data.sources.edge_summary import edge_summary
from graphfm.data.sources.mapped_folder import extend_record, open_graph, write_record
from graphfm.errors import InputError
from graphfm.files import folder_for, sole_user
from graphfm.metrics.names import CLASSES, LABELS, REGRESSION

log = logging.getLogger("graphfm")
LABEL_TYPES: Mapping[str, str] = {CLASSES: "<i8", LABELS: "|i1", REGRESSION: "<f4"}


@contextmanager
def building(out: Path) -> Iterator[Path]:
    """Give a folder to build in, which becomes `out` if the block ends without an error.

    What a killed import left there is removed.
    """
    if out.exists() or out.is_symlink():
        raise InputError(f"{out} exists already; choose another --out, or remove it")
    unfinished = out.parent / f".{out.name}.unfinished"
    with _made(unfinished), sole_user(unfinished):
        try:
            for path in unfinished.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            yield unfinished
            os.rename(unfinished, out)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Make a folder and its parents; parents that stay empty are removed at the end."""
    with ExitStack() as stack:
        try:
            stack.enter_context(folder_for(folder))
        except OSError as error:
            raise InputError(f"cannot make {folder.parent}: {error.strerror or error}") from None
        yield


def finish(folder: Path, about: dict[str, Any], report: dict[str, Any]) -> dict[str, Any]:
    """Describe the arrays in a folder, with what is found in them; return the whole report."""
    write_record(folder, about)  # so that it can be opened
    graph = open_graph(folder)
    summary = edge_summary(graph)
    shares = class_shares(graph)
    if (warning := label_warning(graph, shares)) is not None:
        log.warning(warning)
    counts = {name: count for name, count, _ in shares}
    classes = counts if graph.task == REGRESSION else about["class_names"] or counts
    report = {
        **report,
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "self_loops": summary["self_loops"],
        "splits": about["splits"],
        "classes": {name: counts.get(name, 0) for name in classes},
        "targets": targets(graph) or [],
    }
    kept = {"edge_summary": summary, "node_summary": node_summary(graph)}
    extend_record(folder, {**kept, "report": report})
    return report


def import_graph(graph: Graph, out: Path) -> dict[str, Any]:
    """Write a graph that is in memory as a folder of mapped arrays; return what is in it.

    All of it is kept but the order in which its edges were given, and bfloat16, which numpy does
    not know: such numbers are stored in float32.
    """
    graph = graph.to("cpu")
    with building(out) as folder:
        names = ("indptr", "indices", "x", "y", "edge_weight", "edge_attr", "edge_type")
        for name in names:
            tensor = getattr(graph, name)
            if tensor is not None:
                array = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
                write_array(folder / f"{name}.npy", array.dtype.newbyteorder("<").str, array)
        split = np.full(graph.num_nodes, -1, np.int8)
        for part, name in enumerate(SPLITS):
            split[graph.mask(name).numpy()] = part
        write_array(folder / "split.npy", "|i1", split)
        if graph.node_names is not None:
            offsets, content = as_text_arrays(graph.node_names)
            write_array(folder / "id_offsets.npy", "<i8", offsets)
            write_array(folder / "id_bytes.npy", "|u1", content)
        about = {
            "name": out.name, "edges": graph.num_edges, "raw_edges": graph.num_edges,
            "classes": graph.num_classes,
            "class_names": None if graph.class_names is None else list(graph.class_names),
            "splits": {name: int((split == part).sum()) for part, name in enumerate(SPLITS)},
            "meta": dict(graph.meta),
        }  # fmt: skip
        return finish(folder, about, {})
