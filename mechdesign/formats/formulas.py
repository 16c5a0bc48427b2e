"""Cells that a spreadsheet would take for formulas, and how they become text."""

from __future__ import annotations

import re

FORMULAS = "=+-@\t\r"
"""First characters of a cell that a spreadsheet takes for a formula."""

NUMBER = r"[+-]?[0-9.,]+([eE][+-]?[0-9]+)?%?"
"""Numbers may begin with a sign and are no formulas. Both pyarrow and Python use this pattern."""


def as_text(cell: str) -> str:
    """A cell that is a formula gets an apostrophe before it; others stay."""
    if cell and cell[0] in FORMULAS and not re.fullmatch(NUMBER, cell):
        return f"'{cell}"
    return cell
