"""The button that designs: one column, whole rows, or boxes of them.

The choice decides which of two searches runs; each returns a `Designed`, which the page shows
without knowing the kind: ::

    released          for this table      for the population
    one column        designed_column     designed_column, or designed_boxes if values are merged
    several, or       designed_column     designed_boxes
      beside given

Before, the whole table is looked at for a column that names people with several records, as
`mechdesign design` does: the promise would be about each record, and theirs add up.
"""

from __future__ import annotations

from mechdesign.app.box_search import designed_boxes
from mechdesign.app.choice import Choice
from mechdesign.app.column_search import designed_column
from mechdesign.app.memory_table import MemoryTable
from mechdesign.app.results import Designed, Say
from mechdesign.core.errors import InputError
from mechdesign.tables.people import RECORD


def design_channel(table: MemoryTable, choice: Choice, say: Say) -> Designed:
    """The channel of one column, of whole rows, or of boxes for the population."""
    choice.check()
    if choice.unit != RECORD and not choice.person:
        say("Looking for people with several records")
        _refuse_people(table, choice)
    table = table.with_columns(choice.used)
    if choice.is_boxes:
        return designed_boxes(table, choice, say)
    return designed_column(table, choice, say)


def _refuse_people(table: MemoryTable, choice: Choice) -> None:
    """Raise InputError where a column names people with several records."""
    from mechdesign.leaks.people_notice import people_in

    # One column released alone has a promise for each of its values, whatever it names.
    own = (*choice.given, *choice.released)
    found = people_in(table.frame, choice.sensitive, but=own if len(own) == 1 else ())
    if found is not None:
        sentence = found.sentence(choice.sensitive)
        raise InputError(
            f"{sentence[:1].upper()}{sentence[1:]}, and the records of a person add up. Give that "
            "column the role 'names a person', for a promise on all records of a person together, "
            "or say in step 3 that each record has a promise of its own."
        )
