"""What every mechanism returns: one frozen record that carries its proof."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from mechdesign.auditing import Achieved
from mechdesign.auditing_means import Used
from mechdesign.channel import Channel
from mechdesign.notions import Notion
from solvers import Envelope


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """How far the emitted channel can be from the optimum of the stated budget.

    `upper_bound_nmi` bounds I(X;Y)/H(X) of every channel that satisfies the notion; `gap_nmi` is that
    bound minus the NMI of the emitted integers. Both are None where no optimum was computed. `scope`
    says what the bound rests on: 'proven' (branch and bound, or an exact enumeration, re-evaluated in
    outward-rounded arithmetic), 'relative to the enumerated vertices', or 'none'.
    """

    upper_bound_nmi: float | None = None
    gap_nmi: float | None = None
    scope: str = "none"
    details: dict[str, int | float | str] = field(default_factory=dict[str, int | float | str])

    def at(self, nmi: float) -> Certificate:
        """The same bound, with the gap of a channel of this NMI."""
        if self.upper_bound_nmi is None:
            return self
        return replace(self, gap_nmi=max(0.0, math.nextafter(self.upper_bound_nmi - nmi, 2.0)))


@dataclass(frozen=True, kw_only=True)
class Design:
    """A verified channel, its utility (nats) and what is known of the optimum.

    `mechanism` is the one that made the channel, `method` how ('vertices', 'columns', 'release',
    'partition'). `repaired` and `borrowed` speak of the watchdog's repair; `fallback_from` names the
    mechanism that was asked for when another one had to answer. `verified` is False only for the procedures
    `as_published`, without repair, where these violate the notion; their channels cannot be saved. `used` are the
    budgets of a notion on averages itself (l1, chi2, alpha) that the channel keeps to. `envelope` keeps the columns
    and prices of an optimum for a warm start at a neighbouring budget.
    """

    channel: Channel
    notion: Notion
    mechanism: str
    method: str
    nmi: float
    mutual_information: float
    entropy: float
    achieved: Achieved
    certificate: Certificate = field(default_factory=Certificate)
    repaired: bool = False
    borrowed: tuple[str, ...] = ()
    fallback_from: str | None = None
    messages: tuple[str, ...] = ()
    seconds: float = 0.0
    verified: bool = True
    as_published: bool = False
    used: Used | None = None
    envelope: Envelope | None = field(default=None, repr=False, compare=False)

    @property
    def outputs(self) -> int:
        """Number of output symbols."""
        return len(self.channel.outputs)

    def with_envelope(self, envelope: Envelope) -> Design:
        """The same design with the columns and prices that it came from."""
        return replace(self, envelope=envelope)
