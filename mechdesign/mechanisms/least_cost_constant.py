"""The trivially private channel among those of least cost: every record becomes the same symbol.

Its lifts are all 1, so no program has to be solved for it. It is what is left where the program of
least cost gives up in floating point.
"""

from __future__ import annotations

import numpy as np

from mechdesign.auditing.verdict import Audit
from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.core.integers import IntegerRows
from mechdesign.mechanisms.least_cost_objective import Costs
from mechdesign.mechanisms.least_cost_program import LeastCostProgram


def cheapest_constant(
    program: LeastCostProgram, costs: Costs
) -> tuple[Channel, Audit] | None:
    """The constant channel of least expected cost that keeps to the limits; None if none does."""
    limits = program.limits
    if program.convex is not None or limits.keep:
        return None
    joint = program.joint
    n = len(joint.useful)
    best: Channel | None = None
    for y in range(n):
        stays = all(not share for x, share in enumerate(limits.stay) if x != y)
        if not stays or not limits.allowed[:, y].all():
            continue
        rows = IntegerRows.from_array(np.full((n, 1), DENOMINATOR, dtype=np.int64))
        labels = (joint.useful.names[y],)
        channel = Channel(joint.useful, labels, rows, DENOMINATOR, joint)
        cheaper = best is None or (
            costs.expected(channel, joint) < costs.expected(best, joint)
        )
        if cheaper:
            best = channel
    if best is None:
        return None
    verdict = program.rules.verdict(best)
    if not verdict.satisfied:
        # A promise about several tables may fail for a constant, too.
        return None
    return best, verdict
