"""Several releases from the same data: budgets add, and a ledger keeps the sum.

The outputs of several mechanisms on one fibre are at most the product of their numbers (Farokhi
2020, Theorem 6), which is kept as an exact integer. Quantisers of the same query are counted
together instead: releasing all their cells is releasing the cells of their common refinement, and
that costs less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

from mechdesign.core.errors import InputError, NotPrivate
from mechdesign.nonstochastic.levels import LARGEST_EPSILON, LARGEST_NAMED, epsilon_for, outputs_allowed
from mechdesign.nonstochastic.noiseless import Certificate, certify
from mechdesign.nonstochastic.quantizers import Quantizer, double_at_least
from mechdesign.nonstochastic.queries import Query


@dataclass(frozen=True)
class Release:
    """One entry of a ledger: its name, the most outputs on a fibre, and how often it was released."""

    name: str
    outputs: int
    times: int = 1

    def __post_init__(self) -> None:
        for what, value in (("outputs", self.outputs), ("times", self.times)):
            whole = isinstance(value, int) and not isinstance(value, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
            if not whole or value < 1:
                raise InputError(f"{what} ({value!r}) of {self.name!r} must be an integer of at least 1")


@dataclass(frozen=True)
class Ledger:
    """What has been released from one dataset, under a limit that it never exceeds.

    Parameters
    ----------
    limit
        Total budget in bits, or None for a ledger that only adds up.
    """

    limit: float | None = None
    releases: tuple[Release, ...] = ()

    def __post_init__(self) -> None:
        if self.limit is None:
            return
        allowed = outputs_allowed(self.limit)
        if self._bits > LARGEST_EPSILON or self.outputs > allowed:
            raise NotPrivate(
                f"the releases allow {_count(self)} outputs together, more than the "
                f"{allowed if allowed < LARGEST_NAMED else f'2^{self.limit:g}'} "
                f"of the limit of {self.limit:g} bits; release less, or raise the limit"
            )

    @property
    def outputs(self) -> int:
        """The product of all outputs: the bound on what one individual can change in all releases."""
        return math.prod(r.outputs**r.times for r in self.releases)

    @property
    def _bits(self) -> Fraction:
        """The sum of the budgets of the single releases, each rounded upwards."""
        each = (Fraction(epsilon_for(r.outputs)) * r.times for r in self.releases)
        return sum(each, Fraction(0))

    @property
    def epsilon(self) -> float:
        """log2 of the product (bits, rounded upwards): the sum of the budgets spent."""
        bits = self._bits
        return epsilon_for(self.outputs) if bits <= LARGEST_EPSILON else double_at_least(bits)

    @property
    def remaining(self) -> int | None:
        """The outputs that one more release may have; None without a limit."""
        return None if self.limit is None else outputs_allowed(self.limit) // self.outputs

    def add(self, name: str, released: Certificate | int, times: int = 1) -> Ledger:
        """The ledger with one more release. Post-processing of a release adds nothing (Theorem 7).

        Raises
        ------
        NotPrivate
            If the limit would be exceeded.
        InputError
            If `released` or `times` is below 1.
        """
        outputs = released.outputs if isinstance(released, Certificate) else released
        return replace(self, releases=(*self.releases, Release(name, outputs, times)))


def _count(ledger: Ledger) -> str:
    """The product in words: an integer of thousands of digits helps nobody, and Python refuses to write it."""
    bits = ledger.epsilon
    small = bits <= LARGEST_EPSILON and ledger.outputs < LARGEST_NAMED
    return str(ledger.outputs) if small else f"some 2^{bits:g}"


def certify_together(query: Query, quantizers: Sequence[Quantizer]) -> Certificate:
    """The most outputs, exactly, when several quantisers of the same query are all released.

    Never more than the product, and for a query whose fibres are intervals at most the sum of the
    numbers less (k - 1).

    Raises
    ------
    InputError
        If there are none, or their ranges differ.
    """
    if not quantizers:
        raise InputError("give at least one quantiser")
    return certify(query, reduce(Quantizer.refine, quantizers))
