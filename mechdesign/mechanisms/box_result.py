"""The result of a design for boxes of rows: the verified channel, its audit, and its worth.

`box_design.design_boxes` returns it once the exact audit has passed the channel. What is kept is
measured on the records outside of the slice, in nats, and as a share of H(X | K). For example, with
`entropy` 2.0, `information` 0.8 and `bound` 0.9 the shares are `nmi` 0.4 and `upper_bound_nmi`
0.45. The bound is one for these boxes: other boxes may keep more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mechdesign.auditing.law import Law, absent_box_law, box_law
from mechdesign.auditing.verdict import Achieved, Audit
from mechdesign.channel.box_claims import BoxUtility
from mechdesign.channel.channel import Channel
from mechdesign.core.above import above
from mechdesign.core.display import Described
from mechdesign.core.wording import percent_of
from mechdesign.notions import Notion
from mechdesign.tables.rare_limit import RareLimit


@dataclass(frozen=True, repr=False)
class BoxDesign(Described):
    """A verified channel for boxes of rows.

    Attributes
    ----------
    channel : Channel
    notion : Notion
    audit : Audit
        The exact verdict on all populations of the confidence sets.
    utility : BoxUtility
        What is kept in nats, of all columns and of each, and its proven bound.
    messages : tuple of str
    seconds : float
    """

    channel: Channel
    notion: Notion
    audit: Audit
    utility: BoxUtility
    messages: tuple[str, ...]
    seconds: float

    @property
    def achieved(self) -> Achieved:
        """Log-lifts that no population of the confidence sets exceeds."""
        return self.audit.achieved

    @property
    def information(self) -> float:
        """I(X; Y | K) in nats of the records that the promise was proven on."""
        return self.utility.information

    @property
    def bound(self) -> float:
        """The most that any channel for the same boxes could keep, in nats, proven."""
        return self.utility.bound

    @property
    def entropy(self) -> float:
        """H(X | K) in nats of all released columns."""
        return self.utility.entropy

    @property
    def records(self) -> int:
        """Records of the table."""
        return self.utility.records

    @property
    def limit(self) -> RareLimit | None:
        """What rare sensitive values make impossible."""
        return self.utility.limit

    @property
    def nmi(self) -> float:
        """I(X; Y | K) / H(X | K)."""
        return self.utility.nmi

    @property
    def upper_bound_nmi(self) -> float:
        """The bound for these boxes in the same unit; other boxes may keep more."""
        return self.utility.upper_bound_nmi

    @property
    def law(self) -> Law | None:
        """What an analyst reads of released rows; None where it is not known (`law_absent`)."""
        return box_law(self.channel)

    @property
    def law_absent(self) -> str | None:
        """Why there is no law; None where there is one."""
        return None if self.channel.keeps_law else absent_box_law(self.channel)

    def __repr__(self) -> str:
        return (
            f"BoxDesign({self.channel.boxed.coder.size} boxes, {self.notion.text}, "
            f"{percent_of(self.channel.boxed.claims.level)} confidence, kept {self.nmi:.3f})"
        )

    def to_record(self) -> dict[str, Any]:
        """The record of `design --json`."""
        return above("display").record(self)
