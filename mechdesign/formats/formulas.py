"""Cells that a spreadsheet would take for formulas, and their form as text.

The first character decides, except that numbers with a sign are no formulas: ``=1+2`` becomes
``'=1+2`` and ``+49 30`` becomes ``'+49 30``, but ``-5`` and ``+1.5e3`` stay.
"""

from __future__ import annotations

import csv
import io
import re

FORMULAS = "=+-@\t\r"
"""First characters of a cell that a spreadsheet takes for a formula."""

NUMBER = r"[+-]?[0-9.,]+([eE][+-]?[0-9]+)?%?"
"""Pattern of numbers, which may begin with a sign and are no formulas, for pyarrow and Python."""


def as_text(cell: str) -> str:
    """A cell that is a formula gets an apostrophe before it; others stay."""
    if cell and cell[0] in FORMULAS and not re.fullmatch(NUMBER, cell):
        return f"'{cell}"
    return cell


def csv_as_text(text: str) -> str:
    """A CSV with commas, as this program writes one, whose formulas have an apostrophe before
    them.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in csv.reader(io.StringIO(text, newline="")):
        writer.writerow([as_text(cell) for cell in row])
    return out.getvalue()
