"""How a release of rows draws them, for whoever estimates from what came out.

A channel of rows draws an output for each row of its table. Filled boxes draw one for each box: all
rows of a box have the same law. For example, of a box with the rows u and v of 1 and 3 records,
which is always released as itself, either row becomes u with 1/4 and v with 3/4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.integers import Integers

Array = NDArray[np.float64]

NOT_KEPT = (
    "this channel does not keep the law of its table, and comes without that table or releases "
    "labels, so how far shares moved is not known: give the channel file as `design` wrote it"
)
"""The refusal of estimates."""


@dataclass(frozen=True, eq=False)
class RowLaw:
    """How a release of rows draws them: rows of a class have one law over the outputs.

    Attributes
    ----------
    columns : tuple of str
    outputs, rows : sequences of tuples of str
        Rows that may be released, and those of the table.
    row_masses : (rows,) array
        P(x) of the table.
    masses : (classes,) array
        Those of the classes, which are single rows, or boxes that are filled.
    class_of, indices, shares : (entries,) arrays
        The positive entries W(y | class): class, output, probability.
    is_kept : bool
        Whether every row is released exactly as often as the table has it, in expectation.
    silent : sequence of tuples of str
        What is written in place of other rows, of which nothing is released. The law is that of all
        the rest.
    """

    columns: tuple[str, ...]
    outputs: Sequence[tuple[str, ...]]
    rows: Sequence[tuple[str, ...]]
    row_masses: Array
    masses: Array
    class_of: Integers
    indices: Integers
    shares: Array
    is_kept: bool
    silent: Sequence[tuple[str, ...]] = ()

    @cached_property
    def expected(self) -> Array:
        """The probability of every output."""
        flows = self.masses[self.class_of] * self.shares
        return np.bincount(self.indices, flows, len(self.outputs)).astype(np.float64)
