"""What a release does to a table: a `Recipe`, and the `Drawer` that carries it out on the parts of
one.

Channels implement both here; anything else that releases columns implements them above this package
and offers ``recipe(options)``. The parts of a table may be batches of a file, partitions of a
cluster or a whole frame: each record gets the same output.

A recipe is made of channels and options, and gets its keys from a job. For a table it makes a plan
of the header, and a drawer with that plan; the drawer then draws part after part, and counts on the
way what the checks at the end need. In outline, for the parts of a file::

    drawer = recipe.drawer(header)
    for part in parts:
        columns = drawer.draw(part.column, len(part), first_row=..)    codes and labels
        drawer.checks.add(len(part), ..)                               what may disclose X or S
    drawer.checks.refuse()
    drawer.counts, drawer.releases                                     for manifest and ledger
"""

# pyarrow tells too little of its types for the strict mode.
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.formats.census import Content, Hashes
from mechdesign.formats.digests import RowHasher
from mechdesign.jobs.column_plan import Plan
from mechdesign.jobs.disclosure_checks import DisclosureChecks
from mechdesign.jobs.options import ReleaseOptions
from mechdesign.jobs.output_columns import OutputColumn
from mechdesign.release.draws import Key
from mechdesign.release.first_symbols import FirstSymbols, Spellings
from mechdesign.tables.people import People

Frame = TypeVar("Frame")

Codes = NDArray[np.integer[Any]]

ContentOf = Callable[[RowHasher, Sequence[str]], tuple[Content, Hashes]]
"""Gives the content of a table, and the hashes of its records without the columns so named."""

Place = tuple[int, int]
"""A released column: the number of its releasable, and its number among the columns that this one
releases.
"""


class BadRecord(InputError):
    """A record that cannot be released, at `position` of the part at hand; `what` is wrong with
    it.
    """

    def __init__(self, position: int, what: str, name: str) -> None:
        super().__init__(f"{name}: {what}")
        self.position = position
        self.what = what
        self.name = name

    def __reduce__(self) -> tuple[Any, ...]:
        # Spark pickles errors; the default would call the constructor with the message alone.
        return type(self), (self.position, self.what, self.name)


@dataclass(frozen=True)
class DrawnColumn:
    """A released column: the text of record i is ``labels[codes[i]]``; the labels are all
    different.

    With `own` they are symbols of the column that is replaced, and have its type where they can.
    """

    codes: Codes
    labels: tuple[str, ...]
    own: bool = False


TablePart: TypeAlias = tuple[Callable[[int], Any], int]
"""Some records of a table: a function that gives their columns by number, and how many they are."""


class RecordedDraws(Protocol):
    """The draws of one releasable, as far as a ledger records them.

    One releasable may release several columns jointly and draw several times a record: the ledger
    knows its records by one symbol each, `seen` in this release and `earlier` in others.
    """

    @property
    def channel(self) -> Channel:
        """What is drawn from."""
        ...

    @property
    def has_bins(self) -> bool:
        """Whether a column is released in bins."""
        ...

    digest: str
    """The digest of the channel."""
    changed: str
    """What becomes of a record whose symbol has changed."""
    changes: int
    """How many records have another symbol than in an earlier release."""
    seen: FirstSymbols
    earlier: FirstSymbols
    are_new: NDArray[np.bool_]
    """Which records of the part drawn last no earlier release had."""
    spellings: Spellings
    """The identifiers that were not in their plain spelling."""

    def new_records(self) -> Iterator[tuple[Hashes, Integers]]:
        """Hashes and symbols of the records that no earlier release had."""
        ...


@dataclass(frozen=True, kw_only=True)
class Recipe(ABC):
    """What a release does to any table; travels to other processes.

    Parameters
    ----------
    options : ReleaseOptions
        Without the key.
    keys : tuple of Key
        One for each releasable; they are in the pickled recipe, and no text shows them.
    """

    draws: ClassVar[bool]
    """Whether outputs are drawn at random, so that a key and an identity of records matter."""

    options: ReleaseOptions
    keys: tuple[Key, ...]

    @property
    @abstractmethod
    def private_columns(self) -> list[str]:
        """Columns that must not stay unless the user keeps them knowingly."""

    @property
    @abstractmethod
    def useful_columns(self) -> list[str]:
        """The columns that are released, by their names in the table."""

    @property
    def codebook_note(self) -> str | None:
        """What to see to before a codebook is published."""
        return None

    @property
    def people(self) -> People | None:
        """The people whose sequences of records are drawn; None where each record is one."""
        return None

    @property
    def replaced(self) -> list[str]:
        """The columns that are gone from the output: none where the released ones are added."""
        if self.options.into is not None:
            return []
        return self.useful_columns

    @property
    def law_kept(self) -> bool | None:
        """Whether rows are released as often as the channel's table has them; None where labels
        are released, or columns through channels of their own.
        """
        return None

    def covers_whole_file(self, plan: Plan) -> bool:
        """Whether the promise is proven for a reader of the whole file, too."""
        return False

    @abstractmethod
    def plan(self, header: Sequence[Any]) -> Plan:
        """What becomes of each column of a table."""

    @abstractmethod
    def drawer(self, header: Sequence[Any]) -> Drawer:
        """Ready for the parts of a table with this header."""

    def settled(
        self,
        header: Sequence[Any],
        parts: Iterable[TablePart],
        *,
        is_whole: bool = True,
    ) -> Recipe:
        """The recipe for these very records, which may decide how they are drawn.

        Parameters
        ----------
        header : sequence
            The names of the table's columns.
        parts : iterable of (function, int)
            For each part of the table a function that gives its columns by their number, and its
            records. They are read only where this matters.
        is_whole : bool
            Whether these are all records of the table.
        """
        return self

    @abstractmethod
    def for_lazy_table(self, header: Sequence[Any]) -> Recipe:
        """The recipe for a table that is computed several times, and must come out the same each
        time.

        Raises
        ------
        InputError
            If nothing makes the draws repeatable, or an option needs the table at hand.
        """

    @abstractmethod
    def release_table(
        self,
        header: Sequence[Any],
        release: Callable[[Drawer], Frame],
        content: ContentOf,
    ) -> tuple[Frame, tuple[str, ...]]:
        """What `release` makes of a whole table with a drawer, and notices for the user.

        The release is entered in the ledger of the options, if there is one; `content` hashes the
        records, and gives their hashes without some columns.

        Raises
        ------
        InputError
            If the ledger forbids the release: the records would be drawn a second time.
        """


class Drawer(ABC):
    """A recipe made ready for the parts of a table with this header.

    It is made for one table and draws its parts in their order. `draw` leaves behind which records
    of the part are `dropped`; `counts` and `releases` add up over all parts.
    """

    def __init__(
        self,
        recipe: Recipe,
        header: Sequence[Any],
        plan: Plan,
        checks: DisclosureChecks,
    ) -> None:
        self.recipe = recipe
        self.header = tuple(header)
        self.plan = plan
        self.checks = checks
        self.dropped: NDArray[np.bool_] | None = None
        """Which records of the part drawn last are left out; None for none."""
        self.type_notes: dict[str, None] = {}
        """A sentence for every released column of own symbols that lost its type."""

    @property
    def may_drop(self) -> bool:
        """Whether records may be left out of the output."""
        return False

    @property
    def releases(self) -> Sequence[RecordedDraws]:
        """The draws, one for each releasable; none where nothing is drawn."""
        return ()

    def writes_symbols(self, column: OutputColumn) -> bool:
        """Whether a released column holds symbols, which may have the type of their source."""
        return False

    @property
    @abstractmethod
    def labels(self) -> dict[Place, tuple[str, ...]]:
        """The different labels of every released column."""

    @property
    @abstractmethod
    def counts(self) -> list[Integers]:
        """For every releasable, how many records had each symbol."""

    @abstractmethod
    def reads(self, schema: Any) -> tuple[list[str], list[str]]:
        """The columns to read as codes, and those to read as they are stored."""

    @abstractmethod
    def draw(
        self, column: Callable[[int], Any], count: int, *, first_row: int = 0
    ) -> dict[Place, DrawnColumn]:
        """The released columns of a part of `count` records; `column` gives its columns by their
        number.
        """

    @abstractmethod
    def count(self, column: Callable[[int], Any], times: Integers) -> None:
        """Add to `counts` what a part holds, each record so many times, without drawing for it."""

    @abstractmethod
    def own_type(self, column: OutputColumn, type_of: Callable[[int], Any]) -> Any:
        """The arrow type of a released column; None for labels. `type_of` gives that of an input
        column.
        """

    @abstractmethod
    def rebuild(self, like: Any, drawn: DrawnColumn, name: str) -> Any:
        """A released column in the kind of container that `like` is."""
