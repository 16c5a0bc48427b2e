"""What a user asks of a release of a file, a frame, a cluster or a pipeline, and what it reports.

`ReleaseOptions` declares, explains and checks every option of what is released; `FileOptions` has
those of how files are read and written. Both are frozen and travel through all functions as one
value. The public functions take their fields as keyword arguments, which the TypedDicts declare to
type checkers, and `options_of` turns these into a `ReleaseOptions`.

Users give one column, several or none; the value has one form. ``keep="age"`` becomes the tuple
``("age",)``, ``identity=None`` becomes ``()``, and a seed that is ``True`` is refused. Properties
such as `kept` and `renamed` give what the rest of the package reads.

The checks need nothing but the options: types, values, and which of them contradict each other.
Whether a column exists is asked when the header is known (`column_plan`).

*Results.* `Released` is what callers may rely on, whatever was released; `Applied` is the report of
channels, and a mechanism for single records has its own (`nonstochastic`). After ``job`` was
released and ``age`` kept, for example, `columns` is ``("job",)`` and `kept` is ``("age",)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Protocol, TypeAlias, TypedDict, cast

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.progress import Progress
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.compression import Compression
from mechdesign.formats.csv_text import TextOptions
from mechdesign.release.drawing import DRAWS
from mechdesign.release.draws import Key
from mechdesign.release.identified_draws import CHANGES
from mechdesign.release.released_values import FORMS, LABEL
from mechdesign.release.samplers import REFUSE, Policy

ColumnNames: TypeAlias = str | Sequence[str]
"""One column, or several."""

ALL = "all"
"""In the place of names of kept columns: every column."""

AddedNames: TypeAlias = str | Sequence[str] | Sequence[Sequence[str]]
"""Names of added columns: one; those of one channel; or those of every channel."""


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """How files are read and written.

    Parameters
    ----------
    text : TextOptions, optional
        Delimiter, quote and encoding of a CSV.
    compression : 'gzip' or 'zstd', optional
        Of a CSV output, whatever its name.
    format : 'csv' or 'parquet', optional
        What the output is; by default the same as the input.
    escape_formulas : bool
        Whether CSV cells that a spreadsheet would take for formulas get an apostrophe before them.
    force : bool
        Whether existing files are replaced.
    strict : bool
        Whether any note for the user is an error, and nothing is written.
    progress : Progress, optional
        Called with the bytes read; the input is read twice.
    warn : function, optional
        Called with what the user should know before the work begins.
    """

    text: TextOptions | None = None
    compression: Compression | None = None
    format: str | None = None
    escape_formulas: bool = False
    force: bool = False
    strict: bool = False
    progress: Progress | None = None
    warn: Callable[[str], None] | None = None


class FileKeywords(TypedDict, total=False):
    """The fields of `ReleaseOptions` for files: the keys and row numbers of a file are matters of
    its job.
    """

    columns: Mapping[str, str] | None
    identity: ColumnNames | None
    form: str
    into: AddedNames | None
    policy: Policy | None
    keep_sensitive: bool
    correlated: ColumnNames
    drop: ColumnNames
    keep: ColumnNames
    shuffle: bool
    keep_order: bool
    insecure_seed: int | None
    changed: str
    fresh_draw: bool
    draws: str | None
    unit: str | None
    nights: int


class ReleaseKeywords(FileKeywords, total=False):
    """All fields of `ReleaseOptions`."""

    key: Key | PathLike | None
    ledger: PathLike | None
    row_numbers: str | None
    keep_index: bool


@dataclass(frozen=True, kw_only=True)
class ReleaseOptions:
    """What a user asks of a release: of a file, a frame, a table on a cluster, or in a pipeline.

    Parameters
    ----------
    columns : mapping, optional
        The table's name of a column of a channel where it has another one there.
    key : draws.Key, or path of a key file, optional
        The secret that fixes the draws. Without key and ledger a new key is used and forgotten:
        another call would be a second, independent release of the same records, which tells more
        than the budget.
    ledger : path, optional
        The ledger of releases, made with a key of its own if there is none. It gives the same
        records the draws that `apply` gives them, and refuses to draw them a second time.
    identity : str or sequence of str, optional
        Columns of integers or text that identify a record. By default its row number does.
    row_numbers : str, optional
        Column with the row number of each record, counted from 0, in any order.
    form : {"label", "posterior-draw", "representative", "within"}
        The label of Y, or a value of X drawn from P(X|Y) under the table. For a column in bins also
        the median of what Y stands for, or one of the table's numbers in the bin drawn (of Y itself
        where Y is a bin).
    into : str, or sequence of str, optional
        Names of columns to add at the end. X and all other columns stay (then the table is no
        release). For several channels one name, or sequence of names, each.
    policy : Policy, optional
        What to do with unknown symbols and missing cells; by default both are refused.
    keep_sensitive : bool
        Whether sensitive and correlated columns may stay in the output.
    correlated : str or sequence of str
        Columns that are treated as the sensitive ones are: they must not stay.
    drop : str or sequence of str
        Columns that are left out of the output, for use with `keep="all"`.
    keep : str or sequence of str
        Other columns of the output, which hold the released columns alone by default. ``"all"``
        keeps every column, and refuses those that are called like the useful or a sensitive column
        or copy it in the data. A column that is named stays whatever it discloses.
    keep_index : bool
        Whether the index of a frame stays. By default the rows of the output are numbered anew,
        because an index may hold the secret, an identifier, or the order in which the records stood
        before; one with a name stays where all columns do.
    shuffle : bool
        Whether the records are put in random order, which is fixed by the key and the data.
    keep_order : bool
        Whether the records may stay in an order that tells of the useful column.
    changed : {"refuse", "keep", "redraw"}
        With a ledger and an identity: what becomes of a record whose symbol has changed since it
        was released. It is an error; or its old output is released again; or it is drawn anew,
        independently, which adds to what its releases tell (a warning says at most how much).
    fresh_draw : bool
        With a ledger: whether records that were released before are drawn anew.
    draws : {"fixed", "independent"}, optional
        Fixed counts: every output gets exactly as many records as the table of the design has of
        it, so nothing that was counted in the release tells of a record. They are the default where
        the records are those of that table and their row numbers identify them; elsewhere each
        record is drawn independently.
    unit : {"record"}, optional
        That the promise is knowingly about each record alone, where a column that identifies
        records, or stays, names people with several of them. By default that is an error.
    nights : int
        With a channel for people with several records, and a ledger: how many releases of new
        records each person may have. By default the second one is an error.
    insecure_seed : int, optional
        Reproducible draws, for tests only: whoever knows the seed can undo the release.

    Raises
    ------
    InputError
        On a value of another type or out of range, or where both kinds of identity are given.
    """

    columns: Mapping[str, str] | None = None
    key: Key | PathLike | None = field(default=None, repr=False)
    ledger: PathLike | None = None
    identity: ColumnNames | None = None
    row_numbers: str | None = None
    form: str = LABEL
    into: AddedNames | None = None
    policy: Policy | None = None
    keep_sensitive: bool = False
    correlated: ColumnNames = ()
    drop: ColumnNames = ()
    keep: ColumnNames = ()
    keep_index: bool = False
    shuffle: bool = False
    keep_order: bool = False
    insecure_seed: int | None = None
    changed: str = REFUSE
    fresh_draw: bool = False
    draws: str | None = None
    unit: str | None = None
    nights: int = 1

    def __post_init__(self) -> None:
        # The one moment at which a frozen value is set: one form for what users give in several.
        object.__setattr__(self, "columns", self._checked_columns())
        self._check_values()
        for name in ("identity", "correlated", "drop", "keep"):
            names = _as_names(name, vars(self)[name])
            object.__setattr__(self, name, names)
        self._check_identity()
        self._check_ledger()
        if self.shuffle and self.keep_order:
            raise InputError(
                "the order of the records is shuffled or kept: give --shuffle or --keep-order"
            )
        if self.shuffle and self.keep_index:
            raise InputError(
                "the index would give the old order of shuffled records back: leave shuffle or "
                "keep_index out"
            )

    def _checked_columns(self) -> dict[str, str]:
        """The mapping of names, empty if there is none."""
        columns: Any = self.columns
        if columns is None:
            return {}
        if not isinstance(columns, Mapping):
            raise _wrong(
                "columns",
                columns,
                "a mapping from the channel's names of columns to the table's",
            )
        return dict(cast("Mapping[str, str]", columns))

    def _check_values(self) -> None:
        """Refuse values of another type, or out of range."""
        if self.row_numbers is not None and not _is(str, self.row_numbers):
            raise _wrong("row_numbers", self.row_numbers, "the name of a column")
        if self.policy is not None and not _is(Policy, self.policy):
            raise _wrong("policy", self.policy, "a Policy")
        if not _is(int, self.nights):
            raise _wrong("nights", self.nights, "a whole number")
        if self.insecure_seed is not None and not _is(int, self.insecure_seed):
            raise _wrong("insecure_seed", self.insecure_seed, "a whole number")
        if self.form not in FORMS:
            raise InputError(
                f"--as ({quoted(self.form)}) must be one of {listed(FORMS)}"
            )
        if self.changed not in CHANGES:
            raise InputError(
                f"--changed ({quoted(self.changed)}) must be one of {listed(CHANGES)}"
            )
        if self.draws not in (None, *DRAWS):
            raise InputError(
                f"--draws ({quoted(self.draws)}) must be one of {listed(DRAWS)}"
            )
        if self.unit not in (None, "record"):
            raise InputError(
                f"the unit ({quoted(self.unit)}) must be record; people with several records are "
                "released through a channel that is designed for them (person)"
            )
        flags = ("keep_sensitive", "keep_index", "shuffle", "keep_order", "fresh_draw")
        for name in flags:
            value = vars(self)[name]
            # Any other value would count as True or False without a word, "no" as True.
            if not isinstance(value, bool):
                raise _wrong(name, value, "True or False")

    def _check_identity(self) -> None:
        """Refuse options of identified records that contradict each other."""
        # A record that one release knows by an identifier and the next by its number would have
        # two draws.
        if self.identity and self.row_numbers is not None:
            raise InputError(
                "identity and row_numbers both identify records; give one of them (a job keeps to "
                "one)"
            )
        if self.changed != REFUSE and not self.identity:
            raise InputError(
                f"changed={self.changed} is about records known by identity; name their column"
            )

    def _check_ledger(self) -> None:
        """Refuse options that do not go with a ledger, or need one."""
        if self.ledger is None:
            # Nothing could be released before that anybody knows of.
            if self.nights != 1:
                raise InputError(
                    "nights are counted by a ledger, and there is none: give it, or leave nights "
                    "out"
                )
            if self.fresh_draw:
                raise InputError(
                    "without a ledger every draw is fresh; give the ledger, or leave --fresh-draw "
                    "out"
                )
            return
        if self.key is not None:
            raise InputError("a ledger has its own key; give it alone, or a key")
        if self.insecure_seed is not None:
            raise InputError(
                "an insecure seed is for tests and has no ledger; give one of the two"
            )
        if self.row_numbers is not None:
            raise InputError(
                "a ledger knows the same data by their order or by identity; give the column as "
                "identity, in place of row_numbers"
            )

    @property
    def renamed(self) -> Mapping[str, str]:
        """The table's name of each column that the channel calls otherwise."""
        return self.columns or {}

    @property
    def identifiers(self) -> tuple[str, ...]:
        """Columns that identify a record; none where its row number does."""
        return cast("tuple[str, ...]", self.identity)

    @cached_property
    def kept(self) -> tuple[str, ...]:
        """Columns that stay by name, whatever they disclose."""
        names = cast("tuple[str, ...]", self.keep)
        return tuple(name for name in names if name != ALL)

    @cached_property
    def keeps_all(self) -> bool:
        """Whether all columns stay but those that are dropped."""
        return ALL in self.keep or self.into is not None

    @property
    def rules(self) -> Policy:
        """What to do with unknown symbols and missing cells."""
        return self.policy or Policy()

    def added(self, channels: int) -> tuple[tuple[str, ...], ...] | None:
        """For each of so many channels the names of the columns to add; None if X is replaced."""
        into = self.into
        if into is None:
            return None
        if isinstance(into, str):
            return ((into,),)
        # The names of one channel need no list of lists; of several channels each item has one name
        # or several.
        if channels == 1 and all(isinstance(name, str) for name in into):
            return (tuple(cast("Sequence[str]", into)),)
        added: list[tuple[str, ...]] = []
        for names in into:
            if isinstance(names, str):
                added.append((names,))
            else:
                added.append(tuple(names))
        return tuple(added)


def options_of(
    function: str,
    keywords: type[FileKeywords],
    options: Mapping[str, Any],
    **others: Any,
) -> ReleaseOptions:
    """The options that a function was called with, and `others` that it gives itself.

    Raises
    ------
    TypeError
        At an option that is none of the `keywords`.
    """
    # The dataclass would refuse them as well, but in the name of its constructor.
    for name in options:
        if name in keywords.__annotations__:
            continue
        similar = get_close_matches(name, keywords.__annotations__, 1)
        hint = f"; did you mean {similar[0]!r}?" if similar else ""
        raise TypeError(
            f"{function}() got an unexpected keyword argument {name!r}{hint}"
        )
    return ReleaseOptions(**options, **others)


def _is(kind: type, value: Any) -> bool:
    """Whether a value has a type; True and False are no whole numbers here."""
    return isinstance(value, kind) and not isinstance(value, bool)


def _wrong(name: str, value: Any, kind: str) -> InputError:
    """The error that a value is not of the right kind."""
    return InputError(f"{name} ({quoted(value)}) must be {kind}")


def _as_names(name: str, value: Any) -> tuple[str, ...]:
    """The names that an option has, of which a user may give one, several or none."""
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Sequence):
        raise _wrong(name, value, "the name of a column, or a sequence of them")
    return tuple(cast("Sequence[str]", value))


# ------------------------------------------------------------------------------ results


class Released(Protocol):
    """What every release of a file reports."""

    @property
    def records(self) -> int:
        """The number of records."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """The released columns."""
        ...

    @property
    def sha256(self) -> str | None:
        """The SHA-256 of the output's bytes."""
        ...

    @property
    def notices(self) -> tuple[str, ...]:
        """What the user should know."""
        ...

    @property
    def already(self) -> bool:
        """Whether an earlier run of the same job had written all of it."""
        ...


@dataclass(frozen=True)
class Applied:
    """What was written through channels.

    Attributes
    ----------
    records : int
    columns : tuple of str
        The released columns.
    sha256 : str
        Of the output's bytes.
    ledger : str or None
        The place of the ledger that the release is entered in.
    already : bool
        Whether an earlier run of the same job had written all of it.
    notices : tuple of str
        What the user should know.
    kept : tuple of str
        The columns that stay as they were, which the promise does not cover.
    sensitive : tuple of str
        The sensitive columns, by the names that they have in the table if it has them.
    draws : {"fixed", "independent"} or None
        How the records were drawn; None where the recipe does not say.
    whole_file : bool
        Whether the promise is proven for a reader of the whole file, too.
    law_kept : bool or None
        Whether released rows have the frequencies of the channel's table; None for labels.
    people : int or None
        The number of people whose records these are; None where each record is one of its own.
    """

    records: int
    columns: tuple[str, ...]
    sha256: str
    ledger: str | None = None
    already: bool = False
    notices: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    draws: str | None = None
    whole_file: bool = False
    law_kept: bool | None = None
    people: int | None = None
