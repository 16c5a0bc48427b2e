"""What is written for the outputs of a channel: texts of columns, and readable labels.

A channel of one column writes its labels, and needs nothing of this. A channel of rows writes a row
for each output: with the columns job and age, the output "nurse, 30" is ::

    OutputCells(columns=("job", "age"), cells=(("nurse", "30"), ..))

Given columns are written as they are, beside one label for all other columns, where outputs are
free: ``columns=("sex", "job,age"), cells=(("F", "mix-1"), ..)``.

*Labels* are unique names, made of the symbols behind an output. Every output first gets a proposal
by the inputs x that reach it, then `_unique` adds numbers where two outputs would have one name.
With the inputs ``a, b, c`` and the columns W(y|.)::

    (1, 0, 0)      ``a``        one symbol
    (0, .5, .5)    ``{b, c}``   several symbols with one weight
    (0, .5, .2)    ``mix-1``    several symbols with different weights

*Checks* of what is published, and of the integers. Each function raises InputError with the name of
the row or the output that is at fault.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from mechdesign.core.arguments import check_texts, repeated, valid_text
from mechdesign.core.errors import InputError
from mechdesign.core.integers import IntegerRows
from mechdesign.core.wording import escaped, listed, quoted
from mechdesign.tables.variable import Symbol, Variable


@dataclass(frozen=True)
class OutputCells:
    """The written columns, and for each output a text for each of them.

    Raises
    ------
    InputError
        If there are no columns, one of them or a row of cells repeats, or a row is of another
        length.
    """

    columns: tuple[str, ...]
    cells: tuple[Symbol, ...]

    def __post_init__(self) -> None:
        columns = tuple(valid_text(name, "a column name") for name in self.columns)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "cells", tuple(map(tuple, self.cells)))
        if not columns:
            raise InputError(
                "the outputs of a channel must be published in some column"
            )
        twice = repeated(columns)
        if twice is not None:
            raise InputError(f"the published column {quoted(twice)} occurs twice")
        for row in self.cells:
            if len(row) != len(columns):
                raise InputError(
                    f"an output is published as {len(row)} texts for {len(columns)} columns"
                )
        check_texts(self.cells, "a published text")
        if repeated(self.cells) is not None:
            raise InputError("two outputs are published as the same row")

    def check(self, outputs: int) -> None:
        """Raise InputError unless there is a row for each of so many outputs."""
        if len(self.cells) != outputs:
            raise InputError(
                f"there are {outputs} outputs, and published rows for {len(self.cells)}"
            )

    def parts(self, positions: Sequence[int]) -> list[Symbol]:
        """Every row in the columns at these positions alone."""
        return [tuple(row[k] for k in positions) for row in self.cells]


def own_rows(useful: Variable, symbols: Sequence[int]) -> OutputCells:
    """Outputs that are symbols of the useful columns, each column written by itself.

    `symbols` are the positions of the symbols, one for each output.
    """
    return OutputCells(useful.columns, tuple(useful.symbols[x] for x in symbols))


# ------------------------------------------------------------------------------- checks


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


# ------------------------------------------------------------------------------- labels

SAME_WEIGHT = 1e-9
"""Two weights W(y|x) this close, relative to the largest of the output, count as equal in its name,
and smaller ones as absent. So the name ignores what exact rounding changes (units of 2**-53); the
codebook has the exact posterior.
"""

LONGEST_LABEL = 100
"""Longest label of a merged output in characters; a longer list is cut and counts the rest."""

_NEEDS_QUOTES = frozenset(',{}"\\')


def output_labels(names: Sequence[str], rows: IntegerRows) -> tuple[str, ...]:
    """Name every output; all names are different and depend on the arguments alone.

    An output of one symbol has the name of that symbol. One that several symbols reach with the
    same weight is ``{a, b}``, with members as JSON strings where they have commas, braces or
    quotes. Any other is ``mix-1``, ``mix-2``, .., and the codebook describes it. An output that
    would bear the name of another symbol has a number instead (``{a, b} #2``).
    """
    proposals: list[str] = []
    # The only symbol of each output, or None.
    owners: list[int | None] = []
    mixes = 0
    for inputs, values in rows.columns:
        most = max(values)
        least = min(values)
        members = inputs
        if least <= SAME_WEIGHT * most:
            shown = [
                (x, value)
                for x, value in zip(inputs, values, strict=True)
                if value > SAME_WEIGHT * most
            ]
            members = [x for x, _ in shown]
            least = min(value for _, value in shown)
        is_even = most - least <= SAME_WEIGHT * most
        if not is_even:
            mixes += 1
        if len(members) == 1:
            owners.append(members[0])
            proposals.append(names[members[0]])
        else:
            owners.append(None)
            if is_even:
                proposals.append(_merged([names[x] for x in members]))
            else:
                proposals.append(f"mix-{mixes}")
    return _unique(proposals, owners, names)


def _merged(members: list[str]) -> str:
    """``{a, b, c}``, or ``{a, +2 more}`` when that is too long."""
    parts = [_quoted(name) for name in members]
    label = "{" + ", ".join(parts) + "}"
    if len(label) <= LONGEST_LABEL:
        return label
    # Room that braces and the count of the rest leave.
    room = LONGEST_LABEL - len(f"{{, +{len(parts)} more}}")
    shown: list[str] = []
    for part in parts:
        # Every name takes two more characters for ", ".
        room -= len(part) + 2
        if room < 0:
            break
        shown.append(part)
    if not shown:
        # Even the first name is too long.
        shown = [parts[0][: LONGEST_LABEL // 2] + "…"]
    rest = f"+{len(parts) - len(shown)} more"
    return "{" + ", ".join([*shown, rest]) + "}"


def _quoted(name: str) -> str:
    """The name as it is, or as a JSON string where it could be mistaken for another one."""
    is_trimmed = name == name.strip()
    if name and is_trimmed and name.isprintable() and not _NEEDS_QUOTES & set(name):
        return name
    return json.dumps(name, ensure_ascii=False)


def _unique(
    proposals: list[str], owners: list[int | None], names: Sequence[str]
) -> tuple[str, ...]:
    """The proposals, with numbers added where they are in use or name another symbol.

    `owners` has the only symbol of each output, or None.
    """
    symbols = set(names)
    used: set[str] = set()
    last_numbers: dict[str, int] = {}
    labels: list[str] = []
    for proposal, owner in zip(proposals, owners, strict=True):
        own_name: str | None = None
        if owner is not None:
            own_name = names[owner]
        label = proposal
        number = last_numbers.get(proposal, 1)
        # The name of a symbol is kept for the output that comes from this symbol alone.
        while label in used or (label in symbols and label != own_name):
            number += 1
            label = f"{proposal} #{number}"
        used.add(label)
        last_numbers[proposal] = number
        labels.append(label)
    return tuple(labels)


# ------------------------------------------------------- labels in the place of values


def absent_law(outputs: Sequence[str], columns: Sequence[str]) -> str:
    """Why there is no law of outputs that are labels; one of them is named."""
    names = " x ".join(map(escaped, columns))
    return (
        f"labels, such as {quoted(label_of(outputs))}, are released in the place of values of "
        f"{names}"
    )


def label_of(outputs: Sequence[str]) -> str:
    """An output of several symbols, as an example; those of a single one have its name."""
    return max(outputs, key=lambda name: name.startswith(("mix-", "{")), default="")


def cells_of_labels(outputs: Sequence[str], useful: Variable) -> list[Symbol] | None:
    """The cells of outputs that all have the name of a symbol; else None.

    A reader takes such a label for the symbol. An output of several symbols never has the name of
    one of them (`channel.output_cells`).
    """
    symbols = dict(zip(useful.names, useful.symbols, strict=True))
    if not all(label in symbols for label in outputs):
        return None
    return [symbols[label] for label in outputs]
