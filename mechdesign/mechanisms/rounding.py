"""From a float design to a channel of integers that is verified exactly, or to a refusal.

A design is a set of posteriors v_y with weights beta_y whose mean is P_X, up to floating-point
errors. Then W(y|x) = beta_y v_y(x) / P_X(x), with every row divided by its own sum, so that P_X is
met exactly whatever the error of the weights. Rows become integers by largest remainders. Outputs
that fail because of the errors or the rounding are repaired one by one: a failing output y gets a
tiny weight a_y on every row,

    W'(y|x) = (1 - t) W(y|x) + a_y,    t = sum of the a_y,

which moves its posterior towards P_X, hence its lifts towards 1, and leaves the posteriors of the
others where they are. A notion that is convex in the posterior stays satisfied where it was. The
exact audit decides about the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.verdict import Audit
from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.channel.labels import output_labels
from mechdesign.core.errors import SolverFailure
from mechdesign.core.integers import IntegerRows
from mechdesign.core.wording import quoted
from mechdesign.tables.joint import Joint
from solvers import Array, Points

Index = NDArray[np.int64]

LARGEST_NOISE = 1e-7
"""Largest negative weight or entry of a posterior, and largest error of the sum of a posterior: the
feasibility tolerance of LP solvers. Negative entries count as zeros; a larger error means that the
output of the solver is no solution."""

LARGEST_MISS = 1e-4
"""Largest total variation between P_X and the mean of the posteriors. Rows are renormalised, so a
smaller miss costs no exactness; a larger one is no rounding error."""

TINY_LIFT = 1e-13
"""Entries of a posterior below this share of P(x) are noise of a linear solve and become zeros."""

FINE_MISS = 1e-13
"""A relative miss of P_X below this is left to the renormalisation of the rows: it is well below
the smallest margin (1e-12) that designs keep from their budget."""

LARGEST_CORRECTION = 1e-6
"""Most that the refinement changes all weights together, where P_X is missed by a rounding error.
Where posteriors are nearly dependent, as P_X and two that mix to it, least squares would move any
weight between them for the least miss, and all information with it."""

MOST_TIMES_MISS = 100.0
"""The same for a larger miss: so many times its mass."""

CUTOFFS = (None, 1e-6)
"""Relative singular values that least squares takes for zero: those of rounding, then more, which
leaves the weights alone along nearly dependent posteriors."""

LARGEST_REFINEMENT = 250_000
"""Most entries of the dense system that refines the weights (0.15 s); larger designs go without."""

SAME_POSTERIOR = 1e-9
"""Outputs whose posteriors differ by less than this everywhere are one output: merging them loses
about the square of it."""

NEGLIGIBLE_WEIGHT = 2.0**-40
"""An output that no input gives with more than this probability is merged away: it is worth less
than 1e-10 of H(X), and rounding to 2**-53 would spoil its posterior."""

GOLDEN = 0.5 * (5.0**0.5 - 1.0)
"""The fractional parts of its multiples are coordinates in general position."""

UNCOVERED_MASS = 1e-9
"""Largest total mass of inputs that no output covers, within a solver's tolerance. Their rows
become the distribution of the outputs, which adds P_X-like mass to every posterior."""


class Judge(Protocol):
    """The exact verdict on channels of a table, as rounding needs it; `rules.Rules` is one."""

    @property
    def joint(self) -> Joint:
        """The table."""
        ...

    def verdict(self, channel: Channel) -> Audit:
        """The exact audit."""
        ...

    def failing(self, channel: Channel) -> tuple[int, ...]:
        """Outputs that violate the notion, decided exactly."""
        ...

    def needed(self, rows: IntegerRows, failing: tuple[int, ...]) -> Array:
        """A weight for each failing output that brings its lifts inside, in spite of rounding."""
        ...


class RoundingFailure(SolverFailure):
    """No verified channel is near enough to the design."""


@dataclass(frozen=True)
class FloatDesign:
    """W(y|x) in floating point, sparse; rows sum to 1 up to rounding.

    `x`, `y`, `w` are inputs, outputs and values of the positive entries, ordered by input and
    output; `n` and `k` are the numbers of inputs and outputs. `merged` outputs were merged away.
    """

    n: int
    k: int
    x: Index
    y: Index
    w: Array
    merged: int = 0

    @property
    def starts(self) -> Index:
        """The first entry of every row, and the number of entries, (n + 1,)."""
        return np.concatenate(([0], np.cumsum(np.bincount(self.x, minlength=self.n))))

    def mixed(self, added: Array) -> FloatDesign:
        """(1 - t) W plus ``added[y]`` on every row of output y, with t the sum of `added`, (k,)."""
        outputs = np.flatnonzero(added)
        y = np.concatenate((self.y, np.repeat(outputs, self.n)))
        x = np.concatenate((self.x, np.tile(np.arange(self.n), len(outputs))))
        scaled = self.w * (1.0 - added.sum())
        w = np.concatenate((scaled, np.repeat(added[outputs], self.n)))
        return FloatDesign(self.n, self.k, *_added(x, y, self.k, w), self.merged)


def read_design(weights: Any, posteriors: Any, p_x: Array) -> FloatDesign:
    """Check the design of a solver and remove its noise."""
    n = len(p_x)
    beta = np.array(weights, dtype=np.float64)
    points = posteriors
    if not isinstance(points, Points):
        points = Points.from_dense(posteriors)
    _check_design(beta, points, n)
    k = len(points)
    # Entry by entry: output y has probability v of symbol x.
    y = points.owner
    x = points.indices.astype(np.int64)
    v = points.data
    keep = (v > TINY_LIFT * p_x[x]) & (beta[y] > 0.0)
    y = y[keep]
    x = x[keep]
    v = v[keep]
    sums = _totals(y, v, k)
    used = np.flatnonzero(sums > 0.0)
    if not used.size:
        raise RoundingFailure("the solver's design has no output of positive weight")
    if np.abs(sums[used] - 1.0).max() > LARGEST_NOISE * n:
        raise RoundingFailure("the solver's posteriors do not sum to 1")
    # Number the used outputs by the first input that gives them, the heavier one first: the
    # channel does not depend on the order in which the solver found them.
    first = np.full(k, n)
    np.minimum.at(first, y, x)
    ranked = used[np.lexsort((-beta[used], first[used]))]
    rank = np.empty(k, dtype=np.int64)
    rank[ranked] = np.arange(len(ranked))
    v = v / sums[y]
    y = rank[y]
    beta = beta[ranked]
    beta = _refined(beta, y, x, v, p_x)
    q = beta[y] * v
    miss = 0.5 * np.abs(_totals(x, q, n) - p_x).sum()
    if miss > LARGEST_MISS:
        raise RoundingFailure(
            f"the solver's design misses the distribution of X by {miss:.3g}"
        )
    # The masses q(x, y) = beta_y v_y(x) of twins add up; what is lost is of the order of
    # SAME_POSTERIOR squared.
    y, x, q, outputs = _without_twins(y, x, v, q, len(ranked))
    return _renormalised(y, x, q, p_x, outputs, len(ranked))


def _check_design(beta: Array, points: Points, n: int) -> None:
    """Raise RoundingFailure unless shapes fit, and entries are finite and not negative."""
    k, width = points.shape
    if width != n:
        raise RoundingFailure(
            f"the solver's posteriors have shape {points.shape}, not (outputs, {n})"
        )
    if beta.shape != (k,):
        raise RoundingFailure(
            f"the solver returned {beta.size} weights for {k} posteriors"
        )
    if not (np.isfinite(beta).all() and np.isfinite(points.data).all()):
        raise RoundingFailure("the solver's design contains NaN or infinities")
    if min(beta.min(initial=0.0), points.data.min(initial=0.0)) < -LARGEST_NOISE:
        raise RoundingFailure(
            "the solver's design has a negative weight or probability"
        )


def _refined(beta: Array, y: Index, x: Index, v: Array, p_x: Array) -> Array:
    """The weights corrected by least squares where they miss P_X, if that improves them."""
    n = len(p_x)
    k = len(beta)

    def miss(candidate: Array) -> Array:
        return 1.0 - _totals(x, candidate[y] * v, n) / p_x

    left = miss(beta)
    if np.abs(left).max() <= FINE_MISS or n * k > LARGEST_REFINEMENT:
        return beta
    system = np.zeros((n, k))
    system[x, y] = v / p_x[x]
    largest = max(LARGEST_CORRECTION, MOST_TIMES_MISS * float(np.abs(left) @ p_x))
    for cutoff in CUTOFFS:
        correction = np.linalg.lstsq(system, left, rcond=cutoff)[0]
        if np.abs(correction).sum() > largest:
            continue
        better = beta + correction
        if better.min() <= 0.0:
            continue
        if np.abs(miss(better)).max() < np.abs(left).max():
            return better
    return beta


def _without_twins(
    y: Index, x: Index, v: Array, q: Array, k: int
) -> tuple[Index, Index, Array, int]:
    """Merge outputs with the same posterior.

    Equal posteriors are neighbours after a projection on a line in general position, so only
    neighbours are compared.
    """
    line = np.arange(1, int(x.max()) + 2) * GOLDEN % 1.0
    position = _totals(y, v * line[x], k)
    order = np.argsort(position, kind="stable")
    close = np.flatnonzero(np.diff(position[order]) <= SAME_POSTERIOR)
    if not close.size:
        return y, x, q, k
    into = np.arange(k)
    neighbours = zip(order[close].tolist(), order[close + 1].tolist(), strict=True)
    for first, second in neighbours:
        difference = _totals(x[y == first], v[y == first], len(line))
        difference -= _totals(x[y == second], v[y == second], len(line))
        if np.abs(difference).max() <= SAME_POSTERIOR:
            into[second] = into[first]
    return _renumbered(into[y], x, q)


def _renormalised(
    y: Index, x: Index, q: Array, p_x: Array, k: int, before: int
) -> FloatDesign:
    """Divide every row by its sum, after merging away outputs without weight."""
    n = len(p_x)
    covered = _totals(x, q, n)
    bare = np.flatnonzero(covered <= 0.0)
    if bare.size:
        if p_x[bare].sum() > UNCOVERED_MASS:
            raise RoundingFailure(
                f"no output of the solver's design covers the useful symbol number {bare[0] + 1}"
            )
        mass = _totals(y, q, k)
        y = np.concatenate((y, np.tile(np.arange(k), bare.size)))
        x = np.concatenate((x, np.repeat(bare, k)))
        q = np.concatenate((q, np.outer(p_x[bare], mass).ravel()))
        covered = _totals(x, q, n)
    # One output after the other: merging one may make another one heavy enough.
    while True:
        w = q / covered[x]
        most = np.zeros(k)
        np.maximum.at(most, y, w)
        negligible = int(np.argmin(most))
        if most[negligible] > NEGLIGIBLE_WEIGHT or k == 1:
            return FloatDesign(n, k, *_added(x, y, k, w), before - k)
        # Its heaviest symbol is nearly always released as another output. Of these, the one with
        # most of it takes the output in.
        entries = np.flatnonzero(y == negligible)
        heaviest = x[entries[np.argmax(q[entries])]]
        others = np.flatnonzero((x == heaviest) & (y != negligible))
        into = np.arange(k)
        into[negligible] = y[others[np.argmax(q[others])]]
        y, x, q, k = _renumbered(into[y], x, q)


def _totals(index: Index, values: Array, size: int = 0) -> Array:
    """Sums of the values at each index, as floats also where there are none."""
    return np.bincount(index, values, minlength=size).astype(np.float64)


def _renumbered(y: Index, x: Index, q: Array) -> tuple[Index, Index, Array, int]:
    """Outputs numbered without gaps, entries at the same place added up; also their number."""
    used, y = np.unique(y, return_inverse=True)
    return *_added(y, x, int(x.max()) + 1, q), len(used)


def _added(
    major: Index, minor: Index, width: int, values: Array
) -> tuple[Index, Index, Array]:
    """Entries in order, those at the same place added up."""
    flat, inverse = np.unique(major * width + minor, return_inverse=True)
    return *np.divmod(flat, width), _totals(inverse, values)


UNIT = 1.0 / DENOMINATOR
"""Rounding moves an entry of W by less than this."""

LARGEST_MIXING = 2e-9
"""Largest t, in units of H(X) up to one nat: mixing t loses about t log(1/t), so less than 1e-7 of
H(X)."""

MOST_MIXED = 20_000_000
"""Entries that mixing may add, one for each symbol and failing output; beyond it another design is
cheaper."""

MOST_REPAIRS = 6
"""Rounds of repair: the first adds the weights that are missing, each further one ten times
more."""


@dataclass(frozen=True)
class Rounded:
    """A channel with its exact verdict, and the changes that rounding made to the design.

    The verdict is yes, except for a partition with ``must_satisfy=False``. `mixing` is t of the
    module's text (0 without repairs), `merged` the number of outputs that were merged into another
    one because they had the same posterior or hardly any mass.
    """

    channel: Channel
    audit: Audit
    mixing: float = 0.0
    merged: int = 0


def columns_of(rows: IntegerRows, chosen: Sequence[int]) -> Array:
    """Some columns of W(y|x), (n, k)."""
    w = np.zeros((rows.shape[0], len(chosen)))
    for j, y in enumerate(chosen):
        at, values = rows.columns[y]
        w[list(at), j] = np.array(values) * UNIT
    return w


def round_channel(
    weights: Any,
    posteriors: Any,
    rules: Judge,
    *,
    largest_mixing: float = LARGEST_MIXING,
) -> Rounded:
    """Turn a float design into a verified channel with denominator 2**53."""
    joint = rules.joint
    design = read_design(weights, posteriors, joint.p_x)
    limit = largest_mixing * min(1.0, -float(joint.p_x @ np.log(joint.p_x)))
    added = np.zeros(design.k)
    repairs = 0
    while True:
        rows, outputs = _integer_rows(design, added)
        channel = _channel_of(rows, joint)
        verdict = rules.verdict(channel)
        if verdict.satisfied:
            return Rounded(
                channel, verdict, mixing=float(added.sum()), merged=design.merged
            )
        if not repairs:
            # Small entries that rounding made zero may be all that keeps a lift above zero.
            with_small = _with_small_entries(design, rules)
            if with_small is not None:
                return with_small
        failing = rules.failing(channel)
        needed = rules.needed(rows, failing)
        # Ten times more for outputs that the last repair did not mend, so that few rounds end it.
        at = outputs[list(failing)]
        added[at] = np.maximum(needed, 10.0 * added[at])
        repairs += 1
        too_many = np.count_nonzero(added) * design.n > MOST_MIXED
        # Written so that NaN is too much, too.
        too_heavy = not added.sum() <= limit
        if too_heavy or too_many or repairs > MOST_REPAIRS:
            worst = verdict.worst
            raise RoundingFailure(
                "the design breaks its budget by more than rounding can repair "
                f"(output {quoted(worst.output)}, sensitive symbol "
                f"{quoted(worst.sensitive)}, lift {worst.lift:.17g}); design with a "
                "larger margin"
            )


def _channel_of(rows: IntegerRows, joint: Joint) -> Channel:
    """The channel of these rows, with readable labels."""
    labels = output_labels(joint.useful.names, rows)
    return Channel(joint.useful, labels, rows, DENOMINATOR, joint)


def _with_small_entries(design: FloatDesign, rules: Judge) -> Rounded | None:
    """The design with entries of one unit where rounding makes them zero, if that is private.

    None where no entry is lost, or the channel fails all the same.
    """
    values = _largest_remainders(design)
    lost = (values == 0) & (design.w > 0.0)
    if not lost.any():
        return None
    values[lost] = 1
    # Each row pays for its units with its largest entry.
    units = np.bincount(design.x[lost], minlength=design.n)
    starts = design.starts
    for row in np.flatnonzero(units).tolist():
        entries = values[starts[row] : starts[row + 1]]
        entries[int(np.argmax(entries))] -= units[row]
    rows = IntegerRows((design.n, design.k), starts, design.y, values)
    channel = _channel_of(rows, rules.joint)
    verdict = rules.verdict(channel)
    if not verdict.satisfied:
        return None
    return Rounded(channel, verdict, merged=design.merged)


def partition_channel(
    groups: Sequence[Sequence[int]],
    rules: Judge,
    *,
    shares: Mapping[int, Sequence[int]] | None = None,
    must_satisfy: bool = True,
) -> Rounded:
    """The verified channel that publishes the group of a symbol; exact, without any rounding.

    `shares` splits the output of some groups (by their position) into several, with these integers.
    """
    joint = rules.joint
    n = len(joint.useful)
    # The integers of a group that is split, by the smallest of its symbols.
    randomised: dict[int, list[int]] = {}
    for k, parts in (shares or {}).items():
        randomised[min(groups[k])] = list(parts)
    ordered = sorted(sorted(int(x) for x in group) for group in groups)
    members = sorted(chain.from_iterable(ordered))
    if members != list(range(n)) or [] in ordered:
        raise RoundingFailure(f"the groups are no partition of the {n} useful symbols")
    pairs: list[list[int]] = [[] for _ in range(n)]
    width = 0
    for group in ordered:
        # All members of a group have the same entries, on outputs of the group's own.
        values = randomised.get(group[0], [DENOMINATOR])
        row: list[int] = []
        for y, value in enumerate(values, width):
            row += [y, value]
        width += len(values)
        for x in group:
            pairs[x] = row
    channel = _channel_of(IntegerRows.of_pairs(pairs, width), joint)
    verdict = rules.verdict(channel)
    if must_satisfy and not verdict.satisfied:
        raise RoundingFailure(
            f"merging leaves the output {quoted(verdict.worst.output)} outside the budget"
        )
    return Rounded(channel, verdict)


def _integer_rows(
    design: FloatDesign, added: Array
) -> tuple[IntegerRows, NDArray[np.int64]]:
    """The integers of a design after mixing, and the outputs that are left."""
    mixed = design
    if added.any():
        mixed = design.mixed(added)
    values = _largest_remainders(mixed)
    positive = values > 0
    x = mixed.x[positive]
    y = mixed.y[positive]
    values = values[positive]
    # An output may have been rounded away altogether; the others keep their order.
    outputs, y = np.unique(y, return_inverse=True)
    indptr = np.concatenate(([0], np.cumsum(np.bincount(x, minlength=mixed.n))))
    return IntegerRows((mixed.n, len(outputs)), indptr, y, values), outputs


def _largest_remainders(design: FloatDesign) -> NDArray[np.int64]:
    """Integers next to W * 2**53 whose rows sum to 2**53; zeros stay zeros."""
    scaled = design.w * float(DENOMINATOR)
    whole = np.floor(scaled)
    values = whole.astype(np.int64)
    starts = design.starts
    missing = DENOMINATOR - np.add.reduceat(values, starts[:-1])
    # The largest remainder first within each row.
    order = np.lexsort((whole - scaled, design.x))
    row_of = design.x[order]
    rank = np.arange(len(order)) - starts[row_of]
    values[order[rank < missing[row_of]]] += 1
    # The floats of a row may sum to more than 1, or to less by more than a unit for each entry: the
    # rest goes to its largest entry, which it changes least.
    missing = DENOMINATOR - np.add.reduceat(values, starts[:-1])
    for row in np.flatnonzero(missing).tolist():
        entries = values[starts[row] : starts[row + 1]]
        entries[int(np.argmax(entries))] += missing[row]
    return values
