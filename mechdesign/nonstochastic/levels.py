"""How many outputs a budget of epsilon bits allows, and what so many outputs promise.

Only K = floor(2^epsilon) matters (theory.md, section 6), and interval arithmetic tells it. All promises follow from K,
the most outputs on a fibre, corrected, for product ranges: nobody's data limit the others'.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from mechdesign.core.balls import FIRST_BITS, log2_above, precision
from mechdesign.core.errors import InputError
from mechdesign.core.rationals import fraction_of
from mechdesign.core.wording import quoted
from mechdesign.nonstochastic.domains import check_whole, exact_number

LARGEST_EPSILON = 10_000
"""In bits. 2^epsilon is kept as an integer; the sum of a thousand generous releases still fits."""

WORTH_A_NOTICE = Fraction(1, 10**6)
"""2^epsilon within this (relative) below an integer is most likely meant to be that integer."""

LARGEST_NAMED = 10**5
"""Above this many outputs nobody means one integer in particular, and no notice names it."""


@dataclass(frozen=True)
class Allowance:
    """At most `outputs` = floor(2^epsilon) distinct outputs; `notice` says so where 2^epsilon is no integer."""

    epsilon: Fraction
    outputs: int
    notice: str


def _check(epsilon: object) -> Fraction:
    try:
        value = fraction_of(epsilon)
    except InputError:
        raise InputError(
            f"epsilon ({quoted(epsilon)}) must be a number of bits from 0 to {LARGEST_EPSILON}"
        ) from None
    if value < 0:
        raise InputError(
            f"epsilon ({float(value):g}) allows fewer than one output (2^epsilon < 1); "
            "it must be 0 (one output, nothing released) or more"
        )
    if value > LARGEST_EPSILON:
        raise InputError(
            f"epsilon ({float(value):g} bits) must be at most {LARGEST_EPSILON}: it limits nothing"
        )
    return value


def _floor_of_power(exponent: Fraction, scale: int = 1) -> int:
    """floor(scale * 2^exponent); exponent is not an integer, so the enclosures settle it."""
    import flint

    bits = FIRST_BITS + abs(int(exponent)) + scale.bit_length()
    while True:
        with precision(bits):
            power = (
                flint.arb(flint.fmpq(exponent.numerator, exponent.denominator))
                * flint.arb.const_log2()
            )
            floor = (power.exp() * scale).floor().unique_fmpz()
        if floor is not None:
            return int(floor)
        bits *= 2


def outputs_allowed(epsilon: object) -> int:
    """floor(2^epsilon), exactly, for epsilon in bits.

    Parameters
    ----------
    epsilon
        An integer, a float (taken as what its bits say), a Fraction or decimal text.

    Raises
    ------
    InputError
        If it is no number, is negative (fewer than one output) or above `LARGEST_EPSILON`.
    """
    value = _check(epsilon)
    if value.denominator == 1:
        return 1 << value.numerator
    return _floor_of_power(value)


def epsilon_for(outputs: int) -> float:
    """The smallest double epsilon (bits) that allows `outputs` outputs: log2 rounded upwards.

    Raises
    ------
    InputError
        If `outputs` is not an integer between 1 and 2^`LARGEST_EPSILON`.
    """
    if check_whole("outputs", outputs) > 1 << LARGEST_EPSILON:
        # Python refuses to write integers of thousands of digits.
        raise InputError(
            f"outputs (some 2^{outputs.bit_length() - 1}) must be at most 2^{LARGEST_EPSILON}"
        )
    return log2_above(Fraction(outputs))


def allowance(epsilon: object) -> Allowance:
    """What `epsilon` bits allow, with a notice where 2^epsilon is rounded down."""
    value = _check(epsilon)
    outputs = outputs_allowed(value)
    if value.denominator == 1:
        return Allowance(value, outputs, "")
    if outputs >= LARGEST_NAMED:
        return Allowance(
            value, outputs, "2^epsilon is not an integer; it is rounded down"
        )
    scaled = _floor_of_power(value, WORTH_A_NOTICE.denominator)
    if scaled >= (outputs + 1) * (WORTH_A_NOTICE.denominator - 1):
        notice = (
            f"2^epsilon is just below {outputs + 1}, so {outputs} outputs are allowed; "
            f"for {outputs + 1} say epsilon {epsilon_for(outputs + 1)!r}"
        )
    else:
        power = scaled / WORTH_A_NOTICE.denominator
        notice = (
            f"2^epsilon = {power:.6g} is rounded down: {outputs} outputs are allowed"
        )
    return Allowance(value, outputs, notice)


def share_of(total_epsilon: object, answers: int) -> int:
    """The largest K with K^answers <= floor(2^total_epsilon): the outputs that each answer may have.

    The outputs of all answers that one individual takes part in multiply (Farokhi 2020, Theorem 6). Of all
    ways to divide a total among them, equal shares have the largest smallest number of outputs.
    """
    from flint import fmpz

    return int(fmpz(outputs_allowed(total_epsilon)).root(answers))


def smallest_cell(symbols: int, epsilon: object) -> int:
    """The smallest integer >= ``symbols * 2^-epsilon``: such cells are epsilon-identifiable (theory.md, 6 and 7)."""
    value = _check(epsilon)
    if value.denominator == 1:
        return max(1, -(-symbols // (1 << value.numerator)))
    # symbols * 2^-epsilon is irrational, so its ceiling is its floor plus one.
    return _floor_of_power(-value, symbols) + 1


@dataclass(frozen=True)
class RangePromise:
    """One promise: `bound` in `unit`, with the theorem of Farokhi 2020 that it rests on."""

    name: str
    theorem: str
    bound: float
    unit: str
    meaning: str


def promises(outputs: int, width: object = None) -> tuple[RangePromise, ...]:
    """The promises of a mechanism with at most `outputs` outputs on every fibre.

    Parameters
    ----------
    outputs
        K, from a certificate.
    width
        Length of the interval domain of one individual; adds the bound on the estimation error.
    """
    bits = epsilon_for(outputs)
    pair = 1.0 if outputs > 1 else -math.inf
    found = [
        RangePromise("leakage", "Theorem 1", bits, "bits", "non-stochastic leakage L0(Y;X_i), and so I* and L0s"),
        RangePromise("capacity", "Theorem 2", bits, "bits", "zero-error capacity of repeated releases, per release"),
        RangePromise("hypothesis test", "Theorem 3", bits, "bits", "performance of any test on x_i, the others known"),
        RangePromise(
            "test of two values", "sharper than Theorem 3", min(bits, pair), "bits",
            "performance of a test between two values of x_i: two outputs at most can tell",
        ),
        RangePromise("maximal leakage", "Theorem 5", bits, "bits", "stochastic maximal leakage under any prior"),
    ]  # fmt: skip
    if width is not None and exact_number("width", width) > 0:
        # Theorem 4, corrected: in each of the K cells the best guess is the middle, and equal cells make the sum
        # smallest, so E >= width / (4 K), which K equal cells reach.
        least = float(exact_number("width", width) / (4 * outputs))
        found.append(
            RangePromise(
                "estimation error", "Theorem 4, corrected", math.nextafter(least, 0.0), "units of the column",
                "least mean absolute error of any estimate of x_i, if x_i is uniform given the others",
            )
        )  # fmt: skip
    return tuple(found)


ASSUMPTIONS = (
    "each individual contributes one value to each answer; with more, budgets add (composition)",
    "the range was not taken from the data, and who is in the data and in which group is public",
    "any value of one individual is possible together with any values of the others",
)
"""Without these the guarantees do not hold; files and reports repeat them."""
