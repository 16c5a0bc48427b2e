"""The channels that users of the privacy funnel know, within an average budget, verified exactly.

Greedy merging (Makhdoumi et al. 2014) and the best of several restarts of the convex-concave
procedure are local searches: their channels are real, and nothing is proven about better ones.

1. `baseline` runs one of them for a budget a little below the one that was asked for
   (`solvers.average.funnels`).
2. A channel that leaks too much is *thinned*: it answers only a share of the records, and nothing
   for the others. Half the records, for example, leak half as much (in the unit of the solver) and
   keep half the information.
3. It is rounded to integers and verified like the optimum of `averages`. If its integers exceed the
   budget, it is thinned a little more.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from mechdesign.auditing.measures import Utility, utility
from mechdesign.channel.record import AverageBudget
from mechdesign.mechanisms.average_budgets import (
    NO_PROMISE,
    float_gains,
    in_solver_unit,
)
from mechdesign.mechanisms.averages import (
    SHRUNK,
    verified_within,
    with_own_lifts,
)
from mechdesign.mechanisms.rounding import Rounded
from mechdesign.mechanisms.rules import Rules
from mechdesign.tables.joint import Joint
from solvers import Array, Points
from solvers.average.funnels import convex_concave, greedy_merging, thinned

GREEDY = "greedy merging"
RESTARTS = "best of restarts"

BASELINES = (GREEDY, RESTARTS)


@dataclass(frozen=True, eq=False)
class Baseline:
    """A verified channel of a local search.

    `leakage` is exact, rounded upwards, in the unit of the measure (nats for "mi"); `points` are
    its posteriors, (k, n), before rounding.
    """

    name: str
    rounded: Rounded
    worth: Utility
    leakage: float
    points: Points
    seconds: float


def baselines_for(measure: str) -> tuple[str, ...]:
    """The baselines that there are for a measure: restarts are for the mutual information."""
    if measure == "mi":
        return BASELINES
    return (GREEDY,)


def baseline(
    name: str,
    joint: Joint,
    budget: AverageBudget,
    *,
    time_limit: float,
    restarts: int,
    seed: int,
) -> Baseline:
    """The channel of a local search within a budget, with its leakage and its own lifts verified.

    `time_limit` is in seconds; `restarts` and `seed` are those of the convex-concave procedure.

    Raises
    ------
    SolverFailure
        If no channel was verified.
    """
    started = time.process_time()
    end = time.process_time() + time_limit
    exact = budget.exact_gains
    gains = float_gains(exact)
    largest = in_solver_unit(budget.measure, budget.budget, joint, exact)
    # A little below the budget, as the optimum: rounding to integers may add to the leakage.
    most = largest * (1.0 - SHRUNK[0])
    if name == GREEDY:
        best = greedy_merging(
            joint.p, budget.measure, budget=most, end=end, gains=gains
        )
    else:
        best = convex_concave(joint.p, most, restarts=restarts, seed=seed, end=end)
    channels: list[tuple[Array, Points]] = []
    for share in SHRUNK:
        # The same channel, which answers nothing a little more often each time.
        smaller = thinned(
            joint.p, budget.measure, best.channel, largest * (1.0 - share), gains
        )
        channels.append(_weighted(joint, smaller.channel))
    # Posteriors of all symbols, as in `averages`, and no promise on single lifts.
    rules = replace(Rules(joint, NO_PROMISE), by_symbol=True)
    rounded, (verdict,) = verified_within(rules, [budget], channels)
    rounded = with_own_lifts(rounded, joint)
    return Baseline(
        name=name,
        rounded=rounded,
        worth=utility(rounded.channel, joint),
        leakage=verdict.leakage,
        points=channels[0][1],
        seconds=time.process_time() - started,
    )


def _weighted(joint: Joint, channel: Array) -> tuple[Array, Points]:
    """Weights P(y), (k,), and posteriors, (k, n), of a channel P(y | x), (n, k)."""
    weights = joint.p_x @ channel
    posteriors = (joint.p_x[:, None] * channel / weights).T
    return weights, Points.from_dense(posteriors)
