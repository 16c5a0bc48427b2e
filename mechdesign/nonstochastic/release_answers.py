"""The result of a release through a mechanism, and the sums behind it.

A release makes one `Tally`, and

1. moves the values of each batch into the range (`Tally.inside`);
2. asks for the thresholds for each size of group (`Tally.quantizer`), which are laid out if the
   mechanism has none;
3. adds the errors of the answers (`Tally.add_errors`);
4. at the end has a `RangeRelease`, with the guarantee of the thresholds that were in use
   (`Tally.result`).

The tallies of the files of a folder are joined (`Tally.add`).

For example, the range is [0, 60], and values outside are clipped: 72 becomes 60, and one value
counts as outside. Exact means of 20, 35 and 5 are released as 30, 30 and 15. The errors 10, 5 and
10 make a mean error of 8.33, a largest error of 10, and a relative error of 25 / 60 = 0.42.

*The ledger* adds up the bits of all releases of the same records. `charged` enters for each release
the outputs of one answer and how many answers one individual takes part in. Their power is a factor
of the outputs of all releases together (Farokhi 2019, Theorem 6). A release in a way that is in the
ledger already (`WAY`) has the same answers, and adds nothing.

For example, means by town with 4 outputs and 3 answers of an individual have 4^3 = 64 outputs, 6
bits. Means by street with 2 outputs and 1 answer make it 64 * 2 = 128, 7 bits. The means by town
once more leave it at 7.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.balls import quotient_above
from mechdesign.core.documents import versions
from mechdesign.core.wording import quoted
from mechdesign.formats.census import Content
from mechdesign.jobs.joint_budget import enter_counted
from mechdesign.jobs.ledger import Ledger
from mechdesign.nonstochastic.claims import guarantee_record
from mechdesign.nonstochastic.groups import Groups
from mechdesign.nonstochastic.mechanism_file import DISCLOSED_OUTSIDE, MechanismFile
from mechdesign.nonstochastic.number_columns import BadCell, Numbers
from mechdesign.nonstochastic.quantizers import Quantizer
from mechdesign.nonstochastic.queries import FiniteDomain
from mechdesign.nonstochastic.sizes import sized_quantizer
from mechdesign.tables.thousands import ThousandsPoints

LISTED_SIZES = 5
"""Most sizes of groups that a notice lists."""


@dataclass(frozen=True, kw_only=True)
class RangeRelease:
    """The result of a release.

    Parameters
    ----------
    records, answers
        Records in the table, and answers written.
    column
        The column of numbers, by its name in the table.
    outside
        Values outside the range.
    moved
        Answers that differ from the exact ones.
    mean_error, worst_error, relative_error
        Distances of answers from the exact ones; the last over the sum of all amounts, and None
        where that is nothing, or too little to divide by.
    answers_each
        The most answers that one individual takes part in; None if unknown.
    total_epsilon
        Bits of these answers together.
    new_sizes
        Sizes of groups that the mechanism file had no thresholds for.
    mechanism
        The mechanism with the thresholds in use and its guarantee.
    sha256
        Of the output; None for a table in memory.
    releases, releases_epsilon
        Releases of the column of these records in the ledger, and their bits in all.
    """

    records: int
    answers: int
    column: str
    outside: int
    moved: int
    mean_error: float
    worst_error: float
    relative_error: float | None
    answers_each: int | None
    total_epsilon: float
    new_sizes: tuple[int, ...]
    mechanism: MechanismFile
    sha256: str | None
    notices: tuple[str, ...] = ()
    releases: int = 1
    releases_epsilon: float | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The released columns."""
        return (self.column,)

    @property
    def already(self) -> bool:
        """Whether an earlier run wrote all of it; never, because nothing is drawn to repeat."""
        return False


class Tally:
    """The thresholds in use, and the sums over records and answers of a release.

    Parameters
    ----------
    column
        The column of numbers, by its name in the table.

    Attributes
    ----------
    records, answers, beyond, moved
        Records, answers, values outside the range, and answers that differ from the exact ones.
    left_out
        Records with an empty cell that are none of `records`.
    errors, amount, worst_error
        The sums of errors and of exact amounts, and the largest error.
    people
        The individuals and their records, where each record is an answer.
    sized
        The quantisers by size of group.
    largest
        The answers by size of group of the individual with the largest product of outputs; None
        where the outputs of all answers are the same.
    fresh
        Whether the mechanism is a new design, without thresholds of its own.
    points
        What the texts of the column say about the points of its numbers.
    """

    def __init__(self, mechanism: MechanismFile, column: str) -> None:
        self.mechanism = mechanism
        self.column = column
        domain = mechanism.domain
        # Rounded inwards where an end is no double: the certificate holds within the exact range,
        # and a value beyond it, by less than a rounding, could bring about one more output. For an
        # end of 0 a minus sign would give -0.0.
        self._lo = quotient_above(*domain.lo.as_integer_ratio())
        self._hi = 0.0 - quotient_above(*(-domain.hi).as_integer_ratio())
        self._members: NDArray[np.float64] | None = None
        if isinstance(domain, FiniteDomain):
            self._members = np.array([float(value) for value in domain.values])
        self.records = 0
        self.left_out = 0
        self.answers = 0
        self.beyond = 0
        self.moved = 0
        self.errors = 0.0
        self.amount = 0.0
        self.worst_error = 0.0
        self.people = Groups()
        self.sized = {m.individuals: m for m in mechanism.mechanisms}
        self.largest: dict[int, int] | None = None
        self.fresh = not mechanism.is_designed
        self._used: set[int] = set()
        self._new: list[int] = []
        self._layout_notices: list[str] = []
        self.points = ThousandsPoints()

    def inside(
        self, numbers: Numbers
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
        """Move the values of a batch into the range.

        Returns
        -------
        values : (m,) array
            The distinct values, moved.
        outside : (n,) truth values or None
            The records with a value outside the range, where the release discloses them.

        Raises
        ------
        BadCell
            If a value lies outside and the mechanism refuses it.
        """
        # Texts that are no numbers have NaN; no record in use has one of them.
        values = np.nan_to_num(numbers.values, nan=self._lo)
        values = np.clip(values, self._lo, self._hi)
        if self._members is not None:
            # The nearest member of the domain: midpoints separate them.
            midpoints = (self._members[1:] + self._members[:-1]) / 2
            values = self._members[np.searchsorted(midpoints, values)]
        is_moved = (values != numbers.values) & ~np.isnan(numbers.values)
        outside = is_moved[numbers.codes]
        if not outside.any():
            return values, None
        if self.mechanism.outside == "refuse":
            raise self._outside_error(int(outside.argmax()))
        self.beyond += int(np.count_nonzero(outside))
        if self.mechanism.outside in DISCLOSED_OUTSIDE:
            return values, outside
        return values, None

    def _outside_error(self, position: int) -> BadCell:
        """The error for a value outside the range, which it does not print."""
        where = f"lies outside the range {self._lo:g} to {self._hi:g}"
        if self._members is not None:
            where = f"is none of the {self._members.size:,} of the domain"
        return BadCell(
            position,
            f"the value {where}; clip, mark or drop such values (--outside), or design "
            "with a wider range",
        )

    def add_errors(
        self, answers: NDArray[np.float64], errors: NDArray[np.float64], times: Any
    ) -> None:
        """Add the errors of exact answers, each of which occurs so many times."""
        # An answer that does not occur may be NaN.
        occurring = times > 0
        amounts = np.abs(answers[occurring])
        errors = errors[occurring]
        times = times[occurring]
        self.moved += int(times[errors > 0].sum())
        self.errors += float(errors @ times)
        self.amount += float(amounts @ times)
        self.worst_error = max(self.worst_error, float(errors.max(initial=0.0)))

    def leave_out(self, records: int) -> None:
        """Count records that are left out for an empty cell."""
        self.left_out += records

    def quantizer(self, size: int) -> Quantizer:
        """The thresholds for groups of a size, laid out by the rule of the file if it has none."""
        self._used.add(size)
        if size not in self.sized:
            sized = sized_quantizer(self.mechanism, size, self._layout_notices)
            self.sized[size] = sized
            self._new.append(size)
        return self.sized[size].quantizer

    def add(self, other: Tally) -> None:
        """Add another release through the same thresholds; `people` are added record by record."""
        self.records += other.records
        self.left_out += other.left_out
        self.answers += other.answers
        self.beyond += other.beyond
        self.moved += other.moved
        self.errors += other.errors
        self.amount += other.amount
        self.worst_error = max(self.worst_error, other.worst_error)
        self._used |= other._used
        self.sized |= other.sized
        self.points.join(other.points)

    def result(
        self, sha256: str | None, answers_each: int | None = None
    ) -> RangeRelease:
        """The result, with the mechanism and its guarantee.

        Parameters
        ----------
        sha256
            Of the output.
        answers_each
            The most answers of one individual; by default each record is an answer.
        """
        answers_each = answers_each or self.people.most_answers(single=True)
        provenance = {
            **self.mechanism.provenance,
            "versions": versions(),
            "records": self.records,
            "answers": self.answers,
            "output_sha256": sha256,
        }
        # A file may have thresholds for sizes that this table has not: its guarantee is of those
        # in use.
        used = tuple(self.sized[size] for size in sorted(self._used))
        mechanism = replace(self.mechanism, mechanisms=used, provenance=provenance)
        guarantee, total_epsilon, _ = guarantee_record(
            mechanism, answers_each, self.largest
        )
        relative_error = None
        if self.amount and math.isfinite(self.errors / self.amount):
            relative_error = self.errors / self.amount
        new_sizes: tuple[int, ...] = ()
        if not self.fresh:
            new_sizes = tuple(sorted(self._new))
        return RangeRelease(
            records=self.records,
            answers=self.answers,
            column=self.column,
            outside=self.beyond,
            moved=self.moved,
            mean_error=self.errors / max(self.answers, 1),
            worst_error=self.worst_error,
            relative_error=relative_error,
            answers_each=answers_each,
            total_epsilon=total_epsilon,
            new_sizes=new_sizes,
            mechanism=replace(mechanism, guarantee=guarantee),
            sha256=sha256,
            notices=self._notices(answers_each, new_sizes),
        )

    def _notices(
        self, answers_each: int | None, new_sizes: Sequence[int]
    ) -> tuple[str, ...]:
        """Notices of the layout, of unnamed individuals and of new sizes of groups."""
        notices = list(self._layout_notices)
        remedy = self.points.remedy()
        if remedy is not None:
            notices.append(f"the column {quoted(self.column)} holds numbers {remedy}")
        if self.left_out:
            notices.append(
                f"dropped {self.left_out} of {self.records + self.left_out} record(s) with an "
                "empty cell"
            )
        if answers_each is None:
            option = " with --individual" if self.fresh else ""
            notices.append(
                "each record is taken as one individual's; if some have several, budgets add: "
                f"name the column that identifies them{option}"
            )
        if new_sizes:
            listed = ", ".join(map(str, new_sizes[:LISTED_SIZES]))
            if len(new_sizes) > LISTED_SIZES:
                listed += " and others"
            notices.append(
                f"the mechanism had no thresholds for groups of {listed}; they were "
                "laid out and certified by the same rule"
            )
        return tuple(notices)


# ------------------------------------------------------------------------------- ledger

WAY = {"query", "group_by", "range", "values", "outside", "mechanisms"}
"""The fields of a mechanism file that distinguish ways of releasing a column. A release in the same
way has the same answers, and adds nothing."""


def charged(
    ledger: Ledger,
    content: Content,
    result: RangeRelease,
    equals: str | None = None,
    *,
    source: str,
    target: str,
) -> RangeRelease:
    """Enter a release; the result with the total of all releases of the column of these records.

    Parameters
    ----------
    ledger : Ledger
        The ledger to enter it in.
    content : Content
        The hashes of the records.
    result : RangeRelease
        The release.
    equals : str, optional
        The value that a count counts.
    source, target : str
        The places of the table and of the release.
    """
    document = result.mechanism.document.model_dump(mode="json", include=WAY)
    outputs = result.mechanism.guarantee["outputs"]
    answers = result.answers_each or 1
    by_size = dict(result.mechanism.guarantee.get("answers_by_size", ()))
    if by_size:
        # Sizes of groups have budgets of their own: the product of all answers counts as one.
        of_size: dict[int, int] = {}
        for mechanism in result.mechanism.mechanisms:
            of_size[mechanism.individuals] = mechanism.certificate.outputs
        outputs = 1
        answers = 1
        for size, times in by_size.items():
            outputs *= of_size[size] ** times
    total = enter_counted(
        ledger,
        content,
        column=result.column,
        way=document | {"equals": equals},
        outputs=outputs,
        answers=answers,
        output=result.sha256,
        source=source,
        target=target,
    )
    return replace(result, releases=total.releases, releases_epsilon=total.bits)
