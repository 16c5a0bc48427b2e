"""What a channel for boxes of rows keeps: of all columns together, and of each of them.

X is the row, Y what is released for it, and K the given columns. The shares divide information by
entropy: I(X; Y | K) / H(X | K), in [0, 1]. The numbers come from the design; these classes only
hold them.

With H(X | K) = 2.0 nats, 0.5 nats kept and a proven bound of 0.6 for the same boxes, `nmi` is 0.25
and `upper_bound_nmi` 0.3.
"""

from __future__ import annotations

from dataclasses import dataclass

from mechdesign.tables.rare_limit import RareLimit


@dataclass(frozen=True)
class ColumnKept:
    """The information in one column, or in several crossed ones, in nats.

    `entropy` is H(X_j | K) and `kept` is I(X_j; Y | K), with the given columns K.
    """

    columns: tuple[str, ...]
    entropy: float
    kept: float

    @property
    def share(self) -> float:
        """The kept share of the information, in [0, 1]."""
        if self.entropy <= 0.0:
            return 0.0
        # Rounding can leave [0, 1] by a few units of the last place.
        return min(max(self.kept / self.entropy, 0.0), 1.0)


@dataclass(frozen=True)
class BoxUtility:
    """What is kept, in nats, on the records that the promise was proven on.

    Parameters
    ----------
    information : float
        I(X; Y | K).
    bound : float
        The most that any channel for the same boxes could keep, proven.
    entropy : float
        H(X | K) of all records.
    records : int
        Records of the table, those of the slice included.
    columns : tuple of ColumnKept
        One for each variable of the boxes.
    limit : RareLimit, optional
        What rare sensitive values make impossible.
    own : float, optional
        Where boxes are released as boxes: the expected share of all records whose own box is
        released, rounded down.
    own_bound : float, optional
        The most that any channel for the same boxes with their law could have, proven.
    law_deviation : float, optional
        The largest change of a box's share among all records of its stratum; 0 where the law is
        kept exactly. None where a box has no record of the proof.
    """

    information: float
    bound: float
    entropy: float
    records: int
    columns: tuple[ColumnKept, ...]
    limit: RareLimit | None = None
    own: float | None = None
    own_bound: float | None = None
    law_deviation: float | None = None

    @property
    def nmi(self) -> float:
        """I(X; Y | K) / H(X | K)."""
        # With one possible row for each k there is nothing to keep.
        if self.entropy <= 0.0:
            return 0.0
        return min(self.information / self.entropy, 1.0)

    @property
    def upper_bound_nmi(self) -> float:
        """The bound for these boxes in the same unit; other boxes may keep more."""
        if self.entropy <= 0.0:
            return 0.0
        return min(self.bound / self.entropy, 1.0)
