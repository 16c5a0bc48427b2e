"""The exact verdict on notions about averages over S: l1-, chi2- and alpha-lift and their inverses.

Part of `auditing`, and as independent as that: integers of the table and of the channel in, balls that are
refined until every comparison is decided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mechdesign.balls import FIRST_BITS, at_most, double_above, lower, precision, upper
from mechdesign.errors import InputError
from mechdesign.exact_lifts import Column
from mechdesign.exact_means import OutputMasses, budget, largest_term, masses_by_output
from mechdesign.joint import Joint
from mechdesign.notions import MeanLimits


@dataclass(frozen=True)
class Used:
    """The smallest budgets (doubles, nats) of the notion itself that the channel keeps to; ``inf`` if none."""

    eps_l: float
    eps_u: float


@dataclass(frozen=True)
class MeanVerdict:
    """Which outputs fail, what the channel uses, and its worst output with the symbol that weighs most there.

    `lift` is the numerator and the denominator of l(s, y) of the worst pair.
    """

    failing: tuple[int, ...]
    used: Used
    s: int
    y: int
    lift: tuple[int, int]


@dataclass(frozen=True)
class _Side:
    """One of the two bounds; its balls are made anew at every precision asked for."""

    limits: MeanLimits
    inverse: bool

    @property
    def limit(self) -> float:
        return self.limits.lower if self.inverse else self.limits.upper

    def ball(self, output: OutputMasses) -> Any:
        return budget(output, self.limits.kind, self.limits.order, inverse=self.inverse)

    def fails(self, output: OutputMasses, first: Any) -> bool:
        if math.isinf(self.limit):
            return False
        return first is None or not at_most(lambda: self.ball(output), self.limit, first)

    def used(self, outputs: Sequence[OutputMasses], balls: Sequence[Any]) -> tuple[float, int]:
        """The smallest double that bounds every ball, and the first output that needs it."""
        if None in balls:
            return math.inf, balls.index(None)
        best, at = -1.0, 0
        # The likeliest first: most of the others are then settled by their first ball.
        for y in sorted(range(len(balls)), key=lambda y: -lower(balls[y])):
            if best >= upper(balls[y]):
                continue
            exact = outputs[y].is_constant
            value = 0.0 if exact else double_above(lambda y=y: self.ball(outputs[y]))
            if value > best:
                best, at = value, y
        return best, at


def failing_means(
    counts: Sequence[Sequence[int]], columns: Sequence[Column], joint: Joint, limits: MeanLimits
) -> tuple[int, ...]:
    """Positions of the outputs that violate the limits; arguments as those of `auditing.audit_columns`."""
    return _failing(*_measured(counts, columns, joint, limits))


def mean_verdict(
    counts: Sequence[Sequence[int]], columns: Sequence[Column], joint: Joint, limits: MeanLimits
) -> MeanVerdict:
    """The exact verdict; arguments as those of `auditing.audit_columns`.

    Raises
    ------
    InputError
        If there is no output.
    """
    sides, outputs, balls = _measured(counts, columns, joint, limits)
    if not outputs:
        raise InputError("a channel needs at least one output")
    used = [side.used(outputs, each) for side, each in zip(sides, balls, strict=True)]
    # Used budgets are the smallest doubles, so a violated side comes before a satisfied one.
    side, (_, y) = max(
        (pair for pair in zip(sides, used, strict=True) if math.isfinite(pair[0].limit)),
        key=lambda pair: pair[1][0] / pair[0].limit,
    )
    s = largest_term(outputs[y], limits.kind, limits.order, inverse=side.inverse)
    return MeanVerdict(
        failing=_failing(sides, outputs, balls),
        used=Used(eps_l=used[1][0], eps_u=used[0][0]),
        s=s,
        y=y,
        lift=outputs[y].numerators()[s],
    )


def _measured(
    counts: Sequence[Sequence[int]], columns: Sequence[Column], joint: Joint, limits: MeanLimits
) -> tuple[list[_Side], list[OutputMasses], list[list[Any]]]:
    sides = [_Side(limits, inverse=False), _Side(limits, inverse=True)]
    outputs = list(masses_by_output(counts, columns, joint))
    with precision(FIRST_BITS):
        balls = [[side.ball(output) for output in outputs] for side in sides]
    return sides, outputs, balls


def _failing(sides: list[_Side], outputs: list[OutputMasses], balls: list[list[Any]]) -> tuple[int, ...]:
    return tuple(
        y
        for y, output in enumerate(outputs)
        if any(side.fails(output, each[y]) for side, each in zip(sides, balls, strict=True))
    )
