"""Ways to release rows at one budget, beside each other.

`compare_rows` takes the request of a release of rows and sets beside its design

- the same with free frequencies, which keeps more cells and moves the law of the table;
- randomised response of whole rows: a row stays with a probability, else another record's row is
  drawn from the law of the table. The largest probability is found by halves, exactly verified.

Each way is a channel over the same rows, audited in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mechdesign.auditing.law import channel_law
from mechdesign.auditing.measures import beyond_given, utility
from mechdesign.auditing.unchanged import share_of_cells, unchanged_cells
from mechdesign.auditing.verdict import Achieved, audit
from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.channel.output_cells import own_rows
from mechdesign.channel.record import RELATIVE, ChannelRecord
from mechdesign.core.errors import InputError, MechdesignError
from mechdesign.core.integers import IntegerRows
from mechdesign.mechanisms.designing import design_requested
from mechdesign.mechanisms.request import DesignRequest
from mechdesign.mechanisms.result import Design
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint

PLAN = "rows of the table"
FREE = "with free frequencies"
RESPONSE = "randomised response"

HALVINGS = 20
"""Steps that find the probability of staying to a millionth."""

MOST_RESPONSE_ROWS = 2_000
"""Rows up to which randomised response is compared: its channel has an entry for every pair."""


@dataclass(frozen=True)
class RowWay:
    """One way to release rows.

    Attributes
    ----------
    name : str
    satisfied : bool
        The exact verdict on the promise.
    achieved : Achieved
    unchanged : float
        Mean expected share of unchanged cells.
    nmi : float
        I(X;Y) / H(X), beyond the given columns.
    total_variation : float
        Of the released rows from those of the table, rounded up.
    """

    name: str
    satisfied: bool
    achieved: Achieved
    unchanged: float
    nmi: float
    total_variation: float


@dataclass(frozen=True, repr=False)
class RowComparison:
    """The ways to release rows at one budget, the plan first, and its design."""

    notion: Notion
    columns: tuple[str, ...]
    ways: tuple[RowWay, ...]
    design: Design
    messages: tuple[str, ...]

    def __repr__(self) -> str:
        names = ", ".join(way.name for way in self.ways)
        return f"RowComparison({self.notion.text}: {names})"


def compare_rows(request: DesignRequest) -> RowComparison:
    """Compare the ways to release rows.

    Parameters
    ----------
    request : DesignRequest
        Of a release of rows as rows of the table.

    Raises
    ------
    InputError
        If it is another one.
    """
    if not request.publishes_rows or request.has_free_outputs:
        raise InputError(
            "a comparison of rows is one of releases as rows of the table: name the columns "
            "(release) with objective truth, distance or costs"
        )
    # A smallest group is a further promise, which the other ways do not have.
    request = replace(request, smallest_group=1)
    design = design_requested(request)
    joint = _table(design.channel)
    ways = [_way(PLAN, design.channel, joint, request)]
    messages = list(design.messages)
    try:
        free = design_requested(replace(request, keep_frequencies=False))
        ways.append(_way(FREE, free.channel, joint, request))
    except MechdesignError as error:
        messages.append(f"{FREE}: {error}")
    if len(joint.useful) <= MOST_RESPONSE_ROWS:
        ways.append(_way(RESPONSE, _response(joint, request), joint, request))
    else:
        messages.append(
            f"{RESPONSE} is compared up to {MOST_RESPONSE_ROWS:,} rows, and there are "
            f"{len(joint.useful):,}"
        )
    return RowComparison(
        notion=request.notion,
        columns=tuple(design.truth or {}),
        ways=tuple(ways),
        design=design,
        messages=tuple(messages),
    )


def _table(channel: Channel) -> Joint:
    """The table that a designed channel carries."""
    if channel.joint is None:
        raise TypeError("a designed channel has its table")
    return channel.joint


def _way(name: str, channel: Channel, joint: Joint, request: DesignRequest) -> RowWay:
    """The figures of one way."""
    record = ChannelRecord(promise_kind=request.promise)
    verdict = audit(channel.with_record(record), joint, request.notion)
    truth = unchanged_cells(channel, joint)
    worth = beyond_given(utility(channel, joint), joint, tuple(request.given))
    law = channel_law(channel, joint)
    # Labels alone have none, and all ways release rows as rows.
    assert law is not None
    return RowWay(
        name=name,
        satisfied=verdict.satisfied,
        achieved=verdict.achieved,
        unchanged=share_of_cells(truth),
        nmi=worth.nmi,
        total_variation=law.total_variation,
    )


def _response(joint: Joint, request: DesignRequest) -> Channel:
    """Randomised response of whole rows with the largest private probability of staying."""
    low = 0.0
    high = 1.0
    best = _staying(joint, 0.0, request)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        channel = _staying(joint, middle, request)
        if audit(channel, joint, request.notion).satisfied:
            low = middle
            best = channel
        else:
            high = middle
    return best


def _staying(joint: Joint, share: float, request: DesignRequest) -> Channel:
    """Rows that stay with a probability, else become the row of another record (of the same given
    cells).
    """
    n = len(joint.useful)
    given = [joint.useful.columns.index(name) for name in request.given]
    strata: dict[tuple[str, ...], list[int]] = {}
    for x, symbol in enumerate(joint.useful.symbols):
        strata.setdefault(tuple(symbol[k] for k in given), []).append(x)
    w: Any = np.zeros((n, n))
    for members in strata.values():
        masses = joint.p_x[members] / joint.p_x[members].sum()
        w[np.ix_(members, members)] = (1.0 - share) * masses[None, :]
    w[np.arange(n), np.arange(n)] += share
    integers = np.rint(w * float(DENOMINATOR)).astype(np.int64)
    top = np.argmax(integers, axis=1)
    integers[np.arange(n), top] += DENOMINATOR - integers.sum(axis=1)
    kind = RELATIVE if request.promise == RELATIVE else "total"
    return Channel(
        useful=joint.useful,
        outputs=joint.useful.names,
        rows=IntegerRows.from_array(integers),
        denominator=DENOMINATOR,
        joint=joint,
        given=tuple(request.given),
        published=own_rows(joint.useful, range(n)),
        record=ChannelRecord(promise_kind=kind),
    )
