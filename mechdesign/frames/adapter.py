"""What a frame in memory offers for a release: an adapter per library, and what becomes of an
index.

The adapters (`memory_frames`) translate and decide nothing about
privacy, with one exception: `finished` takes away what a library holds beside the cells, because
only the adapter knows where its library hides it.

A release (`eager.sanitised`) draws from `cells`, takes away dropped records (`taken`), puts the
released columns in their places (`assembled`), and hands back the native frame (`finished`).

*Errors of engines.* Spark and DuckDB compute a release in code of their own. If this package
refuses a record there, the engine raises an error of its own class, whose text has the traceback
within it:

    Job aborted due to stage failure: ..
    mechdesign.core.errors.InputError: the record 7 has no symbol

`engine_errors` looks for such a line and raises its sentence as an `InputError`. An error of the
engine itself has none, and passes unchanged.

*The index of a frame* is kept or dropped like a column, and examined like a column. A release holds
the released columns and those that `keep` names. An index is a column that was set aside: one with
a name (``set_index``) stays where all columns do (``keep="all"``). Without a name it may hold
anything, such as the secret (``frame.index = frame["income"].values``); after ``sample(frac=1)``
the labels are the old row numbers, which restore the order. So it stays only where it is asked for
(``keep_index``), and the rows are numbered anew otherwise. A shuffled release gets new row numbers
in any case.

Whatever stays is examined: its names like those of columns (`refuse_named_index`), its cells for
copies of what is protected (`IndexChecks`). For example, a frame that was made by
``set_index("occupation")`` still has the occupations beside the released ones.
"""

# The columns are those of three libraries, which have no type in common.
from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import quoted
from mechdesign.jobs.column_plan import lookalikes
from mechdesign.jobs.options import ALL, ReleaseOptions
from mechdesign.jobs.recipe import Drawer, Recipe
from mechdesign.tables.cell_values import REFUSE


class FrameAdapter(Protocol):
    """A frame of one library; `native` is the frame itself."""

    @property
    def native(self) -> Any:
        """The frame itself."""
        ...

    @classmethod
    def adapt(cls, frame: Any) -> FrameAdapter | None:
        """The adapter of a frame; None if the frame is of another library."""
        ...

    @property
    def names(self) -> list[Any]:
        """The names of the columns, which two columns may share."""
        ...

    def __len__(self) -> int:
        """The number of records."""
        ...

    def column(self, at: int) -> Any:
        """A column by its number, as the library holds it."""
        ...

    def cells(self, at: int) -> Any:
        """A column by its number, in the container that is encoded soonest."""
        ...

    def arrow_columns(self) -> list[Any]:
        """The columns for hashing; a column that arrow cannot hold counts as empty."""
        ...

    def index_names(self) -> list[Any]:
        """The names of the levels of the index, None for a level without a name.

        A frame without an index has none, and an index that only numbers the rows counts as none.
        """
        ...

    def index_columns(self) -> list[Any]:
        """The cells of the levels of the index, in the order of `index_names`."""
        ...

    def nested_schema(self) -> Any:
        """The arrow schema of the columns, for the fields inside of structures.

        It is empty where columns hold no structures but Python's own.
        """
        ...

    def taken(self, places: Integers) -> FrameAdapter:
        """The records at these places."""
        ...

    def selected(self, names: Sequence[Any]) -> Any:
        """The native frame with these columns alone."""
        ...

    def assembled(self, columns: Sequence[Any], drawer: Drawer) -> FrameAdapter:
        """The output: its columns, in the order of the plan of the drawer."""
        ...

    def finished(
        self, kept: Collection[Any], *, keep_index: bool, reordered: bool
    ) -> Any:
        """The native frame without anything that was not released.

        Parameters
        ----------
        kept : collection of column names
            The columns that stay as they are: their categories are cut down to those of records.
            Released columns have the labels of a channel, which are public.
        keep_index : bool
            Whether the index stays; otherwise the rows are numbered anew.
        reordered : bool
            Whether records left or changed their places, so that categories in the order of their
            first records would disclose the old order.
        """
        ...


@dataclass(frozen=True)
class NativeTable:
    """A table of a library or an engine, `native`: what all adapters share."""

    native: Any

    @staticmethod
    def is_native(frame: Any) -> bool:
        """True for a table that this adapter is for."""
        raise NotImplementedError

    @classmethod
    def adapt(cls, frame: Any) -> Self | None:
        """The adapter of a table; None if the table is of another library or engine."""
        return cls(frame) if cls.is_native(frame) else None

    @property
    def names(self) -> list[Any]:
        """The names of the columns."""
        return list(self.native.columns)


# -------------------------------------------------------------------- errors of engines

_OWN_ERROR = re.compile(
    r"^mechdesign\.(?:core\.errors\.InputError|jobs\.recipe\.BadRecord): (.*)$",
    re.MULTILINE,
)
"""The last line of the traceback that an engine reports of an error of this package."""


@contextmanager
def engine_errors() -> Generator[None]:
    """Where Spark or DuckDB computes a release, raise what is wrong with a record as `InputError`.

    >>> with engine_errors():
    ...     released.write_parquet("released.parquet")
    """
    try:
        yield
    except InputError:
        # Not wrapped by an engine, so it is one line already.
        raise
    except Exception as error:
        # Each engine has a class of its own for it, and none of them need be installed.
        sentences = _OWN_ERROR.findall(str(error))
        if not sentences:
            raise
        # A chain of tracebacks ends with the error that was raised last.
        raise InputError(sentences[-1]) from None


# ------------------------------------------------------------------------- index checks


def keeps_index(adapter: FrameAdapter, options: ReleaseOptions) -> bool:
    """Whether the index stays in the release."""
    if options.shuffle:
        return False
    if options.keep_index:
        return True
    is_named = any(name is not None for name in adapter.index_names())
    return options.keeps_all and is_named


def refuse_named_index(adapter: FrameAdapter, recipe: Recipe) -> None:
    """Refuse an index that stays and is called like a protected column."""
    options = recipe.options
    if options.keep_sensitive or not keeps_index(adapter, options):
        return
    names = [name for name in adapter.index_names() if name is not None]
    private = recipe.private_columns
    # Pairs of a name and the protected one that it looks like, first of sensitive columns, then of
    # useful ones.
    pairs = lookalikes(names, private, ())
    pairs += lookalikes(names, recipe.replaced, (), endings=False)
    for name, like in pairs:
        kind = "useful"
        if like in private:
            kind = "sensitive"
        raise InputError(
            f"the index {quoted(name)} looks like the {kind} column {quoted(like)} and would stay "
            "in the output; take it off (reset_index), or keep it knowingly (keep_sensitive)"
        )


class IndexChecks:
    """Compares the levels of an index with the columns that are protected.

    The tests of columns are those of a drawer (`Drawer.checks`), so the levels are presented as
    columns to a second drawer, of which only the checks are used. Its table has the levels, which
    are all kept, and the protected columns. In the example of the module that is a table with the
    header ``index level 0, occupation`` and ``occupation``, whose columns are equal.

    It is made for the first part of a table; `add` is called for every part, and `refuse_copies`
    at the end.
    """

    def __init__(self, adapter: FrameAdapter, drawer: Drawer) -> None:
        self._protected = _protected_columns(drawer)
        self._levels: list[str] = []
        if keeps_index(adapter, drawer.recipe.options):
            self._levels = level_titles(adapter)
        # None where no index stays, so that nothing is compared.
        self._checks = None
        if self._levels:
            header = [*self._levels, *self._protected]
            recipe = _index_recipe(drawer.recipe, self._protected)
            self._checks = recipe.drawer(header).checks

    def add(self, adapter: FrameAdapter, header: Sequence[Any]) -> None:
        """Compare the index of the next part of a table; `header` names its columns."""
        if self._checks is None:
            return

        # The checks decide how many records of a long part they look at, and ask for columns by
        # name (`DisclosureChecks.add`).
        def sampled(step: int) -> Callable[[Any], Any]:
            every = adapter.taken(np.arange(0, len(adapter), step))
            levels = every.index_columns()
            columns = dict(zip(self._levels, levels, strict=True))
            for name in self._protected:
                columns[name] = every.column(header.index(name))
            return columns.__getitem__

        self._checks.add(len(adapter), sampled)

    def refuse_copies(self, where: str = "") -> None:
        """Raise InputError if a level of the index is a copy of a protected column, or gives one
        away to whoever sorts by it.
        """
        if self._checks is not None:
            where += "take the index off (reset_index): "
            self._checks.refuse_copies(where)
            self._checks.refuse_sorted(where)


def level_titles(adapter: FrameAdapter) -> list[str]:
    """What messages call the levels of an index, told apart by their numbers."""
    titles: list[str] = []
    for level, name in enumerate(adapter.index_names()):
        title = f"index level {level}"
        if name is not None:
            title += f", {name}"
        titles.append(title)
    return titles


def _protected_columns(drawer: Drawer) -> list[Any]:
    """The useful columns and those of the private ones that are there."""
    # One column may be an input of several channels.
    places = set(itertools.chain.from_iterable(drawer.plan.inputs))
    names = [drawer.header[at] for at in sorted(places)]
    if drawer.recipe.options.keep_sensitive:
        return names
    for name in drawer.recipe.private_columns:
        if name in drawer.header and name not in names:
            names.append(name)
    return names


def _index_recipe(recipe: Recipe, protected: Sequence[Any]) -> Recipe:
    """The recipe for a table of the levels and the protected columns, all levels kept."""
    # The protected columns must not be kept here: copies are looked for among the kept ones. The
    # useful ones are replaced anyway, and the private ones are dropped.
    private = [name for name in recipe.private_columns if name in protected]
    correlated = [name for name in private if name in recipe.options.correlated]
    # Nothing is drawn or recorded, so what identifies records and the ledger are left out.
    options = replace(
        recipe.options,
        identity=None,
        row_numbers=None,
        keep=ALL,
        drop=tuple(private),
        correlated=tuple(correlated),
        shuffle=False,
        ledger=None,
        changed=REFUSE,
        fresh_draw=False,
    )
    return replace(recipe, options=options)
