"""What is written for each output of a channel: a text for each of some columns.

A channel of one column writes its labels, and needs nothing of this. A channel of rows writes a row
for each output: with the columns job and age, the output "nurse, 30" is ::

    OutputCells(columns=("job", "age"), cells=(("nurse", "30"), ..))

Given columns are written as they are, beside one label for all other columns, where outputs are
free: ``columns=("sex", "job,age"), cells=(("F", "mix-1"), ..)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mechdesign.core.arguments import check_texts, repeated, valid_text
from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
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
