"""The settings of a comparison: each is parsed as every method that takes it declares it."""

from collections.abc import Mapping, Sequence
from typing import Any

from graphfm.cli.options import flag
from graphfm.errors import InputError
from graphfm.options import Option, options_in
from graphfm.runs.named import Named, choose_backbone
from graphfm.runs.run import backbone_of
from graphfm.training.settings import Training

Settings = dict[str, Any]


def parsed_per_method(
    texts: Mapping[str, Any],
    methods: Sequence[Named],
    backbone: Named,
    own: Mapping[str, Mapping[str, Any]],
) -> tuple[Settings, dict[str, Settings]]:
    """Parse the given settings. Returns those of all methods, and those of single methods.

    The latter are `own`, which `--set` gave, and values that two methods read in different ways.
    """
    shared, single = Settings(), {method: {**settings} for method, settings in own.items()}
    declared = {method.name: _declared(method, backbone) for method in methods}
    for name, text in texts.items():
        if text is None:
            continue
        takers = {method: known[name] for method, known in declared.items() if name in known}
        free = {method: takers[method] for method in takers if name not in own.get(method, {})}
        values = _values(name, text, free or takers)
        shared[name] = next(iter(values.values()), text)  # what nobody takes is refused later
        for method, value in values.items():
            if repr(value) != repr(shared[name]):  # True equals 1
                single.setdefault(method, {}).setdefault(name, value)
    return shared, single


def _declared(method: Named, backbone: Named) -> dict[str, Option]:
    """All settings of a training of the method, which may bring its own network."""
    network = choose_backbone(backbone_of(method) or backbone)
    return {**options_in(Training), **network.options, **method.options}


def _values(name: str, text: Any, takers: Mapping[str, Option]) -> Settings:
    """The value for each method; refuses a text that is no value for one of them."""
    if not isinstance(text, str):
        return dict.fromkeys(takers, text)
    values, refused = Settings(), list[str]()
    for method, option in takers.items():
        try:
            values[method] = option.parse(text)
        except ValueError:
            refused.append(method)
    if refused:
        expected = f"{flag(name)} is {text!r}; expected {takers[refused[0]].kind.expected}"
        if not values:
            raise InputError(f"{expected}; see 'graphfm compare --help'")
        raise InputError(
            f"{expected} for {refused[0]}; give it to single methods instead: "
            f"--set {next(iter(values))}.{name}={text}"
        )
    return values
