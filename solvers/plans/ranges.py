"""Limits of one stratum, made ready for programs and for proofs.

*Scale.* Every row of values is divided by its mean over the stratum's masses. A blind draw, in
which what goes to each output is a sample of the whole stratum, then has the mean 1 everywhere.

*Fewer rows.* A side that no mean can reach binds nothing. Two rows with t_k = a + b t_j, such as
the lifts of two secrets, become one row with the ranges of both; two that are compared by a ratio,
too: from a + b t <= R t and t <= R (a + b t), with b < 0, follows a / (R - b) <= t <= R a / (1 - R
b).

*Two sets of ends.* Programs use ends that are drawn in by a margin, so that a plan that is rounded
later keeps the limits themselves. Proofs use ends that are moved out by the rounding of this
module.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from solvers.errors import NoPlan
from solvers.plans.affine_rows import AffineRows, Mark, affine, marks_of
from solvers.plans.problem import Indices, PlanLimits, PlanPenalty
from solvers.points import Array

# ------------------------------------------------------------------------------- limits

WIDENING = 1e-10
"""Proofs move the ends of a range out by this, relative: a hundred times `AFFINE`, which an affine
function of slope 1/100 (the flattest that is used) makes out of it."""

ON_LIMIT = 1e-12
"""A mean that exceeds its limit by this, relative, is on it, up to rounding."""


@dataclass(frozen=True, eq=False)
class Ranges:
    """lower_r <= mean of values_r <= upper_r, and values that are compared with each other.

    Attributes
    ----------
    values : (r, n) array
        With mean 1 over the masses of the stratum.
    lower, upper : (r,) arrays
        Ends for programs, drawn in.
    true_lower, true_upper : (r,) arrays
        Ends for proofs, moved out.
    compared : (m, n) array
        Values that are compared, with mean 1, in the order of their groups.
    group : (m,) int array
        Number of the group of each, from 0.
    scales : (m,) array
        Mean of each in units of its group's first: a ratio applies to scales times values.
    ratio, true_ratio : float
        For programs, and for proofs.
    sources : (r, 2) int array
        The rows of `PlanLimits.values` that the lower and the upper end come from.
    factors : (r, 2) array
        A multiplier of a range is that of this row times the factor.
    compared_sources : (m,) int array
        The row of `PlanLimits.values` that each comes from.
    compared_units : (m,) array
        What it was divided by, where a multiplier applies to it: to scales times values.
    penalty : PlanPenalty
        On the symbols of the stratum; without forms for none.
    """

    values: Array
    lower: Array
    upper: Array
    true_lower: Array
    true_upper: Array
    compared: Array
    group: Indices
    scales: Array
    ratio: float
    true_ratio: float
    sources: Indices
    factors: Array
    compared_sources: Indices
    compared_units: Array
    penalty: PlanPenalty

    @classmethod
    def of(
        cls,
        limits: PlanLimits,
        members: Indices,
        shares: Array,
        margin: float,
        penalty: PlanPenalty | None = None,
    ) -> Ranges:
        """Limits on the symbols `members`, whose masses are in proportion to `shares`.

        Raises
        ------
        NoPlan
            If a mean over all of them is outside its limits: the means of the outputs would be,
            too.
        """
        rows = _Rows(shares / shares.sum(), margin)
        values = limits.values[:, members]
        marks = marks_of(values)
        for k in np.flatnonzero(values.any(axis=1)).tolist():
            lower, upper = float(limits.lower[k]), float(limits.upper[k])
            rows.add(k, values[k], marks[k], lower, upper)
        if math.isfinite(limits.ratio):
            for label in np.unique(limits.groups):
                of_group = np.flatnonzero(limits.groups == label)
                present = of_group[values[of_group].any(axis=1)]
                rows.compare(present, values[present], limits.ratio)
        if penalty is None:
            penalty = PlanPenalty.none(limits.values.shape[1])
        of_members = replace(penalty, forms=penalty.forms[:, members])
        return rows.finished(len(members), limits.ratio, of_members)

    @cached_property
    def groups(self) -> int:
        """Number of groups that are compared."""
        return int(self.group.max(initial=-1)) + 1

    @property
    def is_empty(self) -> bool:
        """Whether nothing is limited."""
        return not len(self.values) and not len(self.compared)

    def restricted(self, places: Indices) -> Ranges:
        """The same limits on some of the symbols."""
        return Ranges(
            self.values[:, places],
            self.lower,
            self.upper,
            self.true_lower,
            self.true_upper,
            self.compared[:, places],
            self.group,
            self.scales,
            self.ratio,
            self.true_ratio,
            self.sources,
            self.factors,
            self.compared_sources,
            self.compared_units,
            replace(self.penalty, forms=self.penalty.forms[:, places]),
        )

    def kinds(self) -> Indices:
        """Kind of each symbol: the number of its largest value, or the last where none exceeds
        1.
        """
        rest = np.ones(self.limited.shape[1])
        return np.vstack([self.limited, rest]).argmax(axis=0)

    @cached_property
    def limited(self) -> Array:
        """All values that have limits, (r + m, n): those of ranges, and those that are compared."""
        return np.vstack([self.values, self.compared])

    @cached_property
    def ends(self) -> tuple[Array, Array]:
        """Least and largest means of `limited`, (r + m,) each, that keep the limits together.

        Of values that are compared by a ratio, each may be as far from 1 as lets all of its group
        be so.
        """
        lower, upper = [self.lower], [self.upper]
        for g in range(self.groups):
            scales = self.scales[self.group == g]
            far = math.sqrt(self.ratio * scales.min() / scales.max())
            lower.append(np.full(len(scales), 1.0 / far))
            upper.append(np.full(len(scales), far))
        return np.concatenate(lower), np.concatenate(upper)

    @property
    def share_outside(self) -> float:
        """Share of the values of `limited` that are outside their ends: how many limits would be
        broken if every symbol were an output of its own.
        """
        lower, upper = self.ends
        outside = (self.limited < lower[:, None]) | (self.limited > upper[:, None])
        return float(outside.mean())

    def are_kept(self, means: Array) -> bool:
        """Whether the means of `limited` over some sets of symbols, (r + m, k), keep the limits
        with half of the margin by which these are drawn in.
        """
        r = len(self.values)
        upper = np.sqrt(self.upper * self.true_upper)
        lower = np.sqrt(self.lower * self.true_lower)
        kept = (means[:r] <= upper[:, None]) & (means[:r] >= lower[:, None])
        if not kept.all():
            return False
        scaled = self.scales[:, None] * means[r:]
        ratio = math.sqrt(self.ratio * self.true_ratio)
        for g in range(self.groups):
            of_group = scaled[self.group == g]
            if (of_group.max(axis=0) > ratio * of_group.min(axis=0)).any():
                return False
        return True

    def usage(self, means: Array) -> Array:
        """How much of the limits means use: 0 for means of 1, 1 at a limit.

        Parameters
        ----------
        means : (r + m, k) array
            Means of `limited` over k sets of symbols.

        Returns
        -------
        (k,) array
        """
        most = np.zeros(means.shape[1])
        r = len(self.values)
        with np.errstate(divide="ignore", invalid="ignore"):
            if r:
                logs = np.log(means[:r])
                upper, lower = np.log(self.upper), np.log(self.lower)
                up = np.where(logs > ON_LIMIT, logs / upper[:, None], 0.0)
                down = np.where(logs < -ON_LIMIT, logs / lower[:, None], 0.0)
                most = np.maximum(up, down).max(axis=0)
            logs = np.log(self.scales[:, None] * means[r:])
            for g in range(self.groups):
                spread = np.ptp(logs[self.group == g], axis=0)
                most = np.maximum(most, spread / math.log(self.ratio))
        return most


class End(NamedTuple):
    """One end of a range, and the limit that it comes from.

    Attributes
    ----------
    value : float
    source : int
        The row of `PlanLimits.values`.
    factor : float
        A multiplier of the range is that of the row times this.
    """

    value: float
    source: int
    factor: float


class _Rows:
    """Collects the rows of a `Ranges`."""

    def __init__(self, shares: Array, margin: float) -> None:
        self._shares = shares
        self._margin = margin
        self._rows = AffineRows()
        # Ends of each row, as they are and drawn in.
        self._true: list[tuple[End, End]] = []
        self._drawn: list[tuple[float, float]] = []
        self._compared: list[Array] = []
        self._group: list[int] = []
        self._scales: list[float] = []
        self._compared_sources: list[int] = []
        self._compared_units: list[float] = []
        # The largest ratio of two means over the whole stratum.
        self._spread = 1.0

    def add(
        self, k: int, values: Array, mark: Mark, lower: float, upper: float
    ) -> None:
        """Limit the mean of these values."""
        mean = float(values @ self._shares)
        if mean < lower * (1.0 - ON_LIMIT) or mean > upper * (1.0 + ON_LIMIT):
            raise NoPlan(
                f"no plan keeps limit {k}: the mean of its values over all masses is "
                f"{mean:.6g}, outside [{lower:.6g}, {upper:.6g}]"
            )
        # What goes to an output has a mean between the least and the largest value. Which side of
        # the limit a value on it is, is unknown: such a limit is drawn in like any other.
        if lower <= values.min() * (1.0 - ON_LIMIT):
            lower = 0.0
        if upper >= values.max() * (1.0 + ON_LIMIT):
            upper = math.inf
        ends = (lower / mean, upper / mean)
        self._join(k, mean, values / mean, mark, ends, self._drawn_in(*ends))

    def _drawn_in(self, lower: float, upper: float) -> tuple[float, float]:
        """Ends that are drawn in by the margin, but not beyond half of the way to 1."""
        drawn_lower = lower * (1.0 + self._margin)
        if lower > 0.0:
            # A share of next to nothing is no margin: programs keep their rows to 1e-9.
            drawn_lower = max(drawn_lower, self._margin)
        # The mean 1 of a blind draw must stay inside, or nothing is left.
        drawn_lower = min(drawn_lower, (lower + 1.0) / 2.0)
        if math.isinf(upper):
            return drawn_lower, upper
        return drawn_lower, max(upper * (1.0 - self._margin), (upper + 1.0) / 2.0)

    def _drawn_ratio(self, ratio: float, spread: float) -> float:
        """A ratio that is drawn in by the margin, but not beyond half of the way to the spread of
        the whole stratum.
        """
        drawn = ratio * (1.0 - self._margin)
        if self._margin > 0.0:
            # The smaller mean of two is to be more than nothing.
            drawn = min(drawn, 1.0 / self._margin)
        return max(drawn, min(math.sqrt(ratio * spread), 2.0 * spread))

    def compare(self, rows: Indices, values: Array, ratio: float) -> None:
        """Compare the means of these values, the rows `rows` of the limits, with each other."""
        if len(values) < 2:
            return
        means = values @ self._shares
        spread = float(means.max() / means.min())
        if spread > ratio * (1.0 + ON_LIMIT):
            raise NoPlan(
                f"no plan keeps the ratio {ratio:.6g}: over all masses one mean of a group is "
                f"{spread:.6g} times another one"
            )
        values = values / means[:, None]
        scales = means / means[0]
        if len(values) == 2:
            slope, offset = affine(values[0], scales[1] * values[1])
            if slope < 0.0:
                ends: list[tuple[float, float]] = []
                for one in (ratio, self._drawn_ratio(ratio, spread)):
                    lower = offset / (one - slope)
                    ends.append((lower, one * offset / (1.0 - one * slope)))
                (mark,) = marks_of(values[:1])
                self._join(int(rows[0]), float(means[0]), values[0], mark, *ends)
                return
        self._spread = max(self._spread, spread)
        group = self._group[-1] + 1 if self._group else 0
        self._compared.extend(values)
        self._scales.extend(scales)
        self._group.extend([group] * len(values))
        self._compared_sources.extend(rows.tolist())
        self._compared_units.extend([float(means[0])] * len(values))

    def _join(
        self,
        source: int,
        unit: float,
        values: Array,
        mark: Mark,
        true: tuple[float, float],
        drawn: tuple[float, float],
    ) -> None:
        """Append a range, or narrow one that these values are an affine function of.

        They are the row `source` of the limits, divided by `unit`.
        """
        if true[0] <= 0.0 and math.isinf(true[1]):
            return
        known = self._rows.find(values, mark)
        if known is None:
            self._rows.append(values, mark)
            lower, upper = (End(value, source, 1.0 / unit) for value in true)
            self._true.append((lower, upper))
            self._drawn.append(drawn)
            return
        j = known.of
        factor = 1.0 / (unit * known.slope)
        least, most = known.ends(true)
        lower, upper = self._true[j]
        if least > lower.value:
            lower = End(least, source, factor)
        if most < upper.value:
            upper = End(most, source, factor)
        self._true[j] = (lower, upper)
        # Drawn in first: a limit of one lift may be the end 0 of another, and a share of 0 would
        # be no margin.
        least, most = known.ends(drawn)
        self._drawn[j] = (max(self._drawn[j][0], least), min(self._drawn[j][1], most))

    def finished(self, n: int, ratio: float, penalty: PlanPenalty) -> Ranges:
        """All rows, with the ends for programs and for proofs."""
        rows = self._rows.values
        lower = np.array([max(least.value, 0.0) for least, _ in self._true])
        upper = np.array([most.value for _, most in self._true])
        drawn_lower = np.array([max(least, 0.0) for least, _ in self._drawn])
        drawn_upper = np.array([most for _, most in self._drawn])
        drawn_ratio = ratio
        if math.isfinite(ratio):
            drawn_ratio = self._drawn_ratio(ratio, self._spread)
        return Ranges(
            np.array(rows).reshape(len(rows), n),
            np.minimum(drawn_lower, 1.0),
            np.maximum(drawn_upper, 1.0),
            lower * (1.0 - WIDENING),
            upper * (1.0 + WIDENING),
            np.array(self._compared).reshape(len(self._compared), n),
            np.array(self._group, np.int64),
            np.array(self._scales),
            drawn_ratio,
            ratio * (1.0 + WIDENING),
            np.array(
                [[end.source for end in ends] for ends in self._true], np.int64
            ).reshape(-1, 2),
            np.array([[end.factor for end in ends] for ends in self._true]).reshape(
                -1, 2
            ),
            np.array(self._compared_sources, np.int64),
            np.array(self._compared_units),
            penalty,
        )
