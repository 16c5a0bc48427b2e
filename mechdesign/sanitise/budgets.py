"""The budget of several draws of the same records together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mechdesign.core.errors import InputError
from mechdesign.release.drawing import channel_digest
from mechdesign.release.sampling import Releasable

Draw = tuple[str, str, int]
"""Digest of the channel, job, and number of the draw."""


def joint_budget(draws: Sequence[Draw], channels: Sequence[Releasable]) -> tuple[dict[str, Any] | None, str]:
    """The joint budget of independent draws, exactly, and a sentence that says it; None where it cannot be known.

    Parameters
    ----------
    draws : sequence of Draw
        Those of the same number count once.
    channels : sequence of Channel
        As many as are at hand.
    """
    from mechdesign.auditing.joint_leakage import compose

    different = sorted(set(draws))
    known = {channel_digest(channel): channel for channel in channels}
    gone = sorted({name for name, _, _ in different if name not in known})
    if gone:
        return None, (
            f"the joint budget of all {len(different)} draws is not known: the channel {gone[0][:12]}.. of one of them "
            "is not at hand"
        )
    try:
        found: Any = compose([known[name] for name, _, _ in different])  # type: ignore[misc]
    except InputError as error:
        return None, f"the joint budget of all {len(different)} draws is not known: {error}"
    budget = {"draws": len(different), "eps_l": found.eps_l, "eps_u": found.eps_u, "eps_ldp": found.eps_ldp}
    return budget, (
        f"all {len(different)} draws of a record together have the budget eps_l {found.eps_l:.4g}, "
        f"eps_u {found.eps_u:.4g}, eps_ldp {found.eps_ldp:.4g}"
    )
