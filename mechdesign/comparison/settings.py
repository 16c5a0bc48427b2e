"""The settings that all designs of a comparison share, and the request for each case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mechdesign.comparison.grid import AT, Case
from mechdesign.comparison.rows import Setting
from mechdesign.mechanisms import OBJECTIVES
from mechdesign.mechanisms.designing import design_requested
from mechdesign.mechanisms.least_cost_objective import DISTANCE, INFORMATION
from mechdesign.mechanisms.optimal import OPTIMAL
from mechdesign.mechanisms.request import DesignRequest
from mechdesign.mechanisms.result import Design
from mechdesign.mechanisms.search import Search
from mechdesign.mechanisms.watchdog import (
    HEURISTICS,
    RESPONSE,
    HeuristicOptions,
    heuristic,
)
from mechdesign.tables.joint import Joint


@dataclass(frozen=True, kw_only=True)
class ComparisonSettings:
    """Everything that changes results beside the table and the columns of a row.

    The fields are those of `DesignRequest`; a design takes the ones that can be for its mechanism.
    `as_published` leaves out the repair of heuristics about the table.
    """

    method: str = "auto"
    gap: float = 1e-4
    time_limit: float | None = None
    enumerate: str = "auto"
    as_published: bool = False
    known_shares: Mapping[Any, Any] | None = None
    unseen: int = 0
    budgets: Mapping[str, tuple[float, float]] | None = None
    keep_frequencies: bool = False
    distance: str | None = None

    @property
    def search(self) -> Search:
        """How optima are searched."""
        return Search(
            method=self.method,
            enumeration=self.enumerate,
            gap=self.gap,
            time_limit=self.time_limit,
        )

    @property
    def recorded(self) -> dict[str, Setting]:
        """The settings of a manifest; the vertex enumeration back end makes no difference to the
        rows.
        """
        record: dict[str, Setting] = {
            "method": self.method,
            "gap": self.gap,
            "time_limit": self.time_limit,
            "as_published": self.as_published,
        }
        # The others are named only where they differ from what manifests without them mean.
        if self.unseen:
            record["unseen"] = self.unseen
        if self.known_shares:
            record["known_shares"] = str(dict(self.known_shares))
        if self.budgets:
            record["budgets"] = str(dict(self.budgets))
        if self.keep_frequencies:
            record["keep_frequencies"] = True
        if self.distance:
            record["distance"] = self.distance
        return record

    def design(self, joint: Joint, case: Case, start: Design | None) -> Design:
        """The design of a case, from the columns of a neighbouring budget where there is one."""
        mechanism = case.mechanism.partition(AT)[0]
        is_confident = case.confidence is not None
        # The smaller budgets of a curve are at hand: no parts of each budget need to be tried.
        is_special = self.as_published or mechanism == RESPONSE
        if is_special and mechanism in HEURISTICS and not is_confident:
            notion = case.promise()
            if self.budgets:
                notion = notion.with_budgets(self.budgets)
            options = HeuristicOptions(
                as_published=self.as_published, smaller_budgets=False
            )
            return heuristic(joint, notion, mechanism, options, self.search)
        objective = INFORMATION
        if mechanism in OBJECTIVES:
            objective = mechanism
            mechanism = OPTIMAL
        request = DesignRequest(
            joint,
            case.promise(),
            mechanism=mechanism,
            method=self.method,
            enumerate=self.enumerate,
            gap=self.gap,
            time_limit=self.time_limit,
            start=start,
            confidence=case.confidence,
            known_shares=self.known_shares if is_confident else None,
            unseen=self.unseen if is_confident else 0,
            allow_identifier=True,
            budgets=self.budgets,
            objective=objective,
            distance=self.distance if objective == DISTANCE else None,
            keep_frequencies=self.keep_frequencies and objective != INFORMATION,
        )
        return design_requested(request)
