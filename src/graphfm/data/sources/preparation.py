"""What is done to the files of a dataset before it is a graph."""

from dataclasses import asdict, dataclass

GIVEN, BOTH, SYMMETRIC = "given", "both", "symmetric"


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """How edges and features of a dataset are prepared; as the files have them by default.

    `edges`: "given" as they are; "both" with the inverse of each beside it, as OGB does where
    files hold an undirected edge once; "symmetric" with every pair both ways and once.
    `standardised`: each feature has mean 0 and standard deviation 1 over all nodes, as the
    released code does it (with n - 1 in the deviation). A feature that never changes becomes 0.
    """

    edges: str = GIVEN
    standardised: bool = False

    def to_json(self) -> dict[str, object]:
        return asdict(self)


AS_GIVEN = Preparation()
