"""What a channel of boxes promises in each stratum, and what it keeps.

The promise of a channel of boxes holds for the population. Each stratum of the given columns has a
share of the level, and a confidence set of its own, of the counts of sensitive groups by boxes that
prove it (`StratumClaim`). The promise is relative to the given columns: a stratum is judged by
itself, and the whole by the worst of all (`auditing.either`).

What is kept comes from the design (`BoxUtility`). X is the row, Y what is released for it, and K
the given columns. The shares divide information by entropy: I(X; Y | K) / H(X | K), in [0, 1]. With
H(X | K) = 2.0 nats, 0.5 nats kept and a proven bound of 0.6 for the same boxes, `nmi` is 0.25 and
`upper_bound_nmi` 0.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from mechdesign.channel.record import ChannelRecord
from mechdesign.core.errors import InputError
from mechdesign.core.integers import LARGEST_INTEGER
from mechdesign.core.wording import joined_name, listed
from mechdesign.tables.box_coder import BoxCoder
from mechdesign.tables.joint import Joint
from mechdesign.tables.row_boxes import BOX
from mechdesign.tables.uncovered_values import RareLimit
from mechdesign.tables.variable import Variable

RECORDS_OF_STRATUM = "records"
"""The figure of a stratum's record that has the number of all of its records."""

ROUNDING = 1e-9
"""Nats below zero that information can have by the rounding of its sum."""


@dataclass(frozen=True)
class StratumClaim:
    """What is promised in a stratum.

    Parameters
    ----------
    together : tuple of tuples of int
        Sensitive symbols that are promised together, as one value.
    record : ChannelRecord, optional
        The notion, and the confidence set at the level of the stratum; None where nothing but the
        given columns is released.
    joint : Joint, optional
        The counts of the groups by boxes that prove it; None in a public channel.
    """

    together: tuple[tuple[int, ...], ...] = ()
    record: ChannelRecord | None = None
    joint: Joint | None = None

    @property
    def level(self) -> Fraction:
        """The level of the confidence set, as it is written; 1 where nothing is promised."""
        if self.record is None or self.record.confidence is None:
            return Fraction(1)
        # In fractions of the decimal texts: sums of doubles could exceed a limit by rounding.
        return Fraction(repr(self.record.confidence["level"]))

    @property
    def unseen(self) -> int:
        """Number of boxes without a record, which the promise covers, too."""
        if self.record is None or self.record.confidence is None:
            return 0
        return self.record.confidence.get("unseen", 0)

    def protected(self, sensitive: Variable) -> Variable:
        """The groups as one variable."""
        return protected_groups(sensitive, self.together)

    def together_texts(self, sensitive: Variable) -> list[str]:
        """Which sensitive symbols are promised together, in words."""
        texts: list[str] = []
        for group in self.together:
            if len(group) > 1:
                names = listed([sensitive.names[s] for s in group])
                texts.append(f"promised together as one value: {names}")
        return texts

    def check(self, sensitive: Variable, boxes: Sequence[str]) -> None:
        """Refuse a claim that does not fit the sensitive symbols, or the names of the boxes that
        have a row.
        """
        if self.record is None:
            return
        if self.record.confidence is None:
            raise InputError("the channel of a part has no confidence set")
        if self.record.notion is None:
            raise InputError("the channel of a part promises nothing")
        members = [s for group in self.together for s in group]
        if sorted(members) != list(range(len(sensitive))):
            raise InputError(
                "every sensitive symbol must be promised once in every part"
            )
        if self.joint is None:
            return
        protected = self.joint.sensitive
        if protected.columns != (",".join(sensitive.columns),):
            raise InputError("the channel of a part protects another column")
        if protected.symbols != self.protected(sensitive).symbols:
            raise InputError("the channel of a part protects another symbol")
        if self.joint.useful.columns != (BOX,) or self.joint.useful.names != boxes:
            raise InputError("the counts of a part are not those of its boxes")


def protected_groups(
    sensitive: Variable, together: Sequence[Sequence[int]]
) -> Variable:
    """Groups of sensitive symbols as the symbols of one column."""
    names = [joined_name([sensitive.names[s] for s in group]) for group in together]
    return Variable((",".join(sensitive.columns),), tuple((name,) for name in names))


@dataclass(frozen=True)
class BoxClaims:
    """The promise of a channel of boxes.

    Parameters
    ----------
    level : float
        The confidence that the promise of all strata holds at once.
    slice_records : int
        Records that the boxes were learned on; the promise was proven on the others.
    strata : tuple of StratumClaim
    utility : BoxUtility, optional
        What is kept; None in a public channel.
    """

    level: float
    slice_records: int
    strata: tuple[StratumClaim, ...]
    utility: BoxUtility | None = None

    def check(
        self, sensitive: Variable, coder: BoxCoder, boxes: Sequence[Sequence[str]]
    ) -> None:
        """Refuse claims that do not fit together; `boxes` are those with a row, by stratum."""
        if len(self.strata) != len(coder.strata):
            raise InputError("there must be a claim for every stratum")
        for stratum, claim, names in zip(coder.strata, self.strata, boxes, strict=True):
            claim.check(sensitive, tuple(names))
            # Boxes that no record has are covered as unseen symbols, and by that number only.
            if claim.record is not None and claim.unseen < len(stratum.boxes) - len(
                names
            ):
                raise InputError("the channel of a part does not cover its empty boxes")
        if not 0 <= self.slice_records <= LARGEST_INTEGER:
            raise InputError("slice_records must be a number of records")
        # Stratum k fails with probability 1 - level_k, and all together with at most the sum of
        # these (union bound).
        failing = sum(1 - claim.level for claim in self.strata)
        if failing > 1 - Fraction(repr(self.level)):
            raise InputError(
                "the levels of the parts do not add up to the level of the whole"
            )
        if self.utility is not None:
            self._check_utility(self.utility, coder)

    def _check_utility(self, kept: BoxUtility, coder: BoxCoder) -> None:
        """Refuse figures that cannot be, of a file that was edited or damaged."""
        figures = [kept.information, kept.bound, kept.entropy]
        names: list[tuple[str, ...]] = []
        for column in kept.columns:
            names.append(column.columns)
            figures += [column.entropy, column.kept]
        shares = [kept.own, kept.own_bound, kept.law_deviation]
        if not all(map(_is_figure, figures)) or kept.bound < kept.information:
            raise InputError(
                "utility: what is kept must be numbers that are not negative"
            )
        if not all(share is None or 0.0 <= share <= 1.0 for share in shares):
            raise InputError("utility: shares must lie in [0, 1]")
        if names != [variable.columns for variable in coder.columns]:
            raise InputError("utility: there must be figures of every released column")
        joints = [claim.joint for claim in self.strata]
        proven = sum(joint.total for joint in joints if joint is not None)
        # Strata that release nothing have records, too, and no counts of them; and those that the
        # slice does not have are none.
        is_all = not coder.given and None not in joints
        counted = proven + self.slice_records
        if kept.records < counted or (is_all and kept.records != counted):
            raise InputError("utility: its records are not those of the counts")

    def public(self) -> BoxClaims:
        """The claims without counts of the table, and whatever is computed from them."""
        strata: list[StratumClaim] = []
        for claim in self.strata:
            record = None if claim.record is None else claim.record.public()
            strata.append(replace(claim, record=record, joint=None))
        return BoxClaims(self.level, 0, tuple(strata))


def _is_figure(value: float) -> bool:
    """True for a finite number that is not negative, but for the rounding of a sum."""
    return math.isfinite(value) and value >= -ROUNDING


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
