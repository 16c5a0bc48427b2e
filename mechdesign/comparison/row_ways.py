"""Ways to release rows that `compare` sets beside each other, each with the name of a mechanism.

- `truth` and `distance` are the objectives of a design: rows of the table, with its law;
- `truth-free` and `distance-free` are the same with free frequencies, which keep more cells and
  move the law of the table;
- `randomised-response` keeps a row with a probability, else another record's row is drawn from the
  law of the table. The largest probability is found by halves, exactly verified;
- `optimal` releases free labels of rows with most information.

Each way is a channel over the same rows, audited in the same way.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mechdesign.auditing.measures import beyond_given, utility
from mechdesign.auditing.strata import strata_of
from mechdesign.auditing.unchanged import unchanged_cells
from mechdesign.auditing.verdict import Audit, audit
from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.channel.output_cells import own_rows
from mechdesign.channel.record import ChannelRecord
from mechdesign.comparison.grid import check_names
from mechdesign.core.errors import InputError
from mechdesign.core.integers import IntegerRows
from mechdesign.mechanisms import OBJECTIVES
from mechdesign.mechanisms.least_cost_objective import INFORMATION, TRUTH
from mechdesign.mechanisms.optimal import OPTIMAL
from mechdesign.mechanisms.request import DesignRequest
from mechdesign.mechanisms.result import Design, finish
from mechdesign.mechanisms.rounding import Rounded
from mechdesign.tables.joint import Joint

FREE = "-free"
"""Ends the name of an objective whose frequencies are free."""

RANDOMISED = "randomised-response"

ROW_WAYS = (
    *OBJECTIVES,
    *(f"{name}{FREE}" for name in OBJECTIVES),
    RANDOMISED,
    OPTIMAL,
)

HALVINGS = 20
"""Steps that find the probability of staying to a millionth."""

MOST_RESPONSE_ROWS = 2_000
"""Rows up to which randomised response is compared: its channel has an entry for every pair."""


def row_ways(
    mechanisms: Sequence[str] | None, objectives: Sequence[str] | None, joint: Joint
) -> tuple[tuple[str, ...], list[str]]:
    """The ways that are compared, and a notice of one that is left out.

    Objectives come with the same of free frequencies, and with randomised response; by default
    that is `truth`.
    """
    if mechanisms is not None and objectives is not None:
        raise InputError(
            "objectives name ways to release rows, and so do mechanisms: give one of them"
        )
    too_many = len(joint.useful) > MOST_RESPONSE_ROWS
    notice = (
        f"{RANDOMISED} is compared up to {MOST_RESPONSE_ROWS:,} rows, and there are "
        f"{len(joint.useful):,}"
    )
    if mechanisms is not None:
        names = check_names("mechanism", mechanisms, ROW_WAYS)
        if too_many and RANDOMISED in names:
            raise InputError(notice)
        return names, []
    ways: list[str] = []
    for objective in check_names(
        "objective", objectives or (TRUTH,), (INFORMATION, *OBJECTIVES)
    ):
        if objective == INFORMATION:
            ways.append(OPTIMAL)
        else:
            ways += [objective, f"{objective}{FREE}"]
    if too_many:
        return tuple(ways), [notice]
    return (*ways, RANDOMISED), []


def randomised_response(request: DesignRequest) -> Design:
    """Randomised response of whole rows with the largest private probability of staying."""
    started = time.process_time()
    joint = request.joint
    low = 0.0
    high = 1.0
    best = _staying(joint, 0.0, request)
    verdict = audit(best, joint, request.notion)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        channel = _staying(joint, middle, request)
        tried = audit(channel, joint, request.notion)
        if tried.satisfied:
            low = middle
            best, verdict = channel, tried
        else:
            high = middle
    return _design(best, verdict, request, started)


def _design(
    channel: Channel, verdict: Audit, request: DesignRequest, started: float
) -> Design:
    """The design of a channel of rows with its figures; it may break the promise."""
    joint = request.joint
    design = finish(
        Rounded(channel, verdict),
        joint,
        RANDOMISED,
        "halving",
        started,
        worth=beyond_given(utility(channel, joint), joint, channel.given),
    )
    # The record of `finish` does not know of given columns.
    record = replace(design.channel.record, promise_kind=request.promise)
    return replace(
        design,
        channel=channel.with_record(record),
        truth=unchanged_cells(channel, joint),
        verified=verdict.satisfied,
    )


def _staying(joint: Joint, share: float, request: DesignRequest) -> Channel:
    """Rows that stay with a probability, else become the row of another record (of the same given
    cells).
    """
    n = len(joint.useful)
    stratum = np.zeros(n, dtype=np.int64)
    if request.given:
        stratum = np.array(strata_of(tuple(request.given), joint))
    w: Any = np.zeros((n, n))
    for number in np.unique(stratum):
        members = np.flatnonzero(stratum == number)
        masses = joint.p_x[members] / joint.p_x[members].sum()
        w[np.ix_(members, members)] = (1.0 - share) * masses[None, :]
    w[np.arange(n), np.arange(n)] += share
    integers = np.rint(w * float(DENOMINATOR)).astype(np.int64)
    top = np.argmax(integers, axis=1)
    integers[np.arange(n), top] += DENOMINATOR - integers.sum(axis=1)
    return Channel(
        useful=joint.useful,
        outputs=joint.useful.names,
        rows=IntegerRows.from_array(integers),
        denominator=DENOMINATOR,
        joint=joint,
        given=tuple(request.given),
        published=own_rows(joint.useful, range(n)),
        record=ChannelRecord(promise_kind=request.promise),
    )
