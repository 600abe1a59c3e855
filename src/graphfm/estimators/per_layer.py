"""Settings that are one number for all layers, or one for each."""

from collections.abc import Sequence

from graphfm.errors import InputError


def check_beta(beta: Sequence[float]) -> None:
    """Refuse a beta outside 0 to 1."""
    if not beta or not all(0 <= value <= 1 for value in beta):
        said = ",".join(map(str, beta)) or "empty"
        raise InputError(
            f"beta is {said}; expected numbers from 0 to 1, one for all layers or one per layer"
        )


def per_layer(name: str, values: Sequence[float], num_layers: int) -> tuple[float, ...]:
    """Expand one value for all layers to one for each; one for each stays as it is."""
    if len(values) not in (1, num_layers):
        raise InputError(
            f"{name} has {len(values)} numbers; expected one for all layers, or {num_layers}: one "
            "for each layer that has a history"
        )
    return tuple(values) if len(values) == num_layers else tuple(values) * num_layers
