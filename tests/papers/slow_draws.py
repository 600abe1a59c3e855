"""What FastGCN, LADIES and MVS-GCN draw for a layer, read from the weights of its edges."""

from tests.papers.slow import by_edges


def probabilities(matrix, targets):
    """q(u) proportional to the squared norm of column u in the rows of `targets`.

    A node's own row is not drawn, so the diagonal that GCN adds does not count.
    """
    square = matrix.edges[targets].square().sum(dim=0)
    return square / square.sum()


def drawn(block, matrix, q, draws):
    """How often each node was drawn: the whole number by which its edges were multiplied."""
    count, edges_of = {}, by_edges(block)
    for v, edges in edges_of.items():
        for u, weight in edges.items():
            times = weight * draws * float(q[u]) / float(matrix.edges[v, u])
            assert abs(times - round(times)) < 1e-3
            assert round(times) >= 1
            assert count.setdefault(u, round(times)) == round(times)
    for v, edges in edges_of.items():  # who is drawn is read by all that read it
        assert set(edges) == set(count) & set(matrix.neighbors(v))
    return count
