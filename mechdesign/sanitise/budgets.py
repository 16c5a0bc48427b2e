"""The budget of several draws of the same records together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from mechdesign.auditing.lifts import log_upper
from mechdesign.core.errors import InputError
from mechdesign.release.drawing import channel_digest
from mechdesign.release.sampling import Releasable
from mechdesign.sanitise.entries import Drawn

Budget: TypeAlias = dict[str, Any]
"""`draws`, `eps_l`, `eps_u` and `eps_ldp`."""


def local_budget(rows: Sequence[Sequence[int]]) -> float:
    """The largest log W(y|x) / W(y|x') of a channel of integers, rounded up: what one draw tells at most of anything.

    A record that is drawn independently k times tells at most k times as much.
    """
    columns = list(zip(*rows, strict=True))
    return max(log_upper(max(column), min(column)) if min(column) else math.inf for column in columns)


def joint_budget(draws: Sequence[Drawn], channels: Sequence[Releasable]) -> tuple[Budget | None, str]:
    """The joint budget of independent draws, exactly, and a sentence that says it; None where it cannot be known.

    Draws of the same number count once. Channels that are not at hand are read from the files that they came from.
    """
    from mechdesign.auditing.joint_leakage import compose
    from mechdesign.channel.channel import Channel

    places = {draw.use.channel: draw.channel_file for draw in draws}
    different = sorted({(draw.use.channel, draw.job, draw.draw) for draw in draws})
    known = {channel_digest(channel): channel for channel in channels}
    for name, place in places.items():
        if name not in known and place is not None:
            with suppress(InputError):
                channel = Channel.load(place)
                known[channel_digest(channel)] = channel
        if name not in known:
            return None, (
                f"the joint budget of {_all(len(different))} is not known: the channel {name[:12]}.. of one of "
                f"them is not at hand{f' ({place} is gone, or another one now)' if place else ''}"
            )
    try:
        found: Any = compose([known[name] for name, _, _ in different])  # type: ignore[misc]
    except InputError as error:
        return None, f"the joint budget of {_all(len(different))} is not known: {error}"
    budget = {"draws": len(different), "eps_l": found.eps_l, "eps_u": found.eps_u, "eps_ldp": found.eps_ldp}
    return budget, (
        f"{_all(len(different))} of a record {'has' if len(different) == 1 else 'together have'} the budget "
        f"eps_l {found.eps_l:.4g}, eps_u {found.eps_u:.4g}, eps_ldp {found.eps_ldp:.4g}"
    )


def _all(draws: int) -> str:
    return "the one draw" if draws == 1 else f"all {draws} draws"
