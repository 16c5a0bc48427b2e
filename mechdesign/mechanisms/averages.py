"""Budgets on average leakages: most information within them (the privacy funnel), verified exactly.

    maximise I(X;Y)  over channels with  sum over y of P(y) L_j(v_y) <= e_j  for every average j,

where L_j(v) is the leakage of an output with posterior v; for the mutual information it is the
divergence of P(S|y) from P(S).

1. `average_budgets` reads the budgets e_j.
2. `solvers.average.channels` finds the optimum for budgets that are smaller by a relative `SHRUNK`
   (`_optimum`).
3. The channel is rounded and audited exactly (`verified_within`). If its integers exceed a budget,
   all budgets shrink further.
4. Where the averages are all that is promised (`alone`), a channel still has to state what its
   single outputs may do. It gets its own extreme lifts as its notion (`with_own_lifts`).

For example, X itself leaks 0.20 nats of mutual information about S, and "25%" is a budget of 0.05.
The optimum is searched for at 0.05 (1 - 1e-9), which leaves 5e-11 nats for the rounding to
integers. If the exact audit finds that these leak at most 0.05, the channel is the answer.

*Bound.* With prices beta_j of the averages the solver proves H(v) + sum of beta_j L_j(v) >= y.v + m
for all posteriors. Summed with the weights of a channel this bounds its H(X|Y) from below by y.P_X
+ m - sum of beta_j e_j, hence I(X;Y) from above (docs/explanation/averages-theory.md).

*Local methods*: the channels that users of the privacy funnel know. Greedy merging (Makhdoumi et
al. 2014) and the best of several restarts of the convex-concave procedure are local searches: their
channels are real, and nothing is proven about better ones.

1. `baseline` runs one of them for a budget a little below the one that was asked for
   (`solvers.average.channels`).
2. A channel that leaks too much is *thinned*: it answers only a share of the records, and nothing
   for the others. Half the records, for example, leak half as much (in the unit of the solver) and
   keep half the information.
3. It is rounded to integers and verified like the optimum. If its integers exceed the
   budget, it is thinned a little more.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mechdesign.auditing.averages import AverageVerdict, average_verdicts
from mechdesign.auditing.measures import Utility, utility
from mechdesign.auditing.verdict import achieved_by
from mechdesign.channel.channel import Channel
from mechdesign.channel.proof import EntropyProof
from mechdesign.channel.record import AverageBudget
from mechdesign.core.errors import SolverFailure
from mechdesign.mechanisms.average_budgets import (
    NO_PROMISE,
    averages_of,
    float_gains,
    in_solver_unit,
)
from mechdesign.mechanisms.result import Certificate, Design, finish
from mechdesign.mechanisms.rounding import Rounded, RoundingFailure, partition_channel
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.search_options import (
    ENTROPY_ERROR,
    LEAST_GAP,
    Search,
    utility_entropy,
)
from mechdesign.notions import ALIP, MaxLift, Notion
from mechdesign.tables.joint import Joint
from solvers import Array, Points, Polytope, Progress, SolverError
from solvers.average.channels import (
    AverageOptimum,
    best_channel_within,
    convex_concave,
    greedy_merging,
    thinned,
)

AVERAGE = "average"
"""The name of the mechanism."""

SHRUNK = (1e-9, 1e-7, 1e-5, 1e-3)
"""Relative shares by which the budget is reduced in turn, until the integers keep the budget."""

MARGIN = 1e-9
"""Distance of the columns from the limits of a notion: the kernel meets its rows to 1e-10."""

LEAST_EXTREME = 1e-12
"""Smallest budget (nats) of the extreme lifts of a channel."""

DEFAULT_SECONDS = 30.0
"""The time limit of a search for which none was given."""


def for_average(
    rules: Rules,
    asked: Any,
    search: Search,
    started: float,
    *,
    alone: bool,
    start: Sequence[Points] = (),
) -> Design:
    """The channel that keeps most within one or several average budgets, verified exactly.

    Parameters
    ----------
    alone : bool
        Whether no promise on single lifts was asked for. The design then has the extreme lifts of
        the channel itself as its notion.
    start : sequence of Points
        Posteriors, (k, n), of channels that are known; none of them keeps more than the result.

    Raises
    ------
    InputError
        If a budget is none.
    SolverFailure
        If no channel was verified.
    """
    joint = rules.joint
    budgets = averages_of(asked, joint)
    # The solver has a posterior of all symbols, so the promise must not merge any to classes.
    rules = replace(rules, by_symbol=True)
    # One for each tried share, also of those whose integers failed.
    optima: list[AverageOptimum] = []

    def candidates() -> Iterator[tuple[Array, Points]]:
        # Lazily: a further optimum is computed only if the integers of the last one failed.
        for share in SHRUNK:
            best = _optimum(rules, budgets, share, search, start, alone=alone)
            optima.append(best)
            yield best.weights, best.points

    rounded, _ = verified_within(rules, budgets, candidates())
    if alone:
        # `average_budgets.NO_PROMISE` must not be in the record of a channel.
        rounded = with_own_lifts(rounded, joint)
    worth = utility(rounded.channel, joint)
    certificate = _certificate(optima, joint, worth.nmi)
    messages: list[str] = []
    if certificate.gap_nmi is not None and certificate.gap_nmi > search.gap:
        messages.append(f"the search ended early ({optima[-1].status})")

    design = finish(
        rounded,
        joint,
        AVERAGE,
        "columns",
        started,
        worth=worth,
        certificate=certificate,
        messages=tuple(messages),
    )
    design = with_averages(design, achieved_averages(rounded.channel, joint, budgets))
    return with_average_proof(
        design, rules, min(optima, key=lambda best: best.bound), alone=alone
    )


def with_average_proof(
    design: Design, rules: Rules, optimum: AverageOptimum, *, alone: bool
) -> Design:
    """The design with the support of its bound as the proof, where that is one of the promise."""
    if not (alone or rules.cuts is None):
        return design
    proof = EntropyProof(
        prices=tuple(optimum.prices.tolist()),
        leakages=tuple(optimum.multipliers.tolist()),
        alone=alone or None,
    )
    return replace(design, channel=design.channel.with_proof(proof))


def _optimum(
    rules: Rules,
    budgets: Sequence[AverageBudget],
    share: float,
    search: Search,
    start: Sequence[Points],
    *,
    alone: bool,
) -> AverageOptimum:
    """The optimum at budgets reduced by a share; its bound is raised to that of the whole ones."""
    gains: Array | None = None
    whole: dict[str, float] = {}
    reduced: dict[str, float] = {}
    for budget in budgets:
        exact = budget.exact_gains
        if exact:
            gains = float_gains(exact)
        most = in_solver_unit(budget.measure, budget.budget, rules.joint, exact)
        whole[budget.measure] = most
        reduced[budget.measure] = (1.0 - share) * most
    inner, outer = posterior_sets(rules, alone=alone)
    start_points: Points | None = None
    if start:
        start_points = Points.concatenate(start)
    # A tenth of the gap is left for the rounding to integers.
    tolerance = 0.9 * max(search.gap, LEAST_GAP) * utility_entropy(rules.joint)
    try:
        optimum = best_channel_within(
            rules.joint.p,
            reduced,
            inner=inner,
            outer=outer,
            gains=gains,
            tolerance=tolerance,
            time_limit=seconds_of(search),
            start=start_points,
            progress=_shown(search, rules.joint),
        )
    except SolverError as error:
        raise SolverFailure(f"the optimum could not be computed: {error}") from error
    # The support H(v) + sum_j beta_j L_j(v) >= y.v + m holds for all budgets: the bound grows by
    # beta times the differences, doubled for the rounding of the products.
    charged = float(optimum.multipliers @ np.array(list(whole.values())))
    return replace(optimum, bound=optimum.bound + 2.0 * charged * share)


def _shown(search: Search, joint: Joint) -> Callable[[Progress], None] | None:
    """The caller's progress, which counts H(X|Y); this solver reports I(X;Y) instead."""
    report = search.shown(joint)
    if report is None:
        return None
    entropy = utility_entropy(joint)

    def show(progress: Progress) -> None:
        value = entropy - progress.value
        bound = entropy - progress.bound
        report(replace(progress, value=value, bound=bound))

    return show


def posterior_sets(
    rules: Rules, *, alone: bool
) -> tuple[Polytope | None, Polytope | None]:
    """The set of the posteriors of a search, and the one for which its bound holds.

    An average alone allows every posterior: None. Beside a promise on single lifts the channel is
    searched for a little inside of it, so that its integers keep it, too; the bound holds for all
    of it.
    """
    if alone:
        return None, None
    return rules.polytope(MARGIN), rules.relaxation


def seconds_of(search: Search) -> float:
    """The time that is left of a search, as the solver cannot do without a limit."""
    left = search.left()
    if left is None:
        return DEFAULT_SECONDS
    return left


def _certificate(
    optima: Sequence[AverageOptimum], joint: Joint, nmi: float
) -> Certificate:
    """The proven bound on the NMI, from those of the solver, and the gap of a channel to it."""
    # Each of them bounds the whole budgets, so the least bound holds.
    bound = share_of_bound(min(best.bound for best in optima), joint)
    # The channel itself may be above by a rounding.
    return Certificate(upper_bound_nmi=max(nmi, bound), scope="proven").at(nmi)


def share_of_bound(information: float, joint: Joint) -> float:
    """A bound on I(X;Y) as a share of H(X), rounded up."""
    bound = information / utility_entropy(joint)
    # Nothing keeps more than all.
    return float(min(1.0, bound + ENTROPY_ERROR * (1.0 + abs(bound))))


def verified_within(
    rules: Rules,
    budgets: Sequence[AverageBudget],
    channels: Iterable[tuple[Array, Points]],
) -> tuple[Rounded, tuple[AverageVerdict, ...]]:
    """The first of several float channels whose integers keep the promise and all budgets.

    Each has weights P(y), (k,), and posteriors, (k, n). A constant follows the last: it leaks
    nothing, whatever the budgets.

    Raises
    ------
    SolverFailure
        If not even the constant was verified.
    """
    failure: Exception | None = None
    for weights, points in channels:
        try:
            rounded = rules.rounded(weights, points)
        except RoundingFailure as error:
            failure = error
            continue
        verdicts = average_verdicts(rounded.channel, rules.joint, budgets)
        if all(verdict.kept for verdict in verdicts):
            return rounded, verdicts
    # A constant, one output for all symbols.
    everything = [list(range(len(rules.joint.useful)))]
    rounded = partition_channel(everything, rules)
    verdicts = average_verdicts(rounded.channel, rules.joint, budgets)
    if not all(verdict.kept for verdict in verdicts):
        raise SolverFailure(f"no channel was verified ({failure})")
    return rounded, verdicts


def achieved_averages(
    channel: Channel, joint: Joint, budgets: Sequence[AverageBudget]
) -> list[AverageBudget]:
    """Each budget beside what the integers leak, as the channel's record has them."""
    achieved: list[AverageBudget] = []
    for budget, verdict in zip(
        budgets, average_verdicts(channel, joint, budgets), strict=True
    ):
        achieved.append(budget.model_copy(update={"achieved": verdict.leakage}))
    return achieved


def with_averages(design: Design, averages: Sequence[AverageBudget]) -> Design:
    """The design with average budgets in the record of its channel."""
    record = replace(design.channel.record, averages=tuple(averages))
    return replace(design, channel=design.channel.with_record(record))


def with_own_lifts(rounded: Rounded, joint: Joint) -> Rounded:
    """The channel with its own extreme lifts as its notion, verified."""
    rules = Rules(joint, _extremes(rounded.channel, joint))
    verified = replace(rounded, audit=rules.verdict(rounded.channel))
    if not verified.audit.satisfied:
        raise SolverFailure("the extreme lifts of the channel were not verified")
    return verified


def _extremes(channel: Channel, joint: Joint) -> Notion:
    """The extreme lifts of a channel as a notion that it keeps, and no smaller budget."""
    achieved = achieved_by(channel, joint)
    # A channel that tells nothing has the extremes 0, and a notion needs positive budgets.
    lower = max(achieved.eps_l, LEAST_EXTREME)
    upper = max(achieved.eps_u, LEAST_EXTREME)
    if math.isinf(lower):
        # Some lift is zero: nothing is promised below.
        return MaxLift(upper)
    return ALIP(lower, upper)


# ------------------------------------------------------------------------ local methods

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
