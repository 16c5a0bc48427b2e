"""Verdicts on averaged lifts from their definitions, with enclosures in decimal; shares no code
with the package.

Means of l1 and chi2 are exact fractions. `decimal` rounds +, -, * and / in the direction asked for,
and exp and ln to the nearest, so one step outwards encloses them. Every comparison is repeated with
twice the digits until it is decided; equality cannot occur, because e to a rational power other
than 0 is transcendental.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from tests.oracles.lifts import Table, lifts

FIRST_DIGITS = 50
MOST_DIGITS = 4000
WIDEST = 10**17
"""Exponents of the decimals, so that nothing overflows at any order of a double."""


class Interval:
    """lo <= x <= hi, at a number of digits."""

    def __init__(self, lo: Decimal, hi: Decimal, digits: int) -> None:
        self.lo, self.hi, self.digits = lo, hi, digits

    @classmethod
    def of(cls, value: Fraction, digits: int) -> Interval:
        top = Decimal(value.numerator)
        bottom = Decimal(value.denominator)
        return cls(
            _down(digits).divide(top, bottom), _up(digits).divide(top, bottom), digits
        )

    def __add__(self, other: Interval) -> Interval:
        return Interval(
            _down(self.digits).add(self.lo, other.lo),
            _up(self.digits).add(self.hi, other.hi),
            self.digits,
        )

    def __mul__(self, other: Interval) -> Interval:
        down = _down(self.digits)
        up = _up(self.digits)
        pairs = [(a, b) for a in (self.lo, self.hi) for b in (other.lo, other.hi)]
        return Interval(
            min(down.multiply(*pair) for pair in pairs),
            max(up.multiply(*pair) for pair in pairs),
            self.digits,
        )

    def exp(self) -> Interval:
        down = _down(self.digits)
        up = _up(self.digits)
        low = down.next_minus(down.exp(self.lo))
        return Interval(
            max(Decimal(0), low), up.next_plus(up.exp(self.hi)), self.digits
        )

    def ln(self) -> Interval:
        down = _down(self.digits)
        up = _up(self.digits)
        return Interval(
            down.next_minus(down.ln(self.lo)), up.next_plus(up.ln(self.hi)), self.digits
        )


def _down(digits: int) -> Context:
    return Context(
        prec=digits, rounding=ROUND_FLOOR, Emax=WIDEST, Emin=-WIDEST, traps=[]
    )


def _up(digits: int) -> Context:
    return Context(
        prec=digits, rounding=ROUND_CEILING, Emax=WIDEST, Emin=-WIDEST, traps=[]
    )


def _excess(
    p_s: list[Fraction],
    values: list[Fraction],
    kind: str,
    order: float,
    eps: Fraction,
    digits: int,
) -> Interval:
    """Something that is at most 0 exactly where the mean of these lifts (or inverses) keeps to eps."""
    minus_one = Interval.of(Fraction(-1), digits)
    if kind == "alpha":
        # log of (sum P(s) l^order)^(1/order) - eps, the largest value taken out so that no power overflows
        most = max(values)
        total = Interval.of(Fraction(0), digits)
        exponent = Interval.of(Fraction(order), digits)
        for p, value in zip(p_s, values, strict=True):
            if value:
                total = (
                    total
                    + Interval.of(p, digits)
                    * (exponent * Interval.of(value / most, digits).ln()).exp()
                )
        share = Interval.of(1 / Fraction(order), digits)
        return (
            Interval.of(most, digits).ln()
            + share * total.ln()
            + Interval.of(-eps, digits)
        )
    room = Interval.of(eps, digits).exp() + minus_one  # e^eps - 1
    if kind == "l1":
        mean = sum(p * abs(value - 1) for p, value in zip(p_s, values, strict=True))
        return Interval.of(mean, digits) + minus_one * room
    mean = sum(p * (value - 1) ** 2 for p, value in zip(p_s, values, strict=True))
    return Interval.of(mean, digits) + minus_one * room * room


def keeps(
    p_s: list[Fraction],
    column: list[Fraction],
    kind: str,
    order: float,
    eps: float,
    *,
    inverse: bool,
) -> bool:
    """Whether one output with these lifts keeps to the budget `eps` of one side."""
    if math.isinf(eps):
        return True
    if inverse and 0 in column:
        return False
    values = [1 / value for value in column] if inverse else column
    if all(value == 1 for value in values):
        return eps >= 0.0
    digits = FIRST_DIGITS
    while digits <= MOST_DIGITS:
        excess = _excess(p_s, values, kind, order, Fraction(eps), digits)
        if excess.hi < 0:
            return True
        if excess.lo > 0:
            return False
        digits *= 2
    raise ArithmeticError(f"undecided with {MOST_DIGITS} digits: {kind} {order} {eps}")


class Judge:
    """The lifts of a channel on a table, to be held against budgets."""

    def __init__(
        self,
        counts: Table,
        rows: list[list[int | Fraction]],
        kind: str,
        order: float = math.nan,
    ) -> None:
        total = sum(map(sum, counts))
        self.p_s = [Fraction(sum(row), total) for row in counts]
        self.columns = lifts(counts, rows)
        self.kind, self.order = kind, order

    def failing(self, eps_l: float, eps_u: float) -> tuple[int, ...]:
        """Positions of the outputs that violate one of the budgets."""
        return tuple(
            y
            for y in range(len(self.columns))
            if not (self.below(eps_l, y) and self.above(eps_u, y))
        )

    def below(self, eps: float, y: int) -> bool:
        return keeps(
            self.p_s, self.columns[y], self.kind, self.order, eps, inverse=True
        )

    def above(self, eps: float, y: int) -> bool:
        return keeps(
            self.p_s, self.columns[y], self.kind, self.order, eps, inverse=False
        )

    def is_used(self, value: float, *, inverse: bool) -> bool:
        """Whether `value` is the smallest double, from 0 on, that every output keeps to on this
        side.
        """
        side = self.below if inverse else self.above
        ys = range(len(self.columns))
        if not all(side(value, y) for y in ys):
            return False
        if math.isinf(value):
            return inverse and any(0 in column for column in self.columns)
        return value == 0.0 or not all(side(math.nextafter(value, 0.0), y) for y in ys)
