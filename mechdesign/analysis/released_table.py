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
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import FileError, InputError, errors_naming
from mechdesign.core.files import PathLike
from mechdesign.core.wording import listed
from mechdesign.formats.cell_forms import CellForm
from mechdesign.formats.cells import Encoded, encode
from mechdesign.formats.column_names import require_column
from mechdesign.formats.formulas import as_text
from mechdesign.formats.opening import Source
from mechdesign.formats.text_options import TextOptions
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
        for name in identity:
            require_column(name, table.header)
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
        for name in (*symbols, *read):
            require_column(name, table.header)
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
