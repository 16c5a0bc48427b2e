"""The symbol of a true record, or of all records of a person, from the texts of its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed
from mechdesign.tables.people import ABSENT, People
from mechdesign.tables.variable import Variable


def symbol_of(
    useful: Variable, row: Mapping[str, str] | Sequence[str] | str
) -> tuple[str, ...]:
    """The cells of a record in the order of the useful columns; numbers in their bins."""
    columns = useful.columns
    if isinstance(row, str):
        texts = [row]
    elif isinstance(row, Mapping):
        missing = [name for name in columns if name not in row]
        if missing:
            raise InputError(f"the row has no column {listed(missing)}")
        texts = [row[name] for name in columns]
    else:
        texts = list(row)
    if len(texts) != len(columns):
        raise InputError(
            f"the row has {len(texts)} texts for the {len(columns)} columns "
            f"{listed(columns)}"
        )
    cells: list[str] = []
    for place, text in enumerate(texts):
        bins = useful.bins_of(place)
        # A label is a cell already, and so is that of a record that a person does not have;
        # anything else is a number, which belongs to a bin.
        if bins is not None and text not in (*bins.labels, ABSENT):
            text = bins.marked[bins.bin_of(text)]
        cells.append(text)
    return tuple(cells)


def symbol_of_person(people: People, records: Any) -> tuple[str, ...]:
    """The symbol of a person's records, in the order of the waves."""
    if not isinstance(records, (list, tuple)):
        raise InputError(
            "a person has several records: give a list of them, in the order of the waves"
        )
    cells: list[Sequence[str]] = []
    for record in cast("Sequence[Any]", records):
        if isinstance(record, Mapping):
            named = cast("Mapping[str, str]", record)
            missing = [name for name in people.columns if name not in named]
            if missing:
                raise InputError(f"a record has no column {listed(missing)}")
            cells.append([named[name] for name in people.columns])
        else:
            cells.append(record)
    return people.symbol(cells)
