"""The channel made for a purpose, queries or a task, beside the channels made for information.

`compare_purpose` designs a channel whose objective is the purpose. Then it designs the optimum for
information and the channel of each heuristic at the same promise, none of which knows the purpose.
`_figure` measures all of them by the purpose:

- For queries it is N times the total variance of their unbiased estimates from N released records;
  less is better. A channel from which a query cannot be estimated has infinity.
- For a task T it is I(T;Y) / I(T;X), the share of the information about it that is kept; more is
  better.

Where the column itself is protected by local differential privacy, its known protocols stand beside
these (`mechanisms.protocols`).

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
from mechdesign.channel.channel import Channel
from mechdesign.comparison.grid import Case
from mechdesign.comparison.rows import ComparisonRow
from mechdesign.comparison.ways import Way, row_of_way, seconds_of_each
from mechdesign.core.errors import InputError, require_type
from mechdesign.core.progress import Steps
from mechdesign.core.wording import about
from mechdesign.mechanisms.designing import design_requested
from mechdesign.mechanisms.optimal import OPTIMAL
from mechdesign.mechanisms.protocols import are_compared, protocols
from mechdesign.mechanisms.queries import PURPOSES, Queries, queries_of
from mechdesign.mechanisms.query_design import total_variance
from mechdesign.mechanisms.request import DesignRequest
from mechdesign.mechanisms.result import Design, TaskUtility
from mechdesign.mechanisms.task_design import task_figures, task_joint
from mechdesign.mechanisms.watchdog import HEURISTICS
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint

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
