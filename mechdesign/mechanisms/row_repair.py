"""Integers next to a floating-point channel of a node, whose lifts keep the bounds.

Rounding to integers over 2^53 (`rounded_rows`) and the tolerance of a solver can break a bound by a
little. `repaired` mends that output by output. Let y break a bound by the mass e (`_excess`), and
let a constant output leave c of it (`_room`). A weight a on every row of y adds a constant output
to it, so the bound holds again once

    a c >= e.

The weight is taken from all outputs in proportion, W becomes (1 - sum of a) W + a. That multiplies
what the others break or spare by a factor, so that none of them begins to fail. Then the rows are
rounded and measured again. For example, an output that is 1e-12 beyond a bound of which a constant
spares 0.1 gets the weight 1e-11 (twice that in practice, for the rounding of the next round).
"""

from __future__ import annotations

import numpy as np

from mechdesign.core.integers import Integers
from mechdesign.core.row_tree import DENOMINATOR
from mechdesign.mechanisms.row_budgets import Bounds
from mechdesign.mechanisms.row_lifts import NodeTable
from solvers import Array

NOISE = 1e-9
"""Entries W(y|x) below this are what a simplex method leaves, and become zeros."""

MOST_REPAIRS = 8
"""Rounds of repair, each with at least twice the weight of the last; one is usual."""

LARGEST_REPAIR = 0.5
"""Weight of repairs beyond which a constant output is the better channel."""

LARGEST_ROW_ERROR = 1e-3
"""How far a row of a solver's answer may be from the sum 1; beyond, it is no answer."""


def repaired(table: NodeTable, shares: Array, bounds: Bounds) -> Integers | None:
    """Integers next to the shares that keep the bounds; None where repairs would cost too much."""
    cleaned = np.where(shares < NOISE, 0.0, shares)
    sums = cleaned.sum(axis=1)
    if not (np.abs(sums - 1.0) < LARGEST_ROW_ERROR).all():
        return None
    cleaned = cleaned / sums[:, None]
    # The weight a of each output.
    added = np.zeros(cleaned.shape[1])
    for _ in range(MOST_REPAIRS):
        mixed = (1.0 - added.sum()) * cleaned + added
        rows = rounded_rows(mixed)
        excess = _excess(table, rows / DENOMINATOR, bounds)
        broken = excess > 0.0
        if not broken.any():
            return rows
        room = _room(table, bounds)
        if ((room <= 0.0) & broken).any():
            # The node itself has nothing to spare: no weight helps.
            return None
        # a = e / c, and twice that leaves room for the rounding of the next round.
        divisor = np.where(room > 0.0, room, 1.0)
        needed = np.where(broken, excess / divisor, 0.0)
        weight = np.maximum(needed.max(axis=0), 4.0 / DENOMINATOR)
        failing = broken.any(axis=0)
        added = np.where(failing, np.maximum(2.0 * weight, 2.0 * added), added)
        if added.sum() > LARGEST_REPAIR:
            return None
    return None


def rounded_rows(shares: Array) -> Integers:
    """Integers over 2^53 next to rows that sum to 1; the largest entry of a row takes what rounding
    leaves.
    """
    rows = np.rint(shares * float(DENOMINATOR)).astype(np.int64)
    largest = np.argmax(rows, axis=1)
    every_row = np.arange(len(rows))
    rows[every_row, largest] += DENOMINATOR - rows.sum(axis=1)
    return rows


def _excess(table: NodeTable, rows: Array, bounds: Bounds) -> Array:
    """By how much every output breaks every bound, as masses: (bounds, m), positive where it does.

    First upper and lower bounds of single lifts, then quotients of all pairs where there is a bound
    of these; `_room` has the same order.
    """
    masses, scaled = table.of_outputs(rows)
    free = np.isinf(bounds.upper)
    upper = np.where(free, 0.0, bounds.upper)
    over = np.where(free, 0.0, scaled - upper * masses)
    under = bounds.lower * masses - scaled
    excess = [over, under]
    if bounds.has_ratio:
        present = scaled[table.lifts.any(axis=1)]
        # L_s - ratio L_t of one s and all t, times the masses of the outputs.
        excess += [lift - bounds.ratio * present for lift in present]
    return np.concatenate(excess)


def _room(table: NodeTable, bounds: Bounds) -> Array:
    """What a unit of weight on all rows gives back to each bound, (bounds, k): the slack of the
    node itself.
    """
    own_lifts = table.own_lifts()[:, None]
    # A side without a bound is never broken, so its room is of no account, but must not be inf.
    room = [np.where(np.isinf(bounds.upper), 1.0, bounds.upper - own_lifts)]
    room.append(own_lifts - bounds.lower)
    if bounds.has_ratio:
        present = own_lifts[table.lifts.any(axis=1)]
        room += [bounds.ratio * present - lift for lift in present]
    return np.concatenate(room)
