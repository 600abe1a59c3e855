"""One table of text, and every form it is written in."""

from __future__ import annotations

import csv
import html
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphfm.experiments.latex import as_latex_text
from graphfm.files import atomic_path

GAP = "  "
SHORTEST = 12  # characters to which a name may be cut where nothing else helps
TABLE, BELOW, FILES = "table", "below", "files"
STYLE = (
    "body{font-family:sans-serif;margin:2em}table{border-collapse:collapse}"
    "td,th{border-bottom:1px solid #ccc;padding:3px 10px;text-align:right}"
    "td.left,th.left{text-align:left}"
)


@dataclass(frozen=True)
class Column:
    """A column by name, and what becomes of it where there is little room."""

    name: str
    left: bool = False  # words are aligned to the left, numbers to the right
    names_row: bool = False  # part of what a row is called
    heads: bool = False  # a narrow terminal shows it as a heading above the rows that share it
    rank: int = 0  # the highest is left out first where the table is too wide; 0 never is
    place: str = TABLE  # BELOW: lines under the table, in text and LaTeX; FILES: in neither
    about: str = ""  # a line under the table, where the column is shown


@dataclass(frozen=True)
class Table:
    """Columns, rows of text, and a caption that says what all rows share."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    remarks: tuple[str, ...] = ()  # lines under the table, in text and LaTeX

    def __post_init__(self) -> None:
        assert all(len(row) == len(self.columns) for row in self.rows)

    @property
    def header(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def records(self) -> list[dict[str, str]]:
        """The rows by column name."""
        return [dict(zip(self.header, row, strict=True)) for row in self.rows]

    def name_of(self, row: Sequence[str]) -> str:
        """What a row is called in a line under the table."""
        named = zip(self.columns, row, strict=True)
        return ", ".join(text for column, text in named if column.names_row and text != "-")

    def abouts(self, left_out: Sequence[str] = ()) -> list[str]:
        """What the columns mean that are shown and do not speak for themselves."""
        return [c.about for c in self.columns if c.about and c.name not in left_out]

    def lines_below(self, left_out: Sequence[str] = ()) -> list[str]:
        """What columns mean, remarks, and the texts of columns that belong below.

        Rows with the same text share it.
        """
        lines = [*self.abouts(left_out), *self.remarks]
        for index, column in enumerate(self.columns):
            if column.place != BELOW:
                continue
            by_text: dict[str, list[str]] = {}
            for row in self.rows:
                if row[index]:
                    by_text.setdefault(row[index], []).append(self.name_of(row))
            for text, names in by_text.items():
                everyone = len(names) == len(self.rows) > 1
                lines.append(text if everyone else f"{', '.join(dict.fromkeys(names))}: {text}")
        return lines


def as_text(table: Table, width: int | None = None, rest: str = "the files hold them") -> str:
    """Aligned columns that fit `width` characters, with notes below.

    Where they do not fit, headings take the place of a column, then the least important columns are
    left out, and a line says which and where they are (`rest`).
    """
    lines, left_out = text_rows(table, width)
    below = table.lines_below(left_out)
    if left_out:
        below.append(f"not shown here: {'; '.join(left_out)} ({rest})")
    for line in below:
        indent = line[: len(line) - len(line.lstrip())] + GAP
        lines += textwrap.wrap(line, width or 10**6, subsequent_indent=indent) or [""]
    return "\n".join(lines)


def text_rows(table: Table, width: int | None = None) -> tuple[list[str], list[str]]:
    """The header and the rows as lines, and the names of the columns that found no room."""
    shown = [index for index, column in enumerate(table.columns) if column.place == TABLE]
    heading = next((index for index in shown if table.columns[index].heads), None)
    lines = _aligned(table, shown, None, None)
    if width is None or _widest(lines) <= width:
        return lines, []
    if heading is not None:
        shown.remove(heading)
    dropped = list[int]()
    while _widest(lines := _aligned(table, shown, heading, None)) > width:
        last = max(shown, key=lambda index: table.columns[index].rank)
        if table.columns[last].rank == 0:
            lines = _aligned(table, shown, heading, width)
            break
        shown.remove(last)
        dropped.append(last)
    for index in reversed(dropped[:-1]):  # a narrow one may fit where a wide one did not
        wider = _aligned(table, sorted([*shown, index]), heading, None)
        if _widest(wider) <= width:
            shown, lines = sorted([*shown, index]), wider
            dropped.remove(index)
    return lines, [table.columns[index].name for index in sorted(dropped)]


def _aligned(
    table: Table, shown: Sequence[int], heading: int | None, limit: int | None
) -> list[str]:
    """Lines of the columns `shown`; with a limit, the first is cut until they fit."""
    cells = [[line[index] for index in shown] for line in (table.header, *table.rows)]
    indent = GAP if heading is not None and table.rows else ""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    if limit is not None:
        others = len(indent) + sum(widths[1:]) + len(GAP) * (len(widths) - 1)
        widths[0] = max(limit - others, SHORTEST)
        cells = [[_cut(first, widths[0]), *others_] for first, *others_ in cells]
    lefts = [table.columns[index].left for index in shown]
    lines = list[str]()
    for number, line in enumerate(cells):
        if heading is not None and number > 0:
            name = table.rows[number - 1][heading]
            if number == 1 or name != table.rows[number - 2][heading]:
                lines.append(name)
        padded = [
            f"{text:<{width}}" if left else f"{text:>{width}}"
            for text, width, left in zip(line, widths, lefts, strict=True)
        ]
        lines.append((indent + GAP.join(padded)).rstrip())
    return lines


def _widest(lines: Iterable[str]) -> int:
    return max(map(len, lines), default=0)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def as_markdown(table: Table) -> str:
    rule = "|" + "|".join("---" if column.left else "---:" for column in table.columns) + "|"
    lines = [
        "| " + " | ".join(" ".join(text.replace("|", "\\|").split()) for text in line) + " |"
        for line in (table.header, *table.rows)
    ]
    caption = f"{table.caption}\n\n" if table.caption else ""
    below = "".join(f"\n{line}\n" for line in table.abouts())
    return caption + "\n".join([lines[0], rule, *lines[1:]]) + "\n" + below


def as_latex(table: Table) -> str:
    """A floating table for a paper, by the rules of booktabs."""
    shown = [index for index, column in enumerate(table.columns) if column.place == TABLE]
    body = [
        "    " + " & ".join(as_latex_text(line[index]) for index in shown) + r" \\"
        for line in (table.header, *table.rows)
    ]
    below = [rf"  \par\footnotesize {as_latex_text(line.strip())}" for line in table.lines_below()]
    alignment = "".join("l" if table.columns[index].left else "r" for index in shown)
    lines = [
        r"% \usepackage{booktabs} in the preamble",
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{as_latex_text(table.caption)}}}",
        rf"  \begin{{tabular}}{{{alignment}}}",
        r"    \toprule",
        body[0],
        r"    \midrule",
        *body[1:],
        r"    \bottomrule",
        r"  \end{tabular}",
        *below,
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def as_html(table: Table, title: str) -> str:
    """A page of its own."""
    sides = [" class='left'" if column.left else "" for column in table.columns]

    def line(texts: Sequence[str], tag: str) -> str:
        cells = zip(texts, sides, strict=True)
        return "".join(f"<{tag}{side}>{html.escape(text)}</{tag}>" for text, side in cells)

    rows = "\n".join(f"<tr>{line(row, 'td')}</tr>" for row in table.rows)
    return (
        f"<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><title>{html.escape(title)}"
        f"</title><style>{STYLE}</style></head>\n<body><h1>{html.escape(title)}</h1>\n"
        f"<p>{html.escape(table.caption)}</p>\n<table>\n<tr>{line(table.header, 'th')}</tr>\n"
        f"{rows}\n</table></body></html>\n"
    )


def write_tables(folder: Path, table: Table, data: Table | None = None) -> None:
    """Write `table.md`, `table.tex` and `table.csv`, each whole or not at all.

    `data` is the table for programs, with numbers that are not rounded; else the CSV file has the
    same texts as the others.
    """
    write_file(folder / "table.md", as_markdown(table))
    write_file(folder / "table.tex", as_latex(table))
    with (
        atomic_path(folder / "table.csv") as unfinished,
        unfinished.open("w", newline="", encoding="utf-8") as stream,
    ):
        chosen = table if data is None else data
        csv.writer(stream).writerows([chosen.header, *chosen.rows])


def write_file(path: Path, text: str) -> None:
    with atomic_path(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
