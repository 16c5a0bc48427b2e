"""A long table as a table of people, for all that reads records: releases, checks, estimates.

`FoldedTable` holds the folded columns and the way back: what is released for a person is unfolded
into the columns of the records (`unfolded`). `PeopleSource` gives them the interface of an open
file (`formats.opening.Source`), so that a person goes where a record goes.
"""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mechdesign.core.errors import FileError, InputError, errors_naming
from mechdesign.core.files import PathLike, on_failure
from mechdesign.core.integers import Integers
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.arrow_arrays import arrow_texts
from mechdesign.formats.cells import CellForm, Encoded, encoded_columns
from mechdesign.formats.column_names import misread
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.opening import Source, open_source
from mechdesign.formats.parquet import ParquetBatch
from mechdesign.tables.columns import RecordFault
from mechdesign.tables.folding import FoldedRecords
from mechdesign.tables.people import People
from mechdesign.tables.people_tables import fold_by, records_of_source


@dataclass(frozen=True, eq=False)
class FoldedTable:
    """The people of a long table that is at hand.

    Attributes
    ----------
    people : People
        Those of the channel.
    records : FoldedRecords
        The person and the place of each record.
    person : tuple of (people,) columns
        What names each person.
    wave : (records,) column, optional
        What orders the records of a person.
    columns : mapping of name to (people,) column
        The folded columns, the sensitive ones if the table has them, and what names a person.
    """

    people: People
    records: FoldedRecords
    person: tuple[Encoded, ...]
    wave: Encoded | None
    columns: Mapping[str, Encoded]

    @classmethod
    def of(
        cls,
        people: People,
        cells: Mapping[str, Encoded],
        form: CellForm | None = None,
        *,
        keep_waves: bool = False,
    ) -> FoldedTable:
        """Fold the columns of a long table, by the channel's names for them.

        With `keep_waves` the folded table has the waves of the records, too: they tell equal
        sequences of different records apart.

        Raises
        ------
        RecordFault
            At a record without a person or wave.
        InputError
            If people have two records in one wave, more records than the channel knows, or several
            values of a secret that is one of a person.
        """
        form = form or CellForm()
        cells = {name: form.cells(column) for name, column in cells.items()}
        person = _person_in(people, cells)
        records = fold_by(cells, person, people.wave)
        named: dict[str, Encoded] = {}
        waves = None if people.wave is None else cells[people.wave]
        if waves is not None and keep_waves:
            named[str(people.wave)] = waves
        for name in (*people.columns, *people.sensitive):
            if name in cells:
                named[name] = cells[name]
        columns = records.folded(people, named)
        names: list[Encoded] = []
        for name in person:
            columns[name] = cells[name].recoded(cells[name].codes[records.first])
            names.append(columns[name])
        return cls(people, records, tuple(names), waves, columns)

    @property
    def header(self) -> list[str]:
        """The names of the columns."""
        return list(self.columns)

    @cached_property
    def batch(self) -> Any:
        """All people as an arrow batch, with codes into the texts of each column."""
        import pyarrow as pa

        arrays: list[Any] = []
        for column in self.columns.values():
            codes = pa.array(
                column.codes.astype(np.int32), mask=np.asarray(column.codes) < 0
            )
            arrays.append(
                pa.DictionaryArray.from_arrays(codes, arrow_texts(column.texts))
            )
        return pa.RecordBatch.from_arrays(arrays, self.header)

    def long_form(
        self,
        header: Sequence[str],
        released: Mapping[str, Encoded],
        *,
        kept: Sequence[str] = (),
        names: Mapping[str, str] | None = None,
        order: Integers | None = None,
    ) -> list[LongColumn]:
        """What is written of the records, in the order of the columns of the table.

        Parameters
        ----------
        header : sequence of str
            The columns of the long table.
        released : mapping of folded column to (people,) column
        kept : sequence of str
            Columns of the header that stay as they are.
        names : mapping of str to str
            The table's name of a column that the channel calls otherwise.
        order : (people,) array, optional
            The person of each new number; by default people are numbered as they appear.
        """
        people = self.people
        in_table = names or {}
        channel_name = {of_table: name for name, of_table in in_table.items()}
        records = self.records.unfolded(people, released)
        person = [in_table.get(name, name) for name in people.person]
        # New numbers stand where the first column was that is not kept.
        numbered = [name for name in person if name not in kept][:1]
        columns: list[LongColumn] = []
        for title in header:
            name = channel_name.get(title, title)
            if name in records:
                columns.append(LongColumn(title, title, records[name]))
            elif title in kept:
                columns.append(LongColumn(title, title, None))
            elif title in numbered:
                numbers = self.records.people_anew(order)
                columns.append(LongColumn(",".join(person), title, numbers))
            elif name == people.wave:
                columns.append(LongColumn(title, title, self.records.places_anew()))
        return columns


@dataclass(frozen=True)
class LongColumn:
    """A column of the long table that is written: under a title, in the place of the column
    `source` of the original, with new cells; None where it stays as it is.
    """

    title: str
    source: str
    cells: Encoded | None


def columns_of_people(people: People, header: Sequence[str]) -> tuple[str, ...]:
    """The columns of a long table that are read, by the channel's names; raises InputError."""
    needed = [*people.columns]
    if people.wave is not None and people.wave not in needed:
        needed.append(people.wave)
    missing = [name for name in needed if name not in header]
    person = _person_in(people, header)
    if missing:
        raise InputError(
            f"there is no column {listed(missing)}, which the channel for people needs"
            f"{misread(header)}"
        )
    sensitive = [name for name in people.sensitive if name in header]
    return tuple(dict.fromkeys((*person, *needed, *sensitive)))


def _person_in(people: People, header: Any) -> tuple[str, ...]:
    """What names a person in a table: its columns, or in a release the numbers in their place."""
    if all(name in header for name in people.person):
        return people.person
    if people.number in header:
        return (people.number,)
    missing = [name for name in people.person if name not in header]
    raise InputError(
        f"there is no column {listed(missing)}, which names a person: the promise is about all "
        "records of a person together, so they must be told apart (--person names it where it has "
        f"another name){misread(header)}"
    )


class PeopleSource(AbstractContextManager["PeopleSource"]):
    """The people of an open file of records.

    Attributes
    ----------
    inner : Source
        The file.
    names : mapping of str to str
        The file's name of a column that the channel calls otherwise.
    table : FoldedTable
    """

    def __init__(
        self,
        inner: Source,
        people: People,
        *,
        names: Mapping[str, str] | None = None,
        form: CellForm | None = None,
        keep_waves: bool = False,
    ) -> None:
        self.inner = inner
        self.names = dict(names or {})
        channel_name = {in_file: name for name, in_file in self.names.items()}
        header = [channel_name.get(name, name) for name in inner.header]
        with errors_naming(inner.name):
            needed = columns_of_people(people, header)
        in_file = [self.names.get(name, name) for name in needed]
        columns = records_of_source(inner, in_file)
        cells = {
            name: columns[of_file]
            for name, of_file in zip(needed, in_file, strict=True)
        }
        with errors_naming(inner.name):
            try:
                self.table = FoldedTable.of(people, cells, form, keep_waves=keep_waves)
            except RecordFault as error:
                where = inner.where(error.position)
                raise FileError(inner.name, f"{where}: {error.what}") from None
        self.name = inner.name
        self.kind = inner.kind
        self.cut = inner.cut
        self.hidden_note = inner.hidden_note
        self.header = self.table.header
        self.size = len(self.table.records)
        self.position = 0

    def __exit__(self, *raised: object) -> None:
        self.inner.close()

    def batches(
        self,
        *,
        encode: Sequence[str] = (),
        read: Sequence[str] = (),
        whole: bool = True,
    ) -> Iterator[ParquetBatch]:
        """All people in one batch."""
        batch = self.table.batch
        if not whole:
            batch = batch.select(list(dict.fromkeys((*encode, *read))))
        self.position = self.size
        yield ParquetBatch(batch, tuple(batch.schema.names), self.size)

    def where(self, person: int) -> str:
        """The file and the first record of a person."""
        first = int(self.table.records.first[person])
        return f"{self.inner.where(first)} and the other records of this person"


def open_people(
    path: PathLike, people: People | None, text: TextOptions | None, **more: Any
) -> Any:
    """An open file: of people where the channel is for them, of records otherwise."""
    source = open_source(path, text)
    if people is None:
        return source
    with on_failure(source.close):
        return PeopleSource(source, people, **more)


def fold_frame(
    people: People,
    frame: Any,
    form: CellForm | None = None,
    names: Mapping[str, str] | None = None,
    *,
    keep_waves: bool = False,
) -> FoldedTable:
    """The people of a pandas, polars or pyarrow table; a record at fault is named by its place.

    `names` has the frame's name of a column that the channel calls otherwise.
    """
    import narwhals as nw

    in_frame = names or {}
    channel_name = {name: own for own, name in in_frame.items()}
    try:
        header = nw.from_native(frame, eager_only=True).columns
    except (TypeError, nw.exceptions.DuplicateError):
        # The reader of columns says what is wrong with it.
        waves = () if people.wave is None else (people.wave,)
        needed = (*people.person, *waves, *people.columns)
        header = [in_frame.get(name, name) for name in needed]
    own = [channel_name.get(name, name) for name in header]
    needed = columns_of_people(people, own)
    columns = encoded_columns(frame, [in_frame.get(name, name) for name in needed])
    cells = dict(zip(needed, columns, strict=True))
    return FoldedTable.of(people, cells, form, keep_waves=keep_waves)


def refuse_kept(people: People, kept: Sequence[str], header: Sequence[str]) -> None:
    """Refuse kept columns that are not there, or sensitive."""
    for name in kept:
        if name not in header:
            raise InputError(f"there is no column {quoted(name)} to keep (--keep)")
        if name in people.sensitive:
            raise InputError(
                f"the sensitive column {quoted(name)} must not stay (--keep)"
            )
