"""The table of counts that a check keeps, and what it found wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]

PENDING = 1 << 18
"""Records whose codes are held before they are counted: a count over a large table is cheap for many at once."""


@dataclass
class PairTally:
    """Codes waiting to be counted, the counts, and the first offender of each kind.

    Parameters
    ----------
    shape : (symbols, labels)
    """

    shape: tuple[int, int]
    counts: Counts = field(init=False)
    waiting: list[Counts] = field(default_factory=list[Counts])
    size: int = 0
    first: dict[str, str] = field(default_factory=dict[str, str])
    times: dict[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        self.counts = np.zeros(self.shape[0] * self.shape[1], dtype=np.int64)

    def add(self, rows: Counts, labels: Counts) -> None:
        """Count records by the codes of their symbols and labels."""
        self.waiting.append(rows * self.shape[1] + labels)
        self.size += len(rows)
        if self.size >= PENDING:
            self.flush()

    def flush(self) -> None:
        """Count those that wait."""
        if self.waiting:
            flat = np.concatenate(self.waiting)
            self.counts += np.bincount(flat, minlength=len(self.counts))
            self.waiting, self.size = [], 0

    def offend(self, kind: str, text: Callable[[], str], times: int) -> None:
        """Note that something of this kind is wrong, so many times."""
        # Finding the line of a record reads the file again, so the text is made for the first offender only.
        if kind not in self.first:
            self.first[kind] = text()
        self.times[kind] = self.times.get(kind, 0) + times

    def table(self) -> Counts:
        """All counts, symbols by labels."""
        self.flush()
        return self.counts.reshape(self.shape)
