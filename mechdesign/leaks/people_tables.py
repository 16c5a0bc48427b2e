"""Coded tables of people: each value is the sequence of those of all records of a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mechdesign.core.integers import Integers
from mechdesign.formats.cells import Encoded, empty_as_missing
from mechdesign.formats.column_names import require_column
from mechdesign.leaks.coded_table import CodedColumn, CodedTable
from mechdesign.tables.folding import FoldedRecords
from mechdesign.tables.people_tables import fold_by


def coded_people(
    table: CodedTable,
    person: Sequence[str],
    wave: str | None,
    sensitive: Sequence[str],
    columns: Sequence[str],
) -> CodedTable:
    """The people of a table of records.

    Parameters
    ----------
    table : CodedTable
        The records.
    person : sequence of str
        What names a person.
    wave : str, optional
        What orders the records of a person; the order of the table without it.
    sensitive : sequence of str
        Columns with one value for each person.
    columns : sequence of str
        Columns whose sequences are wanted.

    Raises
    ------
    InputError
        If records make no people (`tables.folding.fold`), or a person has several secrets.
    """
    needed = [*person] if wave is None else [*person, wave]
    for name in needed:
        require_column(name, [*table.columns])
    cells: Mapping[str, Encoded] = {
        name: empty_as_missing(_encoded(table.columns[name])) for name in needed
    }
    records = fold_by(cells, person, wave)
    people: dict[str, CodedColumn] = {}
    for name in sensitive:
        column = records.once(_encoded(table.columns[name]), name)
        people[name] = _used(name, column.codes.astype(np.int64), column.texts)
    for name in columns:
        people[name] = _sequences(table.columns[name], records)
    return CodedTable(len(records), people, table.unreadable)


def _encoded(column: CodedColumn) -> Encoded:
    """A column as codes into texts."""
    return Encoded(column.codes.astype(np.int64), tuple(column.values))


def _sequences(column: CodedColumn, records: FoldedRecords) -> CodedColumn:
    """The sequence of each person, as a symbol of its own."""
    codes = np.zeros(len(records), dtype=np.int64)
    size = len(column.values) + 1
    for place in range(records.longest):
        here = np.flatnonzero(records.place_of == place)
        cells = np.zeros(len(records), dtype=np.int64)
        cells[records.person_of[here]] = column.codes[here].astype(np.int64) + 1
        # Renumbered at every step, so that the numbers stay small.
        codes = np.unique(codes * size + cells, return_inverse=True)[1].reshape(-1)
    _, first = np.unique(codes, return_index=True)
    texts: list[str] = []
    # The records person after person, each in the order of the sequence.
    order = np.lexsort((records.place_of, records.person_of))
    starts = np.cumsum(records.lengths) - records.lengths
    for k in first.tolist():
        own = order[starts[k] : starts[k] + records.lengths[k]]
        of_person: list[int] = column.codes[own].tolist()
        texts.append(", ".join(column.values[code] for code in of_person))
    return CodedColumn(column.name, codes.astype(np.int32), tuple(texts))


def _used(name: str, codes: Integers, texts: tuple[str, ...]) -> CodedColumn:
    """A column with the values that occur."""
    used, numbers = np.unique(codes, return_inverse=True)
    occurring: list[int] = used.tolist()
    values = tuple(texts[code] for code in occurring)
    return CodedColumn(name, numbers.reshape(-1).astype(np.int32), values)
