"""CSV by its line of names: what separates the columns, and whether each has its own name."""

from __future__ import annotations

import csv

from graphfm.errors import InputError

SEPARATORS = (",", ";", "\t", "|")


def is_separator(text: str) -> bool:
    """True if a text can stand between columns: one byte that means nothing else in CSV."""
    return len(text.encode()) == 1 and text not in '"\r\n\0'


def separator_of(names: str, usual: str) -> str:
    """The usual separator; where a line of names does not have it, the first other that it has."""
    if usual and usual in names:
        return usual
    return next((mark for mark in SEPARATORS if mark in names), usual)


def check_names(names: str, separator: str, path: str) -> None:
    """Refuse a line of names that DuckDB would change: one that is empty, or repeats a name."""
    if not names:
        raise InputError(f"{path!r} begins with an empty line; expected a line of names")
    try:
        listed = next(csv.reader([names], delimiter=separator, strict=True), [])
    except csv.Error:  # a name goes on in the next line, or is very long
        return
    seen: dict[str, str] = {}
    for name in filter(None, listed):
        key = name.casefold()
        if key in seen:
            same = "" if seen[key] == name else f" ({seen[key]!r} but for capitals)"
            raise InputError(f"{path!r} has two columns {name!r}{same}; give each its own name")
        seen[key] = name


def line_sql(path: str) -> str:
    """SQL of the first line of a file, compressed or not; `path` is written as SQL writes it."""
    return (
        f"SELECT line FROM read_csv({path}, auto_detect = false, header = false, quote = '', "
        "escape = '', comment = '', delim = '\x01\x02\x03\x04', "
        "columns = {'line': 'VARCHAR'}) LIMIT 1"
    )


def csv_sql(paths: str, separator: str) -> str:
    """SQL that reads CSV as texts; `paths` and `separator` are written as SQL writes them."""
    # skip and comment: DuckDB would leave out lines that it takes for a title or a remark
    return (
        f"read_csv({paths}, header = true, all_varchar = true, quote = '\"', escape = '\"', "
        f"delim = {separator}, strict_mode = true, skip = 0, comment = '')"
    )
