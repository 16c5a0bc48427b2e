"""The joint leakage of several releases of one record, each drawn independently of the others.

With channels W1, .., Wk on columns of one table,
``P(s, y1, .., yk) = sum_x P(s, x) W1(y1|x) .. Wk(yk|x)``: the releases are one channel whose
outputs are tuples, and whose column for a tuple is the product of the columns. Only the direction
of that column matters for lifts, so tuples with proportional columns count once (`directions`, in
integers). The last channel is joined in floating point, where sums of non-negative terms have a
proven relative error; every tuple that could be extreme within it is then compared in integers.
With three channels and more the directions may be too many: those whose completions are surely
harmless go first, and what is left out is bounded.

Decided exactly: ``exp(-eps_l) <= l(s, y1, .., yk) <= exp(eps_u)`` for all tuples. Floating point
selects candidates only, with margins wider than its error, and bounds on what is left out are
rounded outwards.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.demands import (
    Direction,
    Entries,
    columns_on,
    directions,
    everything,
)
from mechdesign.auditing.measures import ROUNDOFF
from mechdesign.auditing.verdict import Achieved, audit_columns
from mechdesign.channel.channel import Array, Channel
from mechdesign.core.arguments import list_argument
from mechdesign.core.display import Displayed
from mechdesign.core.errors import InputError, require_type
from mechdesign.core.wording import at_most, listed
from mechdesign.notions import LIP
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Symbol, Variable

FOLLOWED = 20_000
"""Directions of all channels but the last that are followed; beyond it the limits need not meet."""

BLOCK = 2**22
"""Doubles of one block of products: 32 MB."""

LEAST_PRODUCT = 2.0**-900
"""Smallest product of positive entries for which nothing can underflow; below it nothing rests on
doubles.
"""

OUTWARDS = 1.0 + 1e-9
"""Factor on bounds of what is left out: far more than rounding, and nothing that matters."""

LARGEST_LOG = math.log(1e300)
"""Largest log lift that the margin of a comparison grows with: an infinite one needs no margin."""


@dataclass(frozen=True)
class WorstTuple:
    """The sensitive symbol and the outputs, one of each channel, with the lift farthest from 1 on a
    log scale.
    """

    sensitive: str
    outputs: tuple[str, ...]
    lift: float


@dataclass(frozen=True, repr=False)
class Composition(Achieved, Displayed):
    """The joint leakage of independent releases of one record, in nats: limits as those of one
    release, for all tuples.

    `achieved` has the limits alone and `at_least` is attained by a tuple, both the smallest doubles
    of their kind; they are equal where `exact`, which two channels always are. `sum` is what adding
    the budgets of the channels alone would give: no bound. `worst` is a tuple that attains the
    larger side of `at_least`.
    """

    at_least: Achieved
    worst: WorstTuple
    sum: Achieved
    alone: tuple[Achieved, ...]

    def __repr__(self) -> str:
        budgets = vars(self.achieved).items()
        sides = ", ".join(f"{name} {at_most(value)}" for name, value in budgets)
        return f"Composition({len(self.alone)} releases: {sides})"

    @property
    def achieved(self) -> Achieved:
        """The limits of all tuples."""
        return Achieved(self.eps_l, self.eps_u, self.eps_ldp)

    @property
    def exact(self) -> bool:
        """Whether the limits meet."""
        return self.achieved == self.at_least


def compose(
    channels: Sequence[Channel], joint: Joint | None = None, *, most: int = FOLLOWED
) -> Composition:
    """The joint leakage of independent releases of one record through all of the channels, exactly.

    Parameters
    ----------
    channels : sequence of Channel
        The same channel as often as a record is released through it.
    joint : Joint, optional
        The table of the sensitive column and of all useful columns; by default that of the
        channels, which must be the same.
    most : int
        For three channels and more: tuples of all but the last that are followed. Where they are
        more, `achieved` is a proven bound and `at_least` what was found.

    Raises
    ------
    InputError
        If the channels have no common table, or it lacks their columns or symbols.
    """
    table = common_table(channels, joint)
    columns = [columns_on(channel, table) for channel in channels]
    lip = LIP(1.0)  # equal budgets, so that the worst cell is that of the larger side
    alone = tuple(
        audit_columns(column, channel.outputs, table, lip).achieved
        for channel, column in zip(channels, columns, strict=True)
    )
    # The channel with most outputs comes last: its tuples are the cheapest.
    order = sorted(range(len(columns)), key=lambda k: len(columns[k]))
    ordered = [columns[k] for k in order]
    followed, left_out = _all_but_last(table, ordered, most)
    candidates: list[Direction] = []
    for secret in table.secrets:
        candidates += _candidates(secret, followed, ordered[-1])
    labels = [str(k) for k in range(len(candidates))]
    verdict = audit_columns([column for column, _ in candidates], labels, table, lip)
    at_least = verdict.achieved
    worst = verdict.worst
    _, worst_outputs = candidates[int(worst.output)]
    output_of = dict(zip(order, worst_outputs, strict=True))
    worst_tuple = tuple(
        channel.outputs[output_of[k]] for k, channel in enumerate(channels)
    )
    return Composition(
        eps_l=max(at_least.eps_l, left_out[0]),
        eps_u=max(at_least.eps_u, left_out[1]),
        eps_ldp=max(at_least.eps_ldp, left_out[2]),
        at_least=at_least,
        worst=WorstTuple(worst.sensitive, worst_tuple, worst.lift),
        sum=Achieved(
            eps_l=sum_above([achieved.eps_l for achieved in alone]),
            eps_u=sum_above([achieved.eps_u for achieved in alone]),
            eps_ldp=sum_above([achieved.eps_ldp for achieved in alone]),
        ),
        alone=alone,
    )


def _all_but_last(
    table: Joint, channels: Sequence[Sequence[Entries]], most: int
) -> tuple[list[Direction], list[float]]:
    """Directions of all channels but the last, and bounds (eps_l, eps_u, eps_ldp) on those that
    were left out.
    """
    followed = everything(table)
    left_out = np.zeros(3)
    for depth, columns in enumerate(channels[:-1]):
        followed = directions(followed, columns)
        if depth and len(followed) > most:
            rest = channels[depth + 1 :]
            followed, bounds = _prune_directions(table, followed, rest, most)
            left_out = np.maximum(left_out, bounds)
    return followed, left_out.tolist()


def sum_above(values: Sequence[float]) -> float:
    """The smallest double at or above a sum."""
    total = math.fsum(values)
    # fsum rounds correctly, so the sign of the remainder is exact.
    if math.isinf(total) or math.fsum((*values, -total)) <= 0.0:
        return total
    return math.nextafter(total, math.inf)


def common_table(channels: Sequence[Channel], joint: Joint | None = None) -> Joint:
    """The table given, or the one that all channels were designed for."""
    if not channels:
        raise InputError("there is no channel to compose: give at least one")
    for channel in list_argument("channels", channels, "channels"):
        require_type("each of the channels", channel, Channel)
    if joint is not None:
        return joint
    _check_sensitive(channels)
    tables = [channel.joint for channel in channels if channel.joint is not None]
    if not tables:
        raise InputError(
            "the channels are public ones without their table: give the table (--table)"
        )
    widest = max(tables, key=lambda table: len(table.useful.columns))
    for channel in channels:
        _check_on(channel, widest, channels)
    for channel in channels:
        if channel.sensitive is not None and not channel.sensitive.protects_columns:
            # One promise about crossed columns makes the question one about crossed columns.
            sensitive = replace(widest.sensitive, protects_columns=False)
            return replace(widest, sensitive=sensitive)
    return widest


def _check_sensitive(channels: Sequence[Channel]) -> None:
    """All channels protect the same columns."""
    protected: set[tuple[str, ...]] = set()
    for channel in channels:
        if channel.sensitive is not None:
            protected.add(channel.sensitive.columns)
    if len(protected) > 1:
        names = sorted(",".join(columns) for columns in protected)
        raise InputError(
            f"the channels protect different columns ({listed(names)}): give the table "
            "(--table), with the one that you ask about as sensitive"
        )


def _check_on(channel: Channel, widest: Joint, channels: Sequence[Channel]) -> None:
    """Refuse a table without the columns of the channel, or with other counts than its own."""
    if not set(channel.useful.columns) <= set(widest.useful.columns):
        names = sorted({",".join(other.useful.columns) for other in channels})
        raise InputError(
            f"the channels release different columns ({listed(names)}): give the table "
            "of all (--table)"
        )
    own = channel.joint
    if own is None or own is widest:
        return
    if _cells(own, own.useful) != _cells(widest, own.useful):
        raise InputError(
            "the channels were designed for different tables: give the one that the "
            "record comes from (--table)"
        )


def _cells(joint: Joint, useful: Variable) -> Counter[tuple[Symbol, Symbol]]:
    """Positive counts by sensitive symbol and by symbol of some of the useful columns."""
    cells: Counter[tuple[Symbol, Symbol]] = Counter()
    positions = [joint.useful.columns.index(column) for column in useful.columns]
    for symbol, row in zip(joint.sensitive.symbols, joint.counts, strict=True):
        for whole, count in zip(joint.useful.symbols, row, strict=True):
            part = tuple(whole[i] for i in positions)
            cells[symbol, part] += count
    return +cells


def _dense(columns: Sequence[Entries], n: int) -> Array:
    """Columns as rows of doubles, each entry correctly rounded, the largest of each 1; (k, n)."""
    dense = np.zeros((len(columns), n))
    for k, (inputs, values) in enumerate(columns):
        largest = max(values)
        dense[k, list(inputs)] = [value / largest for value in values]
    return dense


def _candidates(
    table: Joint, followed: Sequence[Direction], columns: Sequence[Entries]
) -> list[Direction]:
    """Every tuple that may be extreme: in its largest lift, its smallest, or their quotient."""
    n = len(table.useful)
    size = len(table.sensitive)
    last = _dense(columns, n)
    first = _dense([column for column, _ in followed], n)
    smallest_product = math.prod(
        float(part[part > 0.0].min()) for part in (table.p, last, first)
    )
    if smallest_product < LEAST_PRODUCT:
        return directions(followed, columns)
    # Nothing underflows, so zeros are exact. A lift is wrong by n + 5 roundings in P(s, y) and |S|
    # more in P(y).
    slack = 8.0 * (2 * n + size + 20) * ROUNDOFF
    nearest = [_Nearest(slack) for _ in range(3)]
    step = max(1, BLOCK // (size * max(n, len(last))))
    for start in range(0, len(first), step):
        block = first[start : start + step]
        products = (block[:, None, :] * table.p).reshape(-1, n) @ last.T
        masses = products.reshape(len(block), size, -1)
        # (direction, output) of the tuples that can occur
        places = np.argwhere(masses.any(axis=1))
        masses = masses[places[:, 0], :, places[:, 1]]
        places[:, 0] += start
        with np.errstate(divide="ignore"):
            logs = np.log(masses / (table.p_s * masses.sum(axis=1, keepdims=True)))
        high = logs.max(axis=1)
        low = logs.min(axis=1)
        for side, values in zip(nearest, (high, -low, high - low), strict=True):
            side.add(values, places)
    pairs: set[tuple[int, int]] = set()
    for side in nearest:
        pairs |= {(int(i), int(y)) for i, y in side.places}
    candidates: list[Direction] = []
    for i, y in sorted(pairs):
        outputs = followed[i][1]
        for column, _ in directions([followed[i]], [columns[y]]):
            candidates.append((column, (*outputs, y)))
    return candidates


class _Nearest:
    """The tuples whose value may be the largest, given that values are wrong by at most `slack`
    each.
    """

    def __init__(self, slack: float) -> None:
        self._slack = slack
        self._values: Array = np.zeros(0)
        self.places: NDArray[np.intp] = np.zeros((0, 2), dtype=np.intp)

    def add(self, values: Array, places: NDArray[np.intp]) -> None:
        """Take in more tuples, and drop those that are surely smaller than another."""
        values = np.append(self._values, values)
        places = np.concatenate([self.places, places])
        best = float(values.max(initial=0.0))
        margin = self._slack * (1.0 + min(best, LARGEST_LOG))
        near = np.flatnonzero(values >= best - margin)
        if math.isinf(best):
            near = near[:1]  # of lifts of zero one is enough
        self._values = values[near]
        self.places = places[near]


def _prune_directions(
    table: Joint, found: list[Direction], rest: Sequence[Sequence[Entries]], most: int
) -> tuple[list[Direction], Array]:
    """The directions that can come to most, and what the others can come to at most: (eps_l, eps_u,
    eps_ldp).

    The columns of the remaining channels multiply the entries of a direction by factors between 1
    and r, up to scale. A lift is a quotient of linear functions of the factors, so it is largest
    where those of the symbols with the largest P(s|x) are r and the others 1: one of n candidates.
    The smallest alike.
    """
    columns = _dense([column for column, _ in found], len(table.useful))
    least = np.exp(-_stretches(columns > 0.0, rest))[:, None]  # 1 / r
    masses = columns * table.p_x
    bounds = np.zeros((len(columns), 2))
    for secret in table.secrets:
        for lifts in secret.lift:
            of_secret = [
                _largest_log(masses, lifts, least, sign=1.0),
                _largest_log(masses, lifts, least, sign=-1.0),
            ]
            bounds = np.maximum(bounds, np.column_stack(of_secret))
    limits = np.column_stack([bounds, bounds.sum(axis=1)])
    limits = limits * OUTWARDS + (OUTWARDS - 1.0)
    smallest_entry = min(min(values) / max(values) for (_, values), _ in found)
    if smallest_entry * float(table.p_x.min()) < LEAST_PRODUCT:
        limits[:] = math.inf  # entries are lost, or known too badly
    # The best rank of a direction on any side decides whether it is followed.
    ranks = np.argsort(np.argsort(-limits, axis=0, kind="stable"), axis=0)
    order: NDArray[np.intp] = np.argsort(ranks.min(axis=1), kind="stable")
    followed: list[int] = sorted(order[:most].tolist())
    kept = [found[i] for i in followed]
    return kept, limits[order[most:]].max(axis=0)


def _largest_log(masses: Array, lifts: Array, least: Array, *, sign: float) -> Array:
    """Of every direction the largest logarithm of a lift (sign -1), or of the inverse of one (sign
    1).

    Candidate j gives factor 1 to the first j symbols in the order of their lifts and `least` = 1 /
    r to the others.
    """
    order = np.argsort(sign * lifts)
    below = masses[:, order]
    top = _stretched_sums(below * lifts[order], least)
    bottom = _stretched_sums(below, least)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = -sign * np.log(np.where(below > 0.0, top / bottom, 1.0))
    return logs.max(axis=1)


def _stretched_sums(parts: Array, least: Array) -> Array:
    """Sums of each row with factor 1 on the first entries and `least` on the others, for every
    number of first ones.
    """
    return (1.0 - least) * parts.cumsum(axis=1) + least * parts.sum(
        axis=1, keepdims=True
    )


def _stretches(support: NDArray[np.bool_], rest: Sequence[Sequence[Entries]]) -> Array:
    """log r of every direction: of each channel the largest quotient of two entries of an output in
    the support.
    """
    n = support.shape[1]
    total = np.zeros((n, n))
    for columns in rest:
        largest = np.full((n, n), -math.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            for logs in np.log(_dense(columns, n)):
                # log 0 - log 0 is no number: a symbol that neither gives does not matter, and fmax
                # leaves it out.
                largest = np.fmax(largest, logs[:, None] - logs)
        total += largest
    patterns, pattern_of = np.unique(support, axis=0, return_inverse=True)
    stretches = [total[np.ix_(pattern, pattern)].max() for pattern in patterns]
    return np.array(stretches)[pattern_of.ravel()]
