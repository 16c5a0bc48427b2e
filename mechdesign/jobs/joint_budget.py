"""The budget of several draws of the same records together."""

# pyright: basic
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.wording import at_most
from mechdesign.jobs.entries import Drawn
from mechdesign.release.drawing import REDRAW, channel_digest

Budget: TypeAlias = dict[str, Any]
"""`draws`, `eps_l`, `eps_u` and `eps_ldp`, the budgets in nats."""

TableOf: TypeAlias = Callable[[Sequence[Any]], Any]
"""Reads the table of the useful columns of all channels given."""


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
    draws: Sequence[Drawn], channels: Sequence[Channel], table: TableOf | None = None
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
    from mechdesign.auditing.joint_leakage import compose

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
        sentence += (
            ", but for records that were drawn anew because their symbol had changed (--changed "
            "redraw), of which their releases together tell more"
        )
    return JointBudget(budget, sentence)


def _channels_of(draws: Sequence[Drawn], channels: Sequence[Channel]) -> dict[str, Any]:
    """The channels of some draws by their digests; raises InputError if one is nowhere."""
    by_digest: dict[str, Any] = {}
    for channel in channels:
        by_digest[channel_digest(channel)] = channel
    # Where several draws of a channel name files, the last file counts.
    files = {draw.use.channel: draw.channel_file for draw in draws}
    for digest, file in files.items():
        if digest in by_digest:
            continue
        if file is not None:
            channel = _loaded(file)
            if channel is not None:
                by_digest[channel_digest(channel)] = channel
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
        from mechdesign.channel.loading import load_single

        return load_single(file)
    return None
