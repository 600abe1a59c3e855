"""Options in a TOML file: read and checked for `--config`, written for `--print-config`.

A key has the name of its option. It stands at the top or in the table of its kind:

    [data]
    dataset = "flickr"

    [training]
    lr = 0.01
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graphfm.errors import InputError, did_you_mean
from graphfm.files import check_file
from graphfm.options import Option
from graphfm.runs.named import MODEL
from graphfm.runs.options import METHOD, NETWORK, TRAINING, train_options
from graphfm.runs.run import Run
from graphfm.runs.toml_text import to_toml

TABLES = {"data": "Data", "network": NETWORK, "method": METHOD, "training": TRAINING}
CODE = ("backbone", "method", "methods")  # may name code, which only a command line may
MOST_BYTES = 1 << 20
AUTO = "auto"  # stands for None, as on the command line


@dataclass(frozen=True)
class Known:
    """An option that a file may have: how its owners declare it, and its table, if it has one."""

    declared: Sequence[Option]
    table: str | None = None

    def check(self, value: Any) -> Any:
        """The value, if one of the owners takes it; otherwise what the first of them says."""
        refusals = []
        for option in self.declared:
            if value == AUTO and option.kind.optional:
                return value
            if isinstance(value, list) and not option.kind.many:
                refusals.append(
                    InputError(f"{option.name} is a list; expected {option.kind.expected}")
                )
                continue
            try:
                return option.check(value)
            except InputError as error:
                refusals.append(error)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and all(option.kind.base is str for option in self.declared):
            raise InputError(f'{refusals[0]}; write it in quotes: "{value}"')
        raise refusals[0]


def known_settings(*own: Any) -> dict[str, Known]:
    """The settings of every method, network and training; `own` is the user's own code."""
    tables = {panel: table for table, panel in TABLES.items()}
    return {
        name: Known(tuple(option.owners.values()), tables[option.panel])
        for name, option in train_options(*own).items()
    }


def read_config_file(path: Path, known: Mapping[str, Known]) -> dict[str, Any]:
    """The options in a file, by name; refuses what is unknown, misplaced or of a wrong type."""
    found = dict[str, Any]()
    for table, name, value in _entries(path, _read(path)):
        key = name.replace("-", "_")
        where = f"{path}: {name}" if table is None else f"{path}: [{table}] {name}"
        if key not in known:
            near = did_you_mean(key, known)
            raise InputError(
                f"{where} is not an option that a file may give{near}; correct or remove it"
            )
        if table is not None and table != known[key].table:
            place = known[key].table
            right = "outside of all tables" if place is None else f"in [{place}]"
            raise InputError(f"{where} is in the wrong table; write it {right}")
        if key in found:
            raise InputError(f"{where} is given twice; leave out one of them")
        try:
            found[key] = known[key].check(value)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        if _names_code(key, value):
            raise InputError(
                f"{where} is {value!r}: a file may not name code to run; give --{name} on the "
                "command line"
            )
    return found


def run_as_toml(run: Run) -> str:
    """A settled run as a file that `graphfm train --config` reads back to the same run."""
    parts = {
        "data": {"dataset": run.dataset},
        "network": {"backbone": run.backbone, **_network_settings(run)},
        "method": {"method": run.method, **run.method_settings},
        "training": {"device": run.device, **asdict(run.training)},
    }
    return _as_toml({}, parts)


def _network_settings(run: Run) -> Mapping[str, Any]:
    """The settings that a file can hold: the arguments of a model are given with it again."""
    return {} if run.named_backbone.is_model else run.backbone_settings


def comparison_as_toml(
    names: Mapping[str, str], more: Mapping[str, Any], settings: Mapping[str, Any]
) -> str:
    """What was asked of a comparison, as a file that `graphfm compare --config` reads back.

    Settings that were not given stay those of each method. None is not given.
    """
    tables: dict[str, dict[str, Any]] = {
        "data": {"dataset": names["dataset"]},
        "network": {"backbone": names["backbone"]},
        "method": {"methods": names["methods"]},
        "training": {"device": names["device"]},
    }
    known = known_settings()
    for name, value in settings.items():
        if value is not None:
            table = known[name].table if name in known else None
            tables[table or "method"][name] = value  # only a method of the user's own is unknown
    top = {name: value for name, value in more.items() if value is not None}
    top = {name: str(value) if isinstance(value, Path) else value for name, value in top.items()}
    return _as_toml(top, tables)


def _as_toml(top: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]]) -> str:
    """Options as a file. Code of the user's own is not named in it, but in a comment."""
    own, kept = list[str](), dict[str, dict[str, Any]]()
    for table, values in tables.items():
        kept[table] = {}
        for name, value in values.items():
            if _names_code(name, value):
                given = f"--{name} {value}"
                if str(value).startswith(MODEL):
                    given = f"--model {str(value).removeprefix(MODEL)}, and its --model-option"
                own.append(f"# A file names no code; give it again: {given}\n")
            else:
                kept[table][name] = AUTO if value is None else value
    return "".join(own) + to_toml(top, kept)


def _names_code(name: str, value: Any) -> bool:
    return name in CODE and (":" in str(value) or str(value).startswith(MODEL))


def _read(path: Path) -> dict[str, Any]:
    try:
        check_file(path)
        with path.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise InputError("it is larger than 1 MiB")
        return tomllib.loads(content.decode("utf-8-sig"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{path} is not a TOML file: {reason}") from None


def _entries(path: Path, content: Mapping[str, Any]) -> list[tuple[str | None, str, Any]]:
    """Every key with its table. `method = "full"` is a key, and [method] a table."""
    found: list[tuple[str | None, str, Any]] = []
    for name, value in content.items():
        if isinstance(value, dict) and name in TABLES:
            found += [(name, key, inner) for key, inner in value.items()]
        elif isinstance(value, dict):
            near = did_you_mean(name, TABLES)
            expected = ", ".join(f"[{table}]" for table in TABLES)
            raise InputError(
                f"{path}: [{name}] is not a table of options; expected {expected}{near}"
            )
        else:
            found.append((None, name, value))
    return found
