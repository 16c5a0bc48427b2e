"""Sanitised data frames in memory: the same kind of frame back, with the draws of files.

`sanitised` takes the steps of a release: it reads the cells that are drawn from, lets a `Drawer`
draw, puts each released column in its place, and hands the frame back through its adapter.
`FrameChecks` compares what stays with what is protected, part by part of a table.

The kept columns come back with their types and nulls. What a library holds beside the cells does
not: an index is treated like a column (`adapter`), notes of the user are left out, and
categories are cut down to those of the released records (`FrameAdapter.finished`).

*The adapter* is chosen once, by the library that the frame is of. The adapters are asked in turn,
and each knows the frames of its library (`FrameAdapter.adapt`).
"""

# Frames of three libraries have no type in common.
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import quoted
from mechdesign.frames.adapter import (
    FrameAdapter,
    IndexChecks,
    keeps_index,
    refuse_named_index,
)
from mechdesign.frames.memory_frames import ArrowFrame, PandasFrame, PolarsFrame
from mechdesign.jobs.column_plan import refuse_inner
from mechdesign.jobs.recipe import Drawer

# ------------------------------------------------------------------------------ adapter

ADAPTERS: tuple[type[FrameAdapter], ...] = (ArrowFrame, PolarsFrame, PandasFrame)
"""A library more is an adapter more here."""


def find_adapter(frame: Any) -> FrameAdapter | None:
    """The adapter of a frame in memory; None for anything else."""
    for kind in ADAPTERS:
        adapter = kind.adapt(frame)
        if adapter is not None:
            return adapter
    return None


def adapter_of(frame: Any) -> FrameAdapter:
    """The adapter of a frame in memory.

    Raises
    ------
    InputError
        If it is no such frame.
    """
    adapter = find_adapter(frame)
    if adapter is None:
        kind = type(frame).__name__
        raise InputError(
            f"the table must be a pandas, polars or pyarrow table; not {kind}"
        )
    return adapter


# ------------------------------------------------------------------------------ release


class FrameChecks:
    """The disclosure checks of a table of frames: of its columns, and of their index.

    Parameters
    ----------
    drawer : Drawer
        The drawer of the table, whose checks of columns are continued.
    """

    def __init__(self, drawer: Drawer) -> None:
        self._drawer = drawer
        self._index: IndexChecks | None = None

    def add(self, frame: Any) -> None:
        """Compare the columns of the next part of the table (`DisclosureChecks.add`)."""
        adapter = adapter_of(frame)
        header = self._drawer.header

        def sampled(step: int) -> Callable[[Any], Any]:
            places = np.arange(0, len(adapter), step)
            columns = adapter.taken(places).arrow_columns()
            return dict(zip(header, columns, strict=True)).__getitem__

        self._drawer.checks.add(len(adapter), sampled)
        if self._index is None:
            self._index = IndexChecks(adapter, self._drawer)
        self._index.add(adapter, header)

    def refuse_copies(self, where: str = "") -> None:
        """Raise InputError if a kept column, or the index, is a copy of a protected one."""
        self._drawer.checks.refuse_copies(where)
        if self._index is not None:
            self._index.refuse_copies(where)


def arrow_columns(frame: Any) -> list[Any]:
    """The columns of a frame, for hashing; those that arrow does not hold count as empty."""
    return adapter_of(frame).arrow_columns()


def header_of(frame: Any) -> list[Any]:
    """The names of the columns of a frame.

    Raises
    ------
    InputError
        If it is no frame in memory, or two columns have the same name.
    """
    return require_different_names(adapter_of(frame).names)


def require_different_names(names: list[Any]) -> list[Any]:
    """The names, which no two columns may share."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"two columns have the same name {quoted(twice)}; rename one")
    return names


def sanitised(frame: Any, drawer: Drawer, *, first_row: int = 0) -> Any:
    """The released frame, by a drawer for its header; parameters as those of `Drawer.draw`."""
    adapter = adapter_of(frame)
    _refuse_hidden_names(adapter, drawer)
    # Of all records: the places, by which some are known, are those before any is left out.
    drawn = drawer.draw(adapter.cells, len(adapter), first_row=first_row)
    # Records that the policy leaves out are gone from the kept columns, too.
    has_gaps = drawer.dropped is not None
    if drawer.dropped is not None:
        adapter = adapter.taken(np.flatnonzero(~drawer.dropped))
    columns: list[Any] = []
    for part in drawer.plan.columns:
        column = adapter.column(drawer.plan.origin(part))
        if part.release is not None:
            column = drawer.rebuild(column, drawn[part.release], part.name)
        columns.append(column)
    keep_index = keeps_index(adapter, drawer.recipe.options)
    return adapter.assembled(columns, drawer).finished(
        drawer.plan.others, keep_index=keep_index, reordered=has_gaps
    )


def reordered(released: Any, order: Integers, drawer: Drawer) -> Any:
    """A released frame in another order of its records; nothing of it discloses the old one."""
    adapter = adapter_of(released).taken(order)
    return adapter.finished(drawer.plan.others, keep_index=False, reordered=True)


def _refuse_hidden_names(adapter: FrameAdapter, drawer: Drawer) -> None:
    """Refuse an index, or a field inside of a column, that is called like a protected column."""
    recipe = drawer.recipe
    if recipe.options.keep_sensitive:
        return
    refuse_named_index(adapter, recipe)
    # A column that the user has named is kept knowingly; the others stay because all do.
    unnamed = {*drawer.plan.others} - {*recipe.options.kept}
    refuse_inner(
        adapter.nested_schema(), unnamed, recipe.private_columns, recipe.replaced
    )
