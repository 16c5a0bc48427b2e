"""What a mechanism released: numbers in cells, and what is counted of them on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.documents import versions
from mechdesign.nonstochastic.answering import BadCell, Groups, Numbers
from mechdesign.nonstochastic.claims import guarantee_record
from mechdesign.nonstochastic.domains import FiniteDomain
from mechdesign.nonstochastic.mechanism_file import TOLD, MechanismFile
from mechdesign.nonstochastic.quantizers import Quantizer
from mechdesign.nonstochastic.sizes import sized_quantizer

_SUMS = ("records", "answers", "beyond", "moved", "errors", "amount")


@dataclass(frozen=True, kw_only=True)
class Quantised:
    """What a mechanism released.

    The ledger knows so many `releases` of the column of these records, of `releases_epsilon` bits
    in all.
    """

    records: int
    answers: int
    column: str
    outside: int
    moved: int
    mean_error: float
    worst_error: float
    relative_error: float
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
        """Whether an earlier run had written all of it: nothing is drawn, and every run writes
        anew.
        """
        return False


class Tally:
    """The values of a release moved into the range of its mechanism, its thresholds, and its
    errors, added up.
    """

    def __init__(self, mechanism: MechanismFile, column: str) -> None:
        self.mechanism, self.column = mechanism, column
        domain = mechanism.domain
        self._lo, self._hi = float(domain.lo), float(domain.hi)
        self._members = (
            np.array([*map(float, domain.values)])
            if isinstance(domain, FiniteDomain)
            else None
        )
        self.records = self.answers = self.beyond = self.moved = 0
        self.errors, self.amount, self.worst_error = 0.0, 0.0, 0.0
        self.people = Groups()
        """Who has which records, where each of them is an answer."""
        self.sized = {m.individuals: m for m in mechanism.mechanisms}
        self.largest: dict[int, int] | None = None
        """The answers by size of group of whoever spends most, where sizes have budgets of their
        own.
        """
        self.fresh = not mechanism.mechanisms
        self._used: set[int] = set()
        self._new: list[int] = []
        self._told: list[str] = []

    def inside(
        self, numbers: Numbers
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
        """The distinct values, moved into the range, and which records lie outside where that is
        told apart.

        Raises BadCell where none may.
        """
        found = np.clip(np.nan_to_num(numbers.values, nan=self._lo), self._lo, self._hi)
        if self._members is not None:
            # The nearest one of the values that there are.
            found = self._members[
                np.searchsorted((self._members[1:] + self._members[:-1]) / 2, found)
            ]
        # What is no number belongs to no record of the batch.
        beyond, outside, told = (
            (found != numbers.values) & ~np.isnan(numbers.values),
            None,
            None,
        )
        if beyond.any() and (outside := beyond[numbers.codes]).any():
            if self.mechanism.outside == "refuse":
                where = f"lies outside the range {self._lo:g} to {self._hi:g}"
                if self._members is not None:
                    where = f"is none of the {self._members.size:,} of the domain"
                raise BadCell(
                    int(outside.argmax()),
                    f"the value {where}; clip, mark or drop such values (--outside), or design "
                    "with a wider range",
                )
            self.beyond += int(np.count_nonzero(outside))
            told = outside if self.mechanism.outside in TOLD else None
        return found, told

    def tell(
        self, answers: NDArray[np.float64], errors: NDArray[np.float64], times: Any
    ) -> None:
        """Add up how far answers, each so many times, are from what is released for them."""
        some = times > 0
        answers, errors, times = np.abs(answers[some]), errors[some], times[some]
        self.moved += int(times[errors > 0].sum())
        self.errors, self.amount = (
            self.errors + float(errors @ times),
            self.amount + float(answers @ times),
        )
        self.worst_error = max(self.worst_error, float(errors.max(initial=0.0)))

    def quantizer(self, size: int) -> Quantizer:
        """The thresholds for groups of this size, laid out by the rule of the file where it has
        none.
        """
        self._used.add(size)
        if size not in self.sized:
            self.sized[size] = sized_quantizer(self.mechanism, size, self._told)
            self._new.append(size)
        return self.sized[size].quantizer

    def add(self, other: Tally) -> None:
        """Add another release through the same thresholds; `people` are added up record by
        record.
        """
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.worst_error = max(self.worst_error, other.worst_error)
        self._used |= other._used
        self.sized |= other.sized

    def result(self, sha256: str | None, answers_each: int | None = None) -> Quantised:
        """What was released, with the mechanism that tells of it; by default every record is an
        answer.
        """
        answers_each = answers_each or self.people.most_answers(single=True)
        counted = {
            "records": self.records,
            "answers": self.answers,
            "output_sha256": sha256,
        }
        provenance = self.mechanism.provenance | {"versions": versions()} | counted
        kept = tuple(self.sized[size] for size in sorted(self._used))
        made = replace(self.mechanism, mechanisms=kept, provenance=provenance)
        guarantee, total, _ = guarantee_record(made, answers_each, self.largest)
        same = ("records", "answers", "column", "moved", "worst_error")
        return Quantised(
            **{name: getattr(self, name) for name in same},
            answers_each=answers_each,
            outside=self.beyond,
            mean_error=self.errors / max(self.answers, 1),
            relative_error=self.errors / self.amount if self.amount else 0.0,
            total_epsilon=total,
            new_sizes=() if self.fresh else tuple(sorted(self._new)),
            mechanism=replace(made, guarantee=guarantee),
            sha256=sha256,
            notices=self._notices(answers_each, sorted(self._new)),
        )

    def _notices(self, answers_each: int | None, new: Sequence[int]) -> tuple[str, ...]:
        notices = list(self._told)
        if answers_each is None:
            notices.append(
                "each record is taken as one individual's; if some have several, budgets add: "
                f"name the column that identifies them{' with --individual' if self.fresh else ''}"
            )
        if new and not self.fresh:
            notices.append(
                "the mechanism had no thresholds for groups of "
                f"{', '.join(map(str, new[:5]))}{' and others' if len(new) > 5 else ''}; they were "
                "laid out and certified by the same rule"
            )
        return tuple(notices)
