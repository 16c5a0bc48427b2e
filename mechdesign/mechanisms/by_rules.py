"""The designs of one request: by the rules of its promise, after earlier releases, over bins.

*Rules.* `by_rules` runs the objective or the mechanism of a request, and merges where the optimum
fails or ends early (`_optimal_or_merging`). `for_population` is the design whose promise holds for
every population in the confidence set of the counts. The modules of an objective are imported where
it is asked for: all of them take longer to load than a small table takes to design.

*After other releases of the same record*: the remaining budget and the joint leakage. The promise
itself is in the rules: the new channel keeps it together with every combination of earlier outputs
(`auditing.demands`). For example, if a first release makes a secret 1.5 times as likely and the
promise allows a factor of 2, the second one may add a factor of 4/3 to that output. `designing`
calls two functions:

1. `check_room` before a design: a constant cannot mend a promise that earlier releases break.
2. `spending` after it. It refuses a budget that is used up, and computes the joint leakage in
   another way (`auditing.joint_leakage`), so that an error of one of them shows. To the result it
   adds what all releases keep together, and what one channel for all their columns would keep
   (`_at_once`).

*Bins.* Few bins move numbers far, as each is released as the median of its bin. Many bins are many
symbols, which a small budget must confuse, and that moves numbers too. Between the two there is a
best number, which `binned_for` finds for ``auto``:

1. Bins that the request names are made first.
2. For each number of bins in `NUMBERS_OF_BINS` the edges of least distance to the medians are
   found by dynamic programming (`Joint.binned`), and a channel for the binned table is designed to
   a coarse gap (`_distances`).
3. The number whose released medians are nearest to the numbers of the table in expectation wins.

For example, 2 bins of ages may move them by 9.1 years on average, 6 bins by 7.4 and 64 bins by 8.3.
Then there are 6 bins, and the channel for them is designed again, to the gap of the request.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mechdesign.auditing.columns import columns_on, everything
from mechdesign.auditing.composition import Composition
from mechdesign.auditing.extremes import extreme_lifts
from mechdesign.auditing.joint_leakage import compose
from mechdesign.auditing.population import NOT_STACKED, lift_limits
from mechdesign.auditing.verdict import audit_on_table, verdict_of
from mechdesign.channel.channel import Channel
from mechdesign.channel.file import file_digest
from mechdesign.channel.record import AverageBudget
from mechdesign.core.errors import InputError, NotPrivate, SolverFailure
from mechdesign.core.wording import quoted
from mechdesign.mechanisms import combinations
from mechdesign.mechanisms.average_budgets import NO_PROMISE, averages_of
from mechdesign.mechanisms.heuristics import HEURISTICS, subset_merging
from mechdesign.mechanisms.optimal import OPTIMAL, NotRounded, optimal, proven
from mechdesign.mechanisms.posteriors import check_optimum
from mechdesign.mechanisms.request import DesignRequest
from mechdesign.mechanisms.result import Design, Spending
from mechdesign.mechanisms.rules import Rules, table_rules
from mechdesign.mechanisms.search_options import STANDARD, Search, utility_entropy
from mechdesign.notions import Notion
from mechdesign.release.released_values import distance_text, moved
from mechdesign.tables.bin_edges import AUTO, specs_by_column
from mechdesign.tables.confidence import confidence_set
from mechdesign.tables.joint import Joint

if TYPE_CHECKING:
    from mechdesign.mechanisms.population import PopulationRules


# ------------------------------------------------------------------- rules of a promise


def for_population(
    request: DesignRequest,
    level: float,
    whole: Joint,
    joint: Joint,
    notion: Notion,
    started: float,
) -> Design:
    """The design whose promise holds for the population at a confidence level.

    `whole` is the table of the request, `joint` that of the released columns.
    """
    # Loaded here, because few designs need it.
    from mechdesign.mechanisms.population import confident

    rules = _population_rules(request, level, whole, joint, notion)
    result = by_rules(rules, request, started)
    return confident(result, rules, started, request.time_limit)


def _population_rules(
    request: DesignRequest, level: float, whole: Joint, joint: Joint, notion: Notion
) -> PopulationRules:
    """The rules of a promise about every population in the confidence set of the counts."""
    # Loaded here, because few designs need it.
    from mechdesign.mechanisms.population import PopulationRules

    combinations.check(combinations.POPULATION, request.named)
    if whole.sensitive.protects_columns:
        raise InputError(NOT_STACKED)
    populations = confidence_set(
        joint,
        level,
        shares=request.known_shares,
        estimate_shares=lift_limits(notion).need_shares,
        unseen=request.unseen,
    )
    return PopulationRules(joint, notion, populations=populations)


def by_rules(rules: Rules, request: DesignRequest, started: float) -> Design:
    """Run the objective or the mechanism of a request."""
    search = replace(request.search, since=started)
    # `design` puts this notion where the user gave none.
    alone = request.average is not None and request.notion == NO_PROMISE
    if not request.has_free_outputs or request.has_purpose:
        budgets: tuple[AverageBudget, ...] = ()
        if request.average is not None:
            budgets = averages_of(request.average, rules.joint)
        return _for_objective(rules, request, search, started, budgets, alone=alone)
    if request.average is not None and request.keep is None:
        # Loaded here, because few designs need it.
        from mechdesign.mechanisms.averages import for_average

        return for_average(rules, request.average, search, started, alone=alone)
    if request.average is not None:
        # Loaded here, because few designs need it.
        from mechdesign.mechanisms.least_leakage import for_share

        keep = request.keep
        return for_share(rules, request.average, keep, search, started, alone=alone)
    if request.mechanism in HEURISTICS:
        return HEURISTICS[request.mechanism](rules, search, STANDARD)
    check_optimum(rules.notion, rules.joint)
    if request.fallback:
        return _optimal_or_merging(rules, search, started)
    return optimal(rules, search)


def _for_objective(
    rules: Rules,
    request: DesignRequest,
    search: Search,
    started: float,
    budgets: tuple[AverageBudget, ...],
    *,
    alone: bool,
) -> Design:
    """The channel of least cost, or the best one for queries or a task."""
    if not request.has_free_outputs:
        # Loaded here, because few designs need it.
        from mechdesign.mechanisms.least_cost import least_cost

        return least_cost(rules, request.least_cost, search, budgets, alone=alone)
    if not budgets:
        check_optimum(rules.notion, rules.joint)
    if request.task is not None:
        # Loaded here, because few designs need it.
        from mechdesign.mechanisms.purposes import for_task

        return for_task(rules, request.task, search, started, budgets, alone=alone)
    # Loaded here, because few designs need it.
    from mechdesign.mechanisms.query_design import for_queries

    return for_queries(rules, request.objective, search, started, budgets, alone=alone)


def _optimal_or_merging(rules: Rules, search: Search, started: float) -> Design:
    """The optimum; subset merging where the search failed, or ended early with less utility."""
    try:
        best = optimal(rules, search)
    except SolverFailure as error:
        # Merging has an answer however little time is left.
        merged = subset_merging(rules, search)
        message = f"the optimum failed ({error}); this is {merged.mechanism}, verified"
        if isinstance(error, NotRounded):
            # The bound of the float optimum holds although no channel came of it.
            proof = proven(error.envelope, merged.entropy, merged.nmi)
            merged = replace(merged, certificate=proof)
        return _fallen_back(merged, message, started)
    gap = best.certificate.gap_nmi
    if gap is None or gap <= search.gap:
        return best
    if time.process_time() >= search.end(started):
        # The search began with merged channels, so that it keeps no less than they do.
        return best
    merged = subset_merging(rules, search)
    if merged.nmi <= best.nmi:
        return best
    # The bound is one for all channels, so it holds for that of merging, too.
    merged = replace(merged, certificate=best.certificate.at(merged.nmi))
    message = f"the search ended below {merged.mechanism}, which is emitted, verified"
    return _fallen_back(merged, message, started)


def _fallen_back(merged: Design, message: str, started: float) -> Design:
    """The design of merging in place of the optimum, with a message about the reason."""
    return replace(
        merged,
        fallback_from=OPTIMAL,
        messages=(*merged.messages, message),
        seconds=time.process_time() - started,
    )


# --------------------------------------------------------------------- earlier releases

NOTHING_LEFT = 1e-6
"""Proven bound on the utility, as a share of H(X), below which the budget counts as used up."""

MOST_AT_ONCE = 256
"""Useful symbols of all columns together up to which one channel for all of them is designed (15 x
15, and some)."""

SECONDS_AT_ONCE = 10.0
"""Longest search for that channel without a time limit."""

MOST_PROBABILITIES = 2**24
"""Entries of P(x, y1, .., yk) up to which information is computed; 128 MB."""


def check_room(rules: Rules, after: Sequence[Channel]) -> None:
    """Raise NotPrivate if the earlier releases alone break the promise."""
    # A constant channel after them discloses nothing more.
    constant = [column for column, _ in everything(rules.joint)]
    lifts = extreme_lifts(constant, rules.demands or ())
    alone = verdict_of(lifts, ["nothing more"], rules.notion)
    if alone.satisfied:
        return
    outputs = " and ".join(map(quoted, alone.worst.before))
    breaks = "the earlier channel breaks"
    if len(after) > 1:
        breaks = "the earlier channels together break"
    raise NotPrivate(
        f"{breaks} the promise already, so nothing can be released after it: {outputs} makes "
        f"{quoted(alone.worst.sensitive)} {alone.worst.lift:.5g} times as likely as "
        "before; give a larger budget"
    )


def spending(
    design: Design,
    rules: Rules,
    whole: Joint,
    after: Sequence[Channel],
    time_limit: float | None,
) -> Design:
    """The design with the joint leakage of all releases, and the hashes of the earlier ones.

    `whole` is the table with the useful columns of all releases, `rules` that of the new one.

    Raises
    ------
    NotPrivate
        If the budget is used up: only a constant could be released.
    """
    notion = rules.notion
    channel = design.channel
    bound = design.certificate.upper_bound_nmi
    if design.nmi < NOTHING_LEFT and bound is not None and bound < NOTHING_LEFT:
        raise NotPrivate(
            "the earlier releases use up the budget: after them only a constant could "
            "be released; give a larger budget"
        )
    all_channels = [*after, channel]
    together = compose(all_channels, whole)
    _check_agreement(together, notion)
    achieved = audit_on_table(channel, rules.joint, notion).achieved
    record = replace(
        channel.record,
        achieved=asdict(achieved),
        after=tuple(file_digest(earlier) for earlier in after),
    )
    return replace(
        design,
        channel=channel.with_record(record),
        achieved=achieved,
        spending=Spending(
            before=compose(after, whole),
            together=together,
            entropy=utility_entropy(whole),
            columns=whole.useful.columns,
            kept_before=information(after, whole),
            kept=information(all_channels, whole),
            at_once=_at_once(whole, notion, time_limit),
        ),
    )


def _check_agreement(together: Composition, notion: Notion) -> None:
    """Raise SolverFailure for a joint leakage above the promise.

    The verdict, which the channel has passed, computes the same in another way.
    """
    limits = notion.limits.loosest
    leakage = together.at_least
    agrees = (
        leakage.eps_l <= limits.lower
        and leakage.eps_u <= limits.upper
        and leakage.eps_ldp <= limits.ratio
    )
    if not agrees:
        raise SolverFailure(
            "the audit and the joint leakage of the releases disagree; please report this"
        )


def _at_once(whole: Joint, notion: Notion, time_limit: float | None) -> Design | None:
    """The best single channel of all columns at the same promise; None for too many symbols."""
    if len(whole.useful) > MOST_AT_ONCE:
        return None
    seconds = SECONDS_AT_ONCE
    if time_limit is not None:
        seconds = time_limit
    return optimal(table_rules(whole, notion), Search(gap=1e-3, time_limit=seconds))


def information(channels: Sequence[Channel], joint: Joint) -> float | None:
    """I(X; Y1, .., Yk) in nats for all useful columns X of the table; None for too many outputs."""
    n = len(joint.useful)
    # P(x, y1, .., yk): the outputs of a record are independent given x.
    mass = joint.p_x[:, None]
    for channel in channels:
        # The outputs of all releases multiply.
        if mass.size * len(channel.outputs) > MOST_PROBABILITIES:
            return None
        # W(y|x) of this channel, (n, outputs).
        columns = np.zeros((n, len(channel.outputs)))
        for y, (at, values) in enumerate(columns_on(channel, joint)):
            columns[list(at), y] = [value / channel.denominator for value in values]
        mass = (mass[:, :, None] * columns[:, None, :]).reshape(n, -1)
        # Combinations that never occur would only take memory.
        mass = mass[:, mass.any(axis=0)]
    # sum of P(x, y) log(P(x, y) / (P(x) P(y))), where 0 log 0 = 0; rounding may make it negative.
    x, y = np.nonzero(mass)
    cells = mass[x, y]
    independent = joint.p_x[x] * mass.sum(axis=0)[y]
    return max(0.0, float(cells @ np.log(cells / independent)))


# --------------------------------------------------------------------------------- bins

NUMBERS_OF_BINS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Numbers tried for ``auto``; beyond them the curve is flat."""

CURVE_GAP = 1e-2
"""Gap of each trial, as a share of H(X); only the channel of the best number of bins is computed to
the gap of the request."""

CURVE_SECONDS = 5.0
"""Longest search of a trial."""


def binned_for(
    request: DesignRequest, design: Callable[[DesignRequest], Design]
) -> tuple[Joint, tuple[str, ...]]:
    """The table of a request in its bins, and a message about a number of bins that was chosen.

    `design` makes the channels of the trials. They take at most half of the time limit, so that the
    other half is left for the channel itself.
    """
    joint = request.joint
    specs = specs_by_column(request.bins, joint.useful.columns)
    auto: list[str] = []
    for name, spec in specs.items():
        # Edges may come as an array, which has no single answer to `==`.
        if isinstance(spec, str) and spec == AUTO:
            auto.append(name)
    fixed = {name: spec for name, spec in specs.items() if name not in auto}
    if fixed:
        joint = joint.binned(fixed)
    if not auto:
        return joint, ()
    combinations.check(request.shape, {"bins": "--bin auto"})
    if len(auto) > 1:
        raise InputError(
            "--bin auto is for one column; give bins for the others, or auto:N"
        )

    column = auto[0]
    curve = _distances(replace(request, joint=joint, bins=None), column, design)
    # Of equal distances the fewest bins: a smaller channel for the same.
    best = min(curve, key=lambda trial: (trial.distance, trial.bins))
    # The kind of its values (numbers, dates or times), for the units of the message.
    kind = next(bins.kind for bins in best.table.useful.bins if bins is not None)
    distances: list[str] = []
    for trial in curve:
        distances.append(f"{trial.bins} {distance_text(trial.distance, kind)}")
    tried = ", ".join(distances)
    message = (
        f"bins of {quoted(column)}: {best.bins} of them move the released medians "
        f"least at this budget, by {distance_text(best.distance, kind)} on average "
        f"({tried}; auto:N chooses another number)"
    )
    return best.table, (message,)


class Trial(NamedTuple):
    """A number of bins, the table in so many, and the mean distance of the released medians.

    The distance is in the unit of the numbers.
    """

    distance: float
    bins: int
    table: Joint


def _distances(
    request: DesignRequest, column: str, design: Callable[[DesignRequest], Design]
) -> list[Trial]:
    """A trial for each number of bins, in ascending order."""
    joint = request.joint
    part = joint.useful.columns.index(column)
    # A missing value, the empty text, is a symbol beside the bins.
    values = {symbol[part] for symbol in joint.useful.symbols} - {""}
    seconds = CURVE_SECONDS
    if request.time_limit is not None:
        # All trials together take at most half of the time.
        seconds = min(seconds, request.time_limit / (2 * len(NUMBERS_OF_BINS)))
    # A column of few values has no more bins than these.
    most = max(len(values), 2)
    numbers = sorted({min(count, most) for count in NUMBERS_OF_BINS})
    trials: list[Trial] = []
    for count in numbers:
        table = joint.binned({column: f"{AUTO}:{count}"})
        trial = replace(
            request, joint=table, gap=CURVE_GAP, time_limit=seconds, progress=None
        )
        channel = design(trial).channel
        for move in moved(channel):
            if move.column == column:
                trials.append(Trial(move.distance, count, table))
    return trials
