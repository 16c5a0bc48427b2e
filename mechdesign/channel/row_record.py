"""What was asked for and found when a row channel was designed: the record in its file.

A `RowRecord` of a LIP design of 0.5 nats that releases true symbols has, for example, ::

    notion     {"name": "lip", "epsilon": 0.5}     promise  "total"     objective  "truth"
    achieved   {"lower": .., "upper": ..}          the extreme log-lifts of the integers, nats
    utility    what is kept of each level          certificate  a proven bound on it

`public` leaves `achieved`, `utility` and `certificate` out, because they are computed from the
table. The constants are the names of the two objectives and of the two promises.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from mechdesign.channel.record import SymbolBudgets, chosen_entries
from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.notions import from_record

TRUTH = "truth"
"""The objective that a level releases its own symbols, most of them true."""

INFORMATION = "information"
"""The objective that a level has free outputs, which keep most information."""

TOTAL = "total"
"""The promise that bounds P(s|k, y) against P(s)."""

RELATIVE = "relative"
"""The promise that bounds P(s|k, y) against P(s|k), for observers who know the given columns k."""

PUBLIC_PROVENANCE = ("tool", "version", "command")
"""Entries of `provenance` that a public file keeps: nothing that depends on the table."""


@dataclass(frozen=True)
class RowRecord:
    """What was asked for and found when the channel was designed, as plain JSON values.

    Asked for were `notion`, `promise`, `objective` and `budgets` (those of single sensitive
    symbols). Found were `achieved` and `utility`, computed from the integers of the tree, and
    `certificate`, a proven bound on the utility of every such channel. A public channel has nothing
    that was found, because it is computed from the table.
    """

    notion: dict[str, Any]
    promise: str = TOTAL
    objective: str = TRUTH
    budgets: tuple[SymbolBudgets, ...] = ()
    achieved: dict[str, Any] | None = None
    utility: dict[str, Any] | None = None
    certificate: dict[str, Any] | None = None
    provenance: dict[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        from_record(self.notion)
        if self.promise not in (TOTAL, RELATIVE):
            raise InputError(
                f"promise ({quoted(self.promise)}) must be total or relative"
            )
        if self.objective not in (TRUTH, INFORMATION):
            raise InputError(
                f"objective ({quoted(self.objective)}) must be truth or information"
            )

    def public(self) -> RowRecord:
        """Without what is computed from the table."""
        return replace(
            self,
            achieved=None,
            utility=None,
            certificate=None,
            provenance=chosen_entries(self.provenance, PUBLIC_PROVENANCE),
        )
