"""The integers of a plan: exact sums of rows, and of columns where the law of the table is kept.

With c_x records of row x a unit is 2^-40 of a record: the entries of row x are integers with sum
c_x 2^40, and those of column y with sum c_y 2^40 (`solvers.plans.integer_plan`). Where frequencies
are free every row is rounded by itself, over one denominator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.core.integers import LARGEST_INTEGER, IntegerRows, Integers
from solvers import Array
from solvers.plans import Plan, integer_plan

UNIT_BITS = 40
"""Units of mass of one record, as a power of two: plans are known to some 1e-12 of a record."""

STAY_ROUNDING = 1e-15
"""Relative: a double may lie above the share that it stands for, and the bound must not."""


@dataclass(frozen=True, eq=False)
class PlanRows:
    """Integers W(y|x) of a channel.

    Attributes
    ----------
    outputs : (m,) int array
        The symbol of each output, ascending.
    integers : IntegerRows
        (n, m).
    totals : tuple of int, optional
        The sum of each row where the law is kept; else all are `DENOMINATOR`.
    """

    outputs: Integers
    integers: IntegerRows
    totals: tuple[int, ...] | None


def plan_rows(
    plan: Plan, counts: Sequence[int], released: Sequence[int] | None
) -> PlanRows:
    """The integers of a plan over n symbols.

    Parameters
    ----------
    plan : Plan
    counts : (n,) sequence of int
        Records of every symbol, or other whole masses.
    released : (n,) sequence of int, optional
        How many are released as every symbol, in the mean; None where frequencies are free.
    """
    n = len(counts)
    bits = min(UNIT_BITS, LARGEST_INTEGER.bit_length() - 1 - max(counts).bit_length())
    totals: tuple[int, ...] | None = None
    if released is not None and bits > 0:
        rows, columns, values = integer_plan(
            plan.rows, plan.columns, plan.flows, counts, released, unit=1 << bits
        )
        totals = tuple(count << bits for count in counts)
    else:
        # Masses beyond 62 bits leave no units: the law is then kept up to rounding, and the figures
        # that are computed from the integers say how far.
        rows, columns, values = _rounded_rows(plan, n)
    used, places = np.unique(columns, return_inverse=True)
    order = np.lexsort((places, rows))
    lengths = np.bincount(rows, minlength=n)
    integers = IntegerRows(
        (n, len(used)),
        np.concatenate([[0], np.cumsum(lengths)]),
        places.ravel()[order],
        np.asarray(values, dtype=np.int64)[order],
    )
    return PlanRows(used, integers, totals)


def keeps_stays(channel: Channel, stays: Sequence[Fraction]) -> bool:
    """Whether the integers keep the least share that stays of every symbol, exactly."""
    shares = zip(channel.own_entries, stays, strict=True)
    return all(entry >= least * channel.denominator for entry, least in shares)


def least_shares(stays: Sequence[Fraction]) -> Array | None:
    """Least shares that stay in the form of the solver; None where nothing must."""
    if not any(stays):
        return None
    return np.array([float(share) for share in stays]) * (1.0 - STAY_ROUNDING)


def _rounded_rows(plan: Plan, n: int) -> tuple[Integers, Integers, Integers]:
    """Integers over `DENOMINATOR` next to the shares of each row, with exact sums of rows."""
    masses = np.bincount(plan.rows, plan.flows, n)
    values = np.rint(plan.flows / masses[plan.rows] * float(DENOMINATOR))
    integers = values.astype(np.int64)
    # The largest entry of each row takes the rest of its sum: it changes least.
    order = np.lexsort((integers, plan.rows))
    last = np.flatnonzero(np.diff(plan.rows[order], append=n))
    sums = np.zeros(n, dtype=np.int64)
    np.add.at(sums, plan.rows, integers)
    largest = order[last]
    integers[largest] += DENOMINATOR - sums[plan.rows[largest]]
    positive = integers > 0
    return plan.rows[positive], plan.columns[positive], integers[positive]
