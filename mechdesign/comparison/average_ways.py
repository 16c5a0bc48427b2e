"""The certified optimum within an average budget beside the local methods of the privacy funnel.

`compare_average` works in this order:

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
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

from mechdesign.channel.record import AverageBudget
from mechdesign.comparison.rows import ComparisonRow
from mechdesign.comparison.ways import Way, row_of_way, seconds_of_each
from mechdesign.core.arguments import number
from mechdesign.core.errors import InputError, require_type
from mechdesign.core.progress import Steps
from mechdesign.core.wording import about
from mechdesign.mechanisms.average_baselines import Baseline, baseline, baselines_for
from mechdesign.mechanisms.average_budgets import NO_PROMISE, averages_of
from mechdesign.mechanisms.averages import for_average
from mechdesign.mechanisms.optimal import OPTIMAL
from mechdesign.mechanisms.result import Design
from mechdesign.mechanisms.rules import Rules, check_sensitive
from mechdesign.mechanisms.search import Search
from mechdesign.tables.joint import Joint

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
