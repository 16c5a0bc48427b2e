"""What a data frame in memory must offer for its records to be released: one adapter per library.

The adapters (`pandas_frames`, `polars_frames`, `arrow_frames`) translate and decide nothing about
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
"""

# The columns are those of three libraries, which have no type in common.
from __future__ import annotations

import re
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, Self

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.jobs.recipe import Drawer


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
