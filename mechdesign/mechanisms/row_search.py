"""The search for a row channel: trials of splits, the tree, its exact audit, and a bound on every
other mechanism.

Coarse trees show how the levels best share the budgets (`row_splits`). The final tree is grown with
the best split and audited exactly. One that fails the audit is grown again with a distance from all
bounds, so that nothing is returned that was not verified. What any mechanism could keep is bounded
last (`row_bound`). docs/explanation/rows-theory.md has definitions and proofs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

import mechdesign
from mechdesign.auditing.demands import own_budgets
from mechdesign.auditing.rows import RowAudit, audit_rows
from mechdesign.channel.record import SymbolBudgets
from mechdesign.channel.row_channel import RowChannel, RowRecord
from mechdesign.core.errors import InputError, NotPrivate, SolverFailure, require_type
from mechdesign.core.progress import Step, Steps
from mechdesign.core.wording import about, quoted
from mechdesign.mechanisms.binning import refuse_identifier
from mechdesign.mechanisms.result import TaskUtility
from mechdesign.mechanisms.row_bound import RowBound, upper_bound
from mechdesign.mechanisms.row_budgets import (
    TOTAL,
    Spending,
    Stratum,
    check_promise,
    limits_of,
    strata_of,
)
from mechdesign.mechanisms.row_growth import Grown, RowGrowth, entropy
from mechdesign.mechanisms.row_node import LARGEST_NODE, OBJECTIVES, TRUTH
from mechdesign.mechanisms.row_result import LevelSummary, RowDesign
from mechdesign.mechanisms.row_splits import (
    COARSE_MASS,
    MOST_ORDERED,
    MOST_OWN,
    Trial,
    best_split,
    own_shares,
)
from mechdesign.mechanisms.row_task import RowTask, task_utility
from mechdesign.notions import Notion, to_record
from mechdesign.tables.joint import Joint
from mechdesign.tables.records import Records

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

LEAST_WEIGHT = 1 / 3
"""What the column with fewest unchanged cells counts for, the mean of all columns having the rest.
With the mean alone, the last columns are changed in the place of the first."""

NEARLY_ALL = 0.999
"""Kept share from which a bound of 1 says all that there is to say."""

GIVEN = "given"
BEST = "best"


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
    allow_identifier: bool = False
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


def design_records(
    records: Records, request: RowRequest, *, started: float | None = None
) -> RowDesign:
    """The design for counted rows, whose first `request.given` groups are released as they are; see
    `design_rows`.
    """
    begun = started
    if begun is None:
        begun = time.perf_counter()
    _check_records(records, request)
    # Proposition 1 of docs/explanation/rows-theory.md: each stratum is a problem of its own.
    strata = strata_of(records, request.given, request.notion, request.promise)
    search = RowSearch(records, request, strata, begun)
    trial = search.best_trial()
    grown, channel, audit = search.verified(trial)
    purpose = search.task_utility(grown)
    # Proposition 3: a tree is a channel for the crossed columns, so their bound holds for it.
    bound = upper_bound(
        search.records,
        request.given,
        strata,
        request.notion,
        request.promise,
        end=begun + BOUND_SHARE * request.time_limit,
    )
    return search.finished(trial, grown, channel, audit, bound, purpose)


def _check_records(records: Records, request: RowRequest) -> None:
    """Refuse a table that no tree is made for."""
    for level in records.groups[request.given :]:
        if records.is_counts and not request.allow_identifier:
            refuse_identifier(level, records.total)
        if request.objective == TRUTH and len(level) > LARGEST_NODE:
            raise InputError(
                f"the level {quoted(','.join(level.columns))} has {len(level):,} symbols, and with "
                f"the objective truth a level may have {LARGEST_NODE:,}: sort numbers into bins "
                "(--bin), cross fewer columns, or take free outputs (--objective information)"
            )
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
    """One request on one table: trials of splits, the final tree, its verdict, and the design.

    `design_records` makes one and calls `best_trial`, `verified`, `task_utility` and `finished`, in
    this order.
    """

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
        objective truth that of unchanged cells, where the column with fewest of them counts for
        more than the others.
        """
        task = self.request.task
        if task is not None:
            return math.fsum(grown.task) / task.most
        kept = 0.0
        if self.entropy > 0.0:
            kept = math.fsum(grown.information) / self.entropy
        if grown.truth is None:
            return kept
        cells = list(grown.truth.values())
        mean = math.fsum(cells) / len(cells)
        return kept + (1.0 - LEAST_WEIGHT) * mean + LEAST_WEIGHT * min(cells)

    def best_trial(self) -> Trial:
        """The order of the levels and what each spends, by coarse trees."""
        if self.count == 1:
            # One level spends everything: there is nothing to try.
            return Trial((0,), (1.0,), math.nan, ((1.0,),))
        # Proposition 2: any shares c_1 <= .. <= c_last = 1 of the budgets keep the promise, so the
        # search is free to try them.
        end = self.end(SEARCH_SHARE)
        tries_orders = self.request.order == BEST and 1 < self.count <= MOST_ORDERED
        best = best_split(self._trial_value, self.count, orders=tries_orders, end=end)
        if self.request.objective != TRUTH or self.count > MOST_OWN:
            return best
        # The last level has nothing below it to save for: it spends all that is left.
        outputs = [self._by_mass(place) for place in best.order[:-1]]
        return own_shares(
            lambda spending: self._trial_value(best.order, spending),
            best,
            outputs,
            end=end,
        )

    def _trial_value(self, order: tuple[int, ...], spending: Spending) -> float:
        """What a coarse tree is worth; the best one is remembered."""
        coarse = self.least_mass
        if self.count > 2:
            # Up to two levels have few prefixes: their trees are fast without stopping any.
            coarse = max(coarse, COARSE_MASS)
        grown = self.growth(order).grow(
            spending, least_mass=coarse, end=self.end(SEARCH_SHARE)
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

    def _by_mass(self, level: int) -> list[int]:
        """The symbols of a level, the most frequent ones first."""
        place = self.request.given + level
        size = len(self.records.groups[place])
        masses = np.bincount(self.records.codes[:, place], self.records.masses, size)
        return np.argsort(-masses, kind="stable").tolist()

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
            trial.spending,
            least_mass=self.least_mass,
            end=self.end(GROWTH_SHARE),
            slack=slack,
        )
        # A coarse tree can keep more where time was over before the final tree was grown. It was
        # grown without slack, so it is no answer to a failed audit.
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
        request = self.request
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
                    constant=self._constant(request.given + trial.order[k]),
                    kept=grown.information[k] / self._unit,
                    spent=audit.spent[k],
                    share=float(shares[k]),
                )
            )
        return tuple(levels)

    def _constant(self, place: int) -> dict[str, float]:
        """The share of the most frequent cell of every column of a group."""
        variable = self.records.groups[place]
        codes = self.records.codes[:, place]
        masses = np.bincount(codes, self.records.masses, len(variable)).tolist()
        largest: dict[str, float] = {}
        for k, name in enumerate(variable.columns):
            cells: dict[str, float] = {}
            for symbol, mass in zip(variable.symbols, masses, strict=True):
                cells[symbol[k]] = cells.get(symbol[k], 0.0) + mass
            largest[name] = min(max(cells.values()), 1.0)
        return largest


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
            "constant, and large levels may change more than they need; allow more seconds"
        )
    if bound.trivial > 0.0 and nmi < NEARLY_ALL:
        messages.append(
            "nothing better than the whole information was proven as a bound for "
            f"{about(100.0 * bound.trivial)} % of the records in time"
        )
    return tuple(messages)
