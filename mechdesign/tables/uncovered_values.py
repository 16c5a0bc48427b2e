"""Sensitive values without a record: no promise covers them, and how common one of them can be.

A confidence set has a row for each sensitive value of the table. A value that nobody listed and no
record has is outside of it. What N independent records say of such values is a bound on their
shares (docs/explanation/population.md, Proposition 4).

The bound is the share q that solves (1 - q)^N / q = 1 - level, found by bisection
(`largest_uncovered_share`). At the level 95 % it is 5.7 % for 100 records, and 0.79 % for 1,000.
"""

from __future__ import annotations

import math

from mechdesign.core.wording import percent_of

BISECTIONS = 200
"""Halvings of [0, 1]: more than doubles can distinguish."""

OUTWARDS = 1e-9
"""Relative step outwards for the rounding of logarithms."""

DIGITS = 2
"""Significant digits of the share in sentences."""


def largest_uncovered_share(records: int, level: float) -> float:
    """The largest share of the population that a value without any record can have.

    With probability `level` or more no value of a larger share is missing among `records`
    independent draws. At most 1 / q values have a share of q or more, and each of them is missing
    with probability (1 - q)^N at most, so the union bound gives q with (1 - q)^N / q = 1 - level.

    Parameters
    ----------
    records : int
        The number N of records, at least 1.
    level : float
        The confidence, below 1.
    """
    target = math.log1p(-level)
    low = 0.0
    high = 1.0
    # (1 - q)^N / q falls with q: it is infinite at 0 and 0 at 1.
    for _ in range(BISECTIONS):
        q = (low + high) / 2
        # No double lies between the two any more.
        if q <= low or q >= high:
            break
        # In logarithms, for (1 - q)^N underflows.
        if records * math.log1p(-q) - math.log(q) > target:
            low = q
        else:
            high = q
    # The upper end: a share must not be said to be covered that is not.
    return min(1.0, high * (1.0 + OUTWARDS))


def uncovered_sentence(level: float, records: int | None = None) -> str:
    """What a promise for the population does not cover.

    Without the number of records, as in a public file, the sentence has no share.
    """
    sentence = (
        "The promise does not cover sensitive values of which the table has no record"
    )
    if records is None:
        return f"{sentence}."
    share = _rounded_up(100 * largest_uncovered_share(records, level))
    return (
        f"{sentence}. None of these has a share above {share} % of the population "
        f"({percent_of(level)} confidence, for this statement alone)."
    )


def _rounded_up(percent: float) -> str:
    """A positive percentage with `DIGITS` significant digits, never less than itself: 0.7817
    becomes 0.79.
    """
    # The decimals that these digits need: 2 for 0.7817, and 0 for 78.17.
    decimals = DIGITS - 1 - math.floor(math.log10(percent))
    unit = 10.0**-decimals
    rounded = min(100.0, math.ceil(percent / unit) * unit)
    return f"{rounded:.{max(decimals, 0)}f}"
