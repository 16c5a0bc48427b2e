"""What a channel checks of its integers and of what it publishes.

Each function raises InputError with the name of the row or the output that is at fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from mechdesign.channel.output_cells import OutputCells
from mechdesign.core.errors import InputError
from mechdesign.core.integers import IntegerRows
from mechdesign.core.wording import listed, quoted
from mechdesign.tables.variable import Variable


def check_rows(
    useful: Variable,
    outputs: tuple[str, ...],
    integers: IntegerRows,
    row_totals: Sequence[int],
    title: str,
) -> None:
    """Raise InputError unless rows have their shape and sum, and every output has mass.

    `title` is the word for the sum of a row in messages.
    """
    names = useful.names
    if integers.shape != (len(useful), len(outputs)):
        raise InputError(
            f"the rows form a {integers.shape[0]} x {integers.shape[1]} table, but there are "
            f"{len(useful)} useful symbols and {len(outputs)} outputs"
        )
    # Before the sums: the message about one wrong entry is more precise than one about its row.
    totals = np.array(row_totals, dtype=np.int64)
    excess = np.flatnonzero(integers.values > totals[integers.row_of])
    if excess.size:
        k = excess[0]
        x = integers.row_of[k]
        output = outputs[integers.indices[k]]
        raise InputError(
            f"row {quoted(names[x])}, output {quoted(output)}: the entry "
            f"{integers.values[k]} is larger than {title} {totals[x]}"
        )
    for name, total, wanted in zip(names, integers.row_sums(), row_totals, strict=True):
        if total != wanted:
            raise InputError(
                f"row {quoted(name)} sums to {total}, not to {title} {wanted}"
            )
    # An output without mass has no posterior, so it could not be audited.
    reached = np.bincount(integers.indices, minlength=len(outputs))
    if not reached.all():
        label = outputs[int(np.argmin(reached))]
        raise InputError(
            f"the output {quoted(label)} has no mass: no row ever gives it"
        )


def check_published(
    useful: Variable,
    outputs: tuple[str, ...],
    integers: IntegerRows,
    given: Sequence[str],
    published: OutputCells | None,
) -> None:
    """Raise InputError unless outputs have cells and given columns stay as they are."""
    unknown = [name for name in given if name not in useful.columns]
    if unknown:
        raise InputError(f"given: the channel has no column {listed(unknown)}")
    if published is None:
        if given:
            raise InputError(
                "a channel with given columns must say what is published for each output"
            )
        return
    published.check(len(outputs))
    absent = [name for name in given if name not in published.columns]
    if absent:
        raise InputError(f"given: {listed(absent)} is not among the published columns")
    released = [name for name in useful.columns if name not in given]
    labels = (*given, ",".join(released))
    if published.columns not in (useful.columns, labels):
        raise InputError(
            f"the published columns {listed(published.columns)} must be the useful "
            "ones, or the given ones and one of labels for all others"
        )
    if not given:
        return
    before = useful.parts_of_symbols([useful.columns.index(name) for name in given])
    after = published.parts([*map(published.columns.index, given)])
    for x, y in zip(
        cast("list[int]", integers.row_of.tolist()),
        cast("list[int]", integers.indices.tolist()),
        strict=True,
    ):
        if before[x] != after[y]:
            raise InputError(
                f"row {quoted(useful.names[x])}: the output {quoted(outputs[y])} "
                "changes a given column"
            )
