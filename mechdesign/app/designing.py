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
from mechdesign.core.errors import InputError


def design_channel(table: MemoryTable, choice: Choice, say: Say) -> Designed:
    """The channel of one column, of whole rows, or of boxes for the population."""
    choice.check()
    _refuse_people(table, choice)
    if choice.is_boxes:
        return designed_boxes(table, choice, say)
    return designed_column(table, choice, say)


def _refuse_people(table: MemoryTable, choice: Choice) -> None:
    """Refuse a table of people with several records: the page promises for each record alone."""
    from mechdesign.leaks.people_notice import people_in

    # One column released alone has a promise for each of its values, whatever it names.
    alone = choice.released if len(choice.used) == len(choice.sensitive) + 1 else ()
    found = people_in(table.frame, choice.sensitive, but=alone)
    if found is None:
        return
    raise InputError(
        f"{found.sentence(choice.sensitive)}, and all records of a person together tell more. "
        "Design for people on the command line (mechdesign design --person "
        f"{found.column.name}), or leave this column out of the file if the promise is meant to be "
        "about each record alone"
    )
