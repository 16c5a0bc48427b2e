"""The channel of a search for averages, with what is proven about it.

The channel is kept as outputs y with probabilities P(y) and posteriors P(x | y), which average to
P(x); `channel` makes P(y | x) = P(y) P(x | y) / P(x) of them. For example, with P(x) = (1/2, 1/2),

    weights       1/2          1/4      1/4
    points        (1/2, 1/2)   (1, 0)   (0, 1)
    P(y | x=0)    1/2          1/2      0
    P(y | x=1)    1/2          0        1/2
"""

from __future__ import annotations

from dataclasses import dataclass

from solvers.points import Array, Points
from solvers.results import EnvelopeStatus


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
