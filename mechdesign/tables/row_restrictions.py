"""Rows that are never released, and pairs of rows of which one is never released as the other.

Options and channel files name them by cells: with the columns job and town, `cook:nurse` is every
pair of a row with the one job and a row with the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import listed, quoted
from mechdesign.tables.variable import Variable


def forbidden_pairs(
    useful: Variable, forbid: Iterable[tuple[str, str]]
) -> tuple[Integers, Integers]:
    """The positions from which and to which no row is released, side by side.

    Each side of a pair is the name of a row, or a cell as ``column=text``: then every row with the
    one cell is never released as a row with the other. A row with both cells may stay; one that is
    named on both sides must change.

    Raises
    ------
    InputError
        If a side names no row, or a cell of several columns.
    """
    sources = [np.zeros(0, np.int64)]
    targets = [np.zeros(0, np.int64)]
    for source, target in forbid:
        rows_from = np.array(_meant(source, useful))
        rows_to = np.array(_meant(target, useful))
        # Two cells of thousands of rows make millions of pairs.
        before = np.repeat(rows_from, len(rows_to))
        after = np.tile(rows_to, len(rows_from))
        is_meant = (before != after) | (source == target)
        sources.append(before[is_meant])
        targets.append(after[is_meant])
    return np.concatenate(sources), np.concatenate(targets)


def _meant(text: str, useful: Variable) -> list[int]:
    """The positions of the rows that a text means: a name, a cell of any column, or COLUMN=CELL."""
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
                f"--forbid: {quoted(text)} is a cell of several columns: write {listed(names)}"
            )
    rows = [
        x
        for x, symbol in enumerate(useful.symbols)
        if places and symbol[places[0]] == cell
    ]
    if not rows:
        raise InputError(f"--forbid: the table has no useful symbol {quoted(text)}")
    return rows


def never_released(useful: Variable, never: Iterable[Mapping[str, str]]) -> list[int]:
    """The positions of the rows with a combination of cells that is named, by column.

    Raises
    ------
    InputError
        If a combination names no cell, a column that is not there, or a cell that no row has.
    """
    rows: set[int] = set()
    for combination in never:
        if not combination:
            raise InputError(
                "--never: a combination without a cell means every row; name its columns and cells"
            )
        unknown = [name for name in combination if name not in useful.columns]
        if unknown:
            raise InputError(f"--never: {listed(unknown)} is not released")
        wanted = [
            (useful.columns.index(name), text) for name, text in combination.items()
        ]
        for k, text in wanted:
            # A combination that no row has is kept anyway; a cell that none has is a slip.
            if all(symbol[k] != text for symbol in useful.symbols):
                cell = f"{useful.columns[k]}={text}"
                raise InputError(
                    f"--never: no row of the table has {quoted(cell)} (cells are written as text)"
                )
        for x, symbol in enumerate(useful.symbols):
            if all(symbol[k] == text for k, text in wanted):
                rows.add(x)
    return sorted(rows)
