"""Noiseless privacy, certified exactly, of one release and of several (Farokhi 2020).

A mechanism is epsilon-noiselessly private if, whoever varies and whatever the others are, its
output takes at most 2^epsilon values (Definitions 1 and 2). A certificate is that number of values:
counted, attained by a witness where it is exact, and never taken from a theorem that only bounds it.
The outputs of several mechanisms on one fibre are at most the product of their numbers (Theorem 6),
which a ledger keeps as an exact integer. Quantisers of the same query are counted together instead:
releasing all their cells is releasing the cells of their common refinement, and that costs less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from mechdesign.core.balls import quotient_above
from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.domains import check_whole
from mechdesign.nonstochastic.fibres import most_outputs
from mechdesign.nonstochastic.levels import LARGEST_EPSILON, epsilon_for
from mechdesign.nonstochastic.quantizers import Quantizer
from mechdesign.nonstochastic.queries import LinearQuery, OrderStatistic, Query


@dataclass(frozen=True)
class FibreCertificate:
    """How many outputs one individual can bring about, at most.

    Parameters
    ----------
    outputs
        Proven: no fibre has more.
    attained
        A fibre has this many; equal to `outputs` if the certificate is exact.
    witness
        A fibre with `attained` outputs, in words.
    """

    outputs: int
    attained: int
    witness: str

    @property
    def exact(self) -> bool:
        """Whether `outputs` is the maximum, not only a bound on it."""
        return self.outputs == self.attained

    @property
    def epsilon(self) -> float:
        """The smallest budget (bits, a double rounded upwards) that the mechanism keeps."""
        return epsilon_for(self.outputs)


def certify(query: Query, quantizer: Quantizer) -> FibreCertificate:
    """The most outputs that ``quantizer`` of ``query`` gives while one individual varies.

    Exact for linear queries (sums, means, counts, the identity), order statistics and medians, unless there
    are too many sums to list: then a proven bound.

    Raises
    ------
    InputError
        If the answers can leave the range of the quantiser.
    """
    lo, hi = query.range
    if lo < quantizer.lo or hi > quantizer.hi:
        raise InputError(
            f"the answers range over {float(lo):g} to {float(hi):g}, beyond the quantiser's "
            f"{float(quantizer.lo):g} to {float(quantizer.hi):g}; widen it"
        )
    if isinstance(query, LinearQuery):
        return _linear(query, quantizer)
    linear, where = query.largest_fibre
    found = _linear(linear, quantizer)
    return replace(found, witness=where if isinstance(query, OrderStatistic) else f"{where}; {found.witness}")


def _linear(query: LinearQuery, quantizer: Quantizer) -> FibreCertificate:
    count = most_outputs(query, quantizer.thresholds)
    who = query.blocks[count.block]
    witness = f"an individual of weight {who.weight}, the others contribute {count.base}"
    return FibreCertificate(count.outputs, count.attained, witness)


@dataclass(frozen=True)
class LedgerEntry:
    """One entry of a ledger: its name, the most outputs on a fibre, and how often it was released."""

    name: str
    outputs: int
    times: int = 1

    def __post_init__(self) -> None:
        for what, value in (("outputs", self.outputs), ("times", self.times)):
            check_whole(f"{what} of {self.name!r}", value)


@dataclass(frozen=True)
class Ledger:
    """What has been released from one dataset."""

    releases: tuple[LedgerEntry, ...] = ()

    @property
    def outputs(self) -> int:
        """The product of all outputs: the bound on what one individual can change in all releases."""
        return math.prod(r.outputs**r.times for r in self.releases)

    @property
    def epsilon(self) -> float:
        """log2 of the product (bits, rounded upwards): the sum of the budgets spent."""
        bits = sum((Fraction(epsilon_for(r.outputs)) * r.times for r in self.releases), Fraction(0))
        # Beyond, the product has thousands of digits, and the sum of budgets rounded upwards is as good.
        return (
            epsilon_for(self.outputs) if bits <= LARGEST_EPSILON else quotient_above(*bits.as_integer_ratio())
        )

    def add(self, name: str, released: FibreCertificate | int, times: int = 1) -> Ledger:
        """The ledger with one more release. Post-processing of a release adds nothing (Theorem 7).

        Raises
        ------
        InputError
            If `released` or `times` is below 1.
        """
        outputs = released.outputs if isinstance(released, FibreCertificate) else released
        return replace(self, releases=(*self.releases, LedgerEntry(name, outputs, times)))
