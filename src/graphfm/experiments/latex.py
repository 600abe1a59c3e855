"""Text as LaTeX: letters that mean something there, and numbers as mathematics."""

from __future__ import annotations

import re

LETTERS = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "±": r"$\pm$", "<": "$<$", ">": "$>$", "|": r"\textbar{}",
}  # fmt: skip
NUMBER = r"[+-]?\d[\d.]*"
MATHEMATICS = re.compile(
    rf"(?<![\w.,])({NUMBER} ± \d[\d.]*"  # 0.81 ± 0.01
    rf"|\[{NUMBER}, {NUMBER}\]"  # an interval
    r"|[+-]\d[\d.]*)"  # a number with its sign
)


def as_latex_text(text: str) -> str:
    """The text, safe to stand in a table; a lone dash is a number that does not exist."""
    if text == "-":
        return "--"
    parts = MATHEMATICS.split(text)
    parts[::2] = map(_escaped, parts[::2])
    parts[1::2] = ["$" + part.replace("±", r"\pm") + "$" for part in parts[1::2]]
    return "".join(parts)


def _escaped(text: str) -> str:
    escaped = "".join(LETTERS.get(letter, letter) for letter in text)
    escaped = re.sub(r"\b([A-Z])\\textasciicircum\{\}(\w+)", r"$\1^{\2}$", escaped)  # S^1
    return re.sub("-(?=-)", "-{}", escaped)  # otherwise an option would begin with a dash
