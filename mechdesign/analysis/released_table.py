"""A released file for its checks: its columns, its possible labels, its records in batches.

What a file must look like follows from its channel: which columns it has, and which labels each can
hold. `released_file` derives this from the channel and the names in the file, and a `Released`
states it. For example, a channel releases the columns job and age together, and its sensitive
column is illness:

    form              columns       labels                          private
    label             "job,age"     (A,), (B,)                      illness
    posterior-draw    job, age      (nurse, 30), (clerk, 50), ..    illness

Where formulas were escaped, `Released.written` has the labels as the file holds them. `slices` then
gives the records batch by batch, without the columns that nobody asks for, and `cells_of` gives
their cells as text.

*The other columns.* A release changes nothing in other columns, adds none, and has no private
column. Each of these has a function:

- `first_difference` compares the cells of a batch column by column, and returns the first record
  that differs: ``Difference(position=4, column="age", original="30", released="31")``.
- `header_changes` compares the names, the order and, between two Parquet files, the types.
- `private_columns` looks for columns that should have been left out, by their names and by names
  that look like theirs (`lookalikes`).

`common_columns` puts the last two together, with the columns whose cells are to be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

from mechdesign.analysis.checking import Finding
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import FileError, InputError, errors_naming
from mechdesign.core.files import PathLike
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.arrow_arrays import without_nulls
from mechdesign.formats.cells import CellForm, Encoded, encode
from mechdesign.formats.column_names import require_columns
from mechdesign.formats.csv import CsvSource
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.opening import Source
from mechdesign.formats.spellings import as_text
from mechdesign.jobs.column_plan import lookalikes
from mechdesign.release.released_values import LABEL, released_variable
from mechdesign.tables.people import People
from mechdesign.tables.people_source import open_people
from mechdesign.tables.variable import Variable

Advance = Callable[[int], object]
"""Is called with the number of further records, for progress."""


@dataclass(frozen=True, kw_only=True)
class Released:
    """A released file: its format, its columns, and the labels that they can hold.

    Attributes
    ----------
    path : path
    labels : Variable
        The released columns, as symbols: one column, or those of a crossed symbol.
    useful : tuple of str
        The columns of the original symbols.
    own_symbols : set of tuple of str
        The original symbols, where labels were released in their place.
    private : tuple of str
        Columns that must not be in the file.
    ignored : tuple of str
        Columns that are not looked at.
    identity : tuple of str
        Columns that identify a record; none if each record was drawn by itself.
    escaped : bool
        Whether texts that spreadsheets take for formulas have an apostrophe in front.
    text : TextOptions, optional
        How a CSV file is written.
    advance : callable, optional
        Called with the number of further records.
    people : People, optional
        Those of the channel, where a symbol is the sequence of a person's records. All columns here
        are then those of the folded table.
    names : mapping of str to str
        Of people: the file's name of a column that the channel calls otherwise.
    """

    path: PathLike
    labels: Variable
    useful: tuple[str, ...]
    own_symbols: AbstractSet[tuple[str, ...]] = frozenset()
    private: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    escaped: bool = False
    text: TextOptions | None = None
    advance: Advance | None = None
    people: People | None = None
    names: Mapping[str, str] = field(default_factory=dict[str, str])

    def opened(
        self, path: PathLike, text: TextOptions | None, form: CellForm | None = None
    ) -> Source:
        """The file or its original, open; of people one row for each person."""
        source = open_people(path, self.people, text, names=self.names, form=form)
        # A table of people has the interface of a file.
        return cast("Source", source)

    @property
    def columns(self) -> tuple[str, ...]:
        """The released columns."""
        return self.labels.columns

    @property
    def text_beside_original(self) -> TextOptions | None:
        """How the file is read beside its original, in which alone lines are skipped."""
        return None if self.text is None else self.text.of_output

    def looks_escaped(self, text: str) -> bool:
        """Whether a text that is no label has an apostrophe before one, as escaped formulas do."""
        if self.escaped or "'" not in text:
            return False
        cells = [cell for symbol in self.labels.symbols for cell in symbol]
        return any(as_text(cell) in text for cell in cells if as_text(cell) != cell)

    def written(self, table: Source) -> Variable:
        """The labels as the file has them, escaped if it is."""
        if not self.escaped:
            return self.labels
        # Only the writer of CSV files escapes: spreadsheets do not run texts of Parquet files.
        if table.kind != "CSV":
            raise InputError(
                f"{table.name}: a Parquet file has no escaped formulas (--escape-formulas)"
            )
        symbols: list[tuple[str, ...]] = []
        for symbol in self.labels.symbols:
            symbols.append(tuple(map(as_text, symbol)))
        return replace(self.labels, symbols=tuple(symbols))


def released_file(
    channel: Channel,
    path: PathLike,
    renamed: Mapping[str, str] | None,
    released_columns: Sequence[str] | None,
    form: str,
    hidden: Sequence[str] | None = (),
    **more: Any,
) -> Released:
    """The description of a released file that follows from its channel; see `check`.

    The sensitive columns and those in `hidden` may not be in the release; if it is None, all may.
    `more` are further fields of `Released`.
    """
    names_in_file = renamed or {}
    people = channel.useful.people
    if people is not None:
        more |= {
            "people": people,
            "names": _names_of_people(people, names_in_file),
            # People are numbered anew, so what names them is another column in each file.
            "ignored": (*more.get("ignored", ()), *people.person, people.number),
            "identity": (),
        }
        names_in_file = {}

    def in_file(names: Sequence[str]) -> tuple[str, ...]:
        """What the file calls some columns of the channel."""
        return tuple(names_in_file.get(name, name) for name in names)

    sensitive: tuple[str, ...] = ()
    if channel.sensitive is not None:
        sensitive = channel.sensitive.columns
    columns = [*channel.useful.columns, *sensitive]
    unknown = [name for name in names_in_file if name not in columns]
    # A misspelt name would leave a column unchecked.
    if unknown:
        raise InputError(
            f"the channel has no column {listed(unknown)} to rename (it has {listed(columns)})"
        )
    useful = in_file(channel.useful.columns)
    published = useful
    if channel.published is not None:
        if form != LABEL:
            raise InputError(
                "a channel of rows says itself what is released of each column; leave the form "
                "(--as) out"
            )
        published = in_file(channel.output_columns)
    elif form == LABEL:
        # One label for the whole symbol, under the joined names.
        published = (",".join(useful),)
    # Other names for the columns do not change how many there are.
    size = len(published)
    if released_columns is not None:
        published = tuple(released_columns)
    if len(published) != size:
        raise InputError(
            f"the channel releases {size} column(s), not {listed(list(published))}"
        )
    private: tuple[str, ...] = ()
    if hidden is not None:
        private = (*in_file(sensitive), *hidden)
    labels = replace(released_variable(channel, form), columns=published)
    if form == LABEL and channel.published is None:
        more["own_symbols"] = frozenset(channel.useful.symbols)
    return Released(path=path, labels=labels, useful=useful, private=private, **more)


def _names_of_people(people: People, renamed: Mapping[str, str]) -> dict[str, str]:
    """The file's names of columns of the records of people."""
    wave = () if people.wave is None else (people.wave,)
    known = (*people.person, *wave, *people.columns, *people.sensitive)
    unknown = [name for name in renamed if name not in known]
    if unknown:
        raise InputError(
            f"the channel has no column {listed(unknown)} to rename (it has {listed(known)})"
        )
    return dict(renamed)


def require_identity(table: Source, identity: Sequence[str]) -> None:
    """Refuse identifiers that the table has not, with the ways out."""
    try:
        require_columns(identity, table.header)
    except InputError as error:
        raise FileError(
            table.name,
            f"{table.name}: {error}; a release has its identifiers where they were kept (apply "
            "--keep): if none of them comes twice, leave the identity (--identity) out",
        ) from None


def slices(
    table: Source, symbols: Sequence[str], read: Sequence[str] = ()
) -> Iterator[Any]:
    """All records in order, these columns of them as arrow batches; the file must have them."""
    import pyarrow as pa

    with errors_naming(table.name):
        require_columns((*symbols, *read), table.header)
    # A column that is asked for twice, as a compared one and an identifier, comes once.
    names = list(dict.fromkeys((*symbols, *read)))
    others = [name for name in read if name not in symbols]
    for batch in table.batches(encode=symbols, read=others, whole=False):
        # An empty batch is false as an object, and `counting.pairs` would take it for the end.
        if batch.num_rows:
            columns = [batch.column(name) for name in names]
            yield pa.RecordBatch.from_arrays(columns, names)


def cells_of(batch: Any, names: Sequence[str]) -> list[Encoded]:
    """The cells of some columns as text."""
    return [encode(batch.column(name), name) for name in names]


# ---------------------------------------------------- columns besides the released ones


class Difference(NamedTuple):
    """A cell that a release changed: its record in the batch, its column, and both texts."""

    position: int
    column: str
    original: str
    released: str


def first_difference(
    original: Any, released: Any, names: Sequence[str], loose: bool, escaped: bool
) -> Difference | None:
    """The first cell of two batches that differs, by record and then by column.

    `loose` compares texts, for files of different kinds: a CSV has nothing else. With `escaped` the
    release has formulas as texts (--escape-formulas), so those of the original are made texts too.
    """
    differences: list[Difference] = []
    for name in names:
        before = original.column(name)
        after = released.column(name)
        if escaped:
            cells = encode(before, name)
            texts = tuple(map(as_text, cells.texts))
            before = replace(cells, texts=texts).expanded()
        at = _first_unequal(before, after, name, loose)
        if at is not None:
            original_text = str(before[at].as_py())
            released_text = str(after[at].as_py())
            differences.append(Difference(at, name, original_text, released_text))
    # The position stands first, so the least of all is in the first record that differs.
    return min(differences, default=None)


def _first_unequal(before: Any, after: Any, name: str, loose: bool) -> int | None:
    """Position of the first cell that differs; NaN equals NaN, and of texts 1.50 equals 1.5."""
    before = _comparable(before, name, loose)
    after = _comparable(after, name, loose)
    # Nearly always all cells are equal, which Arrow decides without Python values.
    if before.type == after.type and before.equals(after):
        return None
    pairs = zip(before.to_pylist(), after.to_pylist(), strict=True)
    # Only now cell by cell: unequal types may still hold equal values, and NaN differs from itself.
    for i, (one, other) in enumerate(pairs):
        if one != other and not _same_value(one, other, loose):
            return i
    return None


def _comparable(column: Any, name: str, loose: bool) -> Any:
    """The column as texts, or without a dictionary."""
    import pyarrow as pa

    # A CSV has no null: a missing value is the empty text there.
    if loose:
        return without_nulls(encode(column, name).expanded())
    # Equal values may have different codes in the dictionaries of two files.
    if pa.types.is_dictionary(column.type):
        return column.dictionary_decode()
    return column


def _same_value(one: Any, other: Any, loose: bool) -> bool:
    """Whether two unequal cells are the same value: NaN, or texts of one number."""
    # Of values with types only NaN is unequal to itself and yet has the same text.
    if not loose:
        return repr(one) == repr(other)
    try:
        return float(one) == float(other)
    except ValueError:
        return False


def common_columns(
    before: Source, after: Source, file: Released
) -> tuple[list[str], list[Finding]]:
    """The columns that a release and its original have both, and what the headers show."""
    compared = set(before.header) - {*file.columns, *file.ignored}
    common = [name for name in after.header if name in compared]
    findings = private_columns(after, file)
    return common, findings + header_changes(before, after, file, common)


def private_columns(table: Source, file: Released) -> list[Finding]:
    """Columns that a release must not have: sensitive, useful, or like a sensitive one."""
    # Released labels may stand under the name of the useful column that they replace.
    allowed = {*file.columns, *file.ignored}
    problems: list[str] = []
    for role, names in (("sensitive", file.private), ("useful", file.useful)):
        for name in names:
            if name in table.header and name not in allowed:
                problems.append(f"the {role} column {quoted(name)}")
    expected_names = allowed | {*file.private, *file.useful}
    for name, like in lookalikes(table.header, file.private, expected_names):
        problems.append(
            f"the column {quoted(name)}, which looks like the sensitive column {quoted(like)},"
        )
    return [
        Finding("private column", f"{table.name}: {problem} is in the released file")
        for problem in problems
    ]


def header_changes(
    before: Source, after: Source, file: Released, common: list[str]
) -> list[Finding]:
    """Columns that were added, moved, or changed in type (a CSV has no types to compare).

    Columns that are missing are no finding: a release has those alone that were asked for.
    """
    # These may come, go or move: the release replaces them, or `private_columns` reports them.
    special = {*file.useful, *file.columns, *file.private, *file.ignored}
    old = [name for name in before.header if name not in special]
    new = [name for name in after.header if name not in special]
    # A search through thousands of names for each of thousands would take seconds.
    all_old, all_new = set(old), set(new)
    added = [name for name in new if name not in all_old]
    stayed = [name for name in old if name in all_new]
    problems: list[str] = []
    if added:
        problems.append(f"the column {listed(added)} is not in the original")
    elif stayed != new:
        problems.append("the columns are in another order than in the original")
    if not isinstance(before, CsvSource) and not isinstance(after, CsvSource):
        for name in common:
            old_type = str(before.schema.field(name).type)
            new_type = str(after.schema.field(name).type)
            if old_type != new_type:
                problems.append(
                    f"the column {quoted(name)} has the type {new_type}, but {old_type} in the "
                    "original"
                )
    return [Finding("columns", f"{after.name}: {problem}") for problem in problems]
