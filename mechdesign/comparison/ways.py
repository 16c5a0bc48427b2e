"""Comparisons at one budget: ways to keep an average, and ways to serve a purpose.

Each sets several channels beside each other. Each channel is a `Way`; the kind of the comparison
adds the figure by which it measures them. `row_of_way` makes it a row of `compare`.

*Averages*: the certified optimum beside the local methods of the privacy funnel. `compare_average`
works in this order:

1. `baseline` runs the local methods: greedy merging and, for the mutual information, the
   convex-concave procedure from `restarts` random channels.
2. `for_average` searches for the optimum. The points of all local channels are its start, so that
   it never keeps less than they do.
3. Each channel, rounded to integers and verified, becomes one `AverageWay`, by which all are
   compared: information kept, leakage, outputs and seconds.

With the budget {"mi": "25%"} the leakage I(S;Y) may be a quarter of I(S;X), here 0.02603 nats: ::

    name               kept    leakage  outputs
    certified optimum  0.6881  0.02603        4     (no channel keeps more than 0.6883)
    greedy merging     0.5991  0.00551        2
    best of restarts   0.6849  0.02524        3

*Purposes*: the channel made for queries or a task beside the channels made for information.
`compare_purpose` designs a channel whose objective is the purpose. Then it designs the optimum for
information and the channel of each heuristic at the same promise, none of which knows the purpose.
`_figure` measures all of them by the purpose:

- For queries it is N times the total variance of their unbiased estimates from N released records;
  less is better. A channel from which a query cannot be estimated has infinity.
- For a task T it is I(T;Y) / I(T;X), the share of the information about it that is kept; more is
  better.

Where the column itself is protected by local differential privacy, its known protocols stand beside
these (`mechanisms.query_design`).

For the frequencies of three symbols at ALIP with eps_l = eps_u = 0.25: ::

    name              figure  kept
    made for it       1.930   0.5037
    optimal           2.397   0.6441      (more information, and yet worse for the purpose)
    complete-merging  inf     0.5991      (merged symbols cannot be told apart)
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from mechdesign.auditing.measures import utility
from mechdesign.auditing.verdict import Achieved
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import AverageBudget
from mechdesign.comparison.rows import Case, ComparisonRow
from mechdesign.core.arguments import number
from mechdesign.core.errors import InputError, require_type
from mechdesign.core.progress import Steps
from mechdesign.core.wording import about
from mechdesign.mechanisms.average_budgets import NO_PROMISE, averages_of
from mechdesign.mechanisms.averages import (
    Baseline,
    baseline,
    baselines_for,
    for_average,
)
from mechdesign.mechanisms.designing import design_requested
from mechdesign.mechanisms.optimal import OPTIMAL
from mechdesign.mechanisms.purposes import task_figures, task_joint
from mechdesign.mechanisms.queries import PURPOSES, Queries, queries_of
from mechdesign.mechanisms.query_design import are_compared, protocols, total_variance
from mechdesign.mechanisms.request import DesignRequest
from mechdesign.mechanisms.result import Design, TaskUtility
from mechdesign.mechanisms.rules import Rules, check_sensitive
from mechdesign.mechanisms.search import Search
from mechdesign.mechanisms.watchdog import HEURISTICS
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint

TIME_LIMIT = 30.0
"""Seconds of each way for which no limit was given."""


@dataclass(frozen=True, kw_only=True)
class Way:
    """A verified channel of a comparison.

    Attributes
    ----------
    name : str
    kept : float
        I(X;Y) / H(X) of the integers of the channel.
    achieved : Achieved
        Its extreme log-lifts (nats).
    outputs : int
        Number of its outputs.
    seconds : float
        Time of its design.
    """

    name: str
    kept: float
    achieved: Achieved
    outputs: int
    seconds: float


def seconds_of_each(time_limit: float | None) -> float:
    """The time limit of each way, given that of the user."""
    if time_limit is None:
        return TIME_LIMIT
    return time_limit


def row_of_way(way: Way, notion: str, epsilon: float) -> ComparisonRow:
    """A way as a row of `compare`: its name without blanks is the mechanism."""
    return ComparisonRow(
        mechanism=way.name.replace(" ", "-"),
        notion=notion,
        epsilon=epsilon,
        lam=None,
        eps_l=None,
        eps_u=None,
        nmi=way.kept,
        upper_bound_nmi=None,
        max_log_lift=way.achieved.eps_u,
        min_log_lift=0.0 - way.achieved.eps_l,
        satisfied=True,
        repaired=False,
        seconds=way.seconds,
    )


# ----------------------------------------------------------------------------- averages

OPTIMUM = "certified optimum"


@dataclass(frozen=True, kw_only=True)
class AverageWay(Way):
    """One way to keep an average budget, which promises nothing of the log-lifts `achieved`.

    `leakage` is its average leakage, exact and rounded upwards, in the unit of the measure.
    """

    leakage: float


@dataclass(frozen=True, repr=False)
class AverageComparison:
    """The optimum within an average budget, `ways` with it first, and the seconds of all."""

    design: Design
    average: AverageBudget
    ways: tuple[AverageWay, ...]
    seconds: float

    def __repr__(self) -> str:
        parts = [f"{way.name}: kept {about(way.kept)}" for way in self.ways]
        return f"AverageComparison({'; '.join(parts)})"


def compare_average(
    joint: Joint,
    average: Any,
    *,
    restarts: int = 30,
    seed: int = 0,
    gap: float = 1e-4,
    time_limit: float | None = None,
    progress: Steps | None = None,
) -> AverageComparison:
    """Compare the certified optimum within an average budget with greedy merging (Makhdoumi et al.
    2014) and, for the mutual information, with the best of restarts of the convex-concave
    procedure.

    Every channel is verified in exact arithmetic. No channel keeps more than
    ``design.certificate.upper_bound_nmi``, and none of the others more than the optimum.

    Parameters
    ----------
    joint : Joint
    average : mapping
        As in `mechdesign.design`: ``{"mi": "25%"}``.
    restarts : int
        Random channels from which the convex-concave procedure begins; `seed` draws them.
    gap : float
        Of the optimum, as in `mechdesign.design`.
    time_limit : float, optional
        Seconds of each way (default 30).
    progress : callable, optional
        As in `mechdesign.design`.

    Raises
    ------
    InputError
        If an argument is out of range.
    SolverFailure
        If no channel was verified.
    """
    require_type("joint", joint, Joint, "; Joint.from_table makes one")
    check_sensitive(joint)
    _require_whole("restarts", restarts, 1)
    _require_whole("seed", seed, 0)
    budgets = averages_of(average, joint)
    if len(budgets) != 1:
        raise InputError(
            "compare takes one average budget: the local methods of the privacy funnel know one"
        )
    (budget,) = budgets
    limit = seconds_of_each(time_limit)
    # Made first: it refuses options out of range before anything is computed.
    search = Search(gap=gap, time_limit=limit, progress=progress)
    started = time.process_time()
    local: list[Baseline] = []
    for name in baselines_for(budget.measure):
        channel = baseline(
            name, joint, budget, time_limit=limit, restarts=restarts, seed=seed
        )
        local.append(channel)
    # The optimum has a time limit of its own, which begins here.
    design = for_average(
        Rules(joint, NO_PROMISE),
        average,
        search,
        time.process_time(),
        # No promise on single lifts goes with the average budget.
        alone=True,
        start=[channel.points for channel in local],
    )
    # The budget as before, now with the exact leakage of the channel's integers.
    (verified,) = design.channel.record.averages
    ways = [_way_of_design(design, verified)]
    for channel in local:
        ways.append(_way_of_baseline(channel))
    seconds = time.process_time() - started
    return AverageComparison(design, verified, tuple(ways), seconds)


def _require_whole(name: str, value: Any, least: int) -> None:
    """Raise InputError unless an argument is a whole number of at least `least`."""
    if not (number(name, value, "that is whole") >= least and value == int(value)):
        raise InputError(f"{name} ({value!r}) must be a whole number, at least {least}")


def _way_of_design(design: Design, average: AverageBudget) -> AverageWay:
    """The optimum; `average` is its budget with the leakage that was verified."""
    assert average.achieved is not None
    return AverageWay(
        name=OPTIMUM,
        kept=design.nmi,
        leakage=average.achieved,
        achieved=design.achieved,
        outputs=design.outputs,
        seconds=design.seconds,
    )


def _way_of_baseline(local: Baseline) -> AverageWay:
    """The channel of a local method."""
    return AverageWay(
        name=local.name,
        kept=local.worth.nmi,
        leakage=local.leakage,
        achieved=local.rounded.audit.achieved,
        outputs=len(local.rounded.channel.outputs),
        seconds=local.seconds,
    )


def average_rows(comparison: AverageComparison) -> list[ComparisonRow]:
    """The ways as rows, whose notion is the measure, and whose figure is their average."""
    rows: list[ComparisonRow] = []
    for way in comparison.ways:
        row = row_of_way(way, comparison.average.measure, comparison.average.budget)
        if way.name == OPTIMUM:
            row = replace(row, mechanism=OPTIMAL)
        bound = comparison.design.certificate.upper_bound_nmi
        rows.append(replace(row, upper_bound_nmi=bound, figure=way.leakage))
    return rows


# ----------------------------------------------------------------------------- purposes

MADE_FOR_IT = "made for it"
"""The name of the way whose objective is the purpose."""


@dataclass(frozen=True, kw_only=True)
class PurposeWay(Way):
    """One channel that keeps the promise; its name is `MADE_FOR_IT`, or that of the mechanism.

    `figure` is its worth for the purpose. For queries it is N times the total variance, infinite
    where the channel does not tell a query. For a task it is I(T;Y) / I(T;X).
    """

    figure: float


@dataclass(frozen=True, repr=False)
class PurposeComparison:
    """The design made for the purpose, `ways` with it first, and the seconds of all.

    `remarks` say which protocols are not among them, and why.
    """

    design: Design
    ways: tuple[PurposeWay, ...]
    seconds: float
    remarks: tuple[str, ...] = ()

    def __repr__(self) -> str:
        parts = [f"{way.name}: {about(way.figure)}" for way in self.ways]
        return f"PurposeComparison({'; '.join(parts)})"

    @property
    def is_task(self) -> bool:
        """Whether the purpose is a task, so that more is better."""
        return isinstance(self.design.purpose, TaskUtility)


def purpose_of(objectives: Any) -> str | Queries | None:
    """The purpose among the objectives of a comparison, which is the only one; None without one."""
    if isinstance(objectives, str | Queries):
        objectives = (objectives,)
    for objective in objectives or ():
        if isinstance(objective, Queries) or objective in PURPOSES:
            if len(objectives) > 1:
                raise InputError(
                    "a comparison for a purpose has one objective: leave the others out"
                )
            return objective
    return None


class PurposeRequest(NamedTuple):
    """What a comparison for a purpose is about at every budget, as `compare_purpose` takes it."""

    joint: Joint
    purpose: str | Queries | None
    task: Joint | None
    gap: float
    time_limit: float | None

    def compared(self, notion: Notion) -> PurposeComparison:
        """The ways at one budget."""
        if self.purpose is None:
            raise InputError(
                "a task is for the objective task: give objectives=['task'] too"
            )
        return compare_purpose(
            self.joint,
            notion,
            self.purpose,
            task=self.task,
            gap=self.gap,
            time_limit=self.time_limit,
        )


def compare_purpose(
    joint: Joint,
    notion: Notion,
    objective: str | Queries,
    *,
    task: Joint | None = None,
    gap: float = 1e-4,
    time_limit: float | None = None,
    progress: Steps | None = None,
) -> PurposeComparison:
    """Compare the channel made for queries or a task with the optimum for information and with the
    heuristics, at the same promise; of a column itself under LDP also with known protocols.

    Every channel is verified in exact arithmetic. No channel that keeps the promise is better for
    the purpose than the bound in ``design.purpose``.

    Parameters
    ----------
    joint, notion, objective, task
        As in `mechdesign.design`; the objective is "frequencies", "prefix", "ranges", `md.Queries`
        or "task".
    gap : float
        As in `mechdesign.design`.
    time_limit : float, optional
        Seconds of each way (default 30).
    progress : callable, optional
        As in `mechdesign.design`.

    Raises
    ------
    InputError
        If the objective is no purpose, or an argument does not fit the table.
    SolverFailure
        If no channel was verified.
    """
    require_type("joint", joint, Joint, "; Joint.from_table makes one")
    if not isinstance(objective, Queries) and objective not in PURPOSES:
        raise InputError(
            f"a comparison for a purpose needs one of {', '.join(PURPOSES)}, or queries"
        )
    limit = seconds_of_each(time_limit)
    started = time.process_time()
    request = DesignRequest(joint, notion, gap=gap, time_limit=limit, progress=progress)
    design = design_requested(replace(request, objective=objective, task=task))
    ways = [_way(MADE_FOR_IT, design, joint, objective, task)]
    # These know nothing of the purpose, and are measured by it all the same.
    for mechanism in (OPTIMAL, *HEURISTICS):
        informed = design_requested(replace(request, mechanism=mechanism))
        ways.append(_way(mechanism, informed, joint, objective, task))
    remarks: list[str] = []
    if are_compared(joint, notion):
        known, remarks = protocols(joint, notion, objective)
        for protocol in known:
            channel = protocol.rounded.channel
            way = PurposeWay(
                name=protocol.name,
                figure=_figure(channel, joint, objective, task),
                kept=utility(channel, joint).nmi,
                achieved=protocol.rounded.audit.achieved,
                outputs=len(channel.outputs),
                seconds=protocol.seconds,
            )
            ways.append(way)
    seconds = time.process_time() - started
    return PurposeComparison(design, tuple(ways), seconds, tuple(remarks))


def _way(
    name: str,
    design: Design,
    joint: Joint,
    objective: str | Queries,
    task: Joint | None,
) -> PurposeWay:
    """A design as a way, with its figure for the purpose."""
    return PurposeWay(
        name=name,
        figure=_figure(design.channel, joint, objective, task),
        kept=design.nmi,
        achieved=design.achieved,
        outputs=design.outputs,
        seconds=design.seconds,
    )


def _figure(
    channel: Channel, joint: Joint, objective: str | Queries, task: Joint | None
) -> float:
    """What the channel is worth for the purpose."""
    if task is not None:
        return task_figures(channel, joint, task_joint(task, joint)).kept
    queries, _ = queries_of(objective, joint)
    return total_variance(channel, queries, joint)


def purpose_rows(comparison: PurposeComparison, case: Case) -> list[ComparisonRow]:
    """The ways at the budget of a case as rows with their figure; the one that is made for the
    purpose has its name.
    """
    eps_l, eps_u = case.promise().sides
    purpose = comparison.design.purpose
    rows: list[ComparisonRow] = []
    for way in comparison.ways:
        row = row_of_way(way, case.notion, case.epsilon)
        if way.name == MADE_FOR_IT and purpose is not None:
            row = replace(row, mechanism=purpose.name)
        rows.append(
            replace(row, lam=case.lam, eps_l=eps_l, eps_u=eps_u, figure=way.figure)
        )
    return rows
