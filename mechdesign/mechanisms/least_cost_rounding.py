"""Integers of channels of least cost: of the dense program, and of plans.

*Of the program.* Doubles leave traces of zeros and miss sums by some 1e-16, and the exact audit
accepts neither. So `candidates` yields several roundings, best first, of which the caller takes the
first that passes the audit: over 2^53, over 2^62, with the traces, then mixed with more and more of
a constant. `truth_of` and `deviation_of` compute figures from the integers.

For example, over 10 the row (.26, .37, .37) becomes 3, 4, 4, and the excess of 1 is taken from the
largest: 3, 3, 4.

*Of plans.* With c_x records of row x a unit is 2^-40 of a record: the entries of row x are integers
with sum c_x 2^40, and those of column y with sum c_y 2^40 (`solvers.plans.integer_plan`). Where
frequencies are free every row is rounded by itself, over one denominator.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import mul

import numpy as np

from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.core.integers import LARGEST_INTEGER, IntegerRows, Integers
from mechdesign.mechanisms.least_cost_objective import ChannelLimits
from mechdesign.tables.joint import Joint
from solvers import Array
from solvers.plans import Plan, integer_plan

# ------------------------------------------------------------------------------ program

NOISE = 1e-11
"""Shares below this are zeros of an interior point method; they go to the largest of their row."""

MIXES = (1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5)
"""Shares of the channel whose rows are all P(y), tried where integers miss a budget by rounding."""

BALANCED = 1e-16
"""Deviation of a column's mass that a further step of balancing cannot reduce."""

BALANCING_STEPS = 2
"""Newton's method squares the error, which is some 1e-9 after the solver."""


def candidates(
    shares: Array, joint: Joint, limits: ChannelLimits, *, has_free_pairs: bool
) -> Iterator[Channel]:
    """Channels to which the shares W(y|x) (n, n) may be rounded, best first.

    `has_free_pairs` is whether every pair may occur: then a mixture with a constant keeps all
    limits except `stay`.
    """
    p = joint.p_x
    noise = NOISE * shares.max(axis=1)[:, None]
    cleaned = np.where(shares < noise, 0.0, shares)
    if limits.keep:
        cleaned = _balanced(cleaned, p)
    yield _rounded(cleaned, DENOMINATOR, joint, limits)
    yield _rounded(cleaned, LARGEST_INTEGER, joint, limits)
    # With the traces: a rare symbol may owe its privacy to shares as small as noise.
    yield _rounded(shares, LARGEST_INTEGER, joint, limits)
    if has_free_pairs and not any(limits.stay):
        # A constant channel is private with slack, so a little of it compensates for rounding.
        masses = p @ cleaned
        if limits.keep:
            masses = p
        for mix in MIXES:
            mixture = (1.0 - mix) * cleaned + mix * masses
            yield _rounded(mixture, LARGEST_INTEGER, joint, limits)


def _rounded(
    shares: Array, denominator: int, joint: Joint, limits: ChannelLimits
) -> Channel:
    """The nearest integers over a denominator, with exact row sums and exact `stay`."""
    # First the nearest integers of all entries, then the sums, in integers.
    normalised = shares / shares.sum(axis=1)[:, None]
    rows = np.rint(normalised * float(denominator)).astype(np.int64)
    symbols = np.arange(len(rows))
    # The largest entry of a row takes the rest of the sum: it changes least.
    top = np.argmax(rows, axis=1)
    rows[symbols, top] = 0
    rows[symbols, top] = denominator - rows.sum(axis=1)
    for x, share in enumerate(limits.stay):
        # Rounding, or the tolerance of the program, may leave a symbol short of its share; it takes
        # the rest from the largest other entries of its row.
        short = math.ceil(share * denominator) - int(rows[x, x])
        while short > 0:
            others = np.where(symbols == x, -1, rows[x])
            y = int(np.argmax(others))
            moved = min(short, int(rows[x, y]))
            rows[x, [x, y]] += [moved, -moved]
            short -= moved
    used = np.flatnonzero(rows.any(axis=0))
    labels = tuple(joint.useful.names[y] for y in used)
    integers = IntegerRows.from_array(rows[:, used])
    return Channel(joint.useful, labels, integers, denominator, joint)


def _balanced(shares: Array, p: Array) -> Array:
    """Shares whose columns have the masses p, by factors near 1 for rows and columns.

    These are Newton steps for the equations of Sinkhorn's scaling: with W'(y|x) = W(y|x) (1 + f_y -
    sum_z W(z|x) f_z), whose rows still sum to 1, column y has the mass m_y + m_y f_y - sum_z (sum_x
    P(x) W(y|x) W(z|x)) f_z, to be p_y. The matrix of this system is singular (a common factor of
    all columns changes nothing), so the least squares solution is taken.
    """
    for _ in range(BALANCING_STEPS):
        masses = p @ shares
        if np.abs(masses - p).max() <= BALANCED:
            break
        joint = p[:, None] * shares
        system = np.diag(masses) - joint.T @ shares
        factor = np.linalg.lstsq(system, p - masses, rcond=1e-14)[0]
        shares = shares * np.maximum(1.0 - (shares @ factor)[:, None] + factor, 0.0)
        shares = shares / shares.sum(axis=1)[:, None]
    return shares


def square(channel: Channel, joint: Joint) -> Array:
    """W(y|x) with a column for every symbol, also for those that are never released."""
    n = len(joint.useful)
    shares = np.zeros((n, n))
    columns = [joint.useful.names.index(label) for label in channel.outputs]
    shares[:, columns] = channel.matrix
    return shares


def truth_of(channel: Channel, joint: Joint) -> Fraction:
    """The expected share of records whose symbol is released as it is, exactly."""
    unchanged = sum(map(mul, joint.useful_counts, channel.own_entries))
    return Fraction(unchanged, joint.total * channel.denominator)


def deviation_of(channel: Channel, joint: Joint) -> Fraction:
    """The largest change of an expected share, exactly."""
    counts = joint.useful_counts
    # Over one denominator all sums are of integers, which are far faster than fractions.
    common = math.lcm(*channel.row_totals)
    # Records of x for each unit of its row, times the denominator.
    weights = [
        count * (common // total)
        for count, total in zip(counts, channel.row_totals, strict=True)
    ]
    released = dict.fromkeys(joint.useful.names, 0)
    masses = channel.integers.weighted_sums(weights)
    released.update(zip(channel.outputs, masses, strict=True))
    changes = zip(released.values(), counts, strict=True)
    largest = max(abs(mass - count * common) for mass, count in changes)
    return Fraction(largest, common * joint.total)


# -------------------------------------------------------------------------------- plans

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
    # Counted and sorted by one number: the plans of hundreds of secrets have millions of pairs.
    is_used = np.bincount(columns, minlength=n) > 0
    used = np.flatnonzero(is_used)
    places = (np.cumsum(is_used) - 1)[columns]
    order = np.argsort(rows * len(used) + places)
    lengths = np.bincount(rows, minlength=n)
    integers = IntegerRows(
        (n, len(used)),
        np.concatenate([[0], np.cumsum(lengths)]),
        places[order],
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
