"""The reason why no private channel keeps the user's limits, with the largest shares that work.

`refusal` solves the program with other limits and takes the first reason that it finds:

1. Without a share in `stay`, the forbidden pairs or the user's constraints are the reason.
2. For one symbol after the other, the largest share that it can keep alone (`_largest_share`). If
   less than it should: "stay: no private channel releases 'a' as it is with probability 0.9; the
   largest value that works for it is 0.73".
3. If each works alone, the largest factor of all shares (`_largest_factor`, by bisection).

Each number is found with a margin, and is that much smaller, so that a design with it succeeds.
"""

from __future__ import annotations

import numpy as np

from mechdesign.core.wording import at_least, quoted
from mechdesign.mechanisms.least_cost_limits import (
    BISECTIONS,
    LARGE_FROM,
    MOST_TRIED,
    REFUSAL_MARGIN,
)
from mechdesign.mechanisms.least_cost_program import LeastCostProgram
from solvers.errors import EmptyPolytope

FORBIDDEN = (
    "no private channel does without the forbidden pairs; forbid fewer, or use a larger "
    "budget"
)
FORBIDDEN_KEPT = (
    "no private channel that keeps the frequencies does without the forbidden pairs; forbid "
    "fewer, use a larger budget, or leave the frequencies open (--free-frequencies)"
)


def refusal(program: LeastCostProgram) -> str:
    """One sentence: the symbol whose share is too large with its largest one, or another reason."""
    limits = program.limits
    if program.convex is not None and program.convex.constraints:
        return (
            "no private channel keeps to the constraints (with stay, forbid and frequencies as "
            "asked)"
        )
    forbidden = FORBIDDEN_KEPT if limits.keep else FORBIDDEN
    if not any(limits.stay):
        return forbidden
    # Each symbol is a program to solve; the first ones are the likeliest reasons.
    for x in _demanding_symbols(program)[:MOST_TRIED]:
        try:
            share = _largest_share(program, x)
        except EmptyPolytope:
            # There is no channel even without any share: the forbidden pairs are the reason.
            return forbidden
        # Twice: the share is smaller by the margin, and the program was solved with one.
        if share < program.floor[x] - 2.0 * REFUSAL_MARGIN:
            symbol = _first_of_class(program, x)
            name = quoted(program.joint.useful.names[symbol])
            private = "no private channel"
            if limits.keep:
                private = "no private channel that keeps the frequencies"
            return (
                f"stay: {private} releases {name} as it is with probability "
                f"{float(limits.stay[symbol]):g}; the largest value that works for it is "
                f"{at_least(max(share, 0.0))}"
            )
    return _refusal_of_all(program)


def _refusal_of_all(program: LeastCostProgram) -> str:
    """The reason where each share works alone: the largest factor with which all work together."""
    reason = "stay: each of these shares works alone, but no private channel keeps all of them"
    if program.limits.keep:
        reason += " and the frequencies"
    factor = _largest_factor(program)
    if not factor:
        return reason
    x = _demanding_symbols(program)[0]
    share = at_least(factor * float(program.floor[x]))
    if len(set(program.limits.stay)) == 1:
        return f"{reason}; the largest value that works for all of them is {share}"
    name = quoted(program.joint.useful.names[_first_of_class(program, x)])
    return (
        f"{reason}; all of them times {at_least(factor)} work ({name} with {share}, "
        "for instance)"
    )


def _demanding_symbols(program: LeastCostProgram) -> list[int]:
    """Classes with a share to keep; first those whose unchanged release breaks the promise most."""
    # An output that only symbol x gives has the unit vector of x as its posterior.
    units = np.eye(len(program.table.useful))
    excess = program.excess(units)
    order = np.argsort(-excess).tolist()
    return [x for x in order if program.floor[x] > 0.0]


def _largest_share(program: LeastCostProgram, x: int) -> float:
    """The largest probability that a class stays, if it is the only one with a share to keep.

    A program whose only costs are those of row x minimises the probability that it changes.
    """
    cost = np.zeros_like(program.cost)
    cost[x] = 1.0
    cost[x, x] = 0.0
    changes = {"cost": cost, "floor": np.zeros_like(program.floor)}
    if program.floor[x] == 1.0:
        # The pairs are those of this share alone: one of 1 rules out all others of its row. Where
        # frequencies are kept nothing else becomes x then, which may be too much to ask.
        fixed = changes | {"allowed": program.allowed_pairs([x])}
        try:
            solution = program.solve(REFUSAL_MARGIN, fixed)
        except EmptyPolytope:
            pass
        else:
            return float(solution.shares[x, x]) - REFUSAL_MARGIN
    changes["allowed"] = program.allowed_pairs()
    solution = program.solve(REFUSAL_MARGIN, changes)
    return float(solution.shares[x, x]) - REFUSAL_MARGIN


def _largest_factor(program: LeastCostProgram) -> float:
    """The largest factor of all shares for which there is a channel, from below, by bisection.

    It is 0, for unknown, where the table is so large that bisection would take minutes.
    """
    low = 0.0
    high = 1.0
    if len(program.joint.useful.names) > LARGE_FROM:
        return low
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        changes = {
            "floor": middle * program.floor,
            "allowed": program.allowed_pairs(),
        }
        try:
            program.solve(REFUSAL_MARGIN, changes)
        except EmptyPolytope:
            high = middle
        else:
            low = middle
    return low


def _first_of_class(program: LeastCostProgram, x: int) -> int:
    """The first symbol of a class."""
    return int(np.flatnonzero(program.reduced.group == x)[0])
