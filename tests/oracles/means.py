"""The averaged lift measures with 80 digits, from counts and rows alone; shares no code with the
package.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

from tests.oracles.lifts import lifts

DIGITS = 80
CONTEXT = Context(prec=DIGITS)
DOUBT = Decimal(10) ** -60
"""Closer than this to a limit the oracle refuses to decide."""


def decimal(value: Fraction) -> Decimal:
    return CONTEXT.divide(Decimal(value.numerator), Decimal(value.denominator))


def budget_of(
    p_s: list[Fraction], values: list[Fraction | None], kind: str, order: float
) -> Decimal | None:
    """The smallest eps that bounds the mean of these lifts (or inverses); None for infinity."""
    if None in values:
        return None
    with localcontext(CONTEXT):
        if kind == "l1":
            return (
                1
                + decimal(sum(p * abs(v - 1) for p, v in zip(p_s, values, strict=True)))
            ).ln()
        if kind == "chi2":
            return (
                1
                + decimal(
                    sum(p * (v - 1) ** 2 for p, v in zip(p_s, values, strict=True))
                ).sqrt()
            ).ln()
        exponent = Decimal(order)
        mean = sum(
            decimal(p) * (decimal(v).ln() * exponent).exp()
            for p, v in zip(p_s, values, strict=True)
            if v
        )
        return mean.ln() / exponent


def divergence(
    p_s: list[Fraction], lifts_of: list[Fraction], *, inverse: bool
) -> Decimal | None:
    """KL(P(S|y), P(S)) from the lifts of an output, or KL(P(S), P(S|y)); None for infinity."""
    if inverse and 0 in lifts_of:
        return None
    with localcontext(CONTEXT):
        total = Decimal(0)
        for p, v in zip(p_s, lifts_of, strict=True):
            if v == 0 or v == 1:
                continue
            weight = p
            if not inverse:
                weight = p * v
            sign = -1 if inverse else 1
            total += sign * decimal(weight) * decimal(v).ln()
        return total


def used(
    counts, rows, kind: str, order: float = math.nan
) -> tuple[Decimal | None, Decimal | None]:
    """The budgets (eps_l, eps_u) that the worst output uses; None for infinity."""
    total = sum(map(sum, counts))
    p_s = [Fraction(sum(row), total) for row in counts]
    columns = lifts(counts, rows)
    if kind == "kl":
        reverse = [divergence(p_s, column, inverse=True) for column in columns]
        forward = [divergence(p_s, column, inverse=False) for column in columns]
        return (None if None in reverse else max(reverse)), max(forward)
    below = [
        budget_of(p_s, [1 / v if v else None for v in column], kind, order)
        for column in columns
    ]
    above = [budget_of(p_s, column, kind, order) for column in columns]
    return (None if None in below else max(below)), max(above)


def keeps(value: Decimal | None, limit: float) -> bool:
    """Whether the budget used is at most the limit."""
    if math.isinf(limit):
        return True
    if value is None:
        return False
    assert value == 0 or abs(value - Decimal(limit)) > DOUBT, (
        "too close for this oracle"
    )
    return value <= Decimal(limit)


def satisfies(counts, rows, limits) -> bool:
    """Whether every output keeps to the `MeanLimits`."""
    below, above = used(
        counts, rows, limits.mean.name, getattr(limits.mean, "order", math.nan)
    )
    return keeps(below, limits.lower) and keeps(above, limits.upper)
