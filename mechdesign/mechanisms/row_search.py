"""The search for a row channel: trials of splits, the tree, its exact audit, and a bound on every
other mechanism.

`design_records` does, in this order:

1. `RowSearch.best_trial`: coarse trees show how the levels best share the budgets, and in which
   order (`row_splits`);
2. `RowSearch.verified`: the final tree is grown for the best split (`row_growth`) and audited
   exactly. One that fails the audit is grown again with a distance from all bounds, so that nothing
   is returned that was not verified;
3. what any mechanism could keep is bounded (`row_bound`, `row_task_bound`), and the figures are put
   together (`row_figures`).

What a tree is worth in a trial is the kept share of the information, and with own symbols the share
of unchanged cells besides: two thirds of its mean over the columns, and one third of the least of
them. For example, a tree that keeps 0.5 and leaves 0.9 and 0.6 of two columns unchanged is worth
0.5 + 2/3 * 0.75 + 1/3 * 0.6 = 1.2.

Each step ends at a share of the time limit: of 30 seconds the trials have 6, the tree those until
21, the bounds those until 26.4. docs/explanation/rows-theory.md has definitions and proofs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

import mechdesign
from mechdesign.auditing.demands import own_budgets
from mechdesign.auditing.rows import audit_rows
from mechdesign.channel.record import SymbolBudgets
from mechdesign.channel.row_channel import RowChannel
from mechdesign.channel.row_record import RowRecord
from mechdesign.core.errors import NotPrivate, SolverFailure
from mechdesign.core.progress import Step
from mechdesign.core.wording import quoted
from mechdesign.mechanisms.result import TaskUtility
from mechdesign.mechanisms.row_bound import RowProblem, upper_bound
from mechdesign.mechanisms.row_budgets import Spending, Stratum, strata_of
from mechdesign.mechanisms.row_entropy import conditional_entropy
from mechdesign.mechanisms.row_figures import VerifiedTree, finished_design
from mechdesign.mechanisms.row_grown import Grown
from mechdesign.mechanisms.row_growth import RowGrowth
from mechdesign.mechanisms.row_node import TRUTH
from mechdesign.mechanisms.row_request import BEST, RowRequest, check_records
from mechdesign.mechanisms.row_result import RowDesign
from mechdesign.mechanisms.row_splits import (
    COARSE_MASS,
    MOST_ORDERED,
    MOST_OWN,
    Trial,
    best_split,
    own_shares,
)
from mechdesign.mechanisms.row_task_bound import task_utility
from mechdesign.notions import Notion, to_record
from mechdesign.tables.joint import Joint
from mechdesign.tables.records import Records

SEARCH_SHARE = 0.2
"""Share of the time after which the split of the budgets is settled."""

GROWTH_SHARE = 0.7
"""Share of the time after which the tree stops growing."""

BOUND_SHARE = 0.88
"""Share of the time after which the bound is settled; the rest is for the exact audits."""

STOPPING_FROM = 4
"""Levels from which prefixes of little mass are stopped by default."""

LEAST_MASS = 2e-5
"""Mass below which they are stopped: at most 50,000 nodes a level."""

SLACKS = (0.0, 1e-7, 1e-5, 1e-3)
"""Distances from the bounds tried in turn until the exact audit passes; the first is enough unless
sums of doubles missed more than the margin of the nodes."""

LEAST_WEIGHT = 1 / 3
"""What the column with fewest unchanged cells counts for, the mean of all columns having the rest.
With the mean alone, the last columns are changed in the place of the first."""


def design_records(
    records: Records, request: RowRequest, *, started: float | None = None
) -> RowDesign:
    """The design for counted rows, whose first `request.given` groups are released as they are; see
    `design_rows`.
    """
    begun = started
    if begun is None:
        begun = time.perf_counter()
    check_records(records, request)
    # Proposition 1 of docs/explanation/rows-theory.md: each stratum is a problem of its own.
    strata = strata_of(records, request.given, request.notion, request.promise)
    search = RowSearch(records, request, strata, begun)
    tree = search.verified(search.best_trial())
    purpose = search.task_utility(tree.grown)
    # Proposition 3: a tree is a channel for the crossed columns, so their bound holds for it.
    bound = upper_bound(search.problem, strata, end=search.end(BOUND_SHARE))
    return finished_design(
        records, tree, bound, purpose, entropy=search.entropy, begun=begun
    )


class RowSearch:
    """One request on one table: trials of splits, the final tree, its verdict.

    `design_records` makes one and calls `best_trial`, `verified` and `task_utility`, in this order.
    """

    def __init__(
        self,
        records: Records,
        request: RowRequest,
        strata: Sequence[Stratum],
        begun: float,
    ) -> None:
        self._records = records
        self._request = request
        self._strata = strata
        self._begun = begun
        # The number of levels.
        self._count = len(records.groups) - request.given
        self.problem = RowProblem(
            records, request.given, request.notion, request.promise
        )
        self.entropy = conditional_entropy(records, request.given)
        self._growths: dict[tuple[int, ...], RowGrowth] = {}
        self._trials = 0
        # The best coarse tree, which is the answer where no better one is grown in time.
        self._coarse: Grown | None = None
        self._coarse_value = -math.inf

    def end(self, share: float) -> float:
        """When a share of the time is over, on the clock of `time.perf_counter`."""
        return self._begun + share * self._request.time_limit

    def best_trial(self) -> Trial:
        """The order of the levels and what each spends, by coarse trees.

        With own symbols and few levels every output then gets a share of its own.
        """
        if self._count == 1:
            # One level spends everything: there is nothing to try.
            return Trial((0,), (1.0,), math.nan, ((1.0,),))
        # Proposition 2: any shares c_1 <= .. <= c_last = 1 of the budgets keep the promise, so the
        # search is free to try them.
        end = self.end(SEARCH_SHARE)
        tries_orders = self._request.order == BEST and 1 < self._count <= MOST_ORDERED
        best = best_split(self._trial_value, self._count, orders=tries_orders, end=end)
        if self._request.objective != TRUTH or self._count > MOST_OWN:
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
        least_mass = self._least_mass
        if self._count > 2:
            # Up to two levels have few prefixes: their trees are fast without stopping any.
            least_mass = max(least_mass, COARSE_MASS)
        grown = self._growth(order).grow(
            spending, least_mass=least_mass, end=self.end(SEARCH_SHARE)
        )
        self._trials += 1
        worth = self._value_of(grown)
        if worth > self._coarse_value:
            self._coarse = grown
            self._coarse_value = worth
        if self._request.progress is not None:
            figures = {"trial": self._trials, "value": worth}
            self._request.progress(
                Step(f"split {self._trials}: value {worth:.4g}", figures)
            )
        return worth

    def _value_of(self, grown: Grown) -> float:
        """What a tree is worth: the kept share, of the task where there is one, and with the
        objective truth that of unchanged cells, where the column with fewest of them counts for
        more than the others.
        """
        task = self._request.task
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

    def _growth(self, order: tuple[int, ...]) -> RowGrowth:
        """The grower for an order of the levels."""
        if order not in self._growths:
            request = self._request
            self._growths[order] = RowGrowth(
                self._records,
                request.given,
                self._strata,
                request.objective,
                order,
                request.task,
            )
        return self._growths[order]

    @property
    def _least_mass(self) -> float:
        """The mass below which prefixes stop."""
        if self._request.least_mass is not None:
            return self._request.least_mass
        if self._count >= STOPPING_FROM:
            return LEAST_MASS
        return 0.0

    def _by_mass(self, level: int) -> list[int]:
        """The symbols of a level, the most frequent ones first."""
        place = self._request.given + level
        size = len(self._records.groups[place])
        masses = np.bincount(self._records.codes[:, place], self._records.masses, size)
        return np.argsort(-masses, kind="stable").tolist()

    def verified(self, trial: Trial) -> VerifiedTree:
        """The final tree, once the exact audit passes it.

        Raises
        ------
        NotPrivate
            If none passes because the given columns have used up the promise.
        SolverFailure
            If none passes for another reason.
        """
        worst = ""
        for slack in SLACKS:
            grown = self._final(trial, slack)
            channel = self._channel_of(grown, trial)
            audit = audit_rows(channel)
            if audit.satisfied:
                return VerifiedTree(trial, grown, channel, audit)
            worst = f"{quoted(audit.worst.sensitive)}, lift {audit.worst.lift:.17g}"
        if self._request.given:
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
        grown = self._growth(trial.order).grow(
            trial.spending,
            least_mass=self._least_mass,
            end=self.end(GROWTH_SHARE),
            slack=slack,
        )
        # A coarse tree can keep more where time was over before the final tree was grown. It was
        # grown without slack, so it is no answer to a failed audit.
        coarse = self._coarse
        if coarse is None or slack or self._value_of(grown) >= self._coarse_value:
            return grown
        return replace(coarse, in_time=False)

    def _channel_of(self, grown: Grown, trial: Trial) -> RowChannel:
        """The channel of a tree, with its table in the order of the levels."""
        request = self._request
        given = request.given
        places = list(range(given)) + [given + level for level in trial.order]
        table = replace(
            self._records,
            groups=tuple(self._records.groups[place] for place in places),
            codes=self._records.codes[:, places],
        )
        # In the order of `strata_of`, that of the roots of the tree.
        strata = np.unique(table.codes[:, :given], axis=0).tolist()
        record = RowRecord(
            notion=to_record(request.notion),
            promise=request.promise,
            objective=request.objective,
            budgets=_budgets(self._records, request.notion),
            provenance={"tool": "mechdesign", "version": mechdesign.__version__},
        )
        return RowChannel(
            sensitive=self._records.sensitive,
            given=table.groups[:given],
            strata=tuple(tuple(stratum) for stratum in strata),
            levels=table.groups[given:],
            labels=grown.labels,
            tree=grown.tree,
            record=record,
            table=table,
        )

    def task_utility(self, grown: Grown) -> TaskUtility | None:
        """What the tree keeps of the task, with its bound; half of the time of the bounds is for
        it.
        """
        request = self._request
        if request.task is None:
            return None
        now = time.perf_counter()
        return task_utility(
            self.problem,
            self._strata,
            request.task,
            math.fsum(grown.task),
            end=0.5 * (now + self.end(BOUND_SHARE)),
        )


def _budgets(records: Records, notion: Notion) -> tuple[SymbolBudgets, ...]:
    """The budgets of single symbols, for the record of the channel."""
    if not notion.symbol_budgets:
        return ()
    sums = records.sensitive_counts()
    # `own_budgets` asks a joint table for its sensitive symbols alone.
    useful = records.groups[0].select([0])
    column = Joint(records.sensitive, useful, tuple((count,) for count in sums))
    return own_budgets(column, notion)
