"""The attributes of a channel that this package uses to draw from it.

Channels are above this package and call it. This package knows them by the Protocol below alone, so
no import runs upwards.

For example, a channel that releases the truth of two symbols with probability 3/4 has::

    useful.names    ('nurse', 'clerk')
    outputs         ('nurse', 'clerk')
    rows            ((3, 1), (1, 3))
    denominator     4
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from mechdesign.tables.joint import Joint
from mechdesign.tables.row_boxes import Boxes
from mechdesign.tables.variable import Variable


class Published(Protocol):
    """The written columns, and for each output a text for each of them."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        ...


class Releasable(Protocol):
    """W(y|x) = rows[x][y] / denominator in integers, with labels; unless public, with its table."""

    @property
    def useful(self) -> Variable:
        """The |X| inputs, one per row."""
        ...

    @property
    def outputs(self) -> tuple[str, ...]:
        """One label per output, all different."""
        ...

    @property
    def rows(self) -> Sequence[Sequence[int]]:
        """|X| rows of integers, each of which sums to `denominator`."""
        ...

    @property
    def denominator(self) -> int:
        """The common denominator of all entries."""
        ...

    @property
    def totals(self) -> tuple[int, ...] | None:
        """The sum of each row where rows have sums of their own; then `denominator` is their least
        common multiple.
        """
        ...

    @property
    def row_totals(self) -> tuple[int, ...]:
        """The sum of each row."""
        ...

    @property
    def digest(self) -> str:
        """SHA-256 of what the channel does."""
        ...

    @property
    def released_columns(self) -> tuple[str, ...]:
        """Columns that the channel needs of a record."""
        ...

    @property
    def output_columns(self) -> tuple[str, ...]:
        """The columns that are written for an output."""
        ...

    @property
    def output_cells(self) -> tuple[tuple[str, ...], ...]:
        """For each output a text for each of `output_columns`."""
        ...

    @property
    def published(self) -> Published | None:
        """What is written for each output, where it is more than one column of labels."""
        ...

    @property
    def releases_own_symbols(self) -> bool:
        """True if the outputs are symbols of the one useful column, made to stand in its place."""
        ...

    def writes_bins(self, place: int) -> bool:
        """True if the output column at this place has bins of numbers."""
        ...

    @property
    def given(self) -> tuple[str, ...]:
        """Columns that are released as they are."""
        ...

    @property
    def coding_record(self) -> dict[str, Any]:
        """What the digest has of the coder; nothing where records are coded by their symbols."""
        ...

    @property
    def parts(self) -> Sequence[ReleasablePart]:
        """A channel of boxes by strata."""
        ...

    @property
    def joint(self) -> Joint | None:
        """The table that the channel was designed for; None in a public channel."""
        ...

    @property
    def matrix(self) -> NDArray[np.float64]:
        """(|X|, outputs) array of W(y|x)."""
        ...

    @property
    def posteriors(self) -> NDArray[np.float64]:
        """(outputs, |X|) array of P(x|y) under the joint; raises InputError without one."""
        ...

    @property
    def behind(self) -> list[tuple[tuple[int, ...], list[int]]]:
        """For every output the inputs that can have caused it, and their P(x, y) in proportion.

        Raises InputError without a joint.
        """
        ...

    @property
    def unseen(self) -> int:
        """Symbols without a record that the promise covers if released as the marginal."""
        ...

    @property
    def distance(self) -> Literal["absolute", "squared", "ranks"] | None:
        """The distance between numbers that the design minimised; None for other objectives."""
        ...


class ReleasablePart(Protocol):
    """What is needed of the boxes of a stratum."""

    @property
    def stratum(self) -> tuple[int, ...]:
        """Codes of the given columns."""
        ...

    @property
    def boxes(self) -> Boxes:
        """The partition of rows."""
        ...

    @property
    def channel(self) -> Releasable | None:
        """From boxes to outputs; None where nothing is released."""
        ...

    @property
    def fill(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """For each box its rows: codes of the columns, and then the records."""
        ...

    @property
    def releases_boxes(self) -> bool:
        """Whether the outputs are boxes, and not labels of several."""
        ...
