"""What is asked of a release of rows as rows of the table, and which rows it must not release.

`forbidden` lists the pairs of rows that no plan may use: those that `forbid` names, and every pair
whose output has a combination of cells that is never released.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechdesign.channel.channel import Channel
from mechdesign.channel.record import (
    TOTAL,
)
from mechdesign.core.errors import InputError, NotPrivate
from mechdesign.core.integers import Integers
from mechdesign.core.progress import Steps
from mechdesign.core.wording import listed, quoted
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint

TRUTH = "truth"


DISTANCE = "distance"


COSTS = "costs"


@dataclass(frozen=True, eq=False, kw_only=True)
class PlanRequest:
    """What is asked of a release of rows as rows of the table.

    Parameters
    ----------
    joint : Joint
        The table over the released columns, given ones included.
    notion : Notion
        On single lifts.
    given : tuple of str
        Columns that are released as they are.
    promise : {"total", "relative"}
    objective : {"truth", "distance"} or matrix of costs
    distance : {"ranks", "absolute"}, optional
        With the objective distance: of ranks of numbers (the default), or of numbers themselves.
    column_weights : mapping of column to number, optional
    keep_law : bool
        Whether every row is released as often as the table has it.
    stay, forbid : as for `DesignRequest`
    never : sequence of mappings of column to text
        Combinations of cells that are never released.
    smallest_group : int or None
        Least number of records of the rows that are released; None for the default.
    known : tuple of str
        Columns that count for the groups; all released ones by default.
    average : mapping of a measure to its budget, optional
        Budgets on averages over the released rows, as for `DesignRequest`.
    is_average_alone : bool
        Whether nothing was promised of single rows; the channel then states its own lifts.
    whole, after : Joint and channels
        The table with the columns of earlier releases, and these.
    time_limit : float, optional
        Seconds of processor time.
    gap : float
        Distance from the proven least cost at which the search ends.
    """

    joint: Joint
    notion: Notion
    given: tuple[str, ...] = ()
    promise: str = TOTAL
    objective: Any = TRUTH
    distance: str | None = None
    column_weights: Mapping[str, Any] | None = None
    keep_law: bool = True
    stay: Any = None
    forbid: Iterable[tuple[str, str]] = ()
    never: Sequence[Mapping[str, str]] = ()
    smallest_group: int | None = None
    known: tuple[str, ...] = ()
    average: Mapping[str, Any] | None = None
    is_average_alone: bool = False
    whole: Joint | None = None
    after: Sequence[Channel] = ()
    time_limit: float | None = None
    gap: float = 1e-4
    progress: Steps | None = None


def forbidden(request: PlanRequest) -> tuple[Integers, Integers] | None:
    """The pairs of rows (from, to) that no plan may use."""
    useful = request.joint.useful
    pairs = forbidden_pairs(request)
    never = never_released(request)
    if never and request.keep_law:
        raise NotPrivate(
            "never: records of the table have such a row, and the law of the table is kept; "
            "leave it open (--free-frequencies), or leave --never out"
        )
    for y in never:
        pairs += [(x, y) for x in range(len(useful))]
    if not pairs:
        return None
    rows, columns = zip(*pairs, strict=True)
    return np.array(rows, dtype=np.int64), np.array(columns, dtype=np.int64)


def forbidden_pairs(request: PlanRequest) -> list[tuple[int, int]]:
    """The pairs of positions that `forbid` names.

    Each side of a pair is the name of a row, or a cell as ``column=text``: then every row with the
    one cell is never released as a row with the other. A row with both cells may stay; one that is
    named on both sides must change.
    """
    pairs: list[tuple[int, int]] = []
    for pair in request.forbid:
        # A text of two letters has a length of 2 as well.
        if isinstance(pair, str) or len(pair) != 2:
            raise InputError(
                f"forbid: {quoted(pair)} must be a pair of symbols, (from, to)"
            )
        sources = _meant(pair[0], request.joint, "forbid")
        targets = set(_meant(pair[1], request.joint, "forbid"))
        for source in sources:
            for target in targets:
                if target != source or pair[0] == pair[1]:
                    pairs.append((source, target))
    return pairs


def _meant(text: str, joint: Joint, option: str) -> list[int]:
    """The positions of the rows that a text means: a name, a cell of any column, or COLUMN=CELL."""
    useful = joint.useful
    if text in useful.names:
        return [useful.names.index(text)]
    column, has_column, cell = text.partition("=")
    if has_column and column in useful.columns:
        places = [useful.columns.index(column)]
    else:
        cell = text
        places = [
            k
            for k in range(len(useful.columns))
            if any(symbol[k] == text for symbol in useful.symbols)
        ]
        if len(places) > 1:
            names = [f"{useful.columns[k]}={text}" for k in places]
            raise InputError(
                f"{option}: {quoted(text)} is a cell of several columns: write {listed(names)}"
            )
    rows = [
        x
        for x, symbol in enumerate(useful.symbols)
        if places and symbol[places[0]] == cell
    ]
    if not rows:
        raise InputError(f"{option}: the table has no useful symbol {quoted(text)}")
    return rows


def never_released(request: PlanRequest) -> list[int]:
    """The positions of the rows with a combination of cells that `never` names."""
    useful = request.joint.useful
    rows: set[int] = set()
    for combination in request.never:
        if not combination:
            raise InputError(
                "never: a combination without a cell means every row; name its columns and cells"
            )
        unknown = [name for name in combination if name not in useful.columns]
        if unknown:
            raise InputError(f"never: {listed(unknown)} is not released")
        wanted = [
            (useful.columns.index(name), text) for name, text in combination.items()
        ]
        for k, text in wanted:
            # A combination that no row has is kept anyway; a cell that none has is a slip.
            if all(symbol[k] != text for symbol in useful.symbols):
                cell = f"{useful.columns[k]}={text}"
                raise InputError(
                    f"never: no row of the table has {quoted(cell)} (cells are written as text)"
                )
        for x, symbol in enumerate(useful.symbols):
            if all(symbol[k] == text for k, text in wanted):
                rows.add(x)
    return sorted(rows)
