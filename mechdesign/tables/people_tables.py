"""Tables of people: the joint table of secrets and sequences, from a file, a frame, or columns.

`PeopleRoles` names the columns of the long table. `joint_of_people` folds its columns and counts
the people: a table of one person a row, with which everything is designed and proven. `read_people`
does so for a file, `people_of_table` for a data frame, too.

For example, 600 people with four waves each and the released columns job and health give a table of
600 people with nine columns: the number of records, and job and health in each of the four places.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.core.errors import FileError, InputError
from mechdesign.core.files import PathLike
from mechdesign.core.integers import Integers
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.cells import CellForm, Encoded, as_whole, encoded_columns
from mechdesign.formats.column_names import require_column
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.opening import Source, open_source, paths_of
from mechdesign.tables.bin_edges import bins_for, spec_of, specs_by_column
from mechdesign.tables.bins import Bins
from mechdesign.tables.cell_values import REFUSE, SYMBOL
from mechdesign.tables.columns import RecordFault
from mechdesign.tables.folding import FoldedRecords, fold
from mechdesign.tables.joint import Joint
from mechdesign.tables.people import PERSON, RECORDS, People, SensitiveOf
from mechdesign.tables.reading import coded_columns
from mechdesign.tables.tally import Missing, Roles, Tally
from mechdesign.tables.variable import Variable


@dataclass(frozen=True, kw_only=True)
class PeopleRoles:
    """The columns of a long table of people, by their roles.

    Attributes
    ----------
    person : tuple of str
        What names a person.
    wave : str or None
        What orders the records of a person.
    sensitive, given, released : tuple of str
        As in any release of rows.
    sensitive_of : {"person", "sequence"}
        Whether the secret is one value of a person, or the sequence of those of all records.
    bins : mapping of column to bins
        As `Joint.binned` has them, of columns of a record: the same at every place.
    longest : int
        The fewest places of the sequences, where another table had longer ones.
    """

    person: tuple[str, ...]
    wave: str | None
    sensitive: tuple[str, ...]
    released: tuple[str, ...]
    given: tuple[str, ...] = ()
    sensitive_of: SensitiveOf = PERSON
    bins: Mapping[str, Any] = field(default_factory=dict[str, Any])
    longest: int = 1

    @classmethod
    def of(cls, useful: Variable) -> PeopleRoles:
        """The roles with which the table of a channel was folded, with its bins."""
        people = useful.people
        if people is None:
            raise TypeError("the variable is not one of people")
        return cls(
            person=people.person,
            wave=people.wave,
            sensitive=people.sensitive,
            released=people.released,
            given=people.given,
            sensitive_of=people.sensitive_of,
            bins=record_bins(useful),
            longest=people.longest,
        )

    def widened(self, earlier: Sequence[Variable]) -> PeopleRoles:
        """The roles with the columns and bins of earlier releases of the same people, too.

        Raises
        ------
        InputError
            If these name people or order their records by other columns.
        """
        roles = self
        for useful in earlier:
            people = useful.people
            # Of a release of single records the request says what is wrong.
            if people is None:
                continue
            if (people.person, people.wave) != (self.person, self.wave):
                raise InputError(
                    "the earlier release has other columns of people or waves "
                    f"({listed([*people.person, people.wave or 'no wave'])}), so its sequences "
                    "are not those of these people: give the same (--person, --wave)"
                )
            further = [
                name
                for name in people.columns
                if name not in (*roles.given, *roles.released)
            ]
            roles = replace(
                roles,
                released=(*roles.released, *further),
                bins={**record_bins(useful), **roles.bins},
                longest=max(roles.longest, people.longest),
            )
        return roles

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, each once."""
        wave = () if self.wave is None else (self.wave,)
        names = (*self.person, *wave, *self.sensitive, *self.given, *self.released)
        return tuple(dict.fromkeys(names))

    def people(self, longest: int) -> People:
        """The people of a table whose longest sequence has so many records."""
        return People(
            person=self.person,
            wave=self.wave,
            columns=(*self.given, *self.released),
            given=self.given,
            longest=longest,
            sensitive=self.sensitive,
            sensitive_of=self.sensitive_of,
        )


def joint_of_people(
    columns: Mapping[str, Encoded],
    roles: PeopleRoles,
    missing: Missing = REFUSE,
    form: CellForm | None = None,
) -> Joint:
    """The joint table of secrets and sequences, which counts people.

    Parameters
    ----------
    columns : mapping of name to (records,) column
        All columns of the roles.
    roles : PeopleRoles
    missing : {"refuse", "symbol"}
        The effect of an empty cell.
    form : CellForm, optional
        The form in which cells are compared.

    Raises
    ------
    RecordFault
        At an empty cell that must not be, or a record without a person or wave.
    InputError
        If people have two records in one wave, several secrets, or nothing is left to release, or
        bins do not fit their column.
    """
    # Roles that exclude each other are refused before the sort.
    roles.people(1)
    if missing not in (REFUSE, SYMBOL):
        raise InputError(
            f"--missing ({quoted(missing)}) must be refuse or symbol where people have several "
            "records: a record that is left out would change the number of a person's records"
        )
    form = form or CellForm()
    cells = {name: _whole(form.cells(columns[name])) for name in roles.columns}
    folded_records = fold_by(cells, roles.person, roles.wave)
    people = roles.people(max(roles.longest, folded_records.longest))
    if missing == REFUSE:
        _refuse_gaps(cells, (*roles.sensitive, *people.columns))
    named = {name: cells[name] for name in (*roles.sensitive, *people.columns)}
    bins = _bins_of(roles.bins, people.columns, cells)
    for name, of_column in bins.items():
        named[name] = of_column.sorted_in(named[name])
    folded = folded_records.folded(people, named)
    if RECORDS in people.sensitive_columns:
        raise InputError(f"rename the sensitive column {quoted(RECORDS)}")
    tally = Tally(Roles(people.sensitive_columns, people.folded_columns), missing, form)
    tally.add_columns([folded[name] for name in tally.roles.columns])
    joint = Joint.from_tally(tally)
    of_folded: tuple[Bins | None, ...] = ()
    if bins:
        record_columns = map(people.column_of.get, people.folded_columns)
        of_folded = tuple(bins.get(name or "") for name in record_columns)
    return replace(joint, useful=replace(joint.useful, people=people, bins=of_folded))


def _bins_of(
    specs: Mapping[str, Any], columns: Sequence[str], cells: Mapping[str, Encoded]
) -> dict[str, Bins]:
    """The bins of columns of a record, with the values that all records have."""
    bins: dict[str, Bins] = {}
    for name, spec in specs_by_column(dict(specs), columns).items():
        column = cells[name]
        present = column.codes[column.codes >= 0]
        counts: list[int] = np.bincount(present, minlength=len(column.texts)).tolist()
        numbers: list[tuple[str, int]] = []
        for text, count in zip(column.texts, counts, strict=True):
            if text and count:
                numbers.append((text, count))
        if not isinstance(spec, Bins):
            spec = spec_of(spec)
        bins[name] = bins_for(name, spec, numbers)
    return bins


def record_bins(useful: Variable) -> dict[str, Bins]:
    """The bins of columns of a record that the sequences of people have."""
    bins: dict[str, Bins] = {}
    if useful.people is None:
        return bins
    for place, folded in enumerate(useful.columns):
        of_column = useful.bins_of(place)
        if of_column is not None:
            bins[useful.people.column_of[folded]] = of_column
    return bins


def fold_by(
    cells: Mapping[str, Encoded], person: Sequence[str], wave: str | None
) -> FoldedRecords:
    """The persons and places of records whose columns are at hand."""
    ordered_by = None if wave is None else (wave, cells[wave])
    return fold({name: cells[name] for name in person}, ordered_by)


def _whole(column: Encoded) -> Encoded:
    """A column without the decimal points that pandas gives integers with gaps."""
    if not column.is_float or not len(column) or column.codes.min() >= 0:
        return column
    whole = tuple(map(as_whole, column.texts))
    # A text that stays was a fraction, and then the column was not one of integers.
    if any(text == integer for text, integer in zip(column.texts, whole, strict=True)):
        return column
    return Encoded(column.codes, whole)


def _refuse_gaps(cells: Mapping[str, Encoded], names: Sequence[str]) -> None:
    """Raise RecordFault at the first empty cell of these columns."""
    for name in names:
        empty = np.flatnonzero(cells[name].codes < 0)
        if empty.size:
            raise RecordFault(
                int(empty[0]),
                f"the column {quoted(name)} has an empty cell; fill it, or let it be a symbol "
                "(--missing symbol)",
            )


def people_of_table(
    table: Any,
    roles: PeopleRoles,
    missing: Missing = REFUSE,
    form: CellForm | None = None,
) -> Joint:
    """The joint table of the people of a pandas, polars or pyarrow table, or of the files that a
    path names; as `joint_of_people`.
    """
    if isinstance(table, (str, Path)):
        return read_people(table, roles, missing, form=form)
    names = roles.columns
    columns = dict(zip(names, encoded_columns(table, names), strict=True))
    return joint_of_people(columns, roles, missing, form)


def read_people(
    path: PathLike,
    roles: PeopleRoles,
    missing: Missing = REFUSE,
    text: TextOptions | None = None,
    form: CellForm | None = None,
) -> Joint:
    """The joint table of the people of a file, folder or glob; as `joint_of_people`."""
    records = read_records(path, roles.columns, text)
    try:
        return joint_of_people(records.columns, roles, missing, form)
    except RecordFault as error:
        raise FileError(records.name, records.fault(error)) from None
    except InputError as error:
        raise FileError(records.name, f"{records.name}: {error}") from None


@dataclass(frozen=True)
class Records:
    """Columns of a long table, read whole."""

    name: str
    columns: Mapping[str, Encoded]

    def fault(self, error: RecordFault) -> str:
        """What is wrong with a record, and which record it is."""
        return f"{self.name}, record {error.position + 1}: {error.what}"

    def by_person(self, person: Sequence[str]) -> FoldedRecords:
        """The person of each record.

        Raises
        ------
        FileError
            At a record without a person.
        """
        try:
            return fold_by(self.columns, person, None)
        except RecordFault as error:
            raise FileError(self.name, self.fault(error)) from None


def read_records(
    path: PathLike, names: Sequence[str], text: TextOptions | None = None
) -> Records:
    """Columns of a file, or of all files of a folder or glob one after the other."""
    files = paths_of(path)
    collected = [_Collected() for _ in names]
    title = os.fspath(path)
    for file in files:
        with open_source(file, text) as source:
            if len(files) == 1:
                title = source.name
            collect(source, names, collected)
    columns = [column.whole() for column in collected]
    return Records(title, dict(zip(names, columns, strict=True)))


def records_of_source(source: Source, names: Sequence[str]) -> dict[str, Encoded]:
    """Columns of an open file, read whole."""
    collected = [_Collected() for _ in names]
    collect(source, names, collected)
    return {name: column.whole() for name, column in zip(names, collected, strict=True)}


def first_records(source: Source, names: Sequence[str]) -> dict[str, Encoded]:
    """Columns of the first batch of an open file; none where it has no record."""
    for batch in source.batches(encode=names, whole=False):
        columns = coded_columns(source, batch, names)
        return dict(zip(names, columns, strict=True))
    return {}


def collect(
    source: Source, names: Sequence[str], collected: Sequence[_Collected]
) -> None:
    """Add columns of a source, batch by batch."""
    for name in names:
        require_column(name, source.header)
    for batch in source.batches(encode=names, whole=False):
        columns = coded_columns(source, batch, names)
        for column, part in zip(collected, columns, strict=True):
            column.add(part)


class _Collected:
    """A column that comes in parts, each with texts of its own."""

    def __init__(self) -> None:
        self._code_of: dict[str, int] = {}
        self._parts: list[Integers] = []
        self._is_float = True

    def add(self, part: Encoded) -> None:
        """Add the next records."""
        # The code -1 of a missing cell leads to the last place.
        codes = [
            self._code_of.setdefault(text, len(self._code_of)) for text in part.texts
        ]
        translated = np.array([*codes, -1], dtype=np.int64)
        self._parts.append(translated[part.codes])
        if part.texts and not part.is_float:
            self._is_float = False

    def whole(self) -> Encoded:
        """All records."""
        codes = np.concatenate([np.zeros(0, dtype=np.int64), *self._parts])
        is_float = self._is_float and bool(self._code_of)
        return Encoded(codes, tuple(self._code_of), is_float)
