"""X-invariant randomisation R(y) of the risky symbols (Zarrabian et al. 2023, Section 3.1.1).

Every risky x draws its output from one and the same distribution, so each output has the lifts of the
merged set whatever R is; complete merging is the R with a single output.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

from mechdesign.channel import DENOMINATOR
from mechdesign.errors import InputError
from mechdesign.exact import fraction_of, listed

Randomisation: TypeAlias = str | Sequence[float]
"""`merge`, `uniform`, or the probabilities of the outputs, one for each risky symbol in the table's order."""

MERGE, UNIFORM = "merge", "uniform"

SUM_TOLERANCE = Fraction(1, 10**9)
"""Probabilities may miss a sum of 1 by this much, as those of an outside matrix; they are then normalised exactly."""


def shares_of(randomisation: Randomisation, risky: Sequence[str]) -> list[int]:
    """R(y) as positive integers that sum to 2**53.

    Parameters
    ----------
    randomisation : Randomisation
    risky : names of the symbols of X_H, at least one

    Raises
    ------
    InputError
        If R is an unknown word, has another length than X_H, an entry that is no probability, or another
        sum than 1.
    """
    if isinstance(randomisation, str):
        if randomisation == MERGE:
            return [DENOMINATOR]
        if randomisation != UNIFORM:
            raise InputError(
                f"the randomisation ({randomisation!r}) must be {MERGE}, {UNIFORM} or a list of probabilities"
            )
        return _integers([Fraction(1)] * len(risky))
    values = [fraction_of(value) for value in randomisation]
    if len(values) != len(risky):
        raise InputError(
            f"R(y) has {len(values)} probabilities, but {len(risky)} risky symbols need one each: {listed(list(risky))}"
        )
    for value in values:
        if not 0 <= value <= 1:
            raise InputError(f"R(y) contains {float(value):g}, which is no probability")
    total = sum(values, Fraction(0))
    if abs(total - 1) > SUM_TOLERANCE:
        raise InputError(f"R(y) sums to {float(total):.12g}; probabilities must sum to 1")
    return _integers(values)


def _integers(values: Sequence[Fraction]) -> list[int]:
    """Integers proportional to `values` up to one unit, by largest remainders; zeros are left out."""
    total = sum(values, Fraction(0))
    exact = [value / total * DENOMINATOR for value in values]
    whole = [value.numerator // value.denominator for value in exact]
    order = sorted(range(len(exact)), key=lambda y: whole[y] - exact[y])
    for y in order[: DENOMINATOR - sum(whole)]:
        whole[y] += 1
    return [value for value in whole if value]
