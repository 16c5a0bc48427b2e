"""The button that designs: one column, or whole rows."""

from __future__ import annotations

from mechdesign.app.choice import Choice
from mechdesign.app.column_search import designed_column
from mechdesign.app.memory_table import MemoryTable
from mechdesign.app.results import Designed, Say
from mechdesign.app.row_search import designed_rows


def design_channel(table: MemoryTable, choice: Choice, say: Say) -> Designed:
    """The channel of one column, or of whole rows."""
    choice.check()
    if choice.is_rows:
        return designed_rows(table, choice, say)
    return designed_column(table, choice, say)
