"""Parts of a stratum: near outputs together, and what goes to each part.

*Cuts.* A set of symbols is cut in two along one key (a column, in the order of its codes, of its
positions or of a random permutation), near half its mass. The best cut is even, and displaces
little. Of some such cuts of a large set, the one is taken within whose sides symbols are nearest to
each other.

*What a cut displaces.* Let t_k be values that are limited, with mean 1 over the stratum and mean
t_k(A) over a side A. To give A the mean 1, at least the share |t_k(A) - 1| / (max t_k - min t_k) of
its mass has to come from elsewhere. Where the t_k are lifts of single secrets, the sum of these
shares over all k is twice the total variation distance between the secrets of A and of all. So half
the sum counts, or the largest share where that is more. What lies beyond the limits has to be
displaced for sure, and counts more.

*Inputs of both halves.* Once the outputs are cut, x_i is the share of input i that goes to the
first half. With masses m_i, and mean costs c_i and d_i to the outputs of either half, it is a
linear program with few rows to

    minimise   sum_i m_i (c_i - d_i) x_i      over 0 <= x_i <= 1
    so that    sum_i m_i x_i is what the outputs of the first half want,
    and        both halves keep the limits.

It has a solution, whatever the limits: if all x_i are equal, both halves have the means of the
part. A vertex divides at most one input more than there are limits, so rare secrets go to many
parts, in small shares, and the others stay with what is near to them. Limits are drawn in by
`ROOM`, as far as the part itself allows, so that what is within a half has a choice.

*Bins.* Inputs of one kind (`Ranges.kinds`) with similar costs are one variable, with their mean
values, so that the program is as small for 40,000 inputs as for some hundreds. All inputs of a bin
get its share, so the sums are those of the program. Where a divided bin has equal values, its
cheapest inputs go first instead.

The program is not needed where every input can go to the half of its own output, and others make up
for what lacks there.

With restrictions, x_i leaves what must stay to the half that it stays in, and there may be no
solution; then the part remains whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.errors import BackendFailure
from solvers.plans.problem import Costs, Indices, PlanProblem
from solvers.plans.program import Group
from solvers.plans.ranges import Ranges
from solvers.points import Array
from solvers.programs import Program, SparseRows, solve_program

# --------------------------------------------------------------------------------- cuts

DISPLACED = 10.0
"""What displacing all of its mass costs a cut, in nats of its evenness. Of 2 to 10 (and a quarter
of it within), with shares that count r times, r^2 times or as they are, these kept most of rows
with two, six and ten secrets together."""

DISPLACED_WITHIN = 2.6
"""The same where cuts are compared, in units of cost within their sides."""

BEYOND = 4.0
"""What lies beyond the limits, and has to be displaced, counts so many times more."""

TRIED = 6
"""Cuts of a large set whose sides are compared by the costs within them: with 12 blocks of 40 rows
cost 0.3 % less, for a quarter more of the time of dividing."""

TRIED_FROM = 160
"""Symbols of a set from which cuts are compared so: smaller ones are too many."""

TINY = float(np.finfo(np.float64).tiny)
"""A positive divisor of zeros."""

LEAST_FACTOR = 0.8
LEAST_FACTOR_AT_RANDOM = 0.5
"""Evenness counts times a random factor from here to 1: so that more columns are tried, and that
the cuts of each sweep are other ones. The first where cuts are compared."""

AT_ONCE = 1 << 20
"""Ranks of symbols that are counted at once: 8 MB."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """Limited values of some symbols, each in units of its span over a stratum.

    Attributes
    ----------
    values : (k, n) array
    mean : (k,) array
        Over the stratum.
    lower, upper : (k,) arrays
        Limits of the means of a part.
    """

    values: Array
    mean: Array
    lower: Array
    upper: Array

    @classmethod
    def of(cls, ranges: Ranges) -> Mixture:
        """That of all symbols of a stratum."""
        span = np.ptp(ranges.limited, axis=1)
        span[span == 0.0] = 1.0
        lower, upper = ranges.ends
        return cls(
            ranges.limited / span[:, None], 1.0 / span, lower / span, upper / span
        )

    def at(self, places: Indices) -> Mixture:
        """That of some of the symbols."""
        return replace(self, values=self.values[:, places])

    def displaced(self, means: Array) -> Array:
        """What parts of these means, (k, c), displace: shares of their masses, (c,)."""
        off = means - self.mean[:, None]
        above, below = self.upper - self.mean, self.mean - self.lower
        room = np.where(off > 0.0, above[:, None], below[:, None])
        off = np.abs(off)
        beyond = np.maximum(off - room, 0.0)
        # Where there is no room all of it is beyond.
        used = np.minimum(off / np.maximum(room, TINY), 1.0)
        return _together(off * used**2) + BEYOND * _together(beyond)


def _together(shares: Array) -> Array:
    """Half the sum of each column, or its largest entry where that is more."""
    return np.maximum(shares.max(axis=0, initial=0.0), 0.5 * shares.sum(axis=0))


class Cutter:
    """Cuts sets of symbols in two.

    Parameters
    ----------
    costs : Costs
    rng : numpy.random.Generator
    tried : int
        Cuts of a large set whose sides are compared by the costs within them; 1 for none.
    """

    def __init__(self, costs: Costs, rng: np.random.Generator, tried: int = 1) -> None:
        self._costs = costs
        self._rng = rng
        self._tried = tried

    def parts(self, symbols: Indices, size: int) -> list[Indices]:
        """Places of the symbols of each part, cut until none has more than `size`, or none can be
        cut.
        """
        ready: list[Indices] = []
        waiting = [np.arange(len(symbols))]
        while waiting:
            places = waiting.pop()
            side = None
            if len(places) > size:
                side = self.side(symbols[places], np.ones(len(places)), None)
            if side is None:
                ready.append(places)
            else:
                waiting += [places[~side], places[side]]
        return ready

    def side(
        self, symbols: Indices, masses: Array, mixture: Mixture | None
    ) -> NDArray[np.bool_] | None:
        """Which symbols are on the first side of the best cut; None where no key differs.

        Parameters
        ----------
        symbols : (n,) int array
        masses : (n,) array
            What is to be halved.
        mixture : Mixture or None
            That of the symbols, where it matters what a cut displaces.
        """
        sums = masses[None, :]
        if mixture is not None:
            sums = np.vstack([sums, masses * mixture.values])
        tried = self._tried if len(symbols) >= TRIED_FROM else 1
        least = LEAST_FACTOR if tried > 1 else LEAST_FACTOR_AT_RANDOM
        found: list[_Cut] = []
        keys = self._costs.keys(symbols, self._rng)
        # Many keys of few symbols at once, as many as fit into little memory.
        at_once = max(1, AT_ONCE // len(symbols))
        while some := list(islice(keys, at_once)):
            ranks = np.stack(some)
            last, first, all_of_them = _halved(ranks, sums)
            share = first[0] / all_of_them[0]
            cut = np.flatnonzero((share > 0.0) & (share < 1.0))
            share = share[cut]
            displaced = np.zeros(len(cut))
            if mixture is not None:
                rest = all_of_them[:, cut] - first[:, cut]
                for of_side, weight in ((first[:, cut], share), (rest, 1.0 - share)):
                    means = of_side[1:] / of_side[0]
                    displaced += weight * mixture.displaced(means)
            even = -share * np.log(share) - (1.0 - share) * np.log1p(-share)
            score = even * self._rng.uniform(least, 1.0, len(cut))
            score -= DISPLACED * displaced
            for k in np.argsort(-score)[:tried].tolist():
                side = ranks[cut[k]] <= last[cut[k]]
                found.append(_Cut(float(score[k]), float(displaced[k]), side))
            found.sort(key=lambda one: -one.score)
            del found[tried:]
        if len(found) <= 1:
            return found[0].side if found else None
        return min(found, key=lambda one: self._within(symbols, masses, one)).side

    def _within(self, symbols: Indices, masses: Array, cut: _Cut) -> float:
        """The mean cost within the sides of a cut, by their masses, and the price of what it
        displaces.
        """
        total = DISPLACED_WITHIN * cut.displaced
        for side in (cut.side, ~cut.side):
            of_side = masses[side]
            spread = self._costs.spread(symbols[side], of_side)
            total += spread * float(of_side.sum() / masses.sum())
        return total


class _Cut(NamedTuple):
    """A cut in two: how good it looks, how much mass it displaces, and its first side."""

    score: float
    displaced: float
    side: NDArray[np.bool_]


def _halved(ranks: Indices, sums: Array) -> tuple[Indices, Array, Array]:
    """For every key (a row of ranks) the last rank of the first side, where the cut is nearest to
    half the mass, which is `sums[0]`; and the sums up to there and over all.
    """
    k = len(ranks)
    width = int(ranks.max()) + 1
    bins = (ranks + width * np.arange(k)[:, None]).ravel()
    totals = np.stack(
        [
            np.bincount(bins, np.tile(one, k), k * width).reshape(k, width)
            for one in sums
        ]
    ).cumsum(axis=2)
    mass = totals[0]
    last = np.abs(mass - 0.5 * mass[:, -1:]).argmin(axis=1)
    return last, totals[:, np.arange(k), last], totals[:, :, -1]


# ------------------------------------------------------------------------------- halves

OWN = 0.5
"""The mean cost of an input to the half that has its own output counts so much: some of it stays
there, at no cost."""

ROOM = 0.25
"""Share of the way from a limit to 1 that both halves leave free, where the part does."""

BINS = 400
"""Bins of inputs, as far as there are `LEAST_BINS` of every kind: the program takes 1 to 5 ms."""

LEAST_BINS = 4

NOISE = 1e-6
"""Shares of an input below this are the solver's tolerance, or what subtraction leaves of nothing:
such flows would join parts of a plan whose integers then had to be settled across them."""


ROUNDING = 1e-12
"""Sums that differ by less, relative, agree."""


class Divider:
    """Divides a group of inputs and outputs.

    Parameters
    ----------
    problem : PlanProblem
    whole : Group
        Its inputs are those of all parts.
    rng : numpy.random.Generator
    """

    def __init__(
        self, problem: PlanProblem, whole: Group, rng: np.random.Generator
    ) -> None:
        self._problem = problem
        self._cutter = Cutter(problem.costs, rng, TRIED)
        self._quick_cutter = Cutter(problem.costs, rng)
        self._order = np.argsort(whole.inputs, kind="stable")
        self._inputs = whole.inputs[self._order]
        self._mixture = Mixture.of(whole.ranges)

    def parts(self, group: Group, size: int) -> list[Group]:
        """Parts of at most size^2 pairs of an input and an output each, as far as these can be
        divided and get smaller.
        """
        ready: list[Group] = []
        waiting = [group]
        while waiting:
            part = waiting.pop()
            pairs = len(part.inputs) * len(part.outputs)
            halves = None
            if pairs > size**2 and self.gets_smaller(part):
                halves = self.halves(part)
            if halves is None:
                ready.append(part)
            else:
                waiting += reversed(halves)
        return ready

    def gets_smaller(self, group: Group) -> bool:
        """Whether halves of a group have fewer inputs: one for each limit may be in both."""
        return len(group.inputs) > 2 * len(group.ranges.limited)

    def halves(
        self, group: Group, *, quickly: bool = False
    ) -> tuple[Group, Group] | None:
        """Both halves of a group, a part of the whole; None where it cannot be divided.

        Quickly means that cuts are not compared.
        """
        if len(group.outputs) == 1:
            return None
        cutter = self._quick_cutter if quickly else self._cutter
        side = cutter.side(
            group.outputs, group.targets, self._mixture_of(group.outputs)
        )
        if side is None:
            return None
        shares = self._shares(group, side)
        if shares is None:
            return None
        first = _half(group, side, shares)
        second = _half(group, ~side, 1.0 - shares)
        if first is None or second is None:
            return None
        return first, second

    def _mixture_of(self, outputs: Indices) -> Mixture:
        """The mixture of outputs: as inputs, they have these values."""
        places = np.searchsorted(self._inputs, outputs)
        places = np.minimum(places, len(self._inputs) - 1)
        mixture = self._mixture.at(self._order[places])
        # Of an output that is no input, nothing is displaced.
        elsewhere = self._inputs[places] != outputs
        mixture.values[:, elsewhere] = mixture.mean[:, None]
        return mixture

    def _shares(self, group: Group, side: NDArray[np.bool_]) -> Array | None:
        """The share of each input that goes to the first half; None where there is none."""
        found = self._by_outputs(group, side)
        if found is not None:
            return found
        dearer = self._dearer(group, group.inputs, side)
        if self._problem.stay is not None:
            # What must stay differs from input to input.
            bins = np.arange(len(group.inputs))
            lower, upper = self._staying(group, side)
        else:
            bins = _bins(group.ranges.kinds(), dearer)
            count = int(bins.max()) + 1
            lower, upper = np.zeros(count), np.ones(count)
        rows = _rows(group, bins, float(group.targets[side].sum()))
        costs = np.bincount(bins, group.masses * dearer) / group.masses.sum()
        try:
            solved = solve_program(Program(costs, lower, upper, rows))
        except BackendFailure:
            return None
        of_bins = _without_noise(solved.x)
        shares = of_bins[bins]
        if len(of_bins) < len(shares):
            _fill_bins(group, shares, bins, of_bins, dearer)
        else:
            # Each input is a bin, which gets the share of its mass.
            shares = _without_noise(np.minimum(shares * group.masses / group.masses, 1))
        return _settled(group.masses, shares, float(group.targets[side].sum()))

    def _by_outputs(self, group: Group, side: NDArray[np.bool_]) -> Array | None:
        """Shares that send every input to the half of its own output, and others where these leave
        mass to be wanted; None where that misses a limit.
        """
        masses, wanted = group.masses, float(group.targets[side].sum())
        shares = np.isin(group.inputs, group.outputs[side]).astype(np.float64)
        others = np.flatnonzero(~np.isin(group.inputs, group.outputs))
        lacking = wanted - float(masses @ shares)
        most = float(masses[others].sum())
        if not -ROUNDING * wanted <= lacking <= most + ROUNDING * wanted:
            return None
        if len(others):
            dearer = self._dearer(group, group.inputs[others], side)
            order = others[np.argsort(dearer, kind="stable")]
            shares[order] = _filled(masses[order], lacking / most)
        lower, upper = _narrowed(group)
        for part in (shares, 1.0 - shares):
            of_part = masses * part
            means = group.ranges.limited @ of_part / max(float(of_part.sum()), TINY)
            if (means < lower).any() or (means > upper).any():
                return None
        return _settled(masses, shares, wanted)

    def _dearer(self, group: Group, inputs: Indices, side: NDArray[np.bool_]) -> Array:
        """How much more an input costs in the first half than in the second one."""
        costs: list[Array] = []
        for of_half in (side, ~side):
            outputs = group.outputs[of_half]
            mean = self._problem.costs.means(inputs, outputs, group.targets[of_half])
            costs.append(np.where(np.isin(inputs, outputs), OWN * mean, mean))
        return costs[0] - costs[1]

    def _staying(self, group: Group, side: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Least and largest shares of the inputs that go to the first half, where some must stay
        with their own outputs.
        """
        least = self._problem.least_flows(group.inputs, group.inputs)
        lower, upper = np.zeros(len(group.inputs)), np.ones(len(group.inputs))
        if least is not None:
            stay = np.minimum(least / group.masses, 1.0)
            in_first = np.isin(group.inputs, group.outputs[side])
            in_second = np.isin(group.inputs, group.outputs[~side])
            lower[in_first] = stay[in_first]
            upper[in_second] = 1.0 - stay[in_second]
        return lower, upper


def _narrowed(group: Group) -> tuple[Array, Array]:
    """Limits of both halves, drawn in by `ROOM` as far as the group's own means allow."""
    means = group.ranges.limited @ group.masses / group.masses.sum()
    lower, upper = group.ranges.ends
    lower = np.minimum(means, lower + ROOM * (1.0 - lower))
    finite = np.where(np.isfinite(upper), upper, 1.0)
    narrowed = np.maximum(means, finite - ROOM * (finite - 1.0))
    return lower, np.where(np.isfinite(upper), narrowed, upper)


def _bins(kinds: Indices, dearer: Array) -> Indices:
    """Bins of inputs: of one kind, and of neighbours in the order of `dearer`, from 0."""
    n = len(kinds)
    if n <= BINS:
        return np.arange(n)
    order = np.lexsort((dearer, kinds))
    used, of_kind, counts = np.unique(kinds, return_inverse=True, return_counts=True)
    each = max(LEAST_BINS, BINS // len(used))
    starts = np.cumsum(counts) - counts
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    rank -= starts[of_kind]
    labels = of_kind * each + rank * each // counts[of_kind]
    return np.unique(labels, return_inverse=True)[1]


def _fill_bins(
    group: Group, shares: Array, bins: Indices, of_bins: Array, dearer: Array
) -> None:
    """Let the cheapest inputs of each divided bin of equal values go first, in the place of equal
    shares of all.
    """
    for k in np.flatnonzero((of_bins > 0.0) & (of_bins < 1.0)).tolist():
        of_bin = np.flatnonzero(bins == k)
        values = group.ranges.limited[:, of_bin]
        if (values == values[:, :1]).all():
            first = of_bin[np.argsort(dearer[of_bin], kind="stable")]
            shares[first] = _filled(group.masses[first], float(of_bins[k]))


def _rows(group: Group, bins: Indices, wanted: float) -> SparseRows:
    """The rows of the program: what the first half wants, and the limits of both halves."""
    masses = group.masses / group.masses.sum()
    share = wanted / float(group.targets.sum())
    sums = np.bincount(bins, masses)
    rows = SparseRows()
    rows.add(list(range(len(sums))), sums.tolist(), share, share)
    for values, least, most in zip(
        group.ranges.limited, *_narrowed(group), strict=True
    ):
        sums = np.bincount(bins, masses * values)
        mean = float(sums.sum())
        # The second half has what the first one does not have.
        low = max(share * least, mean - (1.0 - share) * most)
        high = min(share * most, mean - (1.0 - share) * least)
        # Equal shares remain allowed, whatever rounding makes of the ends.
        low, high = min(low, share * mean), max(high, share * mean)
        # Of many secrets most bins have none.
        used = np.flatnonzero(sums)
        rows.add(used.tolist(), sums[used].tolist(), low, high)
    return rows


def _without_noise(shares: Array) -> Array:
    """Shares that are 0 or 1 where they are so up to the tolerance of the solver."""
    return np.where(shares < NOISE, 0.0, np.where(shares > 1.0 - NOISE, 1.0, shares))


def _filled(masses: Array, share: float) -> Array:
    """Shares of inputs that together are this share of their mass, the first ones first."""
    wanted = share * masses.sum()
    before = np.cumsum(masses) - masses
    return _without_noise(np.clip((wanted - before) / masses, 0.0, 1.0))


def _settled(masses: Array, shares: Array, wanted: float) -> Array | None:
    """Shares whose masses sum to what is wanted: the input of which most is divided makes up for
    what rounding left. None where none is divided by that much.
    """
    lacking = wanted - float(masses @ shares)
    if abs(lacking) <= ROUNDING * wanted:
        return shares
    divided = masses * np.minimum(shares, 1.0 - shares)
    most = int(divided.argmax())
    if divided[most] <= abs(lacking):
        return None
    shares[most] += lacking / masses[most]
    return shares


def _half(group: Group, side: NDArray[np.bool_], shares: Array) -> Group | None:
    """One half of a group; None where its means miss the limits, or it has no inputs."""
    inputs = np.flatnonzero(shares > 0.0)
    masses = (group.masses * shares)[inputs]
    targets = group.targets[side]
    if not len(inputs):
        return None
    ranges = group.ranges.restricted(inputs)
    means = ranges.limited @ masses / masses.sum()
    if not ranges.usage(means[:, None])[0] <= 1.0:
        return None
    # Programs need the sums to agree exactly.
    masses = masses * (targets.sum() / masses.sum())
    return Group(
        group.inputs[inputs],
        group.outputs[side],
        masses,
        targets,
        group.is_free,
        ranges,
    )
