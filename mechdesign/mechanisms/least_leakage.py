"""The least average leakage of a channel that keeps a share of the information, verified exactly.

    minimise  E = sum over y of P(y) L(v_y)  over channels with  I(X;Y) >= k H(X),

where v_y is the posterior P(X|y) of an output, L(v) is what an output with posterior v leaks, and
k is the share that must be kept. `averages` has the opposite problem: most information for a
leakage.

1. `solvers.average.channels` finds the optimum for a share r that is a little larger than k,
   because rounding to integers costs some of it. `_Problem.optima` tries such shares r in turn
   (`SLACKS`). Where the search finds no channel that keeps r, it starts again from the best channel
   with the notion.
2. The first channel whose integers keep k is the answer (`_first_that_keeps`). The exact audit
   computes what they leak, which becomes the budget of the channel.

*Bounds.* The solver has a plane below its cost, H(v) + beta L(v) >= y.v + m for all posteriors v,
with prices y, a constant m, and the price beta of leakage. Summed over the outputs of any channel
it is H(X|Y) + beta E >= Q, with Q = y.P_X + m. This proves two bounds
(docs/explanation/averages-theory.md):

- A channel that keeps k H(X) leaks at least (Q - (1 - k) H(X)) / beta.
- A channel that leaks at most E keeps at most H(X) - Q + beta E.

`_Optimum` has both, and the sharpest of all optima go into the record and the certificate.

For example, with H(X) = 1, Q = 0.5 and beta = 2, who keeps 80 % leaks 0.15 or more, and who leaks
0.2 keeps at most 90 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from mechdesign.auditing.averages import (
    Gains,
    average_leakage,
    gain_without,
)
from mechdesign.auditing.measures import guess_without, utility
from mechdesign.channel.record import AverageBudget, AverageMeasure
from mechdesign.core.arguments import share_of
from mechdesign.core.errors import InputError, NotPrivate, SolverFailure
from mechdesign.core.progress import Step
from mechdesign.core.wording import about, at_most
from mechdesign.mechanisms.average_budgets import (
    NOTHING_TO_LIMIT,
    float_gains,
    has_leakage,
    in_solver_unit,
    kept_measure,
    own_leakage,
    texts_of_gains,
)
from mechdesign.mechanisms.averages import (
    AVERAGE,
    posterior_sets,
    seconds_of,
    with_average_proof,
    with_averages,
    with_own_lifts,
)
from mechdesign.mechanisms.optimal import optimal
from mechdesign.mechanisms.result import Certificate, Design, finish
from mechdesign.mechanisms.rounding import Rounded, RoundingFailure
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.search_options import (
    ENTROPY_ERROR,
    LEAST_GAP,
    Search,
    utility_entropy,
)
from mechdesign.tables.joint import Joint
from solvers import EmptyPolytope, Points, Progress, SolverError
from solvers.average.channels import AverageOptimum, least_leakage

SLACKS = (1e-9, 1e-7, 1e-5, 1e-3)
"""Parts of 1 - k, what may be lost, by which the share is raised in turn until the integers keep
enough.
"""

OUTWARDS = 1e-12
"""Relative distance to which bounds are rounded; the arithmetic here errs by a few units of
2^-53.
"""

SHARE_ERROR = 1e-15
"""A share and the raised one are exact to a unit or two of 2^-53."""

SMALLEST = 1e-300
"""Budget of a channel that leaks nothing: a budget is positive."""


def for_share(
    rules: Rules,
    asked: Any,
    keep: object,
    search: Search,
    started: float,
    *,
    alone: bool,
) -> Design:
    """The channel that leaks least on average among those that keep a share of H(X).

    Parameters
    ----------
    asked : mapping
        The measure, mapped to None, as in ``{"mi": None}`` or ``{"gains.csv": None}``.
    keep : number or text
        The share k, as in 0.8 or "80%".
    alone : bool
        Whether no promise on single lifts was asked for. The design then has the extreme lifts of
        the channel itself as its notion.

    Raises
    ------
    InputError
        If the share or the measure is none.
    NotPrivate
        If it is proven that no channel with the notion keeps so much.
    SolverFailure
        If no channel that does was verified.
    """
    share = share_of("--keep", keep)
    measure, gains = kept_measure(asked, rules.joint)
    joint = rules.joint
    leakage_of_x = own_leakage(joint, measure, gains)
    if not has_leakage(measure, leakage_of_x, joint, gains):
        raise InputError(NOTHING_TO_LIMIT)
    # The solver has a posterior of all symbols, so the promise must not merge any to classes.
    rules_by_symbol = replace(rules, by_symbol=True)
    problem = _Problem(
        rules_by_symbol, measure, gains, share, leakage_of_x, search, alone
    )
    rounded, optima = _first_that_keeps(problem)
    if alone:
        rounded = with_own_lifts(rounded, joint)

    leakage = average_leakage(rounded.channel, joint, measure, gains)
    worth = utility(rounded.channel, joint)
    # The planes of all optima hold, whatever shares they are for: the sharpest one counts.
    sharpest = max(optima, key=lambda best: best.least_leakage)
    least = sharpest.least_leakage
    most = sharpest.most_kept(leakage)
    # The channel is one of those that both bounds are about.
    if least > leakage or most < worth.nmi:
        raise SolverFailure("the channel contradicts its own bound: report this table")
    # The gap that was asked for is a part of what X itself leaks: the cost here is the leakage.
    messages: list[str] = []
    if leakage - least > max(search.gap, LEAST_GAP) * leakage_of_x:
        messages.append(f"the search ended early ({optima[-1].solved.status})")

    certificate = Certificate(upper_bound_nmi=min(1.0, most), scope="proven")
    design = finish(
        rounded,
        joint,
        AVERAGE,
        "columns",
        started,
        worth=worth,
        certificate=certificate.at(worth.nmi),
        messages=tuple(messages),
    )
    average = AverageBudget(
        measure=measure,
        gains=texts_of_gains(gains),
        budget=max(leakage, SMALLEST),
        achieved=leakage,
        keep=float(share),
        lower_bound=least,
    )
    design = with_averages(design, [average])
    return with_average_proof(design, rules_by_symbol, sharpest.solved, alone=alone)


def _first_that_keeps(problem: _Problem) -> tuple[Rounded, list[_Optimum]]:
    """The first channel whose integers keep the share, and all optima up to it."""
    optima: list[_Optimum] = []
    for best in problem.optima():
        optima.append(best)
        try:
            rounded = problem.rules.rounded(best.solved.weights, best.solved.points)
        except RoundingFailure:
            continue
        if utility(rounded.channel, problem.rules.joint).nmi >= problem.share:
            return rounded, optima
    raise SolverFailure(
        f"no channel was verified that keeps {about(float(problem.share))} of the information"
    )


@dataclass(frozen=True, eq=False)
class _Optimum:
    """The solver's optimum for a raised share, and the bounds that its plane proves.

    `kept` is the share k that was asked for, `raised` the share r of the solver. The solver's
    bound is B = (Q - (1 - r) H(X)) / beta.
    """

    solved: AverageOptimum
    measure: AverageMeasure
    gains: Gains
    kept: float
    raised: float
    joint: Joint

    @property
    def entropy(self) -> float:
        """H(X) in nats."""
        return utility_entropy(self.joint)

    @property
    def least_leakage(self) -> float:
        """No channel that keeps the share leaks less: rounded down, in the unit of the measure.

        (Q - (1 - k) H(X)) / beta = B - (r - k) H(X) / beta.
        """
        beta = self.solved.multiplier
        # A plane that does not price leakage says nothing about it.
        if not beta > 0.0:
            return least_for_share(0.0, self.measure, self.joint, self.gains)
        # r - k, not too small: the double k may lie above the share itself.
        between = self.raised - self.kept + SHARE_ERROR
        below = between * self.entropy / beta
        bound = self.solved.bound - below
        bound -= OUTWARDS * (abs(self.solved.bound) + below)
        return least_for_share(bound, self.measure, self.joint, self.gains)

    def most_kept(self, leakage: float) -> float:
        """No channel of this leakage E keeps a larger share of H(X): rounded up.

        (H(X) - Q + beta E) / H(X) = r + beta (E - B) / H(X).
        """
        beta = self.solved.multiplier
        if not beta > 0.0:
            return 1.0
        leaks = in_solver_unit(self.measure, leakage, self.joint, self.gains)
        more = beta * (leaks - self.solved.bound) / self.entropy
        # Rounding errs by a part of the sizes of the terms, not of their sum: they may cancel.
        size = 1.0 + beta * (leaks + self.solved.bound) / self.entropy
        return self.raised + more + ENTROPY_ERROR * size


def least_for_share(
    bound: float, measure: AverageMeasure, joint: Joint, gains: Gains = ()
) -> float:
    """A lower bound of the solver in the unit of the measure, rounded down."""
    # A constant is guessed right for the share of the likeliest secret, and leaks nothing else.
    constant = 0.0
    if measure == "guess":
        constant = math.nextafter(float(guess_without(joint)), 0.0)
    if measure == "gain":
        constant = math.nextafter(float(gain_without(joint, gains)), 0.0)
    if bound <= 0.0:
        return constant
    # From the solver's unit, e^leakage - 1, to nats.
    if measure == "maximal-leakage":
        return math.log1p(bound) * (1.0 - OUTWARDS)
    return (constant + bound) * (1.0 - OUTWARDS)


@dataclass(frozen=True, eq=False)
class _Problem:
    """The least leakage for a share, under the rules of a notion or `alone`.

    `leakage_of_x` is that of X itself, of which the gap is a share. `optima` yields one optimum
    after the other until the caller has enough.
    """

    rules: Rules
    measure: AverageMeasure
    gains: Gains
    share: Fraction
    leakage_of_x: float
    search: Search
    alone: bool

    def optima(self) -> Iterator[_Optimum]:
        """Optima at shares that are raised more and more."""
        start: Points | None = None
        for slack in SLACKS:
            # By a part of 1 - k, what may be lost: r stays below 1.
            raised = float(self.share) + slack * (1.0 - float(self.share))
            try:
                yield self._optimum(raised, start)
            except EmptyPolytope:
                # The search found no such channel, which is no proof that there is none. The best
                # channel with the notion decides: it keeps r, or its bound proves that none does.
                start = self._best_with_notion(raised)
                yield self._optimum(raised, start)

    def _optimum(self, raised: float, start: Points | None) -> _Optimum:
        """The optimum for a raised share.

        Raises
        ------
        EmptyPolytope
            If the search finds no channel that keeps so much.
        SolverFailure
            If it fails.
        """
        inner, outer = posterior_sets(self.rules, alone=self.alone)
        gap = max(self.search.gap, LEAST_GAP)
        joint = self.rules.joint
        try:
            solved = least_leakage(
                joint.p,
                self.measure,
                raised,
                inner=inner,
                outer=outer,
                tolerance=0.9
                * gap
                * in_solver_unit(self.measure, self.leakage_of_x, joint, self.gains),
                gains=float_gains(self.gains),
                time_limit=seconds_of(self.search),
                start=start,
                progress=self._shown(),
            )
        except EmptyPolytope:
            # A `SolverError` too, but one that `optima` mends.
            raise
        except SolverError as error:
            raise SolverFailure(
                f"the optimum could not be computed: {error}"
            ) from error
        return _Optimum(
            solved, self.measure, self.gains, float(self.share), raised, joint
        )

    def _best_with_notion(self, raised: float) -> Points:
        """Posteriors of the best channel with the notion, which keeps the share.

        Raises
        ------
        NotPrivate
            If its proven bound is below the share.
        SolverFailure
            If it keeps less, but its bound is above.
        """
        best = optimal(self.rules, self.search)
        bound = best.certificate.upper_bound_nmi
        wanted = about(float(self.share))
        if bound is not None and bound < self.share:
            raise NotPrivate(
                f"no channel with this promise keeps {wanted} of the information: none keeps "
                f"above {at_most(100 * bound)} % (proven)"
            )
        if best.nmi < raised or best.envelope is None:
            raise SolverFailure(
                f"no channel was found that keeps {wanted} of the information, and it is not "
                "proven that there is none: allow more time (--time-limit) or keep a little less"
            )
        return best.envelope.points

    def _shown(self) -> Callable[[Progress], None] | None:
        """The caller's progress, in the solver's unit of leakage."""
        report = self.search.progress
        if report is None:
            return None

        def show(progress: Progress) -> None:
            line = (
                f"leakage {progress.value:.5g}, at least {progress.bound:.5g} "
                f"({progress.columns} columns, {progress.nodes} nodes)"
            )
            figures = {"leakage": progress.value, "lower_bound": progress.bound}
            report(Step(line, figures))

        return show
