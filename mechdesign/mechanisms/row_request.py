"""What is asked of a row channel: the frozen `RowRequest`, and the check of a table against it.

`rows.design_rows` makes one from its arguments, and `row_search` or `row_keeping` answers it. The
table (`Records`) comes beside it, as it is the same for many requests. For example, of a table with
the groups of columns (sex), (education, occupation), (age),

    RowRequest(LIP(0.5), given=1, order="best")

releases the sex as it is and the two levels below it in the better order, with own symbols, within
30 seconds. A request checks its own fields when it is made; `check_records` checks the table before
the search begins.
"""

from __future__ import annotations

from dataclasses import dataclass

from mechdesign.channel.row_record import TOTAL
from mechdesign.core.errors import InputError, require_type
from mechdesign.core.progress import Steps
from mechdesign.core.wording import quoted
from mechdesign.mechanisms.row_budgets import check_promise, limits_of
from mechdesign.mechanisms.row_node import LARGEST_NODE, OBJECTIVES, TRUTH
from mechdesign.mechanisms.row_task import RowTask
from mechdesign.mechanisms.unsuited_columns import (
    refuse_identifier,
    refuse_secret_identifier,
)
from mechdesign.notions import Notion
from mechdesign.tables.records import Records

TIME_LIMIT = 30.0
"""Seconds that a design takes at most by default."""

GIVEN = "given"
"""The levels in the order in which they are named."""

BEST = "best"
"""The best order of the levels that is found in time."""


@dataclass(frozen=True)
class RowRequest:
    """What is asked of a row channel; `design_rows` describes the fields.

    `given` is the number of groups of columns that are released as they are, the first ones of the
    records; `task` says what the outputs should tell of, in place of the rows.
    """

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


def check_records(records: Records, request: RowRequest) -> None:
    """Refuse a table that no tree is made for.

    Raises
    ------
    InputError
        If a level nearly names the records or has too many symbols, or the sensitive column has a
        single symbol or is several that are protected each.
    """
    for level in records.groups[request.given :]:
        if records.is_counts and not request.allow_identifier:
            refuse_identifier(level, records.total)
        if request.objective == TRUTH and len(level) > LARGEST_NODE:
            raise InputError(
                f"the level {quoted(','.join(level.columns))} has {len(level):,} symbols, and with "
                f"the objective truth a level may have {LARGEST_NODE:,}: sort numbers into bins "
                "(--bin), cross fewer columns, or take free outputs (--objective information)"
            )
    if records.is_counts:
        refuse_secret_identifier(records.sensitive, records.total)
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
