"""What is said of a table with people where records are released one by one.

`people_in` looks for a column that names people (`person_columns`), in a file or frame;
`people_notice` says what their records reach together through a channel (`reach_of_people`), and
what to do. Commands that would write such a release refuse it with this sentence, unless the user
says that the unit is the record.

*Which columns come into question.* Only a column whose values come again, each in a few records,
can name people with several records (`person_columns`), and most tables have none. So the file is
read once for the hashes of its columns alone, and a column is given up at the first batch in which
one of its values has too many records. Of a table with ordinary columns nothing is kept; of one
with an identifier eight bytes a record.

*What the records of a person reach* that are released one by one. The file has a row for each
record. Each is released once through every channel, and drawn by itself; `composed_for_people`
finds the person and the symbol of every record, and `auditing.independent_draws` bounds what the
outputs of all records of a person tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.composition import common_table
from mechdesign.auditing.independent_draws import PeopleTogether, together_of_people
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.integers import Integers
from mechdesign.core.wording import at_least, at_most, listed, percent_of, quoted
from mechdesign.formats.cells import Encoded, empty_as_missing
from mechdesign.formats.census import Hashes
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.digests import RowHasher
from mechdesign.formats.opening import Batch, is_folder, open_source, paths_of
from mechdesign.leaks.coded_table import (
    CodedColumn,
    CodedTable,
    Codes,
    coded_table,
    combined_codes,
    hashed_cells,
)
from mechdesign.leaks.evidence import TextNumbers
from mechdesign.leaks.learners import numbers_in
from mechdesign.leaks.person_columns import (
    SURE,
    PersonColumn,
    PersonReach,
    find_person_columns,
    is_measurement,
    may_name_people,
    reach_of_people,
)
from mechdesign.release.samplers import normalised, normalised_cells, recorded_rules
from mechdesign.tables.columns import positions_of
from mechdesign.tables.joint import Joint
from mechdesign.tables.people_tables import read_records

# -------------------------------------------------------------- all records of a person


def composed_for_people(
    path: PathLike,
    channels: Sequence[Channel],
    joint: Joint | None,
    person: Sequence[str],
    text: TextOptions | None = None,
) -> PeopleTogether:
    """What the records of the people of a file reach together.

    Parameters
    ----------
    path : path
        The records; those that the table of the channels lacks are left out.
    channels : sequence of Channel
        Each record is released once through each.
    joint : Joint, optional
        The table with the columns of all channels; by default their own.
    person : sequence of str
        What names a person.
    text : TextOptions, optional
        How a CSV is written.

    Raises
    ------
    InputError
        If a channel is for people itself, or there is no common table, or a column is missing.
    """
    if any(channel.useful.people is not None for channel in channels):
        raise InputError(
            "a channel for people promises for all records of a person already: leave --person out"
        )
    table = common_table(channels, joint)
    names = table.useful.columns
    records = read_records(path, [*person, *names], text)
    rules = recorded_rules(channels)
    cells = [records.columns[name] for name in names]
    useful = table.useful
    if rules is not None:
        cells = normalised_cells(cells, rules.cell_form)
        useful = normalised(useful, rules.cell_form)
    symbols = positions_of(cells, useful)
    people = records.by_person(person)
    known = symbols >= 0
    if not known.any():
        raise InputError(f"{records.name}: the channels know none of its records")
    person_of = np.unique(people.person_of[known], return_inverse=True)[1]
    return together_of_people(channels, table, symbols[known], person_of.reshape(-1))


def together_sentence(
    together: PeopleTogether, person: Sequence[str], sensitive: Sequence[str]
) -> str:
    """The same in words."""
    reach = "reach" if together.exact else "reach at most"
    low, high = together.single
    return (
        f"all records of a person ({listed(person)}: {together.people:,} people with up to "
        f"{together.most:,} records), each drawn by itself, {reach} {at_least(together.lowest)} to "
        f"{at_most(together.highest)} times as likely for a value of {quoted(','.join(sensitive))},"
        f" where they are independent given it; one record reaches {at_least(low)} to "
        f"{at_most(high)} times. {together.above:,} of {together.people:,} people can be told more "
        f"of than one record tells, and for {together.sure:,} a value can become more than "
        f"{percent_of(SURE)} likely"
    )


# ------------------------------------------------------------------------------- notice

FEW = 10
"""Most records that the values of a column have in the mean, which names people although their
secrets change: measurements, such as the height of people, have more, and tell of secrets, too."""

REMEDY = (
    "promise it for all records of a person together (design with --person, here {name}), or say "
    "that the promise is about each record alone (--unit record)"
)


@dataclass(frozen=True, eq=False)
class PeopleFound:
    """A table with a column that names people."""

    column: PersonColumn
    table: CodedTable

    def sentence(self, alike: Sequence[str]) -> str:
        """What the column is, and which columns are alike in its records."""
        names = ",".join(alike)
        return (
            f"the column {quoted(self.column.name)} names {self.column.people:,} people with up to "
            f"{self.column.most:,} records each, whose {quoted(names)} is alike: the promise is "
            "about one record"
        )


def people_in(
    source: Any,
    sensitive: Sequence[str],
    text: TextOptions | None = None,
    *,
    among: Sequence[str] | None = None,
    but: Sequence[str] = (),
) -> PeopleFound | None:
    """The people of a table of records; None where no column names any.

    Parameters
    ----------
    source : path of a file or folder, or a pandas, polars or pyarrow table
    sensitive : sequence of str
        The sensitive columns.
    text : TextOptions, optional
        How a CSV is written.
    among : sequence of str, optional
        The columns to look at; by default all others.
    but : sequence of str
        Columns that are not looked at: a released one has a promise of its own.
    """
    if isinstance(source, (str, Path)):
        # Most tables have no such column, and then nothing of them has to be kept.
        left_out = {*sensitive, *but}
        among = possible_columns(source, text, among, left_out)
        if not among:
            return None
    if isinstance(source, (str, Path)) and is_folder(source):
        _, header = files_and_columns(source, text)
        table = _table_of(read_records(source, header, text).columns)
    else:
        table = coded_table(source, text)
    if among is None:
        among = [name for name in table.columns if name not in but]
    return people_of(table, sensitive, among)


def people_of(
    table: CodedTable, sensitive: Sequence[str], among: Sequence[str] | None = None
) -> PeopleFound | None:
    """As `people_in`, of a table that was read.

    A secret may change between the records of a person: then it need only be alike far more often
    than by chance, in a column whose values have `FEW` records each and are no measurements.
    """
    if not table.records or any(name not in table.columns for name in sensitive):
        return None
    candidates: dict[str, Codes] = {}
    asked = {*table.columns} if among is None else {*among}
    for name, column in table.columns.items():
        if name in sensitive or name not in asked:
            continue
        # Of folded rows cheaply first: hashes name records, and few other columns name people.
        if table.weights is not None:
            counts = column.counts()
            if column.rows is not None or not may_name_people(
                counts[counts > 1], table.records
            ):
                continue
        candidates[name] = column.codes
    if not candidates:
        return None
    table = records_of(table, [*candidates, *sensitive])
    candidates = {name: table.columns[name].codes for name in candidates}
    secret = combined_codes([table.columns[name] for name in sensitive], table.records)
    found = find_person_columns(candidates, secret)
    if not found:
        changing = find_person_columns(candidates, secret, may_change=True)
        found = [
            column
            for column in changing
            if column.records <= FEW * column.people
            and not _is_measurement(table.columns[column.name], secret)
        ]
    return PeopleFound(found[0], table) if found else None


def records_of(table: CodedTable, names: Sequence[str]) -> CodedTable:
    """The records of a table of folded rows, in some of its columns; others as they are."""
    if table.weights is None:
        return table
    columns: dict[str, CodedColumn] = {}
    for name in names:
        column = table.columns[name]
        codes = np.repeat(column.codes, table.weights)
        columns[name] = CodedColumn(name, codes, column.values)
    return CodedTable(table.records, columns, table.unreadable)


def _is_measurement(column: CodedColumn, secret: Codes) -> bool:
    """Whether a column of numbers tells of the secret as measurements do, and not as people."""
    numbers = numbers_in(column.values)
    if numbers is None:
        return False
    return is_measurement(
        column.codes.astype(np.int64), secret.astype(np.int64), numbers
    )


def people_named(
    columns: Mapping[str, Encoded], named: Sequence[str], sensitive: Sequence[str]
) -> tuple[PeopleFound, tuple[str, ...]] | None:
    """The people that one of the named columns of a release names; None where there are none.

    Parameters
    ----------
    columns : mapping of name to (n,) column
        The named, useful and sensitive columns, as far as the table has them.
    named : sequence of str
        What identifies a record, or stays.
    sensitive : sequence of str
        The sensitive columns. Where the table lacks them, what is released must be alike within the
        records of a person.

    Returns
    -------
    PeopleFound, and the columns that are alike
    """
    table = _table_of(columns)
    is_there = bool(sensitive) and all(name in columns for name in sensitive)
    if is_there:
        found = people_of(table, sensitive, named)
        return None if found is None else (found, tuple(sensitive))
    by_name = {*named}
    alike = tuple(name for name in columns if name not in by_name)
    if not table.records or not alike:
        return None
    candidates = {
        name: table.columns[name].codes for name in named if name in table.columns
    }
    symbols = combined_codes([table.columns[name] for name in alike], table.records)
    people = find_person_columns(candidates, symbols, may_change=True)
    return (PeopleFound(people[0], table), alike) if people else None


def _table_of(columns: Mapping[str, Encoded]) -> CodedTable:
    """Encoded columns as a coded table, whose missing cells are the empty text."""
    coded: dict[str, CodedColumn] = {}
    records = 0
    for name, column in columns.items():
        texts = TextNumbers()
        codes = texts.of(column).astype(np.int32)
        records = len(codes)
        coded[name] = CodedColumn(name, codes, tuple(texts.number_of))
    return CodedTable(records, coded, ())


def reach_in(found: PeopleFound, channel: Channel) -> PersonReach | None:
    """What the people of a table reach through a channel; None where that is not known."""
    if any(name not in found.table.columns for name in channel.useful.columns):
        return None
    form = channel.record.rules.cell_form
    cells = normalised_cells(
        [_encoded(found.table.columns[name]) for name in channel.useful.columns], form
    )
    symbols = positions_of(cells, normalised(channel.useful, form))
    # Records that the channel does not know have no place in its table.
    known = symbols >= 0
    if not known.any():
        return None
    person = found.table.columns[found.column.name].codes[known]
    person = np.unique(person, return_inverse=True)[1].reshape(-1)
    return reach_of_people(channel, symbols[known], person)


def _encoded(column: CodedColumn) -> Encoded:
    """A column as the channel reads it; the empty text is a missing cell."""
    return empty_as_missing(
        Encoded(column.codes.astype(np.int64), tuple(column.values))
    )


def people_notice(
    found: PeopleFound,
    sensitive: Sequence[str],
    reach: PersonReach | None,
    alike: Sequence[str] | None = None,
) -> str:
    """What the records of a person reach together, and what to do.

    `alike` are the columns that are alike in the records of a person; by default the secret ones.
    """
    text = found.sentence(sensitive if alike is None else alike)
    if reach is not None:
        names = quoted(",".join(sensitive))
        text += (
            f". One released record makes a value of {names} {at_least(reach.single[0])} to "
            f"{at_most(reach.single[1])} times as likely; all records of a person together, each "
            f"drawn by itself, reach {at_least(reach.lowest)} to {at_most(reach.highest)} times: "
            f"{reach.above:,} of {reach.people:,} people more than one record can, and for "
            f"{reach.sure:,} a value is more than {percent_of(SURE)} likely"
        )
    return f"{text}: {REMEDY.format(name=found.column.name)}"


def possible_columns(
    path: PathLike,
    text: TextOptions | None,
    among: Sequence[str] | None,
    left_out: Collection[str],
) -> list[str]:
    """The columns of a file that may name people, by how often their values occur.

    Parameters
    ----------
    path : path
        A file, or a folder or glob of files with these columns.
    text : TextOptions, optional
        How a CSV is written.
    among : sequence of str, optional
        The columns to look at; by default all.
    left_out : collection of str
        Columns that are not looked at.
    """
    # The same key always: what is found does not change from run to run.
    hasher = RowHasher(bytes(32))
    files, header = files_and_columns(path, text)
    hashes: dict[str, ColumnHashes] = {}
    for name in header:
        if name not in left_out and (among is None or name in among):
            hashes[name] = ColumnHashes()
    for file in files:
        with open_source(file, text) as table:
            for batch in table.batches():
                if not hashes:
                    return []
                _add_hashes(hashes, hasher, batch)
    possible: list[str] = []
    for name in list(hashes):
        # One column after the other is let go of.
        found = hashes.pop(name)
        if may_name_people(found.repeated(), found.records):
            possible.append(name)
    return possible


COUNTED_FROM = 16
"""Records of a value in a batch from which their number takes less memory than their hashes."""


class ColumnHashes:
    """The hashes of the cells of a column; of values with many records only how many they are.

    A column of few values takes no memory: all of them have many records in a batch.
    """

    def __init__(self) -> None:
        self.records = 0
        self._parts: list[Hashes] = []
        self._counted: Counter[int] = Counter()

    def add(self, hashes: Hashes) -> None:
        """Add the hashes of a batch."""
        self.records += len(hashes)
        values, counts = np.unique(hashes, return_counts=True)
        many = counts >= COUNTED_FROM
        if self._counted:
            # Once it has had so many, no hash of it is kept any more.
            many |= np.isin(values, np.array(list(self._counted), dtype=np.uint64))
        for value, count in zip(values[many], counts[many], strict=True):
            self._counted[int(value)] += int(count)
        if many.any():
            hashes = hashes[~np.isin(hashes, values[many])]
        self._parts.append(hashes)

    def repeated(self) -> Integers:
        """How often each value occurs that occurs several times; asked once, for it lets go of the
        hashes.
        """
        whole = np.concatenate([np.empty(0, dtype=np.uint64), *self._parts])
        self._parts.clear()
        counts = _repeated(whole)
        if not self._counted:
            return counts
        # What these values had in the batches before; all hashes are in order now.
        values = np.array(list(self._counted), dtype=np.uint64)
        rest = np.searchsorted(whole, values, "right") - np.searchsorted(whole, values)
        # They stand among the others: so many of each size are none of theirs.
        among = rest[rest > 1]
        most = int(counts.max(initial=0))
        others = np.bincount(counts, minlength=most + 1)
        others -= np.bincount(among, minlength=most + 1)
        counts = np.repeat(np.arange(most + 1), others)
        return np.append(counts, rest + np.array(list(self._counted.values())))


def files_and_columns(
    path: PathLike, text: TextOptions | None
) -> tuple[list[PathLike], list[str]]:
    """The files of a path, and the columns that all of them have."""
    files = paths_of(path)
    header: list[str] = []
    for number, file in enumerate(files):
        with open_source(file, text) as table:
            own = dict.fromkeys(table.header)
        header = [name for name in header if name in own] if number else [*own]
    return files, header


def _add_hashes(
    hashes: dict[str, ColumnHashes], hasher: RowHasher, batch: Batch
) -> None:
    """Add a batch to the hashes of columns; those that cannot name people are left out."""
    for name in list(hashes):
        try:
            found = hashed_cells(hasher, name, batch.column(name))
        except InputError:
            # Lists and bytes name nobody.
            del hashes[name]
            continue
        hashes[name].add(found)


def _repeated(hashes: NDArray[np.uint64]) -> Integers:
    """How often each value occurs that occurs several times; the hashes are put in order."""
    hashes.sort()
    same = np.zeros(len(hashes) + 1, dtype=np.bool_)
    np.equal(hashes[1:], hashes[:-1], out=same[1:-1])
    # Every run of equal neighbours begins and ends at a change.
    changes = np.flatnonzero(same[1:] != same[:-1])
    return changes[1::2] - changes[::2] + 1
