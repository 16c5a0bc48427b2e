"""What several releases of the same record tell together, each drawn independently of the others.

With channels W1, .., Wk on columns of one table, ``P(s, y1, .., yk) = sum_x P(s, x) W1(y1|x) .. Wk(yk|x)``: the
releases are one channel whose outputs are tuples, and whose column for a tuple is the product of the columns. Only
the direction of that column matters for lifts, so tuples with proportional columns count once (`directions`, in
integers). The last channel is joined in floating point, where sums of non-negative terms have a proven relative
error; every tuple that could be extreme within it is then compared in integers. With three channels and more the
directions may be too many: those whose completions are surely harmless go first, and what is left out is bounded.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

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
from mechdesign.core.arguments import several
from mechdesign.core.display import Displayed
from mechdesign.core.errors import InputError, expected
from mechdesign.core.wording import at_most, listed
from mechdesign.notions import LIP
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Symbol, Variable

FOLLOWED = 20_000
"""Directions of all channels but the last that are followed; beyond it the limits need not meet."""

BLOCK = 2**22
"""Doubles of one block of products: 32 MB."""

LEAST_PRODUCT = 2.0**-900
"""Smallest product of positive entries for which nothing can underflow; below it nothing rests on doubles."""

OUTWARDS = 1.0 + 1e-9
"""Factor on bounds of what is left out: far more than rounding, and nothing that matters."""


@dataclass(frozen=True)
class WorstTuple:
    """The sensitive symbol and the outputs, one of each channel, with the lift farthest from 1 on a log scale."""

    sensitive: str
    outputs: tuple[str, ...]
    lift: float


@dataclass(frozen=True, repr=False)
class Composition(Achieved, Displayed):
    """The joint leakage of independent releases of one record, in nats: limits as those of one release, for all tuples.

    `achieved` has the limits alone and `at_least` is attained by a tuple, both the smallest doubles of their kind; they
    are equal where `exact`, which two channels always are. `sum` is what adding the budgets of the channels alone would
    give: no bound. `worst` is a tuple that attains the larger side of `at_least`.
    """

    at_least: Achieved
    worst: WorstTuple
    sum: Achieved
    alone: tuple[Achieved, ...]

    def __repr__(self) -> str:
        sides = ", ".join(
            f"{name} {at_most(value)}" for name, value in vars(self.achieved).items()
        )
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
    """What independent releases of one record through all of the channels tell together, exactly.

    Parameters
    ----------
    channels : sequence of Channel
        The same channel as often as a record is released through it.
    joint : Joint, optional
        The table of the sensitive column and of all useful columns; by default that of the channels, which must be
        the same.
    most : int
        For three channels and more: tuples of all but the last that are followed. Where they are more, `achieved`
        is a proven bound and `at_least` what was found.

    Raises
    ------
    InputError
        If the channels have no common table, or it lacks their columns or symbols.
    """
    table = common_table(channels, joint)
    columns = [columns_on(channel, table) for channel in channels]
    lip = LIP(1.0)  # equal budgets, so that the worst cell is that of the larger side
    pairs = zip(channels, columns, strict=True)
    alone = tuple(
        audit_columns(each, channel.outputs, table, lip).achieved
        for channel, each in pairs
    )
    # The channel with most outputs comes last: its tuples are the cheapest.
    order = sorted(range(len(columns)), key=lambda k: len(columns[k]))
    found, left_out = everything(table), np.zeros(3)
    for depth in range(len(order) - 1):
        found = directions(found, columns[order[depth]])
        if depth and len(found) > most:
            rest = [columns[k] for k in order[depth + 1 :]]
            found, bounds = _followed(table, found, rest, most)
            left_out = np.maximum(left_out, bounds)
    last = columns[order[-1]]
    candidates = [
        each for secret in table.secrets for each in _candidates(secret, found, last)
    ]
    labels = [str(k) for k in range(len(candidates))]
    verdict = audit_columns([column for column, _ in candidates], labels, table, lip)
    at_least, worst = verdict.achieved, verdict.worst
    outputs = dict(zip(order, candidates[int(worst.output)][1], strict=True))
    tuples = tuple(channel.outputs[outputs[k]] for k, channel in enumerate(channels))
    return Composition(
        *map(max, astuple(at_least), left_out.tolist()),
        at_least=at_least,
        worst=WorstTuple(worst.sensitive, tuples, worst.lift),
        sum=Achieved(
            *(sum_above(side) for side in zip(*map(astuple, alone), strict=True))
        ),
        alone=alone,
    )


def sum_above(values: Sequence[float]) -> float:
    """The smallest double at or above a sum."""
    total = math.fsum(values)
    exact = math.isinf(total) or math.fsum((*values, -total)) <= 0.0
    return total if exact else math.nextafter(total, math.inf)


def common_table(channels: Sequence[Channel], joint: Joint | None = None) -> Joint:
    """The table given, or the one that all channels were designed for."""
    if not channels:
        raise InputError("there is no channel to compose: give at least one")
    for channel in several("channels", channels, "channels"):
        expected("each of the channels", channel, Channel)
    crossed = any(
        channel.sensitive is not None and not channel.sensitive.each
        for channel in channels
    )
    if joint is not None:
        return joint
    if (
        len(
            hidden := {
                each.sensitive.columns
                for each in channels
                if each.sensitive is not None
            }
        )
        > 1
    ):
        raise InputError(
            f"the channels protect different columns ({listed(sorted(map(','.join, hidden)))}): give the table "
            "(--table), with the one that you ask about as sensitive"
        )
    tables = [channel.joint for channel in channels if channel.joint is not None]
    if not tables:
        raise InputError(
            "the channels are public ones without their table: give the table (--table)"
        )
    widest = max(tables, key=lambda table: len(table.useful.columns))
    for channel in channels:
        if not set(channel.useful.columns) <= set(widest.useful.columns):
            names = sorted({",".join(each.useful.columns) for each in channels})
            raise InputError(
                f"the channels release different columns ({listed(names)}): give the table of all (--table)"
            )
        own = channel.joint
        if (
            own is not None
            and own is not widest
            and _cells(own, own.useful) != _cells(widest, own.useful)
        ):
            raise InputError(
                "the channels were designed for different tables: give the one that the record comes from (--table)"
            )
    return (
        replace(widest, sensitive=replace(widest.sensitive, each=False))
        if crossed
        else widest
    )


def _cells(joint: Joint, useful: Variable) -> Counter[tuple[Symbol, Symbol]]:
    """Positive counts by sensitive symbol and by symbol of some of the useful columns."""
    cells: Counter[tuple[Symbol, Symbol]] = Counter()
    at = [joint.useful.columns.index(column) for column in useful.columns]
    for symbol, row in zip(joint.sensitive.symbols, joint.counts, strict=True):
        for whole, count in zip(joint.useful.symbols, row, strict=True):
            cells[symbol, tuple(whole[i] for i in at)] += count
    return +cells


def _dense(columns: Sequence[Entries], n: int) -> Array:
    """Columns as rows of doubles, each entry correctly rounded, the largest of each 1; (k, n)."""
    dense = np.zeros((len(columns), n))
    for k, (at, values) in enumerate(columns):
        largest = max(values)
        dense[k, list(at)] = [value / largest for value in values]
    return dense


def _candidates(
    table: Joint, found: Sequence[Direction], columns: Sequence[Entries]
) -> list[Direction]:
    """Every tuple that may be extreme: in its largest lift, its smallest, or their quotient."""
    n, size = len(table.useful), len(table.sensitive)
    last, first = _dense(columns, n), _dense([column for column, _ in found], n)
    if (
        math.prod(float(part[part > 0.0].min()) for part in (table.p, last, first))
        < LEAST_PRODUCT
    ):
        return directions(found, columns)
    # Nothing underflows, so zeros are exact. A lift is wrong by n + 5 roundings in P(s, y) and |S| more in P(y).
    slack = 8.0 * (2 * n + size + 20) * ROUNDOFF
    kept = [(np.zeros(0), np.zeros((0, 2), dtype=np.intp))] * 3
    step = max(1, BLOCK // (size * max(n, len(last))))
    for start in range(0, len(first), step):
        block = first[start : start + step]
        masses = ((block[:, None, :] * table.p).reshape(-1, n) @ last.T).reshape(
            len(block), size, -1
        )
        at = np.argwhere(masses.any(axis=1))
        masses = masses[at[:, 0], :, at[:, 1]]
        at[:, 0] += start
        with np.errstate(divide="ignore"):
            logs = np.log(masses / (table.p_s * masses.sum(axis=1, keepdims=True)))
        high, low = logs.max(axis=1), logs.min(axis=1)
        for k, found_here in enumerate((high, -low, high - low)):
            values = np.append(kept[k][0], found_here)
            places = np.concatenate([kept[k][1], at])
            best = float(values.max(initial=0.0))
            near = np.flatnonzero(
                values >= best - slack * (1.0 + min(best, math.log(1e300)))
            )
            near = (
                near[:1] if math.isinf(best) else near
            )  # of lifts of zero one is enough
            kept[k] = values[near], places[near]
    chosen = {(int(i), int(y)) for _, places in kept for i, y in places}
    pairs = ((i, y, directions([found[i]], [columns[y]])) for i, y in sorted(chosen))
    return [(column, (*found[i][1], y)) for i, y, made in pairs for column, _ in made]


def _followed(
    table: Joint, found: list[Direction], rest: Sequence[Sequence[Entries]], most: int
) -> tuple[list[Direction], Array]:
    """The directions that can come to most, and what the others can come to at most: (eps_l, eps_u, eps_ldp).

    The columns of the remaining channels multiply the entries of a direction by factors between 1 and r, up to scale.
    A lift is a quotient of linear functions of the factors, so it is largest where those of the symbols with the
    largest P(s|x) are r and the others 1: one of n candidates. The smallest alike.
    """
    columns = _dense([column for column, _ in found], len(table.useful))
    least = np.exp(-_stretches(columns > 0.0, rest))[:, None]  # 1 / r
    masses = columns * table.p_x
    bounds = np.zeros((len(columns), 2))
    for lifts in (row for secret in table.secrets for row in secret.lift):
        for side, sign in enumerate((1.0, -1.0)):
            order = np.argsort(sign * lifts)
            below = masses[:, order]
            top, bottom = (
                (1.0 - least) * part.cumsum(axis=1)
                + least * part.sum(axis=1, keepdims=True)
                for part in (below * lifts[order], below)
            )
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = -sign * np.log(np.where(below > 0.0, top / bottom, 1.0))
            bounds[:, side] = np.maximum(bounds[:, side], logs.max(axis=1))
    every = np.column_stack([bounds, bounds.sum(axis=1)]) * OUTWARDS + (OUTWARDS - 1.0)
    if (
        min(min(v) / max(v) for (_, v), _ in found) * float(table.p_x.min())
        < LEAST_PRODUCT
    ):
        every[:] = math.inf  # entries are lost, or known too badly
    rank = np.argsort(np.argsort(-every, axis=0, kind="stable"), axis=0).min(axis=1)
    chosen = np.argsort(rank, kind="stable")
    return [found[i] for i in sorted(chosen[:most].tolist())], every[chosen[most:]].max(
        axis=0
    )


def _stretches(support: NDArray[np.bool_], rest: Sequence[Sequence[Entries]]) -> Array:
    """log r of every direction: of each channel the largest quotient of two entries of an output in the support."""
    n = support.shape[1]
    total = np.zeros((n, n))
    for columns in rest:
        largest = np.full((n, n), -math.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            for logs in np.log(
                _dense(columns, n)
            ):  # what neither symbol gives is no number, and no matter
                largest = np.fmax(largest, logs[:, None] - logs)
        total += largest
    patterns, which = np.unique(support, axis=0, return_inverse=True)
    return np.array([total[np.ix_(each, each)].max() for each in patterns])[
        which.ravel()
    ]
