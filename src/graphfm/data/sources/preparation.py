"""The preparation of a dataset: what happens to its edges and features."""

from dataclasses import asdict, dataclass

GIVEN, BOTH, SYMMETRIC = "given", "both", "symmetric"
UNDIRECTED = "undirected"  # like both, but a self-loop is its own reverse; not of the catalog


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """How edges and features of a dataset are prepared; the default changes nothing.

    `edges`: "given" keeps them; "both" adds the reverse of each edge, as OGB's loader does if the
    files hold an undirected edge once; "symmetric" keeps each pair once per direction.
    `standardised`: each feature gets mean 0 and standard deviation 1 over all nodes, as in the
    released code (with n - 1 in the deviation). A constant feature becomes 0.
    """

    edges: str = GIVEN
    standardised: bool = False

    def to_json(self) -> dict[str, object]:
        return asdict(self)


AS_GIVEN = Preparation()
