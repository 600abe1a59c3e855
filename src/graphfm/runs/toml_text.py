"""Write TOML: texts, numbers, true and false, and lists of them, in tables."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from graphfm.errors import InputError

BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def to_toml(top: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]]) -> str:
    """The keys outside of tables, then every table that is not empty."""
    blocks = [_lines(top)] if top else []
    for name, values in tables.items():
        if values:
            blocks.append(f"[{_key(name)}]\n{_lines(values)}")
    return "\n".join(blocks)


def _lines(values: Mapping[str, Any]) -> str:
    return "".join(f"{_key(name)} = {_value(value)}\n" for name, value in values.items())


def _key(name: str) -> str:
    return name if BARE.fullmatch(name) else _text(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r} has no form in TOML here")
    return repr(value)


def _text(text: str) -> str:
    """JSON's escapes are TOML's too; it leaves one control character as it is."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{text!r} is no Unicode, which TOML needs; choose another name") from None
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
