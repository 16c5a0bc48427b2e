"""Estimated frequencies of columns of a release of several columns, each by itself or crossed."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

OPEN = 1e-9
"""Width of an open part above which it is more than rounding."""


FEW = 10
"""Records of a value below which a normal interval holds clearly less often than its level. Where 2
are expected, a 95 % interval holds in 86 % of the samples: the others have none.
"""


@dataclass(frozen=True)
class ColumnFrequencies:
    """Estimated frequencies of one column, or of the combinations of several.

    Attributes
    ----------
    columns : tuple of str
    symbols : tuple of tuple of str
        One text for each column.
    estimates, standard_errors, lower, upper : (symbols,) arrays
        Estimates are within [lower, upper], and intervals within [0, 1].
    unbiased : (symbols,) array
        The unbiased estimates, which may lie outside of [0, 1].
    records : int
    level : float
        Confidence level of each interval (normal approximation for the population of the records).
    unresolved : (symbols,) array
        The part of the interval's width that more records would not remove, because released
        values do not tell the symbols apart.
    unidentified : float
        Share of the records whose released values cannot tell some of these symbols apart; it
        widens the intervals.
    is_normal : bool
        Whether the intervals are by the normal approximation, which is too narrow where fewer than
        `FEW` records have a value.
    """

    columns: tuple[str, ...]
    symbols: tuple[tuple[str, ...], ...]
    estimates: Array
    standard_errors: Array
    lower: Array
    upper: Array
    unbiased: Array
    records: int
    level: float
    unresolved: Array
    unidentified: float
    is_normal: bool = False

    @property
    def has_too_narrow(self) -> bool:
        """Whether the interval of a value is too narrow for its few records."""
        return self.is_normal and bool((self.estimates * self.records < FEW).any())

    def rows(self) -> list[dict[str, Any]]:
        """A record for each combination of symbols; no estimate (None) where a part of its
        interval stays open however many records there are.
        """
        records: list[dict[str, Any]] = []
        for k, texts in enumerate(self.symbols):
            record: dict[str, Any] = dict(zip(self.columns, texts, strict=True))
            # The middle of a range that stays open is no estimate.
            is_open = self.unresolved[k] > OPEN
            record["estimate"] = None if is_open else float(self.estimates[k])
            record["standard_error"] = float(self.standard_errors[k])
            record["unresolved"] = float(self.unresolved[k])
            record["lower"] = float(self.lower[k])
            record["upper"] = float(self.upper[k])
            records.append(record)
        return records


def of_shares(
    columns: tuple[str, ...],
    symbols: tuple[tuple[str, ...], ...],
    shares: Array,
    variance: Array,
    records: int,
    level: float,
) -> ColumnFrequencies:
    """Frequencies that a release keeps, from unbiased shares and their variances."""
    errors = np.sqrt(variance)
    width = NormalDist().inv_cdf((1.0 + level) / 2.0) * errors
    return ColumnFrequencies(
        columns=columns,
        symbols=symbols,
        # Draws may leave a rare value with less than was taken off.
        estimates=np.clip(shares, 0.0, 1.0),
        standard_errors=errors,
        lower=np.clip(shares - width, 0.0, 1.0),
        upper=np.clip(shares + width, 0.0, 1.0),
        unbiased=shares,
        records=records,
        level=level,
        unresolved=np.zeros(len(shares)),
        unidentified=0.0,
        is_normal=True,
    )
