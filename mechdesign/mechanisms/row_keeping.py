"""The smallest budget whose row channel keeps a share of the information (`--keep` with rows).

`keeping_rows` tries budgets by halves (`budget_scale`), each of them a whole design (`row_search`)
with an equal share of the time. For example, a search for 60 % may try the budgets 1, 2 and 1.5,
then 1.25, .., and end with 1.41, which kept 60.1 %, and 1.4, which kept 59.9 %.

A tree is not the best tree (docs/explanation/rows-theory.md, proposition 5), so what it keeps grows
with the budget in the main and not at every step. The search by halves holds all the same: the
answer keeps the share, and the budget below it was tried and kept less. That no channel of any kind
keeps so much is proven only where the bound of the crossed columns says so; the largest such budget
is told beside the answer.

A budget is a notion: `at_epsilon` makes that of the requested kind for each epsilon, its two sides
in the ratio of the request.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import NoReturn

from mechdesign.core.arguments import share_of
from mechdesign.core.errors import InputError, NotPrivate
from mechdesign.core.wording import about, at_most
from mechdesign.mechanisms.budget_scale import (
    KEPT_AT,
    KEPT_LESS_AT,
    LARGEST_STEP,
    BudgetScale,
    epsilon_of,
)
from mechdesign.mechanisms.row_request import RowRequest
from mechdesign.mechanisms.row_result import RowDesign
from mechdesign.mechanisms.row_search import design_records
from mechdesign.notions import Notion
from mechdesign.tables.records import Records

GRAIN = 10
"""Budgets have three digits: a step of the fourth is worth less than what trees miss by chance."""

TRIALS = 8
"""Designs into which the time is divided; a search by halves makes six to ten, and most of them end
before their time."""


def keeping_rows(
    records: Records, request: RowRequest, value: object, *, started: float
) -> RowDesign:
    """The row channel at the smallest budget of three digits that was found to keep a share.

    Parameters
    ----------
    records, request
        The design at every budget, as for `design_records`. The notion says the kind of the promise
        and, where it has two sides, their ratio; its time limit is that of all designs together.
    value : number
        The share of H(X | K) to be kept.
    started : float
        When the search began, on the clock of `time.perf_counter`.

    Raises
    ------
    InputError
        If the notion has a free side, so that its budgets have no ratio.
    NotPrivate
        If no budget up to 700 nats was found to keep so much.
    """
    share = share_of("--keep", value)
    notion_at = at_epsilon(request.notion)
    seconds = request.time_limit / TRIALS

    def designed(epsilon: float) -> RowDesign:
        trial = replace(request, notion=notion_at(epsilon), time_limit=seconds)
        return design_records(records, trial)

    scale = BudgetScale(
        designed, share, grain=GRAIN, end=started + request.time_limit - seconds
    )
    step = scale.smallest_step()
    if step > LARGEST_STEP:
        _refuse(scale.designs[LARGEST_STEP], share, value)
    design = scale.designs[step]
    # The largest budget at which no channel of any kind keeps the share, by the proven bounds.
    too_small = scale.largest_where(lambda trial: trial.upper_bound_nmi < share)
    budgets = {KEPT_AT: epsilon_of(step)}
    if too_small is not None:
        budgets[KEPT_LESS_AT] = epsilon_of(too_small)
    messages = [*design.messages, scale.sentence(step, too_small)]
    if not scale.in_time:
        messages.append(
            "the time limit was met: a smaller budget may keep as much; allow more seconds"
        )
    record = design.channel.record
    certificate = (record.certificate or {}) | budgets
    channel = replace(design.channel, record=replace(record, certificate=certificate))
    return replace(
        design,
        channel=channel,
        messages=tuple(messages),
        seconds=time.perf_counter() - started,
    )


def at_epsilon(notion: Notion) -> Callable[[float], Notion]:
    """The notions of the kind of one by epsilon, where it has two sides with their ratio. Budgets
    of single symbols stay what they are.
    """
    kind = type(notion)
    lam = None
    if kind.takes_lam():
        lower, upper = (getattr(notion, name) for name in kind.budgets())
        # lam is the share of the budget on the lower side.
        if math.isinf(lower + upper):
            raise InputError(
                f"{notion.text} leaves a side free, and keep looks for one epsilon for both: give "
                "two finite budgets, whose ratio splits it, or take MaxLift or MinLift"
            )
        lam = lower / (lower + upper)

    def notion_at(epsilon: float) -> Notion:
        return replace(kind.at(epsilon, lam), symbol_budgets=notion.symbol_budgets)

    return notion_at


def _refuse(largest: RowDesign, share: Fraction, value: object) -> NoReturn:
    """Raise NotPrivate: not even the largest budget was found to keep the share."""
    if largest.upper_bound_nmi < share:
        most = at_most(100 * largest.upper_bound_nmi)
        raise NotPrivate(
            f"no budget keeps {value} of the information: with 700 nats no channel keeps above "
            f"{most} % (proven)"
        )
    raise NotPrivate(
        f"no budget up to 700 nats was found that keeps {value} of the information, only "
        f"{about(largest.nmi)}; allow more seconds (--time-limit), or cross columns in one level"
    )
