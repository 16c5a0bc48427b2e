"""Row channels: the tree of `row_growth`, verified leaf by leaf, with a bound on every other
mechanism.

`design_rows` counts the distinct rows, looks for the best split of the budgets, grows the tree, has
it audited exactly, and bounds what any mechanism could keep. A tree that fails the audit is grown
again with a distance from all bounds; nothing is returned that was not verified.
docs/explanation/rows-theory.md has definitions and proofs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mechdesign
from mechdesign.auditing.demands import own_budgets
from mechdesign.auditing.rows import RowAudit, audit_rows
from mechdesign.channel.record import SymbolBudgets
from mechdesign.channel.row_channel import RowChannel, RowRecord
from mechdesign.core.arguments import number
from mechdesign.core.errors import InputError, NotPrivate, SolverFailure, require_type
from mechdesign.core.progress import Step, Steps
from mechdesign.core.wording import about, quoted
from mechdesign.mechanisms.box_design import BoxRequest, design_boxes
from mechdesign.mechanisms.box_result import BoxDesign
from mechdesign.mechanisms.result import TaskUtility
from mechdesign.mechanisms.row_bound import RowBound, upper_bound
from mechdesign.mechanisms.row_budgets import (
    TOTAL,
    Stratum,
    check_promise,
    limits_of,
    strata_of,
)
from mechdesign.mechanisms.row_growth import Grown, RowGrowth, entropy
from mechdesign.mechanisms.row_node import INFORMATION, OBJECTIVES, TRUTH
from mechdesign.mechanisms.row_result import LevelSummary, RowDesign
from mechdesign.mechanisms.row_splits import (
    COARSE_MASS,
    MOST_ORDERED,
    Trial,
    best_split,
    cumulative,
    own_shares,
)
from mechdesign.mechanisms.row_task import (
    RowTask,
    check_task_columns,
    row_task,
    task_utility,
)
from mechdesign.notions import Notion, to_record
from mechdesign.tables.joint import Joint
from mechdesign.tables.records import Groups, Records, checked_groups
from mechdesign.tables.tally import Missing

TIME_LIMIT = 30.0
"""Seconds that a design takes at most unless told otherwise."""

SEARCH_SHARE = 0.2
"""Share of the time after which the split of the budgets is settled."""

GROWTH_SHARE = 0.7
"""Share of the time after which the tree stops growing."""

BOUND_SHARE = 0.88
"""Share of the time after which the bound is settled; the rest is for the exact audits."""

STOPPING_FROM = 4
"""Levels from which prefixes of little mass are stopped unless told otherwise."""

LEAST_MASS = 2e-5
"""Mass below which they are stopped: at most 50,000 nodes a level."""

SLACKS = (0.0, 1e-7, 1e-5, 1e-3)
"""Distances from the bounds tried in turn until the exact audit passes; the first is enough unless
sums of doubles missed more than the margin of the nodes."""

NEARLY_ALL = 0.999
"""Kept share from which a bound of 1 says all that there is to say."""

GIVEN = "given"
BEST = "best"

TASK = "task"
"""The objective of a release that tells of another column."""


@dataclass(frozen=True)
class RowRequest:
    """What is asked of a row channel; `design_rows` describes the fields."""

    notion: Notion
    given: int = 0
    promise: str = TOTAL
    objective: str = TRUTH
    order: str = GIVEN
    least_mass: float | None = None
    time_limit: float = TIME_LIMIT
    progress: Steps | None = None
    task: RowTask | None = None

    def __post_init__(self) -> None:
        require_type("notion", self.notion, Notion, "; write one, as in LIP(0.5)")
        limits_of(self.notion)
        check_promise(self.promise)
        if self.objective not in OBJECTIVES:
            raise InputError(
                f"objective ({quoted(self.objective)}) must be truth, information or task for a "
                "release of rows"
            )
        if self.order not in (GIVEN, BEST):
            raise InputError(f"order ({quoted(self.order)}) must be given or best")
        if not self.time_limit > 0.0:
            raise InputError(
                f"time_limit ({self.time_limit!r}) must be a number of seconds above 0"
            )
        if self.least_mass is not None and not 0.0 <= self.least_mass < 1.0:
            raise InputError(
                f"least_mass ({self.least_mass!r}) must be a share of the records in [0, 1)"
            )


def design_rows(
    table: Any,
    *,
    sensitive: str | Sequence[str],
    release: Groups,
    notion: Notion,
    given: str | Sequence[str] = (),
    promise: str = TOTAL,
    objective: str = TRUTH,
    order: str = GIVEN,
    least_mass: float | None = None,
    bins: Any = None,
    weight: str | None = None,
    missing: Missing = "refuse",
    time_limit: float | None = None,
    confidence: float | None = None,
    cells: int | None = None,
    rare: int | None = None,
    fill: bool = False,
    slice_seed: int | None = None,
    task: Any = None,
    progress: Steps | None = None,
) -> RowDesign | BoxDesign:
    """Compute a channel that releases several columns of a record together, proven private in exact
    arithmetic.

    Parameters
    ----------
    table : frame or Joint
        A pandas, polars or pyarrow table (or a lazy one), or a joint table whose useful columns are
        those of `given` and `release`, in any order.
    sensitive : str or sequence of str
        The protected column; several are crossed.
    release : sequence of str or of tuples of str
        The levels in their order; a tuple crosses its columns in one level.
    notion : Notion
        A notion on single lifts: ALIP, LIP, LDP, MaxLift or MinLift, also with budgets of single
        symbols.
    given : str or sequence of str
        Columns that are released as they are.
    promise : {"total", "relative"}
        Whether lifts are measured against P(s) or, with given columns, against P(s|k).
    objective : {"truth", "information", "task"}
        Own symbols and most cells unchanged; or free outputs and most information, about the rows
        or about a task.
    order : {"given", "best"}
        Whether other orders of up to five levels are tried.
    least_mass : float, optional
        Prefixes of less mass release the rest as a constant; by default 0 up to three levels, then
        2e-5.
    bins : mapping of column to bins, optional
        As for `Joint.binned`.
    weight, missing : as for `Joint.from_table`
    time_limit : float, optional
        Seconds, 30 by default. What is not grown by then is released as a constant.
    confidence : float, optional
        Level at which the promise holds for the population (`mechanisms.box_design`): rows are
        released as boxes of rows, learned on a slice of the records. The result is a `BoxDesign`,
        its promise relative to the given columns.
    cells : int, optional
        With confidence: the number of boxes (of each stratum); by default the slice chooses.
    rare : int, optional
        With confidence: sensitive values with fewer records than this (in a stratum) are promised
        together, as one value.
    fill : bool
        With confidence: release symbols drawn inside the released box, in its place.
    slice_seed : int, optional
        With confidence: repeats the draw of the slice. It must be chosen without looking at the
        records; by default it is new.
    task : str or Joint, optional
        With the objective task: the column that the released rows should tell of, which is not
        released itself; or, where `table` is a joint table, that of the task column and the same
        useful columns.
    progress : callable, optional
        Called with each `Step`.

    Raises
    ------
    InputError
        If a column is named twice or is not there, the notion bounds averages, or the table is too
        large.
    NotPrivate
        If the given columns alone break a total promise.
    SolverFailure
        If no tree passed the exact audit.
    """
    started = time.perf_counter()
    if confidence is None:
        _refuse_without_confidence(cells, rare, fill, slice_seed)
    levels = checked_groups(release)
    given_columns = _column_names(given)
    groups = checked_groups([*given_columns, *levels])
    sensitive_columns = _column_names(sensitive)
    for name in sensitive_columns:
        if any(name in group for group in groups):
            raise InputError(
                f"the sensitive column {quoted(name)} cannot be released or given; leave it out"
            )
    seconds = TIME_LIMIT
    if time_limit is not None:
        seconds = number("time_limit", time_limit, "of seconds")
    if isinstance(table, Joint):
        _check_sensitive(table, sensitive_columns)
        records = Records.from_joint(table, groups, bins=bins)
    else:
        records = Records.from_table(
            table,
            sensitive=sensitive_columns,
            groups=groups,
            weight=weight,
            missing=missing,
            bins=bins,
        )
    of_task: RowTask | None = None
    if objective == TASK or task is not None:
        counted = _task_records(
            table,
            task,
            groups,
            objective=objective,
            sensitive=sensitive_columns,
            confidence=confidence,
            weight=weight,
            missing=missing,
            bins=bins,
        )
        of_task = row_task(records, counted, len(given_columns))
        # Outputs are free; only what a node keeps most of is another thing.
        objective = INFORMATION
    if confidence is not None:
        _check_for_boxes(promise, objective, order, least_mass, len(given_columns))
        limits_of(notion)
        boxes = BoxRequest(
            notion=notion,
            level=confidence,
            given=len(given_columns),
            cells=cells,
            rare=rare or 0,
            fill=fill,
            time_limit=seconds,
            seed=slice_seed,
            progress=progress,
        )
        return design_boxes(records, boxes)
    request = RowRequest(
        notion=notion,
        given=len(given_columns),
        promise=promise,
        objective=objective,
        order=order,
        least_mass=least_mass,
        time_limit=seconds,
        progress=progress,
        task=of_task,
    )
    return design_records(records, request, started=started)


def _task_records(
    table: Any,
    task: Any,
    groups: Sequence[tuple[str, ...]],
    *,
    objective: str,
    sensitive: tuple[str, ...],
    confidence: float | None,
    weight: str | None,
    missing: Missing,
    bins: Any,
) -> Records:
    """The rows counted with the task in the place of the sensitive column.

    Raises
    ------
    InputError
        If there is no task, or it cannot be one.
    """
    if objective != TASK:
        raise InputError(
            "task names the column that the release should tell of: it needs the objective task"
        )
    if confidence is not None:
        raise InputError(
            "tasks are designed for the table, not yet with a confidence level: leave one of them "
            "out"
        )
    if task is None:
        raise InputError(
            "the objective task needs the column that the release should tell of (--task COL)"
        )
    names = task.sensitive.columns if isinstance(task, Joint) else _column_names(task)
    check_task_columns(names, sensitive, groups)
    if isinstance(task, Joint):
        return Records.from_joint(task, groups, bins=bins)
    if isinstance(table, Joint):
        raise InputError(
            "with a joint table, task must be a Joint of the task column and the same useful "
            "columns"
        )
    return Records.from_table(
        table,
        sensitive=names,
        groups=groups,
        weight=weight,
        missing=missing,
        bins=bins,
    )


def _refuse_without_confidence(
    cells: int | None, rare: int | None, fill: bool, slice_seed: int | None
) -> None:
    """Refuse options of the promise for the population."""
    if cells is not None or rare is not None or fill or slice_seed is not None:
        raise InputError(
            "cells, rare, fill and slice_seed belong to the promise about the population: give a "
            "confidence level too (--confidence 0.95)"
        )


def _check_for_boxes(
    promise: str, objective: str, order: str, least_mass: float | None, given: int
) -> None:
    """Refuse options that a release of boxes does not have."""
    if given and promise == TOTAL:
        raise InputError(
            "with a confidence level the promise is relative to the given columns: say so "
            "(--promise relative), or release them as levels in place of giving them"
        )
    check_promise(promise)
    if order != GIVEN or least_mass is not None:
        raise InputError(
            "with a confidence level all columns are released together: leave order and least mass "
            "out"
        )
    if objective not in OBJECTIVES:
        raise InputError(
            f"objective ({quoted(objective)}) must be truth or information for a release of rows"
        )


def _column_names(columns: str | Sequence[str]) -> tuple[str, ...]:
    """One or several columns as a tuple."""
    if isinstance(columns, str):
        return (columns,)
    return tuple(columns)


def _check_sensitive(joint: Joint, columns: tuple[str, ...]) -> None:
    """Refuse a table whose sensitive column is another one."""
    if joint.sensitive.columns != columns:
        raise InputError(
            f"the sensitive column of the table is {quoted(','.join(joint.sensitive.columns))}, "
            f"not {quoted(','.join(columns))}"
        )


def design_records(
    records: Records, request: RowRequest, *, started: float | None = None
) -> RowDesign:
    """The design for counted rows, whose first `request.given` groups are released as they are; see
    `design_rows`.
    """
    begun = started
    if begun is None:
        begun = time.perf_counter()
    _check_records(records)
    strata = strata_of(records, request.given, request.notion, request.promise)
    search = RowSearch(records, request, strata, begun)
    trial = search.best_trial()
    grown, channel, audit = search.verified(trial)
    purpose = search.task_utility(grown)
    bound = upper_bound(
        search.records,
        request.given,
        strata,
        request.notion,
        request.promise,
        end=begun + BOUND_SHARE * request.time_limit,
    )
    return search.finished(trial, grown, channel, audit, bound, purpose)


def _check_records(records: Records) -> None:
    if len(records.sensitive) == 1:
        raise InputError(
            f"the sensitive column {quoted(','.join(records.sensitive.columns))} has a "
            "single symbol: there is nothing to protect"
        )
    if records.sensitive.protects_columns:
        raise InputError(
            "protect-each is not built for a release of rows: protect one column, or their "
            "combinations"
        )


class RowSearch:
    """One request on one table: trials of splits, the final tree, its verdict, and the design."""

    def __init__(
        self,
        records: Records,
        request: RowRequest,
        strata: Sequence[Stratum],
        begun: float,
    ) -> None:
        self.records = records
        self.request = request
        self.strata = strata
        self.begun = begun
        self.count = len(records.groups) - request.given
        self.entropy = conditional_entropy(records, request.given)
        self._growths: dict[tuple[int, ...], RowGrowth] = {}
        self._trials = 0
        # The best coarse tree, which is the answer where no better one is grown in time.
        self._coarse: Grown | None = None
        self._coarse_value = -math.inf

    def end(self, share: float) -> float:
        """When a share of the time is over, on the clock of `time.perf_counter`."""
        return self.begun + share * self.request.time_limit

    @property
    def least_mass(self) -> float:
        """The mass below which prefixes stop."""
        if self.request.least_mass is not None:
            return self.request.least_mass
        if self.count >= STOPPING_FROM:
            return LEAST_MASS
        return 0.0

    def growth(self, order: tuple[int, ...]) -> RowGrowth:
        """The grower for an order of the levels."""
        if order not in self._growths:
            request = self.request
            self._growths[order] = RowGrowth(
                self.records,
                request.given,
                self.strata,
                request.objective,
                order,
                request.task,
            )
        return self._growths[order]

    def value_of(self, grown: Grown) -> float:
        """What a tree is worth: the kept share, of the task where there is one, and with the
        objective truth the mean share of unchanged cells.
        """
        task = self.request.task
        if task is not None:
            return math.fsum(grown.task) / task.most
        kept = 0.0
        if self.entropy > 0.0:
            kept = math.fsum(grown.information) / self.entropy
        if grown.truth is None:
            return kept
        return kept + math.fsum(grown.truth.values()) / len(grown.truth)

    def best_trial(self) -> Trial:
        """The split and the order of the levels, by coarse trees."""
        coarse = self.least_mass
        if self.count > 2:
            # Up to two levels have few prefixes: their trees are fast without stopping any.
            coarse = max(coarse, COARSE_MASS)
        end = self.end(SEARCH_SHARE)

        def value(
            order: tuple[int, ...],
            split: tuple[float, ...],
            own: tuple[float, ...] = (),
        ) -> float:
            grown = self.growth(order).grow(
                cumulative(split), own=own, least_mass=coarse, end=end
            )
            self._trials += 1
            worth = self.value_of(grown)
            if worth > self._coarse_value:
                self._coarse = grown
                self._coarse_value = worth
            if self.request.progress is not None:
                figures = {"trial": self._trials, "value": worth}
                self.request.progress(
                    Step(f"split {self._trials}: value {worth:.4g}", figures)
                )
            return worth

        tries_orders = self.request.order == BEST and 1 < self.count <= MOST_ORDERED
        best = best_split(value, self.count, orders=tries_orders, end=end)
        if self.count != 2 or self.request.objective != TRUTH:
            return best
        masses = self._first_masses(best.order)
        return own_shares(
            lambda own: value(best.order, best.split, own),
            best,
            np.argsort(-masses).tolist(),
            len(masses),
            end=end,
        )

    def _first_masses(self, order: tuple[int, ...]) -> NDArray[np.float64]:
        """The masses of the symbols of the first level."""
        place = self.request.given + order[0]
        codes = self.records.codes[:, place]
        size = len(self.records.groups[place])
        return np.bincount(codes, self.records.masses, size).astype(np.float64)

    def verified(self, trial: Trial) -> tuple[Grown, RowChannel, RowAudit]:
        """The final tree, once the exact audit passes it."""
        worst = ""
        for slack in SLACKS:
            grown = self._final(trial, slack)
            channel = self.channel_of(grown, trial)
            audit = audit_rows(channel)
            if audit.satisfied:
                return grown, channel, audit
            worst = f"{quoted(audit.worst.sensitive)}, lift {audit.worst.lift:.17g}"
        if self.request.given:
            raise NotPrivate(
                "the given columns use up the promise to the last digit: release them "
                "as levels in place of giving them (--release), or promise relative "
                "to them (--promise relative)"
            )
        raise SolverFailure(
            f"no tree passed the exact audit ({worst}); use a larger budget"
        )

    def _final(self, trial: Trial, slack: float) -> Grown:
        """The tree of the best trial, grown as far as the least mass and the time allow."""
        grown = self.growth(trial.order).grow(
            cumulative(trial.split),
            own=trial.own,
            least_mass=self.least_mass,
            end=self.end(GROWTH_SHARE),
            slack=slack,
        )
        coarse = self._coarse
        if coarse is None or slack or self.value_of(grown) >= self._coarse_value:
            return grown
        return replace(coarse, in_time=False)

    def channel_of(self, grown: Grown, trial: Trial) -> RowChannel:
        """The channel of a tree, with its table in the order of the levels."""
        request = self.request
        given = self.records.groups[: request.given]
        places = [
            *range(request.given),
            *(request.given + level for level in trial.order),
        ]
        table = replace(
            self.records,
            groups=tuple(self.records.groups[place] for place in places),
            codes=self.records.codes[:, places],
        )
        strata = sorted(
            {tuple(row) for row in table.codes[:, : request.given].tolist()}
        )
        record = RowRecord(
            notion=to_record(request.notion),
            promise=request.promise,
            objective=request.objective,
            budgets=_budgets(self.records, request.notion),
            provenance={"tool": "mechdesign", "version": mechdesign.__version__},
        )
        return RowChannel(
            sensitive=self.records.sensitive,
            given=given,
            strata=tuple(strata),
            levels=table.groups[request.given :],
            labels=grown.labels,
            tree=grown.tree,
            record=record,
            table=table,
        )

    def finished(
        self,
        trial: Trial,
        grown: Grown,
        channel: RowChannel,
        audit: RowAudit,
        bound: RowBound,
        purpose: TaskUtility | None,
    ) -> RowDesign:
        """The design, its figures in the record of the channel."""
        information = math.fsum(grown.information)
        # Sums of rounded logarithms may exceed the entropy by a hair.
        nmi = min(information / self._unit, 1.0)
        upper = max(bound.upper_bound_nmi, nmi)
        utility = {
            "nmi": nmi,
            "mutual_information": information,
            "entropy": self.entropy,
            "truth": grown.truth,
            "stopped": grown.stopped,
        }
        if purpose is not None:
            utility |= {"task": purpose.column, **purpose.figures}
        certificate = {"upper_bound_nmi": upper, "trivial_mass": bound.trivial}
        record = replace(
            channel.record,
            achieved=dict(vars(audit.achieved)),
            utility={
                name: value for name, value in utility.items() if value is not None
            },
            certificate=certificate,
        )
        # Weights are no records, so their sum is no number of them.
        count = None
        if self.records.is_counts:
            count = self.records.total
        return RowDesign(
            channel=replace(channel, record=record),
            audit=audit,
            nmi=nmi,
            upper_bound_nmi=upper,
            entropy=self.entropy,
            truth=grown.truth,
            levels=self._levels(trial, grown, channel, audit),
            stopped=grown.stopped,
            records=count,
            messages=_messages(grown, bound, nmi),
            seconds=time.perf_counter() - self.begun,
            purpose=purpose,
        )

    def task_utility(self, grown: Grown) -> TaskUtility | None:
        """What the tree keeps of the task, with its bound; half of the time of the bounds is for
        it.
        """
        request = self.request
        if request.task is None:
            return None
        now = time.perf_counter()
        return task_utility(
            self.records,
            request.given,
            self.strata,
            request.notion,
            request.promise,
            request.task,
            math.fsum(grown.task),
            end=0.5 * (now + self.end(BOUND_SHARE)),
        )

    @property
    def _unit(self) -> float:
        """The unit of kept shares: H(X | K), or 1 where that is zero and nothing can be kept."""
        if self.entropy > 0.0:
            return self.entropy
        return 1.0

    def _levels(
        self, trial: Trial, grown: Grown, channel: RowChannel, audit: RowAudit
    ) -> tuple[LevelSummary, ...]:
        """What each level keeps and spends."""
        shares = np.array(trial.split) / sum(trial.split)
        levels: list[LevelSummary] = []
        for k, variable in enumerate(channel.levels):
            truth = None
            if grown.truth is not None:
                truth = {name: grown.truth[name] for name in variable.columns}
            levels.append(
                LevelSummary(
                    columns=variable.columns,
                    truth=truth,
                    kept=grown.information[k] / self._unit,
                    spent=audit.spent[k],
                    share=float(shares[k]),
                )
            )
        return tuple(levels)


def conditional_entropy(records: Records, given: int) -> float:
    """H(X | K) in nats of the released columns."""
    return _entropy_of(records, len(records.groups)) - _entropy_of(records, given)


def _entropy_of(records: Records, groups: int) -> float:
    """Entropy of the first so many groups together."""
    if not groups:
        return 0.0
    _, place = np.unique(records.codes[:, :groups], axis=0, return_inverse=True)
    return entropy(np.bincount(place.ravel(), records.masses).astype(np.float64))


def _budgets(records: Records, notion: Notion) -> tuple[SymbolBudgets, ...]:
    if not notion.symbol_budgets:
        return ()
    sums = records.sensitive_counts()
    # `own_budgets` asks a joint table for its sensitive symbols alone.
    useful = records.groups[0].select([0])
    column = Joint(records.sensitive, useful, tuple((count,) for count in sums))
    return own_budgets(column, notion)


def _messages(grown: Grown, bound: RowBound, nmi: float) -> tuple[str, ...]:
    messages: list[str] = []
    if not grown.in_time:
        messages.append(
            "the time limit was met: prefixes that were not reached release the rest as a "
            "constant; allow more seconds"
        )
    if bound.trivial > 0.0 and nmi < NEARLY_ALL:
        messages.append(
            "nothing better than the whole information was proven as a bound for "
            f"{about(100.0 * bound.trivial)} % of the records in time"
        )
    return tuple(messages)
