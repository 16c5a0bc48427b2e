"""The blurring policy against a hypothesis, and how private it really is.

Farokhi 2020, Theorem 4: where the hypothesis is x_i >= g(x_-i), report g(x_-i) instead of every x_i
within 1/rho of it. The theorem measures outputs by Lebesgue measure, under which the blurred strip
is a surface of measure zero and nothing is gained. Here they are measured by their pre-images in X,
and a fibre of the strip counts only if both hypotheses occur in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.core.arguments import fraction_of
from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.nonstochastic.hypothesis import finite_problem
from mechdesign.nonstochastic.indistinguishability import read_box
from mechdesign.nonstochastic.ranges import JointRange, log_ratio

Points = NDArray[np.float64]
Boundary = Callable[[Points], Any]

BOUNDARY_ERROR = 2.0**-40
"""Relative error granted to a boundary function evaluated in doubles (4,096 roundings)."""

SUM_ERROR = 2.0**-40
"""Relative error granted to the sum over the cells: each term is rounded a few times."""

LARGEST_CELLS = 4_000_000
"""Cells of the other coordinates: 32 MB an array."""


@dataclass(frozen=True, kw_only=True)
class BlurringPolicy:
    """Report the boundary instead of anything within 1/rho of it (Theorem 4).

    Parameters
    ----------
    boundary
        g, on arrays of the other coordinates, shape (N, n - 1), to values of shape (N,).
    coordinate
        Which coordinate i the boundary bounds, from 0.
    rho
        Accuracy: no report is farther than 1/rho from the truth.
    """

    boundary: Boundary
    coordinate: int
    rho: float

    def __post_init__(self) -> None:
        if not 0 < self.rho < math.inf:
            raise InputError(
                f"rho ({self.rho:g}) must be positive and finite; 1/rho is the largest error"
            )
        if self.coordinate < 0:
            raise InputError(f"coordinate ({self.coordinate}) must be 0 or more")

    def _split(self, points: ArrayLike) -> tuple[Points, Points, Points]:
        """The points as a table (N, n), their coordinate i, and the boundary beside it."""
        table = np.asarray(points, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] <= self.coordinate:
            raise InputError(
                f"points must have shape (N, n) with n above coordinate {self.coordinate}, not "
                f"{table.shape}"
            )
        if not bool(np.isfinite(table).all()):
            raise InputError("points must be finite numbers; drop NaN and infinities")
        others = np.delete(table, self.coordinate, axis=1)
        return table, table[:, self.coordinate], self.evaluate(others)

    def evaluate(self, others: Points) -> Points:
        """The boundary at the other coordinates, checked.

        Raises
        ------
        InputError
            If the boundary function returns another shape or something not finite.
        """
        values = np.asarray(self.boundary(others), dtype=np.float64)
        if values.shape != (others.shape[0],):
            raise InputError(
                f"the boundary function must return shape ({others.shape[0]},), not {values.shape}"
            )
        if not bool(np.isfinite(values).all()):
            raise InputError(
                "the boundary function must return finite numbers on the whole domain"
            )
        return values

    def hypothesis(self, points: ArrayLike) -> NDArray[np.bool_]:
        """Whether p0 (x_i >= g) holds for each point, shape (N,)."""
        _, coordinate, limit = self._split(points)
        return coordinate >= limit

    def apply(self, points: ArrayLike) -> Points:
        """The reports, shape (N, n)."""
        table, coordinate, limit = self._split(points)
        reports = table.copy()
        is_near = np.abs(coordinate - limit) <= 1 / self.rho
        reports[:, self.coordinate] = np.where(is_near, limit, coordinate)
        return reports


@dataclass(frozen=True)
class BlurredMeasure:
    """Bounds of what is ambiguous after blurring, as measures of pre-images in X."""

    total: Fraction
    ambiguous: tuple[float, float]
    strip: tuple[float, float]

    @property
    def epsilon(self) -> tuple[float, float]:
        """Bounds of epsilon = ambiguous / (total - ambiguous); the lower one is guaranteed."""
        return _ratio(self.ambiguous[0], self.total), _ratio(
            self.ambiguous[1], self.total
        )

    @property
    def claimed(self) -> tuple[float, float]:
        """Bounds of the epsilon that Theorem 4 prints, [total / strip - 1]^-1."""
        return _ratio(self.strip[0], self.total), _ratio(self.strip[1], self.total)


def _ratio(part: float, total: Fraction) -> float:
    rest = float(total) - part
    return part / rest if rest > 0 else math.inf


def blurred_measure(
    policy: BlurringPolicy,
    domain: Sequence[tuple[Any, Any]],
    *,
    monotone: Sequence[int],
    cells: int = 1000,
) -> BlurredMeasure:
    """Enclose the privacy of a blurring policy on a product of intervals.

    The other coordinates are cut into cells; on each, the boundary lies between two values, and the
    part of a fibre within 1/rho of the boundary is a concave function of it. So sums of least and
    of largest values enclose the integrals. The truth of `monotone` is the caller's.

    Parameters
    ----------
    policy
        The policy.
    domain
        (low, high) of every coordinate.
    monotone
        For each other coordinate, in order: +1 if the boundary rises (or is constant) in it, -1 if
        it falls.
    cells
        Cells along each of the other coordinates.

    Raises
    ------
    InputError
        On an unusable domain, or a boundary that is not monotone as said.
    """
    box = read_box("domain", list(domain))
    if policy.coordinate >= len(box):
        raise InputError(
            f"coordinate ({policy.coordinate}) must be below the {len(box)} of the domain"
        )
    others = [side for k, side in enumerate(box) if k != policy.coordinate]
    signs = np.asarray(monotone)
    if signs.shape != (len(others),) or not bool(np.isin(signs, (-1, 1)).all()):
        raise InputError(
            f"monotone must hold +1 (rises) or -1 (falls) for each of the {len(others)} other "
            "coordinate(s)"
        )
    total = math.prod((high - low for low, high in box), start=Fraction(1))
    if total == 0:
        raise InputError("the domain has measure zero: some coordinate cannot vary")
    if cells < 1 or cells ** len(others) > LARGEST_CELLS:
        raise InputError(
            f"cells ({cells}) must be positive, and at most {LARGEST_CELLS:,} over all coordinates"
        )
    least, largest, volumes = _enclose(policy, others, signs, cells)
    low, high = (float(end) for end in box[policy.coordinate])
    radius = 1 / policy.rho

    def length(limit: Points) -> Points:
        return _within(limit, low, high, radius)

    def enclosed_sum(lower: Points, upper: Points) -> tuple[float, float]:
        least_sum = math.fsum((lower * volumes).tolist()) * (1 - SUM_ERROR)
        largest_sum = math.fsum((upper * volumes).tolist()) * (1 + SUM_ERROR)
        return least_sum, min(largest_sum, float(total))

    # The length is concave in the boundary. So on a cell it is least at one of the two ends, and
    # largest at one of its kinks, or at the end that is nearest to that kink.
    lower = np.minimum(length(least), length(largest))
    upper = np.maximum(
        length(np.clip(low + radius, least, largest)),
        length(np.clip(high - radius, least, largest)),
    )
    # A boundary on the edge of X leaves one hypothesis a null set: it counts only in the upper
    # bound.
    surely = (least > low) & (largest < high)
    maybe = (largest > low) & (least <= high)
    ambiguous = enclosed_sum(lower * surely, upper * maybe)
    return BlurredMeasure(total, ambiguous, enclosed_sum(lower, upper))


def _within(limit: Points, low: float, high: float, radius: float) -> Points:
    """Length of [low, high] within `radius` of the boundary.

    It is concave in the boundary where it is positive.
    """
    return np.maximum(
        np.minimum(high, limit + radius) - np.maximum(low, limit - radius), 0.0
    )


def _enclose(
    policy: BlurringPolicy,
    others: Sequence[tuple[Fraction, Fraction]],
    signs: NDArray[Any],
    cells: int,
) -> tuple[Points, Points, Points]:
    """Least and largest value of the boundary on every cell, and the volume of every cell."""
    cuts = [np.linspace(float(low), float(high), cells + 1) for low, high in others]
    starts = _grid([axis[:-1] for axis in cuts])
    stops = _grid([axis[1:] for axis in cuts])
    # A monotone boundary is least at one corner of a cell and largest at the opposite one.
    least = policy.evaluate(np.where(signs > 0, starts, stops))
    largest = policy.evaluate(np.where(signs > 0, stops, starts))
    if bool((least > largest).any()):
        raise InputError("the boundary is not monotone as said: check the signs")
    slack = BOUNDARY_ERROR * np.maximum(np.abs(least), np.abs(largest))
    return least - slack, largest + slack, np.prod(stops - starts, axis=1)


def _grid(axes: Sequence[Points]) -> Points:
    if not axes:
        return np.zeros((1, 0))
    return np.stack(
        [part.reshape(-1) for part in np.meshgrid(*axes, indexing="ij")], axis=1
    )


def preimage_epsilon(
    joint: JointRange, hypothesis: Callable[[Any], bool] | Mapping[Hashable, bool]
) -> Fraction | None:
    """Epsilon of a deterministic policy on finitely many x, outputs measured by their pre-images.

    The number of x whose output is compatible with both hypotheses over the number of the others;
    None if there are no others (unlimited).

    Raises
    ------
    InputError
        If an x has several outputs, or a hypothesis never occurs.
    """
    if int(joint.reverse.x_sizes.max()) > 1:
        raise InputError(
            "pre-images measure deterministic policies: here some x has several outputs"
        )
    problem = finite_problem(joint, hypothesis)
    ambiguous = sum(
        joint.y_symbols[j] in problem.ambiguous for j in joint.columns.tolist()
    )
    telling = joint.n_pairs - ambiguous
    return Fraction(ambiguous, telling) if telling else None


def read_epsilon(epsilon: object) -> Fraction:
    """An epsilon of epsilon-privacy (a ratio, not bits) as an exact number."""
    try:
        value = fraction_of(epsilon)
    except InputError:
        raise InputError(f"epsilon ({quoted(epsilon)}) must be a number") from None
    if value <= 0:
        raise InputError(f"epsilon ({float(value):g}) must be positive")
    return value


def leakage_bound(epsilon: object, unit: str = "nats") -> float:
    """What epsilon-privacy promises of L0(Y;H): log((1 + epsilon) / epsilon), tight.

    The paper's Proposition 1, -log(1 - e^-epsilon), is false: Y = [0, 1] with [[Y|p1]] = [0.5, 1]
    has epsilon = 1 and L0 = log 2 > 0.459. Its proof takes Priv >= epsilon for
    Priv >= log(1 + epsilon).
    """
    value = read_epsilon(epsilon)
    if unit not in ("nats", "bits"):
        raise InputError(f"unit ({quoted(unit)}) must be 'nats' or 'bits'")
    return log_ratio((1 + value) / value, unit)
