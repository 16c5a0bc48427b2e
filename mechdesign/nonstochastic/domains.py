"""What one individual's data can be: a closed interval or a finite set of numbers, exact.

For example, the kilowatt-hours of a household's day are `interval` (0, 100), and its number of
people is one of `integers` (1, 12). `finite` takes any list: (0, 0.5, 1).

Every individual ranges over its own domain independently of the others (a product range), as the
guarantees of noiseless privacy ask (docs/explanation/ranges-theory.md, 'What a number of outputs
promises').

Ends and values become exact rationals when a domain is made: a float has the value of its bits, and
a text such as "0.1" is the decimal. A domain is public. It must hold all values that anybody could
have, not only those in the data.

The types come first, then the functions that make them, and last those that read numbers from
outside (`exact_number`, `check_whole`, `doubles`), which the rest of noiseless privacy uses too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.rationals import fraction_of
from mechdesign.core.wording import quoted

MOST_INTEGERS = 1_000_000
"""Most values of a domain of integers. They are kept one by one, which takes some 200 MB."""


@dataclass(frozen=True)
class IntervalDomain:
    """All real numbers from `lo` to `hi`, both included.

    The ends may be given as numbers of any kind, or as texts; they become exact.
    """

    lo: Fraction
    hi: Fraction

    def __post_init__(self) -> None:
        lo = exact_number("lower end of the range", self.lo)
        hi = exact_number("upper end of the range", self.hi)
        if lo > hi:
            raise InputError(
                f"the range ({quoted(self.lo)}, {quoted(self.hi)}) is reversed; give lower,upper"
            )
        object.__setattr__(self, "lo", lo)
        object.__setattr__(self, "hi", hi)


@dataclass(frozen=True)
class FiniteDomain:
    """A finite set of numbers; `values` becomes exact and sorted, without repetitions."""

    values: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        # By their exact values: 1 and "1.0" are the same number.
        distinct = sorted({exact_number("domain", value) for value in self.values})
        if not distinct:
            raise InputError("the domain is empty; a range needs at least one value")
        object.__setattr__(self, "values", tuple(distinct))

    @property
    def lo(self) -> Fraction:
        """The smallest value."""
        return self.values[0]

    @property
    def hi(self) -> Fraction:
        """The largest value."""
        return self.values[-1]


Domain: TypeAlias = IntervalDomain | FiniteDomain


def interval(lo: object, hi: object) -> IntervalDomain:
    """The closed interval [lo, hi].

    Raises
    ------
    InputError
        If an end is not a finite number, or lo > hi.
    """
    # The class makes numbers of any kind exact, or refuses them.
    return IntervalDomain(cast("Fraction", lo), cast("Fraction", hi))


def finite(values: Iterable[object]) -> FiniteDomain:
    """The finite domain of these numbers; repetitions count once.

    Raises
    ------
    InputError
        If there are none, or one is not a finite number.
    """
    # As in `interval`.
    return FiniteDomain(tuple(cast("Iterable[Fraction]", values)))


def integers(lo: int, hi: int) -> FiniteDomain:
    """The integers from `lo` to `hi`, both included.

    Raises
    ------
    InputError
        If an end is not an integer, lo > hi, or there are more than `MOST_INTEGERS`.
    """
    for end in (lo, hi):
        # True and False are integers for Python, and no ends of a range.
        if type(end) is not int:
            raise InputError(f"an end of the range ({quoted(end)}) must be an integer")
    if lo > hi:
        raise InputError(f"the range ({lo}, {hi}) is reversed; give lower,upper")
    if hi - lo >= MOST_INTEGERS:
        raise InputError(
            f"the domain has {hi - lo + 1:,} values, more than {MOST_INTEGERS:,}: too many to "
            f"enumerate; interval({lo}, {hi}) needs no list and covers them"
        )
    return FiniteDomain(tuple(Fraction(value) for value in range(lo, hi + 1)))


def exact_number(name: str, value: object) -> Fraction:
    """`value` as an exact rational; a float has the exact value of its bits."""
    try:
        return fraction_of(value)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def check_whole(name: str, value: object) -> int:
    """`value` as an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{name} ({quoted(value)}) must be an integer of at least 1")
    return value


def doubles(name: str, values: Any) -> NDArray[np.float64]:
    """An array of numbers as doubles; text, which NumPy reads by rules of its own, is refused."""
    try:
        array = np.asarray(values)
        # Fractions, decimals and integers of any size come as objects.
        if array.dtype.kind == "O" and not _has_text_or_truth(array):
            array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be numbers, all of one shape") from None
    # An empty array of no declared type has the dtype of doubles or of objects.
    if array.size and array.dtype.kind not in "iuf":
        raise InputError(
            f"{name} must be numbers, not text or anything else; convert them first"
        )
    return array.astype(np.float64)


def _has_text_or_truth(array: NDArray[np.object_]) -> bool:
    """Whether a value is text or a truth value, which NumPy would make a number of."""
    return any(isinstance(value, str | bytes | bool) for value in array.reshape(-1))
