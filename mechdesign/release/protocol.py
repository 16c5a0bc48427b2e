"""What a channel has to offer so that this package can draw from it.

Channels stand above this package and call it. The Protocol below is all that this package knows of
them, so that no import runs upwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable


class Releasable(Protocol):
    """W(y|x) = rows[x][y] / denominator in integers, with labels and, unless it is
    public, with its table.
    """

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
        """For every output y the inputs x that can have caused it, and integers in proportion to
        P(x, y).

        Raises InputError without a joint.
        """
        ...

    @property
    def unseen(self) -> int:
        """Symbols without a record that the promise covers as long as they are released
        as the marginal.
        """
        ...

    @property
    def distance(self) -> Literal["absolute", "squared"] | None:
        """The distance between numbers that was the design's objective; None for other
        objectives.
        """
        ...
