"""From a float design to a channel of integers that is verified exactly, or to a refusal.

`round_channel` works in these steps:

1. `read_design` makes of the solver's weights and posteriors a channel W(y|x) in floating point.
2. Its rows become integers over 2^53 by largest remainders (`_largest_remainders`). For example,
   over 10 in the place of 2^53 the row (.26, .37, .37) is rounded down to 2, 3, 3; the missing 2 go
   to the largest remainders .7 and .7, so the integers are 2, 4, 4.
3. The exact audit decides. Where it fails, outputs that fail because of errors or the rounding are
   repaired one by one: a failing output y gets a tiny weight a_y on every row,

       W'(y|x) = (1 - t) W(y|x) + a_y,    t = sum of the a_y,

   which moves its posterior towards P_X, hence its lifts towards 1, and leaves the posteriors of
   the others where they are. A notion that is convex in the posterior stays satisfied where it was.
   Then steps 2 and 3 are repeated, with larger weights, until the audit passes or t is too large.

A large channel that keeps each symbol with one probability, and else draws it anew, first gets
integers of that form (`_rows_of_own`): its 25 million are rounded and audited in less time.

`partition_channel` is for channels that publish the set of a symbol: these are integers as they
are, and only audited.

*Channels in floating point.* A design is a set of posteriors v_y with weights beta_y whose mean is
P_X, up to floating-point errors. `read_design` makes the channel W(y|x) = beta_y v_y(x) / P_X(x) of
it:

1. Entries that are noise and outputs without weight are left out, the others numbered in an order
   that does not depend on the solver (`_without_noise`).
2. Weights that miss P_X are corrected by least squares (`_refined`).
3. Outputs with the same posterior are merged (`_without_twins`): their masses beta_y v_y add up.
4. Inputs that no output covers get the distribution of the outputs (`_covering`).
5. Every row is divided by its own sum, so P_X is met exactly whatever the error of the weights, and
   outputs of negligible probability are taken in by others (`_normalised`).

For example, at P_X = (.5, .5) a solver may return three outputs: the posterior (.75, .25) twice,
with the weights .2 and .3, and (.25, .75) with the weight .5. The twins become one output of weight
.5, and the rows are (.75, .25) and (.25, .75). `round_channel` makes integers of them.

*The two sparse forms of a design* are outputs with their posteriors, and joint masses q(x, y).
Weights beta = (.5, .5) with the posteriors (1, 0) and (.4, .6) are the `DesignOutputs`

    y = (0, 1, 1)    x = (0, 0, 1)    v = (1, .4, .6)

and, as q(x, y) = beta_y v_y(x), the `DesignMasses` with the same y and x and q = (.5, .2, .3).
Zeros have no entry. Outputs are merged as masses, where those of the same x add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.verdict import Audit
from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.channel.output_cells import output_labels
from mechdesign.core.errors import SolverFailure
from mechdesign.core.integers import IntegerRows
from mechdesign.core.wording import quoted
from mechdesign.tables.joint import Joint
from solvers import Array, Points

# ----------------------------------------------------------- channels in floating point

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
        x, y, w = added_up(x, y, self.k, w)
        return FloatDesign(self.n, self.k, x, y, w, self.merged)


def read_design(weights: Any, posteriors: Any, p_x: Array) -> FloatDesign:
    """Check the design of a solver and remove its noise.

    Parameters
    ----------
    weights : (k,) array
        beta, the probabilities of the outputs.
    posteriors : Points or array, (k, n)
        v, one output a row.
    p_x : (n,) array
        P_X, all positive.

    Raises
    ------
    RoundingFailure
        If it is no design: another shape, NaN, or a miss that is no rounding error.
    """
    beta = np.array(weights, dtype=np.float64)
    points = posteriors
    if not isinstance(points, Points):
        points = Points.from_dense(posteriors)
    _check_design(beta, points, len(p_x))
    outputs = _without_noise(beta, points, p_x)
    outputs = replace(outputs, beta=_refined(outputs, p_x))
    # From here on outputs are joint masses: merging outputs adds these up.
    masses = outputs.masses()
    # Judged after the refinement, which may have mended it.
    miss = 0.5 * np.abs(masses.by_input(len(p_x)) - p_x).sum()
    if miss > LARGEST_MISS:
        raise RoundingFailure(
            f"the solver's design misses the distribution of X by {miss:.3g}"
        )
    masses = _covering(_without_twins(outputs, masses), p_x)
    return _normalised(masses, len(p_x), before=outputs.k)


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


def _without_noise(beta: Array, points: Points, p_x: Array) -> DesignOutputs:
    """The outputs of positive weight without their tiny entries, in an order of their own."""
    n = len(p_x)
    k = len(points)
    y = points.owner
    x = points.indices.astype(np.int64)
    v = points.data
    # Relative to P(x): what counts is the lift of an entry, and rare symbols have small ones.
    keep = (v > TINY_LIFT * p_x[x]) & (beta[y] > 0.0)
    y = y[keep]
    x = x[keep]
    v = v[keep]
    sums = totals(y, v, k)
    used = np.flatnonzero(sums > 0.0)
    if not used.size:
        raise RoundingFailure("the solver's design has no output of positive weight")
    # Each of the n entries may be wrong by the noise.
    if np.abs(sums[used] - 1.0).max() > LARGEST_NOISE * n:
        raise RoundingFailure("the solver's posteriors do not sum to 1")

    # Number the used outputs by the first input that gives them, the heavier one first: the
    # channel does not depend on the order in which the solver found them.
    first = np.full(k, n)
    np.minimum.at(first, y, x)
    ranked = used[np.lexsort((-beta[used], first[used]))]
    rank = np.empty(k, dtype=np.int64)
    rank[ranked] = np.arange(len(ranked))
    return DesignOutputs(rank[y], x, v / sums[y], beta[ranked])


def _refined(outputs: DesignOutputs, p_x: Array) -> Array:
    """The weights corrected by least squares where they miss P_X, if that improves them.

    The system has a row for each input: sum over y of beta_y v_y(x) / P(x) = 1. Relative rows
    make a miss of a rare symbol count like that of a frequent one.
    """
    beta = outputs.beta
    n = len(p_x)
    k = outputs.k

    def misses(weights: Array) -> Array:
        masses = replace(outputs, beta=weights).masses()
        return 1.0 - masses.by_input(n) / p_x

    miss = misses(beta)
    if np.abs(miss).max() <= FINE_MISS or n * k > LARGEST_REFINEMENT:
        return beta
    # A correction must be small, keep all weights positive and lower the largest miss.
    system = np.zeros((n, k))
    system[outputs.x, outputs.y] = outputs.v / p_x[outputs.x]
    largest = max(LARGEST_CORRECTION, MOST_TIMES_MISS * float(np.abs(miss) @ p_x))
    for cutoff in CUTOFFS:
        correction = np.linalg.lstsq(system, miss, rcond=cutoff)[0]
        if np.abs(correction).sum() > largest:
            continue
        better = beta + correction
        if better.min() <= 0.0:
            continue
        # Least squares lowers the sum of squares, which need not lower the largest miss.
        if np.abs(misses(better)).max() < np.abs(miss).max():
            return better
    return beta


def _without_twins(outputs: DesignOutputs, masses: DesignMasses) -> DesignMasses:
    """Merge outputs with the same posterior: their masses add up.

    What is lost is of the order of `SAME_POSTERIOR` squared. Equal posteriors are neighbours after
    a projection on a line in general position, so only neighbours are compared.
    """
    y = outputs.y
    x = outputs.x
    v = outputs.v
    line = np.arange(1, int(x.max()) + 2) * GOLDEN % 1.0
    position = totals(y, v * line[x], outputs.k)
    order = np.argsort(position, kind="stable")
    close = np.flatnonzero(np.diff(position[order]) <= SAME_POSTERIOR)
    if not close.size:
        return masses
    into = np.arange(outputs.k)
    neighbours = zip(order[close].tolist(), order[close + 1].tolist(), strict=True)
    for first, second in neighbours:
        difference = totals(x[y == first], v[y == first], len(line))
        difference -= totals(x[y == second], v[y == second], len(line))
        if np.abs(difference).max() <= SAME_POSTERIOR:
            # Neighbours come in order, so a whole run of twins ends in its first output.
            into[second] = into[first]
    return masses.merged(into)


def _covering(masses: DesignMasses, p_x: Array) -> DesignMasses:
    """The masses, with the distribution of the outputs for inputs that no output covers.

    Such inputs must be rare enough to be within a solver's tolerance.
    """
    bare = np.flatnonzero(masses.by_input(len(p_x)) <= 0.0)
    if not bare.size:
        return masses
    if p_x[bare].sum() > UNCOVERED_MASS:
        raise RoundingFailure(
            f"no output of the solver's design covers the useful symbol number {bare[0] + 1}"
        )
    k = masses.k
    added = np.outer(p_x[bare], masses.by_output()).ravel()
    return DesignMasses(
        np.concatenate((masses.y, np.tile(np.arange(k), bare.size))),
        np.concatenate((masses.x, np.repeat(bare, k))),
        np.concatenate((masses.q, added)),
        k,
    )


def _normalised(masses: DesignMasses, n: int, *, before: int) -> FloatDesign:
    """W(y|x) = q(x, y) / q(x), after merging away outputs without weight; once there were `before`.

    Division by the row's own sum, and not by P(x), meets P_X exactly.
    """
    covered = masses.by_input(n)
    # One output after the other: merging one may make another one heavy enough.
    while True:
        k = masses.k
        w = masses.q / covered[masses.x]
        most = np.zeros(k)
        np.maximum.at(most, masses.y, w)
        negligible = int(np.argmin(most))
        if most[negligible] > NEGLIGIBLE_WEIGHT or k == 1:
            x, y, w = added_up(masses.x, masses.y, k, w)
            return FloatDesign(n, k, x, y, w, before - k)
        into = np.arange(k)
        into[negligible] = _host(masses, negligible)
        masses = masses.merged(into)


def _host(masses: DesignMasses, negligible: int) -> int:
    """The output that takes in a negligible one.

    The heaviest symbol of that one is nearly always released as another output. Of these, the host
    is the one with most of it.
    """
    entries = np.flatnonzero(masses.y == negligible)
    heaviest = masses.x[entries[np.argmax(masses.q[entries])]]
    others = np.flatnonzero((masses.x == heaviest) & (masses.y != negligible))
    return int(masses.y[others[np.argmax(masses.q[others])]])


Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class DesignOutputs:
    """Outputs in sparse form: entry i says that output ``y[i]`` has v(x[i]) = ``v[i]``.

    `beta` (k,) are the weights of the outputs.
    """

    y: Index
    x: Index
    v: Array
    beta: Array

    @property
    def k(self) -> int:
        """The number of outputs."""
        return len(self.beta)

    def masses(self) -> DesignMasses:
        """q(x, y) = beta_y v_y(x)."""
        return DesignMasses(self.y, self.x, self.beta[self.y] * self.v, self.k)


@dataclass(frozen=True, eq=False)
class DesignMasses:
    """Joint masses in sparse form: entry i says that q(x[i], y[i]) is ``q[i]``; of `k` outputs."""

    y: Index
    x: Index
    q: Array
    k: int

    def by_input(self, n: int) -> Array:
        """The mass of every input, (n,)."""
        return totals(self.x, self.q, n)

    def by_output(self) -> Array:
        """The mass of every output, (k,)."""
        return totals(self.y, self.q, self.k)

    def merged(self, into: Index) -> DesignMasses:
        """Output ``into[y]`` in the place of y, (k,); what is left is numbered without gaps."""
        used, y = np.unique(into[self.y], return_inverse=True)
        y, x, q = added_up(y, self.x, int(self.x.max()) + 1, self.q)
        return DesignMasses(y, x, q, len(used))


def totals(index: Index, values: Array, size: int = 0) -> Array:
    """Sums of the values at each index, as floats also where there are none."""
    return np.bincount(index, values, minlength=size).astype(np.float64)


GRID_TIMES = 4
"""Places for each entry up to which entries are added up in an array of all places: 25 million of
5,000 x 5,000 take 0.8 s so, and 8 s by a sort."""


def added_up(
    major: Index, minor: Index, width: int, values: Array
) -> tuple[Index, Index, Array]:
    """Entries in order of `major`, then `minor` (below `width`); those at the same place add up."""
    places = major * width + minor
    size = (int(major.max()) + 1) * width if len(major) else 0
    if size <= GRID_TIMES * len(places):
        # No sort is needed where an array has room for all places.
        is_used = np.zeros(size, dtype=np.bool_)
        is_used[places] = True
        used = np.flatnonzero(is_used)
        sums = totals(places, values, size)[used]
    else:
        used, inverse = np.unique(places, return_inverse=True)
        sums = totals(inverse, values)
    majors, minors = np.divmod(used, width)
    return majors, minors, sums


# ----------------------------------------------------------------------------- integers

MANY_ENTRIES = 1 << 20
"""Entries from which a design is looked at for equal rows but for own outputs: of 25 million the
rounding takes 25 s, and those of such a channel 2."""

LONG_ROWS = 64
"""Entries of a row, on average, from which rows are sorted one by one."""

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


def round_channel(
    weights: Any,
    posteriors: Any,
    rules: Judge,
    *,
    largest_mixing: float = LARGEST_MIXING,
) -> Rounded:
    """Turn a float design into a verified channel with denominator 2**53.

    Weights (k,) and posteriors (k, n) are those of `read_design`; `largest_mixing` is
    the largest t, in units of H(X) up to one nat.

    Raises
    ------
    RoundingFailure
        If it is no design, or breaks its budget by more than a repair may mend.
    """
    joint = rules.joint
    rows = _rows_of_own(weights, posteriors, joint.p_x)
    if rows is not None:
        channel = _channel_of(rows, joint)
        verdict = rules.verdict(channel)
        if verdict.satisfied:
            return Rounded(channel, verdict)
    design = read_design(weights, posteriors, joint.p_x)
    limit = largest_mixing * min(1.0, -float(joint.p_x @ np.log(joint.p_x)))
    # a_y of the repair, (k,).
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
        # Outputs that rounding left are numbered anew: back to the numbers of the design. Ten times
        # more for those that the last repair did not mend, so that few rounds end it.
        places = outputs[list(failing)]
        added[places] = np.maximum(needed, 10.0 * added[places])
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


def _rows_of_own(weights: Any, posteriors: Any, p_x: Array) -> IntegerRows | None:
    """The integers of a large design where each symbol has an output of its own, and all draw the
    others with the same probabilities; None of any other one.

    Let b_y be these probabilities, rounded, and c what they leave to 1. Then W(y|x) = b_y + c at
    the own output of x and b_y elsewhere, so that rows differ in two places only.
    """
    if not isinstance(posteriors, Points) or len(posteriors.data) < MANY_ENTRIES:
        return None
    n = len(p_x)
    places = np.arange(n)
    if posteriors.shape != (n, n) or len(posteriors.data) < n * n:
        return None
    if (posteriors.indices.reshape(n, n) != places).any():
        return None
    lifts = posteriors.data.reshape(n, n) / p_x
    common = lifts.min(axis=1)
    outputs, own = np.nonzero(lifts > common[:, None] * (1.0 + SAME_POSTERIOR))
    if not np.array_equal(outputs, places) or len(np.unique(own)) < n:
        return None
    beta = np.asarray(weights, dtype=np.float64)
    # In the order of `_without_noise`: the first symbol gives all outputs.
    order = np.argsort(-beta, kind="stable")
    drawn = np.rint((beta * common)[order] * DENOMINATOR)
    # Written so that NaN fails, too.
    if not 1.0 <= drawn.min() <= drawn.max() < DENOMINATOR:
        return None
    drawn = drawn.astype(np.int64)
    kept = DENOMINATOR - int(drawn.sum())
    asked = beta * (lifts[places, own] - common)
    if not np.abs(asked - kept * UNIT).max() <= SAME_POSTERIOR * kept * UNIT:
        return None
    values = np.tile(drawn, (n, 1))
    values[own[order], places] += kept
    return IntegerRows((n, n), n * np.arange(n + 1), np.tile(places, n), values.ravel())


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


def _channel_of(rows: IntegerRows, joint: Joint) -> Channel:
    """The channel of these rows, with readable labels."""
    labels = output_labels(joint.useful.names, rows)
    return Channel(joint.useful, labels, rows, DENOMINATOR, joint)


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
    is_left = np.bincount(y, minlength=mixed.k) > 0
    outputs = np.flatnonzero(is_left)
    y = (np.cumsum(is_left) - 1)[y]
    indptr = np.concatenate(([0], np.cumsum(np.bincount(x, minlength=mixed.n))))
    return IntegerRows((mixed.n, len(outputs)), indptr, y, values), outputs


def _largest_remainders(design: FloatDesign) -> NDArray[np.int64]:
    """Integers next to W * 2**53 whose rows sum to 2**53; zeros stay zeros."""
    scaled = design.w * float(DENOMINATOR)
    whole = np.floor(scaled)
    values = whole.astype(np.int64)
    starts = design.starts
    missing = DENOMINATOR - np.add.reduceat(values, starts[:-1])
    order = _falling_remainders(whole - scaled, design)
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


def _falling_remainders(negative: Array, design: FloatDesign) -> Index:
    """The entries row by row, the largest remainder first within each; of equal ones the first.

    `negative` has the remainders of all entries, times -1.
    """
    if len(negative) < LONG_ROWS * design.n:
        return np.lexsort((negative, design.x))
    # A few long rows are sorted one by one: of 5,000 entries each, four times as fast.
    order = np.empty(len(negative), dtype=np.int64)
    for start, end in pairwise(design.starts.tolist()):
        order[start:end] = start + np.argsort(negative[start:end], kind="stable")
    return order


def columns_of(rows: IntegerRows, chosen: Sequence[int]) -> Array:
    """Some columns of W(y|x), (n, k)."""
    w = np.zeros((rows.shape[0], len(chosen)))
    for j, y in enumerate(chosen):
        inputs, values = rows.columns[y]
        w[list(inputs), j] = np.array(values) * UNIT
    return w


def partition_channel(
    groups: Sequence[Sequence[int]],
    rules: Judge,
    *,
    must_satisfy: bool = True,
) -> Rounded:
    """The verified channel that publishes the group of a symbol; exact, without any rounding.

    Raises
    ------
    RoundingFailure
        If the groups are no partition of the symbols, or the channel is not private.
    """
    joint = rules.joint
    n = len(joint.useful)
    # In the order of their smallest symbols, so that the channel does not depend on theirs.
    ordered = sorted(sorted(int(x) for x in group) for group in groups)
    members = sorted(chain.from_iterable(ordered))
    if members != list(range(n)) or [] in ordered:
        raise RoundingFailure(f"the groups are no partition of the {n} useful symbols")

    # Output and integer, for every symbol.
    pairs: list[list[int]] = [[] for _ in range(n)]
    for y, group in enumerate(ordered):
        for x in group:
            pairs[x] = [y, DENOMINATOR]

    channel = _channel_of(IntegerRows.of_pairs(pairs, len(ordered)), joint)
    verdict = rules.verdict(channel)
    if must_satisfy and not verdict.satisfied:
        raise RoundingFailure(
            f"merging leaves the output {quoted(verdict.worst.output)} outside the budget"
        )
    return Rounded(channel, verdict)
