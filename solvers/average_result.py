"""The channel of a search for averages, with what is proven about it."""

from __future__ import annotations

from dataclasses import dataclass

from solvers.points import Array, Points
from solvers.results import EnvelopeStatus


@dataclass(frozen=True, eq=False)
class AverageOptimum:
    """A channel as posteriors with weights, and what is proven about it.

    Attributes
    ----------
    status : EnvelopeStatus
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
