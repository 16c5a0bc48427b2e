"""The button that designs: one column, whole rows, or boxes of them.

The choice decides which of two searches runs; each returns a `Designed`, which the page shows
without knowing the kind: ::

    released          for this table      for the population
    one column        designed_column     designed_column, or designed_boxes if values are merged
    several, or       designed_column     designed_boxes
      beside given
"""

from __future__ import annotations

from mechdesign.app.box_search import designed_boxes
from mechdesign.app.choice import Choice
from mechdesign.app.column_search import designed_column
from mechdesign.app.memory_table import MemoryTable
from mechdesign.app.results import Designed, Say


def design_channel(table: MemoryTable, choice: Choice, say: Say) -> Designed:
    """The channel of one column, of whole rows, or of boxes for the population."""
    choice.check()
    if choice.is_boxes:
        return designed_boxes(table, choice, say)
    return designed_column(table, choice, say)
