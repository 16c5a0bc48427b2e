"""The budget of several draws of the same records together."""

# pyright: basic
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from mechdesign.channel.box_channel import BoxChannel
from mechdesign.channel.channel import Channel
from mechdesign.channel.loading import load
from mechdesign.channel.row_channel import RELATIVE, RowChannel
from mechdesign.core.errors import InputError
from mechdesign.core.wording import at_most, listed, percent_of
from mechdesign.jobs.entries import ROW, Drawn
from mechdesign.release.box_drawing import box_channel_digest
from mechdesign.release.drawing import REDRAW, channel_digest
from mechdesign.release.row_drawing import row_channel_digest

Budget: TypeAlias = dict[str, Any]
"""`draws`, `eps_l`, `eps_u` and `eps_ldp`, the budgets in nats."""

TableOf: TypeAlias = Callable[[Sequence[Any]], Any]
"""Reads the table of the useful columns of all channels given."""


REDRAWN = (
    ", but for records that were drawn anew because their symbol had changed (--changed redraw), "
    "of which their releases together tell more"
)


@dataclass(frozen=True)
class JointBudget:
    """A joint budget, None where it cannot be computed, and a sentence that says so."""

    budget: Budget | None
    sentence: str


def local_budget(rows: Sequence[Sequence[int]]) -> float:
    """The largest log W(y|x) / W(y|x') in nats, rounded up: what one draw tells at most of
    anything.

    A record that is drawn independently k times tells at most k times as much.
    """
    # Exact logarithms take as long to import as a small job.
    from mechdesign.auditing.demands import log_upper

    largest = 0.0
    for column in zip(*rows, strict=True):
        if min(column) == 0:
            return math.inf
        largest = max(largest, log_upper(max(column), min(column)))
    return largest


def joint_budget(
    draws: Sequence[Drawn],
    channels: Sequence[Channel | RowChannel | BoxChannel],
    table: TableOf | None = None,
) -> JointBudget:
    """The joint budget of independent draws, exactly.

    Parameters
    ----------
    draws : sequence of Drawn
        Draws of the same number count once.
    channels : sequence of Channel
        The channels at hand; others are read from the files that they came from.
    table : function, optional
        Gives the table of all columns for the channels.
    """
    # The audit takes as long to import as a small job.
    from mechdesign.auditing.joint_leakage import compose

    rows = _row_channel_budget(draws, channels)
    if rows is not None:
        return rows
    different = sorted({(draw.use.channel, draw.job, draw.draw) for draw in draws})
    subject = f"all {len(different)} draws"
    if len(different) == 1:
        subject = "the one draw"
    unknown = f"the joint budget of {subject} is not known"
    try:
        by_digest = _channels_of(draws, channels)
        drawn: list[Any] = [by_digest[digest] for digest, _, _ in different]
        joint_table = None
        if table is not None:
            joint_table = table(drawn)
        leakage = compose(drawn, joint_table)
    except InputError as error:
        return JointBudget(None, f"{unknown}: {error}")
    budget = {
        "draws": len(different),
        "eps_l": leakage.eps_l,
        "eps_u": leakage.eps_u,
        "eps_ldp": leakage.eps_ldp,
    }
    verb = "has" if len(different) == 1 else "together have"
    sentence = (
        f"{subject} of a record {verb} the budget eps_l {at_most(leakage.eps_l)}, eps_u "
        f"{at_most(leakage.eps_u)}, eps_ldp {at_most(leakage.eps_ldp)}"
    )
    if any(draw.use.changed == REDRAW for draw in draws):
        sentence += REDRAWN
    return JointBudget(budget, sentence)


def _row_channel_budget(
    draws: Sequence[Drawn], channels: Sequence[Channel | RowChannel | BoxChannel]
) -> JointBudget | None:
    """The budget where a channel of rows took part; None where none did.

    One draw has the exact budget of the audit on the channel's own table. Lifts of several
    independent draws of a record do not add up, so that no number is given for them.
    """
    # The audit takes as long to import as a small job.
    from mechdesign.auditing.joint_leakage import sum_above
    from mechdesign.auditing.rows import audit_rows
    from mechdesign.auditing.verdict import Achieved

    if all(draw.use.form != ROW for draw in draws):
        return None
    different = {(draw.use.channel, draw.job, draw.draw) for draw in draws}
    unknown = f"the joint budget of all {len(different)} draws is not known"
    if len(different) > 1:
        return JointBudget(
            None,
            f"{unknown}: a channel of rows is among them, and its draws with others of the same "
            "records can tell far more than the sum of their budgets",
        )
    try:
        (channel,) = _channels_of(draws, channels).values()
        if isinstance(channel, BoxChannel):
            return _box_channel_budget(draws, channel)
        audit = audit_rows(channel)
    except InputError as error:
        return JointBudget(
            None, f"the joint budget of the one draw is not known: {error}"
        )
    # A relative promise leaves out what the given columns tell, but the total does not.
    sides = audit.achieved
    given = ""
    if channel.record.promise == RELATIVE and audit.given is not None:
        known = audit.given
        sides = Achieved(
            sum_above([sides.eps_l, known.eps_l]),
            sum_above([sides.eps_u, known.eps_u]),
            sum_above([sides.eps_ldp, known.eps_ldp]),
        )
        given = (
            ", of which the given columns tell eps_l "
            f"{at_most(known.eps_l)}, eps_u {at_most(known.eps_u)} by themselves"
        )
    budget = {
        "draws": 1,
        "eps_l": sides.eps_l,
        "eps_u": sides.eps_u,
        "eps_ldp": sides.eps_ldp,
    }
    secret = listed(channel.sensitive.columns)
    sentence = (
        f"the one draw of a record, of its whole row, has the budget eps_l {at_most(sides.eps_l)}, "
        f"eps_u {at_most(sides.eps_u)}, eps_ldp {at_most(sides.eps_ldp)} on {secret}{given}"
    )
    if any(draw.use.changed == REDRAW for draw in draws):
        sentence += REDRAWN
    return JointBudget(budget, sentence)


def _box_channel_budget(draws: Sequence[Drawn], channel: BoxChannel) -> JointBudget:
    """The budget of one draw of a channel of boxes, for the population."""
    # The audit takes as long to import as a small job.
    from mechdesign.auditing.boxes import audit_boxes

    sides = audit_boxes(channel).achieved
    given = ""
    budget: Budget | None = {
        "draws": 1,
        "eps_l": sides.eps_l,
        "eps_u": sides.eps_u,
        "eps_ldp": sides.eps_ldp,
    }
    if channel.given:
        # What the given columns tell by themselves is not in the file.
        names = [name for variable in channel.given for name in variable.columns]
        given = f", beside what {listed(names)} tells, which is not known here"
        budget = None
    sentence = (
        f"the one draw of a record, of its whole row, has the budget eps_l {at_most(sides.eps_l)}, "
        f"eps_u {at_most(sides.eps_u)}, eps_ldp {at_most(sides.eps_ldp)} on "
        f"{listed(channel.sensitive.columns)} for the population, with "
        f"{percent_of(channel.level)} confidence{given}"
    )
    if any(draw.use.changed == REDRAW for draw in draws):
        sentence += REDRAWN
    return JointBudget(budget, sentence)


def _digest_of(channel: Channel | RowChannel | BoxChannel) -> str:
    if isinstance(channel, RowChannel):
        return row_channel_digest(channel)
    if isinstance(channel, BoxChannel):
        return box_channel_digest(channel)
    return channel_digest(channel)


def _channels_of(
    draws: Sequence[Drawn], channels: Sequence[Channel | RowChannel | BoxChannel]
) -> dict[str, Any]:
    """The channels of some draws by their digests; raises InputError if one is nowhere."""
    by_digest: dict[str, Any] = {}
    for channel in channels:
        by_digest[_digest_of(channel)] = channel
    # Where several draws of a channel name files, the last file counts.
    files = {draw.use.channel: draw.channel_file for draw in draws}
    for digest, file in files.items():
        if digest in by_digest:
            continue
        if file is not None:
            channel = _loaded(file)
            if channel is not None:
                by_digest[_digest_of(channel)] = channel
        if digest not in by_digest:
            gone = ""
            if file:
                gone = f" ({file} is gone, or another one now)"
            raise InputError(
                f"the channel {digest[:12]}.. of one of them is not at hand{gone}"
            )
    return by_digest


def _loaded(file: str) -> Any:
    with suppress(InputError):
        return load(file)
    return None
