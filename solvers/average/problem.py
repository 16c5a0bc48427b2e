"""What a search for averages knows: the table, what is measured, and where posteriors may lie.

Everything that a search needs to evaluate is here: H(X), the leakage L_j(v) of a posterior v by
each measure with a subgradient, and membership in the polytopes. With the lifts w = A v, where
A[s, x] = P(s, x) / (P(s) P(x)), the leakages are

    mi                sum_s P(s) w_s log w_s        nats
    tv                sum_s P(s) |w_s - 1| / 2
    chi2              sum_s P(s) (w_s - 1)^2
    maximal-leakage   max_s w_s - 1
    guess             max_s P(s) w_s - P(t) w_t, where t is the likeliest secret
    gain              max_g sum_s G(g, s) P(s) w_s - sum_s G(t, s) P(s) w_s, with gains G(g, s) of
                      guesses g, of which t is the best one without an output

P(s) w_s = P(s|y), so the average of `guess` is by how much the best guess of S from the output is
right more often than the best one without it: P(t) w_t averages to P(t). The average of `gain` is
by how much more the best guess gains; with G = 1 for the right one and 0 for others it is `guess`.

For example, P(s, x) = [[0.4, 0.1], [0.1, 0.4]] has P(s) = P(x) = (1/2, 1/2) and A = [[1.6, 0.4],
[0.4, 1.6]]. The posterior (1, 0) has the lifts (1.6, 0.4), and leaks 0.193 nats of mi, 0.3 by tv,
0.36 by chi2, 0.6 by maximal leakage and nothing by guess, for t is its likeliest secret. Of (0, 1)
another one is, with 0.8 against 0.2, so it leaks 0.6.

*The result.* The channel is kept as outputs y with probabilities P(y) and posteriors P(x | y),
which average to P(x); `channel` makes P(y | x) = P(y) P(x | y) / P(x) of them. For example, with
P(x) = (1/2, 1/2),

    weights       1/2          1/4      1/4
    points        (1/2, 1/2)   (1, 0)   (0, 1)
    P(y | x=0)    1/2          1/2      0
    P(y | x=1)    1/2          0        1/2
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from solvers.errors import EmptyPolytope, InvalidOption, InvalidPolytope
from solvers.points import Array, Points, entropy_terms
from solvers.results import EnvelopeStatus
from solvers.sets.polytope import Polytope

MOST_PAIRED = 3000
"""Symbols up to which all pairs are held in memory."""

LEAST_TANGENT = 1e-7
"""Tangents of w log w touch it here at the least: at zero it has none."""

FEW_ULP = 16.0 * np.finfo(np.float64).eps
"""Relative rounding error of a lift, a tangent or an entropy, generously."""

WORST_SUM = 1e-9
"""Distance from 1 within which the entries of a joint table sum to one."""

POLISHING_STEPS = 30
"""Steps of the descent on a column's own support."""

FIRST_STEP = 0.3
"""Length of the first of them, in units of the entropy's own curvature."""

SMALLEST_ENTRY = 1e-11
"""Entries of a column below this become zeros."""


class Measure(StrEnum):
    """What an output leaks about S, on average over the outputs."""

    MUTUAL_INFORMATION = "mi"
    TOTAL_VARIATION = "tv"
    CHI_SQUARE = "chi2"
    MAXIMAL_LEAKAGE = "maximal-leakage"
    GUESS = "guess"
    GAIN = "gain"


def measure_of(name: Measure | str) -> Measure:
    """The measure of this name; InvalidOption if there is none."""
    try:
        return Measure(name)
    except ValueError:
        names = ", ".join(known.value for known in Measure)
        raise InvalidOption(f"measure ({name}) must be one of {names}") from None


@dataclass(frozen=True, eq=False)
class Leakage:
    """L(v) = sum_s P(s) f(w_s) of one measure, or one of its maxima; w are the lifts of v.

    `secrets` is P(s), (m,), `gains` is G, (g, m), of the measure gain.
    """

    measure: Measure
    secrets: Array
    gains: Array | None = None

    @property
    def is_smooth(self) -> bool:
        """Whether f needs infinitely many tangents."""
        return self.measure in (Measure.MUTUAL_INFORMATION, Measure.CHI_SQUARE)

    @property
    def guesses(self) -> Array | None:
        """What each guess gains as a function of the lifts, (g, m); None for other measures."""
        if self.measure is Measure.GUESS:
            return np.diag(self.secrets)
        if self.gains is None:
            return None
        return self.gains * self.secrets

    @staticmethod
    def best(guesses: Array) -> int:
        """The guess that gains most without any output, where all lifts are 1."""
        return int(guesses.sum(axis=1).argmax())

    def of_lifts(self, lifts: Array) -> Array:
        """L of points with these lifts (k, m); (k,)."""
        guesses = self.guesses
        if guesses is not None:
            gained = lifts @ guesses.T
            return gained.max(axis=1) - gained[:, self.best(guesses)]
        if self.measure is Measure.MAXIMAL_LEAKAGE:
            return np.maximum(lifts.max(axis=1) - 1.0, 0.0)
        if self.measure is Measure.TOTAL_VARIATION:
            return 0.5 * np.abs(lifts - 1.0) @ self.secrets
        return self.term(lifts) @ self.secrets

    def term(self, lifts: Array) -> Array:
        """f of a smooth measure, never negative: (w - 1)^2, or w log w + 1 - w.

        The 1 - w adds nothing to L, because sum_s P(s) w_s = 1.
        """
        if self.measure is Measure.CHI_SQUARE:
            return (lifts - 1.0) ** 2
        # entropy_terms(w) is -w log w.
        return 1.0 - lifts - entropy_terms(lifts)

    def slope(self, lifts: Array) -> Array:
        """The derivative of `term`; lifts must be positive."""
        if self.measure is Measure.CHI_SQUARE:
            return 2.0 * (lifts - 1.0)
        return np.log(lifts)

    def coefficients(self, lifts: Array) -> Array:
        """The tangent at these lifts (m,), (k,): up to a constant, of sum_s P(s) w_s of sums over
        secrets, and else of the functions of which the leakage is the largest.
        """
        if self.measure is Measure.TOTAL_VARIATION:
            return 0.5 * np.sign(lifts - 1.0)
        if self.is_smooth:
            return self.slope(lifts)
        guesses = self.guesses
        of_each = lifts if guesses is None else guesses @ lifts
        chosen = np.zeros(len(of_each))
        chosen[of_each.argmax()] = 1.0
        return chosen

    def slopes(self, lifts: Array) -> tuple[Array, Array]:
        """L (k,) of points with lifts (m, k), and a subgradient in the lifts, (m, k)."""
        if self.measure is Measure.MAXIMAL_LEAKAGE:
            # The maximum is the lift of one secret; where several have it, that of any is one.
            largest = lifts.argmax(axis=0)
            slope = np.zeros_like(lifts)
            slope[largest, np.arange(lifts.shape[1])] = 1.0
            return lifts.max(axis=0) - 1.0, slope
        weight = self.secrets[:, None]
        guesses = self.guesses
        if guesses is not None:
            gained = guesses @ lifts
            without = self.best(guesses)
            slope = (guesses[gained.argmax(axis=0)] - guesses[without]).T
            return gained.max(axis=0) - gained[without], slope
        if self.measure is Measure.TOTAL_VARIATION:
            leak = 0.5 * (weight * np.abs(lifts - 1.0)).sum(axis=0)
            return leak, 0.5 * weight * np.sign(lifts - 1.0)
        # A lift of zero in the middle of an interval is zero all over it: any slope will do.
        slopes = self.slope(np.maximum(lifts, np.finfo(np.float64).tiny))
        return (weight * self.term(lifts)).sum(axis=0), weight * slopes


def _checked(gains: Array | None, secrets: Array) -> Array:
    """The gains of guesses; InvalidOption unless they are finite numbers of every secret."""
    if gains is None:
        raise InvalidOption("the measure gain needs a matrix of gains")
    matrix = np.ascontiguousarray(gains, dtype=np.float64)
    if matrix.ndim != 2 or not len(matrix) or matrix.shape[1] != len(secrets):
        raise InvalidOption(
            f"gains must be a row for each guess with {len(secrets)} numbers, not of shape "
            f"{matrix.shape}"
        )
    if not np.isfinite(matrix).all() or (matrix < 0.0).any():
        raise InvalidOption("gains must be finite and not negative")
    return matrix


@dataclass(frozen=True, eq=False)
class AverageProblem:
    """The table, the leakages that are bounded or minimised, and the polytopes of posteriors.

    `point` is P(x), (n,), `secrets` is P(s), (m,), and `matrix` is A, (m, n), which maps posteriors
    to lifts. `inner` holds the posteriors; bounds hold for `outer`. Both are None where every
    posterior is allowed.
    """

    point: Array
    secrets: Array
    matrix: Array
    leakages: tuple[Leakage, ...]
    inner: Polytope | None
    outer: Polytope | None

    @classmethod
    def of(
        cls,
        joint: Array,
        measures: Sequence[Measure | str],
        inner: Polytope | None,
        outer: Polytope | None,
        gains: Array | None = None,
    ) -> AverageProblem:
        """Check the arguments, and compute what the search needs of the table P(s, x), (m, n).

        Raises
        ------
        InvalidOption, InvalidPolytope
            Where an argument is out of range, or the polytopes do not fit the table or each other.
        EmptyPolytope
            If P(x) is not in the inner polytope.
        """
        table = np.ascontiguousarray(joint, dtype=np.float64)
        if table.ndim != 2 or not np.isfinite(table).all() or (table < 0.0).any():
            raise InvalidOption(
                "joint must be a matrix of finite probabilities, none negative"
            )
        point = table.sum(axis=0)
        secrets = table.sum(axis=1)
        if (point <= 0.0).any() or (secrets <= 0.0).any():
            raise InvalidOption("joint has a row or column without mass; leave it out")
        if abs(float(table.sum()) - 1.0) > WORST_SUM:
            raise InvalidOption(f"joint sums to {float(table.sum())}, not to 1")
        leakages: list[Leakage] = []
        for name in measures:
            measure = measure_of(name)
            if measure is Measure.GAIN:
                leakages.append(Leakage(measure, secrets, _checked(gains, secrets)))
            else:
                leakages.append(Leakage(measure, secrets))
        # Without a relaxation the bound holds for the set of the posteriors itself.
        if outer is None:
            outer = inner
        if inner is None and outer is not None:
            raise InvalidOption("an outer polytope needs an inner one")
        if inner is not None and outer is not None:
            inner.check_relaxation(outer)
            if inner.n != len(point):
                raise InvalidPolytope(
                    f"the polytope has {inner.n} coordinates and joint {len(point)} columns"
                )
            # The first column of every search is P(x): without it there may be no channel at all.
            if inner.excess(point)[0] > 0.0:
                raise EmptyPolytope("the marginal of X is not a member of the polytope")
        # Divided one after the other: the product of two rare marginals could vanish.
        matrix = table / point / secrets[:, None]
        return cls(point, secrets, matrix, tuple(leakages), inner, outer)

    @property
    def entropy(self) -> float:
        """H(X) in nats."""
        return math.fsum(entropy_terms(self.point).tolist())

    def leaks(self, points: Points) -> Array:
        """Every leakage of every point, (j, k)."""
        lifts = points.images(self.matrix)
        return np.array([leakage.of_lifts(lifts) for leakage in self.leakages])

    def charged(self, lifts: Array, multipliers: Array) -> tuple[Array, Array]:
        """sum_j beta_j L_j (k,) at lifts (m, k), and a subgradient in the lifts, (m, k)."""
        total = np.zeros(lifts.shape[1])
        slopes = np.zeros_like(lifts)
        for multiplier, leakage in zip(multipliers, self.leakages, strict=True):
            leak, slope = leakage.slopes(lifts)
            total += multiplier * leak
            slopes += multiplier * slope
        return total, slopes

    @property
    def has_pairs(self) -> bool:
        """Whether pairs of symbols with one share each are all that pricing needs to look at."""
        few = len(self.point) <= MOST_PAIRED
        return len(self.secrets) == 2 and self.inner is None and few

    @property
    def is_smooth(self) -> bool:
        """Whether every f is smooth."""
        return all(leakage.is_smooth for leakage in self.leakages)

    def members(self, points: Points) -> Points:
        """Those of the points that lie in the inner polytope, without any tolerance."""
        if self.inner is None or not len(points):
            return points
        return points.take(self.inner.excess(points.toarray()) <= 0.0)

    def polished(self, points: Points, prices: Array, multipliers: Array) -> Points:
        """Points moved downhill on their own supports: the leakage bends where tangents do not.

        Exponentiated gradient on each point by itself, for the reduced cost g: with the step length
        t, v_x becomes v_x exp(-t (dg/dv_x - mean)) up to a factor, so entries stay positive and sum
        to one. A step that does not lower the cost is taken back and the next one is shorter.
        """
        # At a kink the slope is no guide, and a step could leave a polytope.
        if not (self.is_smooth and self.inner is None and len(points)):
            return points
        moved = points.toarray()
        support = moved > 0.0
        cost, slope = self._reduced(moved, support, prices, multipliers)
        steps = np.full((len(moved), 1), FIRST_STEP)
        for _ in range(POLISHING_STEPS):
            mean = (moved * slope).sum(axis=1, keepdims=True)
            ascent = np.where(support, slope - mean, 0.0)
            # No entry changes by more than a factor of e: near zero the slope knows no bounds.
            trial = moved * np.exp(-np.clip(steps * ascent, -1.0, 1.0))
            trial /= trial.sum(axis=1, keepdims=True)
            trial[trial < SMALLEST_ENTRY] = 0.0
            trial /= trial.sum(axis=1, keepdims=True)
            trial_cost, trial_slope = self._reduced(trial, support, prices, multipliers)
            falls = trial_cost < cost
            cost = np.where(falls, trial_cost, cost)
            moved = np.where(falls[:, None], trial, moved)
            slope = np.where(falls[:, None], trial_slope, slope)
            steps *= np.where(falls, 1.5, 0.25)[:, None]
        return Points.from_dense(moved)

    def _reduced(
        self,
        dense: Array,
        support: NDArray[np.bool_],
        prices: Array,
        multipliers: Array,
    ) -> tuple[Array, Array]:
        """H + sum_j beta_j L_j - y.v at points (k, n), and its gradient on their supports."""
        lifts = np.maximum(dense @ self.matrix.T, LEAST_TANGENT)
        charge, slopes = self.charged(lifts.T, multipliers)
        cost = entropy_terms(dense).sum(axis=1) - dense @ prices + charge
        # log 0 is kept out; off the support, where the gradient is not used, the logarithm is 0.
        positive = np.where(support, np.maximum(dense, SMALLEST_ENTRY), 1.0)
        # The derivative of -v log v is -log v - 1; the 1 moves no point that sums to one.
        gradient = slopes.T @ self.matrix - np.log(positive) - prices
        return cost, gradient


# ------------------------------------------------------------------------------- result


@dataclass(frozen=True, eq=False)
class AverageOptimum:
    """A channel as posteriors with weights, its figures, the proof of its bound, and the effort.

    Attributes
    ----------
    status : EnvelopeStatus
        Why the search ended; value and bound are valid whichever it is.
    weights : (k,) array
        P(y), positive, summing to one up to rounding.
    points : Points, (k, n)
        P(x | y), one output a row.
    information : float
        I(X;Y) of the channel in nats.
    leakages : (j,) array
        Its average leakages, in the units of the measures: nats for mi, E sum_s |P(s|y) - P(s)| / 2
        for tv, E sum_s P(s) (w_s - 1)^2 for chi2, sum_y max_x P(y|s) - 1, that is e^leakage - 1,
        for maximal-leakage.
    value, bound : float
        Of the best channel within budgets: the information, and a proven upper bound of it. Of
        `least_leakage`: the leakage, and a proven lower bound of it.
    multipliers : (j,) array
        beta, nats of information per unit of each leakage, of the support that proves the bound.
    prices : (n,) array
        Its y.
    rounds, columns, nodes : int
        Rounds of pricing, columns of the last master program, and nodes of branch and bound.
    seconds : float
        Of the clock, from start to end.
    """

    status: EnvelopeStatus
    weights: Array
    points: Points
    information: float
    leakages: Array
    value: float
    bound: float
    multipliers: Array
    prices: Array
    rounds: int
    columns: int
    nodes: int
    seconds: float

    @property
    def leakage(self) -> float:
        """The leakage, of one measure."""
        (only,) = self.leakages.tolist()
        return only

    @property
    def multiplier(self) -> float:
        """The multiplier, of one measure."""
        (only,) = self.multipliers.tolist()
        return only

    @property
    def gap(self) -> float:
        """The distance between value and bound."""
        return abs(self.value - self.bound)

    def channel(self, point: Array) -> Array:
        """P(y | x), (n, k), where `point` is P(x); rows sum to one up to rounding."""
        return self.points.toarray().T * self.weights / point[:, None]
