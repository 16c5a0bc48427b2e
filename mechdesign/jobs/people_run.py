"""A file of people with several records on its way through a release.

To the recipe, the ledger and the checks a person is a record: `PeopleRun` gives them the folded
table (`tables.people_source`). Only when everything is drawn, the released sequences are unfolded,
and the file is written in its long form: as many records as came, in their order, each with the
released cells, a new number for its person, and its place in the sequence. With the person p and
the wave w:

    p  w     job              p  w  job
    a  2020  nurse            1  1  clerk
    a  2021  clerk            1  2  clerk
    b  2020  clerk            2  1  nurse

The true columns of person and wave stay if --keep names them.

*The guard* sees identifiers and kept columns that name people with several records, where a file is
released record by record. The promise of the channel is then about each record, and those of a
person add up: whoever reads the release sees which records are of one person, or can find it out.
`refuse_people` says what they reach together, and refuses the release unless the user says that the
unit is the record.

The order of the file tells as much as such a column, where the records of a person stand together,
or people come in the same order in every wave. So where the order stays, the columns that do not
stay are looked at, too, if the first records have such an order.
"""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import quoted
from mechdesign.formats.arrow_arrays import (
    KeptColumn,
    Output,
    WrittenColumn,
    arrow_integers,
    arrow_texts,
)
from mechdesign.formats.cells import Encoded
from mechdesign.formats.opening import Batch
from mechdesign.formats.parquet import ParquetSource
from mechdesign.formats.spellings import as_text
from mechdesign.jobs.file_run import FileRun
from mechdesign.jobs.keyed_recipe import KeyedRecipe
from mechdesign.jobs.ledger import Settings
from mechdesign.jobs.options import Applied, ReleaseOptions
from mechdesign.jobs.recipe import BadRecord, Drawer, Recipe
from mechdesign.jobs.writing import FileFormat, random_words, write_columns
from mechdesign.leaks.evidence import Order
from mechdesign.leaks.people_notice import (
    PeopleFound,
    people_named,
    people_notice,
    reach_in,
)
from mechdesign.leaks.person_columns import EXCEPTIONS
from mechdesign.release.identified_draws import KEEP
from mechdesign.release.samplers import NEAREST, REFUSE
from mechdesign.tables.people import MOST_RECORDS, PERSON, RECORD, People, at_place
from mechdesign.tables.people_source import FoldedTable, PeopleSource, refuse_kept
from mechdesign.tables.rebuilding import own_type_of, own_values


def check_people(people: People, options: ReleaseOptions) -> None:
    """Refuse options of a release that people with several records do not have.

    Raises
    ------
    InputError
        Naming the option.
    """
    if options.keeps_all:
        raise InputError(
            "the records of people keep their order, and --keep all would keep what names them: "
            "name the columns that stay (--keep COL,..)"
        )
    if options.row_numbers is not None:
        raise InputError(
            "row_numbers numbers records, and people are drawn: leave it out, or identify them by "
            "the columns that name them (identity)"
        )
    if options.shuffle and people.wave is None:
        raise InputError(
            "--shuffle would lose the order of a person's records, which no column gives: design "
            "with --wave COL, or leave it out"
        )
    identity = options.identifiers
    if identity and set(identity) != {
        options.renamed.get(name, name) for name in people.person
    }:
        raise InputError(
            "people are identified by the columns that name them: --identity "
            f"{quoted(','.join(people.person))}, or leave it out"
        )
    if options.changed == KEEP:
        raise InputError(
            "a person may have more or fewer records than before, so that what was released cannot "
            "stand in their place: --changed keep is for single records"
        )
    rules = options.rules
    if rules.unknown not in (REFUSE, NEAREST) or rules.missing != REFUSE:
        raise InputError(
            "people whom the table of the channel does not have are refused, or released as the "
            "nearest ones (--unknown nearest): another rule (--unknown, --missing) is not built "
            "for people with several records"
        )


def for_people(options: ReleaseOptions) -> ReleaseOptions:
    """The options of the folded table: kept columns and names are those of the records."""
    return replace(options, keep=(), columns={}, identity=_identity(options))


def _identity(options: ReleaseOptions) -> tuple[str, ...]:
    """The identifiers by the names that the channel has for them."""
    channel_name = {name: own for own, name in options.renamed.items()}
    return tuple(channel_name.get(name, name) for name in options.identifiers)


def released_sequences(drawer: Drawer, drawn: Any) -> dict[str, Encoded]:
    """The columns of the folded table that a drawer has drawn."""
    released: dict[str, Encoded] = {}
    for column in drawer.plan.columns:
        if column.release is not None:
            of_people = drawn[column.release]
            released[column.name] = Encoded(of_people.codes, of_people.labels)
    return released


def watch_order(drawer: Drawer, table: FoldedTable) -> None:
    """Have the drawer's checks test the order of the people, too.

    Nearly every sequence is another one, so that their order shows little: people who were sorted
    by a column are found by its cells in their first records, or by their secret.
    """
    options = drawer.recipe.options
    if options.keep_order or options.shuffle:
        return
    people = table.people
    tested = {name: at_place(name, 0) for name in people.released}
    for name in people.sensitive:
        is_one = people.sensitive_of == PERSON
        tested[name] = name if is_one else at_place(name, 0)
    for name, folded in tested.items():
        if folded not in table.columns:
            continue
        column = table.columns[folded]
        # A missing cell is a symbol of its own.
        order = Order(len(column.texts) + 1)
        order.add(np.where(column.codes < 0, len(column.texts), column.codes))
        drawer.checks.orders[name] = order


@dataclass
class PeopleRun(FileRun):
    """A file of people, whose table is a `PeopleSource`.

    Attributes
    ----------
    kept : tuple of str
        The columns of the records that stay, by their names in the file.
    """

    kept: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        source = self._source
        refuse_kept(source.table.people, self.kept, source.inner.header)

    @property
    def _source(self) -> PeopleSource:
        """The file as a table of people."""
        table: Any = self.table
        if not isinstance(table, PeopleSource):
            raise TypeError("the table of a run for people is a PeopleSource")
        return table

    @property
    def keeps_more(self) -> bool:
        """Whether columns of the records stay, beside the plan of the folded columns."""
        return bool(self.kept)

    def settings(self) -> Settings:
        """What decides, beside data, channels and draws, which bytes are written."""
        return {**super().settings(), "keep": self.kept, "people": True}

    @property
    def columns_before(self) -> tuple[str, ...]:
        """The columns of the records."""
        return tuple(self._source.inner.header)

    @property
    def columns_after(self) -> tuple[str, ...]:
        """The columns of the records that are released or kept; people and places are numbered."""
        source = self._source
        columns = source.table.people.columns
        return (*(source.names.get(name, name) for name in columns), *self.kept)

    def records_of(self, drawn: int) -> int:
        """The records of so many people, who are drawn all together."""
        return len(self._source.table.records.person_of)

    def applied(
        self,
        records: int,
        sha256: str,
        ledger: str | None,
        *,
        already: bool = False,
        whole_file: bool = False,
    ) -> Applied:
        """What was written through channels: records of people."""
        people = self._source.table.people
        applied = super().applied(
            records, sha256, ledger, already=already, whole_file=whole_file
        )
        return replace(
            applied,
            records=self.records_of(records),
            people=len(self._source.table.records),
            columns=people.columns,
            kept=self.kept,
        )

    def _write(
        self,
        drawer: Drawer,
        target: Path,
        format: FileFormat,
        inspect: Callable[[Batch], None] | None,
    ) -> int:
        """Draw the sequence of every person, and write the records; the number of people."""
        source = self._source
        header = source.header
        (batch,) = source.batches()
        try:
            drawn = drawer.draw(
                lambda number: batch.column(header[number]), batch.num_rows
            )
        except BadRecord as error:
            raise self.fault(error) from None
        except InputError as error:
            raise InputError(f"{source.name}: {error}") from None
        drawer.checks.add(batch.num_rows, lambda step: batch.some(step).column)
        watch_order(drawer, source.table)
        if inspect is not None:
            inspect(batch)
        released = released_sequences(drawer, drawn)
        order: Integers | None = None
        if drawer.recipe.options.shuffle:
            # The old numbers would tell the order of the file.
            key = drawer.recipe.keys[0].derived("people", self.guarded.sha256)
            order = np.argsort(random_words(key, 0, batch.num_rows), kind="stable")
        outputs, written = _long_columns(source, released, order, self.kept, format)
        write_columns(
            drawer, source.inner, target, format, outputs, written, self._advance
        )
        return batch.num_rows


def _long_columns(
    source: PeopleSource,
    released: dict[str, Encoded],
    order: Integers | None,
    kept: Sequence[str],
    format: FileFormat,
) -> tuple[list[Output], list[Any]]:
    """The columns of the output, in the order of the file, and the written ones for all records."""
    header = source.inner.header
    places = {name: position for position, name in enumerate(header)}
    columns = source.table.long_form(
        header, released, kept=kept, names=source.names, order=order
    )
    outputs: list[Output] = []
    written: list[Any] = []
    for column in columns:
        position = places[column.source]
        if column.cells is None:
            outputs.append(KeptColumn(position))
            continue
        kind = _own_kind(source, position, column.cells, format)
        outputs.append(WrittenColumn(column.title, position, kind))
        written.append(_array(column.cells, kind, format))
    return outputs, written


def _own_kind(
    source: PeopleSource, position: int, column: Encoded, format: FileFormat
) -> Any:
    """The arrow type of the column that is replaced, where the released one can have it."""
    if format.kind != "Parquet" or not isinstance(source.inner, ParquetSource):
        return None
    kind = own_type_of(source.inner.schema.field(position).type)
    if own_values(column.texts, kind) is None:
        return None
    return kind


def _array(column: Encoded, kind: Any, format: FileFormat) -> Any:
    """A written column as codes into its values."""
    import pyarrow as pa

    if kind is not None:
        values = own_values(column.texts, kind)
    elif format.escape:
        values = arrow_texts([as_text(text) for text in column.texts])
    else:
        values = arrow_texts(column.texts)
    codes = column.codes.astype(np.int32)
    indices = arrow_integers(codes)
    if len(codes) and codes.min() < 0:
        indices = pa.array(codes, mask=codes < 0)
    return pa.DictionaryArray.from_arrays(indices, values)


# -------------------------------------------------------------------------------- guard

REGULAR = 0.5
"""Share of the values that come again after as many records as most others, from which on the
order tells which records are of one person. In random order hardly any two distances agree."""

Read: TypeAlias = Callable[[Sequence[str]], Mapping[str, Encoded]]
"""Gives columns of a table by their names."""


def refuse_people(
    recipe: Recipe,
    header: Sequence[str],
    read: Read,
    read_first: Read | None = None,
    comes_again: Callable[[str], bool] | None = None,
    stays: Sequence[str] = (),
    *,
    can_shuffle: bool = True,
) -> None:
    """Raise InputError where a column that identifies records, or stays, names people, or where
    their order does.

    Parameters
    ----------
    recipe : Recipe
    header : sequence of str
        The columns of the table.
    read : function
        Gives columns of the table by their names.
    read_first : function, optional
        As `read`, of records from the beginning; without it the order is taken for
        one that tells nothing.
    comes_again : function, optional
        Whether the values of a column can be those of people; such columns alone are read then.
    stays : sequence of str
        Columns that stay beside those that the options keep.
    can_shuffle : bool
        Whether the release itself could shuffle the records.
    """
    options = recipe.options
    if recipe.people is not None or options.unit == RECORD:
        return
    if not isinstance(recipe, KeyedRecipe):
        # Nothing is drawn, so that nothing adds up.
        return
    named = [*options.identifiers, *options.kept, *stays]
    # Records of one identifier have one draw, which tells no more than one record.
    drawn_once = options.identifiers if len(options.identifiers) == 1 else ()
    useful = recipe.useful_columns
    own = {*useful, *drawn_once}
    there = {*header}
    named = [name for name in named if name in there and name not in own]
    sensitive = [name for name in recipe.private_columns if name in there]
    others = list(dict.fromkeys([*useful, *sensitive]))
    others = [name for name in others if name in there]

    def found_among(names: Sequence[str]) -> tuple[PeopleFound, tuple[str, ...]] | None:
        if comes_again is not None:
            names = [name for name in names if comes_again(name)]
        if not names:
            return None
        columns = read(list(dict.fromkeys([*names, *others])))
        return people_named(columns, names, sensitive)

    by_order = ""
    found = found_among(named)
    if found is None and read_first is not None and not options.shuffle:
        known = {*named, *own, *others}
        dropped = [name for name in header if name not in known]
        first = _readable(read_first, dropped)
        found = found_among([name for name in first if _is_regular(first[name])])
        remedy = "--shuffle gives them a random one"
        if not can_shuffle:
            remedy = "put them in random order first"
        by_order = f"the order of the records tells which of them are of one person ({remedy}): "
    if found is None:
        return
    people, alike = found
    reach = None
    channels = [single for one in recipe.channels for single in one.channels]
    secret: Sequence[str] = alike
    # The symbols of boxes are no cells of the table, so that nothing is known of them.
    if len(channels) == 1 and not options.renamed:
        reach = reach_in(people, channels[0])
        if channels[0].sensitive is not None:
            secret = channels[0].sensitive.columns
    notice = people_notice(people, secret, reach, alike)
    raise InputError(f"nothing was released: {by_order}{notice}")


def _readable(read: Read, names: Sequence[str]) -> Mapping[str, Encoded]:
    """These columns, without those whose cells have no text, as lists and bytes: such a cell names
    nobody.
    """
    if not names:
        return {}
    try:
        # A file is parsed anew for every call, so all are read at once if they can be.
        return read(names)
    except InputError:
        # The error names the first such column, and there may be more.
        pass
    columns: dict[str, Encoded] = {}
    for name in names:
        with suppress(InputError):
            columns.update(read([name]))
    return columns


def _is_regular(column: Encoded) -> bool:
    """Whether the values of a column come again after the same number of records, mostly.

    For example, 1 1 1 2 2 2 and 1 2 3 1 2 3 are regular.
    """
    codes = column.codes[column.codes >= 0]
    sizes = np.bincount(codes) if len(codes) else np.zeros(0, dtype=np.int64)
    large = np.count_nonzero(sizes > MOST_RECORDS)
    if not len(codes) or large > EXCEPTIONS * np.count_nonzero(sizes):
        return False
    places = np.argsort(codes, kind="stable")
    comes_again = np.diff(codes[places]) == 0
    distances = np.diff(places)[comes_again]
    if not len(distances):
        return False
    return int(np.bincount(distances).max()) >= REGULAR * len(distances)
