"""Hops that are computed chunk by chunk, and the files they leave."""

from graphfm.data.matrix.hops import hops

CHUNK = 7  # rows, of a graph of 60 nodes: 9 chunks a hop


def compute(adjacency, num_hops, cache, chunk=CHUNK):
    return hops(adjacency, num_hops, most_in_memory=0, cache=cache, chunk_nodes=chunk)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".lock"}
