"""From a request to a verified design: bins, rules, mechanism, fallback, further results.

`design_requested` is the one way from a `DesignRequest` to a `Design`. It decides in this order

1. the table: sorted into bins first, of one or several secrets, with the columns that are released.
   The shape of the request says who designs it (`DESIGNERS`): boxes, rows and columns beside given
   ones have modules of their own (`design_boxes`, `plan_design`, `by_strata`);
2. the rules of the promise: about the table (`rules`) or about its population (`population`);
3. the mechanism, or the objective, that works by these rules (`by_rules`), and merging where the
   optimum fails or ends early;
4. what the result has besides: the earlier releases (`earlier_releases`), or the population.

The modules of other shapes and objectives are imported where they are asked for: all of them take
longer to load than a small table takes to design.

`design_call.design` is the same for users.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

from mechdesign.auditing.population import lift_limits
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import TOTAL
from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.mechanisms import combinations
from mechdesign.mechanisms.average_budgets import NO_PROMISE
from mechdesign.mechanisms.box_request import BoxRequest
from mechdesign.mechanisms.by_rules import by_rules, for_population
from mechdesign.mechanisms.classes import refuse_identifier
from mechdesign.mechanisms.earlier_releases import check_room, spending
from mechdesign.mechanisms.least_cost_objective import ABSOLUTE, DISTANCE
from mechdesign.mechanisms.number_of_bins import binned_for
from mechdesign.mechanisms.request import DesignRequest
from mechdesign.mechanisms.result import Design
from mechdesign.mechanisms.rules import table_rules
from mechdesign.notions import Notion
from mechdesign.release.samplers import policy_row
from mechdesign.tables.bin_edges import look_like_days
from mechdesign.tables.cell_values import OUTPUT
from mechdesign.tables.joint import Joint
from mechdesign.tables.records import Records
from solvers.pace import one_thread

LEAST_LEFT = 0.25
"""Share of the time limit that the figure for the population may take when the search has used all
of it: most figures take milliseconds.
"""


@one_thread()
def design_requested(request: DesignRequest) -> Design:
    """The design of a request (`_requested`), with the time that is left of its limit."""
    before = time.process_time()
    result = _requested(request)
    _check_labels(result.channel)
    if request.time_limit is None:
        return result
    spent = time.process_time() - before
    left = max(request.time_limit - spent, LEAST_LEFT * request.time_limit)
    return replace(result, time_left=left)


def _check_labels(channel: Channel) -> None:
    """Refuse a label for empty or unknown cells that is no output: no release could have it.

    Which outputs there are is known only now.
    """
    rules = channel.record.rules
    for name, rule in (("missing", rules.missing), ("unknown", rules.unknown)):
        if rule.startswith(OUTPUT):
            policy_row(channel, rule, name)


def _requested(request: DesignRequest) -> Design:
    """Compute the channel of a request, proven private in exact arithmetic.

    Raises
    ------
    InputError
        If an option does not fit the table.
    NotPrivate
        If the earlier releases in `after` break the promise already, or leave no budget.
    SolverFailure
        If no channel was verified and no fallback is allowed.
    """
    started = time.process_time()
    if request.bins is not None:
        return _in_bins(request, started)
    # In bins a column may be no identifier any more, so this comes after them.
    if not request.allow_identifier:
        _refuse_identifiers(request)
    if request.notion.limits.mean is not None:
        combinations.check(combinations.MEANS, request.named)
    whole = request.joint
    if request.protect_each:
        whole = whole.protecting_each()
    notion = request.notion
    if request.budgets:
        notion = notion.with_budgets(request.budgets)
    notion.check_least()
    joint = whole
    if request.released_columns != whole.useful.columns:
        joint = whole.releasing(request.released_columns)
    result = DESIGNERS[request.shape](Asked(request, whole, joint, notion, started))
    return replace(result, messages=(*result.messages, *_messages_of_days(request)))


def _messages_of_days(request: DesignRequest) -> list[str]:
    """That differences between numbers such as 20230131 are no numbers of days."""
    # A matrix of costs is no name.
    is_distance = isinstance(request.objective, str) and request.objective == DISTANCE
    counts_ranks = request.release is not None and request.distance != ABSOLUTE
    if not is_distance or counts_ranks:
        return []
    messages: list[str] = []
    useful = request.joint.useful
    for k, name in enumerate(useful.columns):
        texts = {symbol[k] for symbol in useful.symbols}
        if name not in request.given and look_like_days(filter(None, texts)):
            messages.append(
                f"the column {quoted(name)} holds numbers that look like days or months, and "
                "distances between them are no numbers of days (20230131 is 70 below 20230201): "
                "write days as numbers that follow each other, or use --objective truth"
            )
    return messages


def _in_bins(request: DesignRequest, started: float) -> Design:
    """The design of the table in bins, whose number may have to be found first."""
    binned, messages = binned_for(request, design_requested)
    time_limit = request.time_limit
    if time_limit is not None:
        # At least half of the time is for the channel itself, whatever the search for bins took.
        remaining = request.search.end(started) - time.process_time()
        time_limit = max(time_limit / 2, remaining)
    result = design_requested(
        replace(request, joint=binned, bins=None, time_limit=time_limit)
    )
    return replace(
        result,
        messages=(*messages, *result.messages),
        seconds=time.process_time() - started,
    )


class Asked(NamedTuple):
    """What a designer gets.

    `whole` is the table with the columns of earlier releases, `joint` that of the released ones,
    `notion` the promise with the budgets of single symbols, and `started` the beginning on the
    clock of `time.process_time`.
    """

    request: DesignRequest
    whole: Joint
    joint: Joint
    notion: Notion
    started: float


# Modules of other kinds of releases are imported where they are asked for: all of them take longer
# to load than a small table takes to design.


def _columns_for_table(asked: Asked) -> Design:
    """The release of columns with a promise about their table."""
    request, whole, joint, notion, started = asked
    # Earlier releases are of columns that this one may not have, so they are judged on the whole
    # table.
    rules = table_rules(joint, notion, whole=whole, after=request.after)
    if not request.after:
        return by_rules(rules, request, started)
    check_room(rules, request.after)
    result = by_rules(rules, request, started)
    return spending(result, rules, whole, request.after, request.time_limit)


def _columns_for_population(asked: Asked) -> Design:
    """The release of columns with a promise for the population."""
    request, whole, joint, notion, started = asked
    level = request.confidence
    # A request of this shape has one.
    assert level is not None
    return for_population(request, level, whole, joint, notion, started)


def _columns_by_strata(asked: Asked) -> Design:
    """The release of columns beside given ones."""
    # Loaded here, because few designs need it.
    from mechdesign.mechanisms.strata_design import by_strata

    return by_strata(
        asked.request, asked.joint, asked.notion, design_requested, asked.started
    )


def _rows_in_boxes(asked: Asked) -> Design:
    """The release of boxes of rows, or of the symbols of a column."""
    # Loaded here, because few designs need it.
    from mechdesign.mechanisms.box_design import design_boxes

    records = Records.from_joint(asked.joint, _groups(asked.request))
    return design_boxes(records, _boxes(asked.request, asked.notion))


def _refuse_identifiers(request: DesignRequest) -> None:
    """Refuse a useful column that nearly identifies its records."""
    joint = request.joint
    if request.merge_rare is not None:
        # Its rare symbols are released as one.
        return
    if not request.publishes_rows:
        refuse_identifier(joint.useful.columns, len(joint.useful), joint.records)
        return
    # Nearly every row of many columns is that of one record, which is what plans and boxes are for;
    # a single column that is so says something of nobody else.
    coded = joint.useful.coded
    for name, texts in zip(coded.columns, coded.texts, strict=True):
        if name in request.released_columns and name not in request.given:
            refuse_identifier((name,), len(texts), joint.records)


def _rows_of_table(asked: Asked) -> Design:
    """The release of rows as rows of the table."""
    request, whole, joint, notion, _ = asked
    # Loaded here, because few designs need it.
    from mechdesign.mechanisms.plan_design import plan_design
    from mechdesign.mechanisms.plan_request import PlanRequest

    combinations.check(combinations.ROWS, request.named)
    plan = PlanRequest(
        joint=joint,
        notion=notion,
        given=tuple(request.given),
        promise=request.promise,
        objective=request.objective,
        distance=request.distance,
        column_weights=request.column_weights,
        keep_law=bool(request.keep_frequencies),
        stay=request.stay,
        forbid=request.forbid,
        never=request.never,
        smallest_group=request.smallest_group,
        known=tuple(request.known),
        average=request.average,
        # `design` puts this notion where the user gave none.
        is_average_alone=request.average is not None and request.notion == NO_PROMISE,
        whole=whole,
        after=request.after,
        time_limit=request.time_limit,
        gap=request.gap,
        progress=request.progress,
    )
    if not request.after:
        return plan_design(plan)
    rules = table_rules(joint, notion, whole=whole, after=request.after)
    check_room(rules, request.after)
    result = plan_design(plan)
    return spending(result, rules, whole, request.after, request.time_limit)


def _groups(request: DesignRequest) -> list[tuple[str, ...]]:
    """Every released column as a group of its own, given ones first; symbols that are merged are
    those of all columns.
    """
    if request.merge_rare is not None:
        return [request.released_columns]
    return [(name,) for name in request.released_columns]


def _boxes(request: DesignRequest, notion: Notion) -> BoxRequest:
    """The request for boxes of rows, or of the symbols of a column."""
    people = request.joint.useful.people
    if request.given and request.promise == TOTAL:
        remedy = ", or release them in place of giving them"
        if people is not None:
            remedy = ", among which is the number of records of a person"
        raise InputError(
            "with a confidence level the promise is relative to the given columns: say so "
            f"(--promise relative){remedy}"
        )
    combinations.check(combinations.BOXES, request.named)
    lift_limits(notion)
    limit = request.time_limit
    merge_rare = request.merge_rare
    return BoxRequest(
        notion=notion,
        level=request.confidence or 0.0,
        given=len(request.given),
        objective=request.objective,
        keep_law=bool(request.keep_frequencies),
        cells=request.cells,
        # `BoxRequest` refuses another text than auto.
        rare=cast("Any", request.rare or 0),
        # A label of a box has no records.
        fill=request.fill or people is not None,
        people=people,
        # Otherwise the slice chooses what is merged.
        merge_below=merge_rare if isinstance(merge_rare, int) else None,
        time_limit=math.inf if limit is None else limit,
        seed=request.slice_seed,
        progress=request.progress,
    )


DESIGNERS: Mapping[str, Callable[[Asked], Design]] = {
    combinations.TABLE: _columns_for_table,
    combinations.POPULATION: _columns_for_population,
    combinations.STRATA: _columns_by_strata,
    combinations.ROWS: _rows_of_table,
    combinations.BOXES: _rows_in_boxes,
}
"""Who designs a request of each shape."""
