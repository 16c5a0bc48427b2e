"""Sensitive values of which little is known: without a record, or with few.

*Without a record.* A confidence set has a row for each sensitive value of the table. A value that
nobody listed and no record has is outside of it. What N independent records say of such values is a
bound on their shares (docs/explanation/population.md, Proposition 4).

The bound is the share q that solves (1 - q)^N / q = 1 - level, found by bisection
(`largest_uncovered_share`). At the level 95 % it is 5.7 % for 100 records, and 0.79 % for 1,000.

*With few records.* A procedure that is right with probability 1 - delta for every population
approves a given channel with probability above 1/2 only if, for every sensitive value s with N_s
records and share p_s,

    I(X; Y) <= log(b / (eta (1 - b p_s))),   b = exp(eps_u),  eta = 1 - (2 delta)^(1 / N_s),

where b p_s < 1 (docs/explanation/population.md, Proposition 6). The limit holds for every channel
and every way to prove it, and not for ours alone.

For example, a value has 12 of 1,000 records. With b = 2 and a confidence of 95 % (delta = 0.05) the
limit is 2.46 nats. With 1,000 of 10,000 records it is 6.99 nats: more records raise it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mechdesign.core.wording import at_most, percent_of, quoted

# -------------------------------------------------------------- values without a record

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


# -------------------------------------------------------------------------- rare values


@dataclass(frozen=True)
class RareLimit:
    """The least of these limits in nats, with the sensitive value that it is due to."""

    value: str
    records: int
    information: float

    def text(self, level: float) -> str:
        """The limit in a sentence."""
        return (
            f"{quoted(self.value)} has {_records(self.records)}. So no procedure that is right "
            f"with {percent_of(level)} confidence for every population approves a channel that "
            f"keeps more than {at_most(self.information)} nats in more than half of all samples."
        )


def rare_limit(
    counts: Sequence[tuple[str, int]], eps_u: float, level: float
) -> RareLimit | None:
    """The limit for values with these numbers of records; None where there is none.

    Parameters
    ----------
    counts : sequence of (str, int)
        Name and records of every value that is promised for itself.
    eps_u : float
        The upper budget in nats.
    level : float
        The confidence.
    """
    total = 0
    for _, count in counts:
        total += count
    # With 2 delta of 1 or more eta is 0 or less, and there is no limit.
    if not math.isfinite(eps_u) or 2.0 * (1.0 - level) >= 1.0:
        return None
    # b, delta and p_s of the inequality above; p_s is the share among the records.
    b = math.exp(eps_u)
    delta = 1.0 - level
    best: RareLimit | None = None
    for name, count in counts:
        room = 1.0 - b * count / total
        # Where b p_s is 1 or more, the budget allows every posterior, and there is no limit.
        if count == 0 or room <= 0.0:
            continue
        # 1 - (2 delta)^(1 / N_s), without the loss of digits where it is small.
        eta = -math.expm1(math.log(2.0 * delta) / count)
        limit = math.log(b / (eta * room))
        if best is None or limit < best.information:
            best = RareLimit(name, count, limit)
    return best


def _records(count: int) -> str:
    """``1 record``, ``12 records``."""
    return "1 record" if count == 1 else f"{count:,} records"
