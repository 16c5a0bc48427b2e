"""How many outputs a budget of epsilon bits allows, decided without rounding errors.

Only floor(2^epsilon) matters to noiseless privacy and to indistinguishability (theory.md, section
6). A double epsilon near log2 of an integer is on one side of it or on the other, and no double
arithmetic can tell; interval arithmetic can, because 2^epsilon is irrational unless epsilon is an
integer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mechdesign.core.errors import InputError
from mechdesign.core.numbers import fraction_of, quoted

LARGEST_EPSILON = 10_000
"""In bits. 2^epsilon is kept as an integer; the sum of a thousand generous releases still fits."""

FIRST_PRECISION = 128
"""Bits of the first enclosure of 2^epsilon; doubled until the floor is certain."""

WORTH_A_NOTICE = Fraction(1, 10**6)
"""2^epsilon within this (relative) below an integer is most likely meant to be that integer."""

LARGEST_NAMED = 10**5
"""Above this many outputs nobody means one integer in particular, and no notice names it."""


@dataclass(frozen=True)
class Allowance:
    """What a budget allows: at most `outputs` = floor(2^epsilon) distinct outputs.

    `notice` is empty, or says that 2^epsilon is not an integer and what that means.
    """

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


def _enclosed_power(exponent: Fraction, precision: int) -> Any:
    """2^exponent as an Arb interval of `precision` bits."""
    import flint

    with flint.ctx.workprec(precision):
        power = flint.arb(flint.fmpq(exponent.numerator, exponent.denominator))
        return (power * flint.arb.const_log2()).exp()


def _floor_of_power(exponent: Fraction, scale: int = 1) -> int:
    """floor(scale * 2^exponent); exponent is not an integer, so the enclosures settle it."""
    import flint

    precision = FIRST_PRECISION + abs(int(exponent)) + scale.bit_length()
    while True:
        with flint.ctx.workprec(precision):
            floor = (_enclosed_power(exponent, precision) * scale).floor().unique_fmpz()
        if floor is not None:
            return int(floor)
        precision *= 2


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
    if isinstance(outputs, bool) or not isinstance(outputs, int) or outputs < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"outputs ({quoted(outputs)}) must be an integer from 1 to 2^{LARGEST_EPSILON}")
    if outputs > 1 << LARGEST_EPSILON:
        # Python refuses to write integers of thousands of digits.
        raise InputError(f"outputs (some 2^{outputs.bit_length() - 1}) must be at most 2^{LARGEST_EPSILON}")
    epsilon = math.log2(outputs)
    while outputs_allowed(epsilon) < outputs:
        epsilon = math.nextafter(epsilon, math.inf)
    while epsilon > 0 and outputs_allowed(math.nextafter(epsilon, 0.0)) >= outputs:
        epsilon = math.nextafter(epsilon, 0.0)
    return epsilon


def allowance(epsilon: object) -> Allowance:
    """What `epsilon` bits allow, with a notice where 2^epsilon is rounded down."""
    value = _check(epsilon)
    outputs = outputs_allowed(value)
    if value.denominator == 1:
        return Allowance(value, outputs, "")
    if outputs >= LARGEST_NAMED:
        return Allowance(value, outputs, "2^epsilon is not an integer; it is rounded down")
    scaled = _floor_of_power(value, WORTH_A_NOTICE.denominator)
    if scaled >= (outputs + 1) * (WORTH_A_NOTICE.denominator - 1):
        notice = (
            f"2^epsilon is just below {outputs + 1}, so {outputs} outputs are allowed; "
            f"for {outputs + 1} say epsilon {epsilon_for(outputs + 1)!r}"
        )
    else:
        power = scaled / WORTH_A_NOTICE.denominator
        notice = f"2^epsilon = {power:.6g} is rounded down: {outputs} outputs are allowed"
    return Allowance(value, outputs, notice)


def smallest_cell(symbols: int, epsilon: object) -> int:
    """The smallest integer that is at least ``symbols * 2^-epsilon``, exactly.

    Cells of at least this many symbols make a partition of `symbols` symbols epsilon-identifiable
    (theory.md, sections 6 and 7).
    """
    value = _check(epsilon)
    if value.denominator == 1:
        return max(1, -(-symbols // (1 << value.numerator)))
    # symbols * 2^-epsilon is irrational, so its ceiling is its floor plus one.
    return _floor_of_power(-value, symbols) + 1
