"""Comparisons by a figure: ways to keep an average, and ways to serve a purpose, as rows.

Each sets several channels beside each other, and every channel becomes a row of `compare` with its
figure (`_row`).

*Averages*: the certified optimum beside the local methods of the privacy funnel. `average_rows`
works in this order:

1. `baseline` runs the local methods: greedy merging and, for the mutual information, the
   convex-concave procedure from `restarts` random channels.
2. `for_average` searches for the optimum. The points of all local channels are its start, so that
   it never keeps less than they do.
3. Each channel, rounded to integers and verified, becomes a row. Its figure is its average.

With the budget {"mi": "25%"} the leakage I(S;Y) may be a quarter of I(S;X), here 0.02603 nats: ::

    mechanism         nmi     upper_bound_nmi  figure   outputs
    optimal           0.6881           0.6883  0.02603        4
    greedy-merging    0.5991           0.6883  0.00551        2
    best-of-restarts  0.6849           0.6883  0.02524        3

*Purposes*: the channel made for queries or a task beside the channels made for information.
`PurposeRequest.rows` designs a channel whose objective is the purpose. Then it designs the optimum
for information and the channel of each heuristic at the same promise, none of which knows the
purpose. `_figure` measures all of them by the purpose:

- For queries it is N times the total variance of their unbiased estimates from N released records;
  less is better. A channel from which a query cannot be estimated has infinity.
- For a task T it is I(T;Y) / I(T;X), the share of the information about it that is kept; more is
  better.

Where the column itself is protected by local differential privacy, its known protocols stand beside
these (`mechanisms.query_design`).

For the frequencies of three symbols at ALIP with eps_l = eps_u = 0.25: ::

    mechanism         figure  nmi
    frequencies       1.930   0.5037
    optimal           2.397   0.6441      (more information, and yet worse for the purpose)
    complete-merging  inf     0.5991      (merged symbols cannot be told apart)
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mechdesign.auditing.measures import utility
from mechdesign.auditing.verdict import Achieved
from mechdesign.channel.channel import Channel
from mechdesign.comparison.rows import Case, ComparisonRow
from mechdesign.core.errors import InputError
from mechdesign.core.wording import at_least
from mechdesign.mechanisms.average_budgets import NO_PROMISE, averages_of
from mechdesign.mechanisms.averages import (
    Baseline,
    baseline,
    baselines_for,
    for_average,
)
from mechdesign.mechanisms.designing import design_requested
from mechdesign.mechanisms.heuristics import HEURISTICS
from mechdesign.mechanisms.optimal import OPTIMAL
from mechdesign.mechanisms.purposes import task_figures, task_joint
from mechdesign.mechanisms.queries import PURPOSES, Queries, queries_of
from mechdesign.mechanisms.query_design import are_compared, protocols, total_variance
from mechdesign.mechanisms.request import DesignRequest
from mechdesign.mechanisms.result import Design, QueryAccuracy, TaskUtility
from mechdesign.mechanisms.rules import Rules, check_sensitive
from mechdesign.mechanisms.search_options import Search
from mechdesign.tables.joint import Joint

TIME_LIMIT = 30.0
"""Seconds of each way for which no limit was given."""


def _row(
    case: Case,
    sides: tuple[float | None, float | None],
    *,
    nmi: float,
    bound: float | None,
    achieved: Achieved,
    outputs: int,
    seconds: float,
    figure: float,
) -> ComparisonRow:
    """The row of a verified channel with its figure; `sides` are the budgets eps_l and eps_u."""
    eps_l, eps_u = sides
    return ComparisonRow(
        # A mechanism has a name without blanks.
        mechanism=case.mechanism.replace(" ", "-"),
        notion=case.notion,
        epsilon=case.epsilon,
        lam=case.lam,
        eps_l=eps_l,
        eps_u=eps_u,
        nmi=nmi,
        upper_bound_nmi=bound,
        max_log_lift=achieved.eps_u,
        min_log_lift=0.0 - achieved.eps_l,
        satisfied=True,
        repaired=False,
        seconds=seconds,
        figure=figure,
        outputs=outputs,
    )


# ----------------------------------------------------------------------------- averages


def average_rows(
    joint: Joint,
    average: Mapping[str, Any],
    *,
    gap: float,
    time_limit: float | None,
    restarts: int = 30,
) -> tuple[list[ComparisonRow], tuple[str, ...]]:
    """The certified optimum within an average budget, greedy merging (Makhdoumi et al. 2014) and,
    for the mutual information, the best of restarts of the convex-concave procedure.

    Parameters
    ----------
    joint, average, gap
        As in `mechdesign.compare`.
    time_limit : float or None
        Seconds of each way (default 30).
    restarts : int
        Random channels from which the convex-concave procedure begins.

    Returns
    -------
    list of ComparisonRow, tuple of str
        Their notion is the measure, and their figure the average leakage, exact and rounded
        upwards. The optimum comes first, and its bound holds for all. Then the messages of its
        search.
    """
    check_sensitive(joint)
    budgets = averages_of(average, joint)
    if len(budgets) != 1:
        raise InputError(
            "compare takes one average budget: the local methods of the privacy funnel know one"
        )
    (budget,) = budgets
    limit = TIME_LIMIT if time_limit is None else time_limit
    # Made first: it refuses options out of range before anything is computed.
    search = Search(gap=gap, time_limit=limit)
    local: list[Baseline] = []
    for name in baselines_for(budget.measure):
        local.append(
            baseline(name, joint, budget, time_limit=limit, restarts=restarts, seed=0)
        )
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
    assert verified.achieved is not None
    case = Case(OPTIMAL, verified.measure, verified.budget, None)
    bound = design.certificate.upper_bound_nmi
    rows = [
        _row(
            case,
            (None, None),
            nmi=design.nmi,
            bound=bound,
            achieved=design.achieved,
            outputs=design.outputs,
            seconds=design.seconds,
            figure=verified.achieved,
        )
    ]
    for channel in local:
        rows.append(
            _row(
                replace(case, mechanism=channel.name),
                (None, None),
                nmi=channel.worth.nmi,
                bound=bound,
                achieved=channel.rounded.audit.achieved,
                outputs=len(channel.rounded.channel.outputs),
                seconds=channel.seconds,
                figure=channel.leakage,
            )
        )
    return rows, tuple(design.messages)


# ----------------------------------------------------------------------------- purposes


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


@dataclass(frozen=True)
class PurposeRequest:
    """What a comparison for a purpose is about at every budget.

    The arguments are those of `mechdesign.compare`; `time_limit` is in seconds of each way (default
    30).
    """

    joint: Joint
    purpose: str | Queries | None
    task: Joint | None
    gap: float
    time_limit: float | None
    budgets: Mapping[str, tuple[float, float]] | None

    def rows(self, case: Case) -> tuple[list[ComparisonRow], tuple[str, ...]]:
        """The channel made for the purpose, the optimum for information and the heuristics at one
        budget; of a column itself under LDP also known protocols.

        Returns
        -------
        list of ComparisonRow, tuple of str
            With their figure for the purpose, and the bound on it that is proven for every channel;
            the one that was made for it comes first. Then messages.
        """
        if self.purpose is None:
            raise InputError(
                "a task is for the objective task: give objectives=['task'] too"
            )
        notion = case.promise()
        request = DesignRequest(
            self.joint,
            notion,
            gap=self.gap,
            time_limit=TIME_LIMIT if self.time_limit is None else self.time_limit,
            budgets=self.budgets,
        )
        design = design_requested(
            replace(request, objective=self.purpose, task=self.task)
        )
        purpose = design.purpose
        assert isinstance(purpose, QueryAccuracy | TaskUtility)
        rows = [self._row_of(replace(case, mechanism=purpose.name), design)]
        # These know nothing of the purpose, and are measured by it all the same.
        for mechanism in (OPTIMAL, *HEURISTICS):
            informed = design_requested(replace(request, mechanism=mechanism))
            rows.append(self._row_of(replace(case, mechanism=mechanism), informed))
        remarks: list[str] = []
        if not self.budgets and are_compared(self.joint, notion):
            known, remarks = protocols(self.joint, notion, self.purpose)
            for protocol in known:
                channel = protocol.rounded.channel
                rows.append(
                    _row(
                        replace(case, mechanism=protocol.name),
                        notion.sides,
                        nmi=utility(channel, self.joint).nmi,
                        bound=None,
                        achieved=protocol.rounded.audit.achieved,
                        outputs=len(channel.outputs),
                        seconds=protocol.seconds,
                        figure=self._figure(channel),
                    )
                )
        if isinstance(purpose, TaskUtility):
            bound = purpose.task_upper_bound
        else:
            bound = purpose.variance_lower_bound
            remarks.append(
                f"the released column itself has the variance {at_least(purpose.noise_free)}"
            )
        rows = [replace(row, figure_bound=bound) for row in rows]
        return rows, (*design.messages, *remarks)

    def _row_of(self, case: Case, design: Design) -> ComparisonRow:
        """The row of a design."""
        return _row(
            case,
            case.promise().sides,
            nmi=design.nmi,
            bound=design.certificate.upper_bound_nmi,
            achieved=design.achieved,
            outputs=design.outputs,
            seconds=design.seconds,
            figure=self._figure(design.channel),
        )

    def _figure(self, channel: Channel) -> float:
        """What the channel is worth for the purpose."""
        if self.task is not None:
            task = task_joint(self.task, self.joint)
            return task_figures(channel, self.joint, task).kept
        assert self.purpose is not None
        queries, _ = queries_of(self.purpose, self.joint)
        return total_variance(channel, queries, self.joint)
