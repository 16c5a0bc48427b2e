"""The cheapest constant channel on the column's own symbols: every record becomes one symbol.

Its lifts are all 1, so no program has to be solved for it. It is the last resort where the program
of least cost fails in floating point. `cheapest_constant` tries every symbol y as the only output.
For example, of the symbols a, b and c with 50, 30 and 20 records, all released as a, half of the
records are untrue; with b and c it would be 70 % and 80 %.

Where frequencies are kept one symbol cannot do. Then every record becomes a symbol that is drawn
with the frequencies of the table, whatever the record is; its lifts are 1, too. In the example 62 %
of the records are untrue then.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from mechdesign.auditing.verdict import Audit
from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.core.integers import LARGEST_INTEGER, IntegerRows
from mechdesign.mechanisms.least_cost_objective import Costs
from mechdesign.mechanisms.least_cost_program import LeastCostProgram


def cheapest_constant(
    program: LeastCostProgram, costs: Costs
) -> tuple[Channel, Audit] | None:
    """The constant channel of least expected cost that keeps to the limits; None if none does.

    With kept frequencies it is the one whose rows are all P(y).
    """
    limits = program.limits
    if program.convex is not None:
        # Constraints of the user may rule it out.
        return None
    if limits.keep:
        return _redrawn(program)
    joint = program.joint
    n = len(joint.useful)
    rows = IntegerRows.from_array(np.full((n, 1), DENOMINATOR, dtype=np.int64))
    best: Channel | None = None
    least: Fraction | None = None
    for y, name in enumerate(joint.useful.names):
        # Every other symbol changes, so none of them may have a share to keep.
        others = (*limits.stay[:y], *limits.stay[y + 1 :])
        if any(others) or not limits.allowed[:, y].all():
            continue
        channel = Channel(joint.useful, (name,), rows, DENOMINATOR, joint)
        cost = costs.expected(channel, joint)
        if least is None or cost < least:
            best = channel
            least = cost
    if best is None:
        return None
    return _judged(program, best)


def _redrawn(program: LeastCostProgram) -> tuple[Channel, Audit] | None:
    """The channel that draws every record anew from the frequencies of the table."""
    limits = program.limits
    joint = program.joint
    counts = joint.useful_counts
    total = sum(counts)
    if any(limits.stay) or not limits.allowed.all() or total > LARGEST_INTEGER:
        return None
    rows = IntegerRows.from_array(np.tile(np.array(counts), (len(counts), 1)))
    return _judged(
        program, Channel(joint.useful, joint.useful.names, rows, total, joint)
    )


def _judged(
    program: LeastCostProgram, channel: Channel
) -> tuple[Channel, Audit] | None:
    """A channel with its verdict; None if it does not keep the promise."""
    verdict = program.rules.verdict(channel)
    if not verdict.satisfied:
        # A promise about several tables may fail for a constant, too.
        return None
    return channel, verdict
