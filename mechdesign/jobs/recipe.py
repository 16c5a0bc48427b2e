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

*Checks of disclosure.* Neither kept columns nor the order of the records may disclose what is
released. A kept column that copies the useful column, whatever its name, voids the promise: the
code of a job beside the released job, say. So does an order of the records that tells symbols by
their place: a file that was sorted by job. Both are measured on the data while they stream past, by
the tests in `leaks`:

- `Twins` compares each kept column, and each pair of them, with each protected view (`View`): a
  protected column as it is, and by its bins;
- `Order`, one for each released column, tests whether its symbols stand in a random order;
- `PlaceOrders` tests the same of the sensitive columns that are left out;
- `RisingColumns` finds kept columns that bring the order back where the records are shuffled.

A drawer makes the checks for its header, shows every part to `add`, and the symbols that it draws
from to `orders`. When all records were seen, `refuse` raises an error at the first disclosure. What
the user kept knowingly is exempt: columns named with --keep from `Twins`, all from the tests of
order with --keep-order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import quoted
from mechdesign.formats.cells import Encoded, encode_anything
from mechdesign.formats.census import Content, Hashes
from mechdesign.formats.digests import RowHasher
from mechdesign.jobs.column_plan import Plan
from mechdesign.jobs.options import ReleaseOptions
from mechdesign.jobs.output_columns import OutputColumn
from mechdesign.leaks.evidence import LEVEL, decisive
from mechdesign.leaks.sorted_order import PlaceOrders, RisingColumns, SortedOrders
from mechdesign.leaks.twins import MOST_COLUMNS, Twins
from mechdesign.release.drawing import Release
from mechdesign.release.draws import Key
from mechdesign.tables.columns import encode_for
from mechdesign.tables.people import People
from mechdesign.tables.variable import Variable

# ----------------------------------------------------------------- checks of disclosure


class OrderEvidence(Protocol):
    """Collects the symbols of one column in the order of the records."""

    def add(self, values: Any, /) -> None:
        """The symbols of the next records."""
        ...

    def evidence(self) -> float:
        """The logarithm of an e-value against a random order of the records."""
        ...


class View(NamedTuple):
    """A column as it is compared with others: its cells as text, or their bins in the channel of
    this number; -1 for the cells themselves.
    """

    column: str
    channel: int = -1


Binned = tuple[Variable, int]
"""A variable, and the number of its column whose bins count."""


class DisclosureChecks:
    """The checks of one table, part by part.

    Parameters
    ----------
    plan : Plan
        What becomes of each column.
    options : ReleaseOptions
        Which of the checks the user has waived.
    private : collection of str
        The columns that a message calls sensitive.
    secrets : sequence of str
        The sensitive columns of the table, whose order must not show.
    hidden : mapping
        The protected views, which no kept column may copy, with the variable and the number of its
        column for views of bins (None for views of the cells themselves).
    orders : mapping
        By name of column what collects the order of its symbols.
    """

    def __init__(
        self,
        plan: Plan,
        options: ReleaseOptions,
        *,
        private: Collection[str],
        secrets: Sequence[str] = (),
        hidden: Mapping[View, Binned | None],
        orders: Mapping[str, OrderEvidence],
    ) -> None:
        self.orders: dict[str, OrderEvidence] = {}
        self._shuffled = options.shuffle
        # First the order of the records. The drawer feeds `orders`; none where nothing is tested.
        rising: list[View] = []
        if options.shuffle:
            # Sorting by such a column would bring back the order of the file.
            rising += [View(name) for name in plan.others]
        # A released column beside the original is no release, so its order is not checked. Shuffled
        # records have a random order, and that of the file matters only if it can come back.
        unchecked = options.keep_order or options.into is not None
        ordered: list[View] = []
        if not unchecked and (rising or not options.shuffle):
            self.orders.update(orders)
            ordered += [View(name) for name in secrets if name not in plan.kept_private]
        self._places = PlaceOrders(ordered)
        self._rising = RisingColumns(rising)
        # A file that was shuffled by hand has a random order, which a serial number undoes.
        stays: list[View] = []
        if not unchecked:
            stays += [View(name) for name in plan.others]
        self._sorted = SortedOrders(stays, _as_they_count(hidden))

        # Then copies. Columns that the user named may be copies, but not in pair with another one.
        self._private = private
        self._hidden = dict(hidden)
        exempt = {*options.kept, *plan.kept_private, *options.identifiers}
        kept = [View(name) for name in plan.others if name not in exempt]
        asked = {*options.kept}
        named = [View(name) for name in plan.others if name in asked]
        self._twins = Twins(kept, list(self._hidden), named)

    def add(self, count: int, every: Callable[[int], Callable[[Any], Any]]) -> None:
        """Compare the columns of the next `count` records.

        ``every(step)`` gives the columns, by name, of every step-th record: long parts are sampled.
        """

        def sampled(step: int) -> Callable[[View], Encoded | None]:
            return partial(self._cells, every(step))

        self._twins.add(count, sampled)
        self._rising.add(count, sampled)
        self._sorted.add(count, sampled)
        self._places.add(count, sampled)

    def refuse(self, where: str = "", *, can_shuffle: bool = True) -> None:
        """Raise InputError if a kept column or the order of the records voids the promise."""
        self.refuse_copies(where)
        self.refuse_rising(where)
        self.refuse_order(where, can_shuffle=can_shuffle)
        self.refuse_sorted(where)

    def _cells(self, column: Callable[[Any], Any], view: View) -> Encoded | None:
        """The cells of a view; None where they have no bin of the variable."""
        name = view.column
        binned = self._hidden.get(view)
        try:
            if binned is None:
                return encode_anything(column(name), name)
            variable, part = binned
            cells = encode_for(column(name), name, variable, part)
            bins = variable.bins_of(part)
            if bins is None:
                return cells
            return bins.sorted_in(cells)
        except InputError:
            return None

    def refuse_copies(self, where: str = "") -> None:
        """Raise InputError if a kept column stands for a protected one."""
        for view, protected in self._twins.copies():
            raise InputError(
                f"{where}the column {quoted(view.column)} stands for the {self._kind(protected)} "
                f"column {quoted(protected.column)}, which can be guessed from it, and would stay "
                "in the output: leave it out (--drop), or keep it knowingly by its name (--keep)"
            )
        for (first, second), protected in self._twins.copying_pairs():
            raise InputError(
                f"{where}the columns {quoted(first.column)} and {quoted(second.column)} together "
                f"stand for the {self._kind(protected)} column {quoted(protected.column)}, which "
                "can be guessed from them, and would stay in the output: leave one out (--drop), "
                "or keep both knowingly by their names (--keep)"
            )

    def _kind(self, protected: View) -> str:
        """What a message calls a protected column."""
        if protected.column in self._private:
            return "sensitive"
        return "useful"

    @property
    def notes(self) -> tuple[str, ...]:
        """What was not tested."""
        if not self._twins.pairs_left_out:
            return ()
        return (
            f"more than {MOST_COLUMNS} columns are kept: each was tested by itself for copies of "
            "what is protected, and no two together",
        )

    def _telling_order(self) -> str | None:
        """A protected column that the order of the records discloses, if there is one."""
        evidence = {name: order.evidence() for name, order in self.orders.items()}
        for view, of_places in self._places.evidence().items():
            evidence.setdefault(view.column, of_places)
        for name, of_order in evidence.items():
            if decisive(of_order, len(evidence)):
                return name
        return None

    def refuse_rising(self, where: str = "") -> None:
        """Raise InputError if the records are shuffled, their order disclosed a protected column,
        and a kept column brings that order back.
        """
        if not self._shuffled:
            return
        rising = self._rising.rising()
        if not rising:
            return
        # The order alone tells nothing, nor does a column that brings back a random order.
        name = self._telling_order()
        if name is not None:
            raise InputError(
                f"{where}the column {quoted(rising[0].column)} rises or falls with the order of "
                f"the records, which tells of {quoted(name)} and comes back when somebody sorts by "
                "it: leave it out, or keep the order knowingly (--keep-order in the place of "
                "--shuffle)"
            )

    def refuse_sorted(self, where: str = "") -> None:
        """Raise InputError if a kept column gives a protected one away to whoever sorts by it."""
        pair = self._sorted.telling()
        if pair is None:
            return
        kind = self._kind(pair.about)
        raise InputError(
            f"{where}sorted by the column {quoted(pair.column.column)}, the records tell of the "
            f"{kind} column {quoted(pair.about.column)} (of random orders at most one in "
            f"{round(1 / LEVEL):,} does): leave it out (--drop), give new numbers in random order, "
            "or keep the order knowingly (--keep-order)"
        )

    def order_warning(self, *, can_shuffle: bool = True) -> str | None:
        """What to say if the order of the records tells of a protected column, else None;
        `can_shuffle` says if the release itself could shuffle them.
        """
        remedy = "release them in random order (--shuffle)"
        if not can_shuffle:
            remedy = "put the records in random order first"
        if not self._shuffled:
            name = self._telling_order()
            if name is not None:
                return (
                    f"the records stand in an order that tells of {quoted(name)} by their place "
                    f"(of random orders at most one in {round(1 / LEVEL):,} does): {remedy}, or "
                    "keep the order knowingly (--keep-order)"
                )
        return None

    def refuse_order(self, where: str = "", *, can_shuffle: bool = True) -> None:
        """Raise InputError if the order of the records tells of a protected column."""
        warning = self.order_warning(can_shuffle=can_shuffle)
        if warning is not None:
            raise InputError(where + warning)


def _as_they_count(hidden: Mapping[View, Binned | None]) -> list[View]:
    """The protected views: of a column that is released in bins the bins, of others the cells."""
    in_bins = {view.column for view, binned in hidden.items() if binned is not None}
    views: list[View] = []
    for view, binned in hidden.items():
        if binned is not None or view.column not in in_bins:
            views.append(view)
    return views


# ------------------------------------------------------------------------------- recipe

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
    def releases(self) -> Sequence[Release]:
        """The draws, one for each releasable; none where nothing is drawn."""
        return ()

    def writes_symbols(self, column: OutputColumn) -> bool:
        """Whether a released column holds symbols, which may have the type of their source."""
        return False

    @property
    def binned(self) -> Collection[str]:
        """The released columns that hold bins."""
        return frozenset()

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
