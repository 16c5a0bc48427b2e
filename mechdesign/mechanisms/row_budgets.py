"""What a promise about released rows asks of the nodes of a tree: bounds of lifts by stratum, level
and symbol.

With the prior of the promise (P(s) for a total one, P(s|k) for a relative one in the stratum k),
the lift of a prefix is P(s | prefix) / prior. A leaf must keep the budgets of the notion. A prefix
is a mean of its leaves, so it keeps them, too; how much of a budget each level may spend is free,
and is given by *shares* c_1 <= .. <= c_k = 1 along every path. With a the lift of the stratum
itself, which is 1 for a relative promise,

    log upper bound at level j = max(log a, 0) + c_j (eps_u - max(log a, 0)),

likewise below, and for quotients of lifts with r, the largest quotient within the stratum, r + c_j
(epsilon - r). So bounds grow from level to level, and a constant, which leaves all lifts as they
are, is possible at every node (docs/explanation/rows-theory.md, propositions 1, 2 and 7).

A level is described by what it spends of what is left, f_j in (0, 1]: c_j = c_{j-1} + f_j (1 -
c_{j-1}). So every output y of a level may have an f_j(y) of its own, and the paths through it have
shares of their own, which grow along each of them all the same. For example, with eps_u = 1, a = 1
and f = (1/2, 1) the outputs of the first level have lifts up to e^0.5, those of the last up to e.

`strata_of` makes the strata of a table once; `AllowedLifts` gives their bounds to the nodes of one
tree; `Bounds` are what `row_node` designs a channel for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.demands import allowed_sides
from mechdesign.channel.row_record import RELATIVE, TOTAL
from mechdesign.core.errors import InputError, NotPrivate
from mechdesign.core.limits import LiftLimits
from mechdesign.core.wording import about, quoted
from mechdesign.notions import Notion
from mechdesign.tables.records import Records
from mechdesign.tables.variable import column_names
from solvers import Array

PROMISES = (TOTAL, RELATIVE)

MARGIN = 1e-9
"""Relative distance that designed lifts keep from their bounds: far more than what sums of doubles
miss, and worth less than a billionth of the information."""

MOST_STORED = 1000
"""Bounds that are held at a time: with 240 symbols some 20 MB."""

Spending: TypeAlias = Sequence[tuple[float, ...]]
"""For each level the share f of what is left of the budgets that its outputs may spend: one for all
outputs, or one for each."""


def shares_after(used: float, spent: Sequence[float]) -> tuple[float, ...]:
    """The shares of the budgets that the outputs of a node may use, where `used` is that of the
    node, and `spent` what they may spend of the rest.
    """
    # A sum of rounded terms may pass 1 by a hair, and nothing beyond the budgets may be used.
    return tuple(min(used + share * (1.0 - used), 1.0) for share in spent)


@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds of the lifts of the outputs of a node, (|S|, k) arrays, and the largest quotient of
    two lifts, (k,); k is 1 where all outputs have the same, else there is a column for each output.
    """

    lower: Array
    upper: Array
    ratio: Array

    @property
    def has_ratio(self) -> bool:
        """Whether quotients are bounded."""
        return math.isfinite(self.ratio[0])

    def of_outputs(self, outputs: NDArray[np.int64]) -> Bounds:
        """Those of some outputs."""
        if len(self.ratio) == 1:
            return self
        return Bounds(
            self.lower[:, outputs], self.upper[:, outputs], self.ratio[outputs]
        )


@dataclass(frozen=True, eq=False)
class Stratum:
    """One combination of the given columns with its promise.

    Parameters
    ----------
    rows : array
        Positions in the records.
    mass : float
        P(k).
    prior : (|S|,) array
        What lifts are measured against: P(s), or P(s|k) for a relative promise.
    start : (|S|,) array
        a = P(s|k) / prior, the lifts before anything is released.
    protected : (|S|,) array of bool
        The symbols that the promise is about here.
    eps_l, eps_u : (|S|,) arrays
        Budgets of the symbols, nats; infinite where a side is free.
    ratio : float
        Largest log-quotient of two lifts, nats; infinite where quotients are not bounded.
    """

    rows: NDArray[np.int64]
    mass: float
    prior: Array
    start: Array
    protected: NDArray[np.bool_]
    eps_l: Array
    eps_u: Array
    ratio: float

    def bounds(self, *shares: float) -> Bounds:
        """What a level may use whose cumulative share of the budgets is given: one share for all
        outputs, or one for each.
        """
        # log a; -inf for a symbol that the stratum does not have.
        with np.errstate(divide="ignore"):
            start = np.log(self.start)
        share = np.array(shares)
        upper = np.full((len(start), len(share)), math.inf)
        lower = np.zeros((len(start), len(share)))
        for s in np.flatnonzero(self.protected).tolist():
            if math.isfinite(self.eps_u[s]):
                # A lift below 1 has used nothing of the upper budget, and is given nothing back.
                used = max(float(start[s]), 0.0)
                upper[s] = np.exp(used + share * (self.eps_u[s] - used))
            if math.isfinite(self.eps_l[s]):
                used = max(-float(start[s]), 0.0)
                lower[s] = np.exp(-used - share * (self.eps_l[s] - used))
        if math.isinf(self.ratio):
            return Bounds(lower, upper, np.full(len(share), math.inf))
        logs = start[self.protected]
        used = float(logs.max() - logs.min())
        return Bounds(lower, upper, np.exp(used + share * (self.ratio - used)))


class AllowedLifts:
    """The bounds of outputs by stratum and shares, which many nodes have in common.

    `slack` is a relative distance that all of them keep beside the usual one.
    """

    def __init__(self, strata: Sequence[Stratum], slack: float) -> None:
        self._strata = strata
        self._slack = slack
        self._stored: dict[tuple[int, tuple[float, ...]], Bounds] = {}

    def bounds(self, stratum: int, shares: tuple[float, ...]) -> Bounds:
        """Those of outputs with these shares of the budgets."""
        stored = self._stored.get((stratum, shares))
        if stored is not None:
            return stored
        bounds = self._strata[stratum].bounds(*shares)
        if self._slack:
            bounds = Bounds(
                bounds.lower * (1.0 + self._slack),
                bounds.upper * (1.0 - self._slack),
                bounds.ratio * (1.0 - self._slack),
            )
        if len(self._stored) >= MOST_STORED:
            self._stored.clear()
        self._stored[stratum, shares] = bounds
        return bounds


def check_promise(promise: str) -> None:
    """Refuse what is no promise."""
    if promise not in PROMISES:
        raise InputError(f"promise ({quoted(promise)}) must be total or relative")


def limits_of(notion: Notion) -> LiftLimits:
    """The limits of a notion on single lifts; others are refused, for along a path of a tree only
    lifts multiply.
    """
    limits = notion.limits
    if not isinstance(limits, LiftLimits):
        raise InputError(
            f"{notion.name} bounds averages; a promise about rows needs bounds on "
            "single lifts: use alip, lip, ldp, max-lift or min-lift"
        )
    return limits


def strata_of(
    records: Records, given: int, notion: Notion, promise: str
) -> list[Stratum]:
    """The strata in the order of their codes; the first `given` groups of the records are released
    as they are.

    Raises
    ------
    NotPrivate
        If the given columns alone break a total promise; the message names the worst stratum and
        the two remedies.
    """
    limits = limits_of(notion)
    check_promise(promise)
    sides = allowed_sides(records.sensitive, notion)
    eps_l = np.array([lower for lower, _ in sides])
    eps_u = np.array([upper for _, upper in sides])
    sums = records.sensitive_counts()
    shares = np.array([count / records.total for count in sums])
    strata: list[Stratum] = []
    for rows in strata_rows(records, given):
        counts = records.sensitive_counts(rows)
        size = sum(counts)
        shares_here = np.array([count / size for count in counts])
        present = shares_here > 0.0
        if promise == RELATIVE:
            # Symbols that do not occur here are promised nothing; any prior but zero does.
            prior = np.where(present, shares_here, 1.0)
            protected = present
        else:
            prior = shares
            protected = np.ones(len(shares_here), dtype=np.bool_)
        start = shares_here / prior
        strata.append(
            Stratum(
                rows=rows,
                mass=size / records.total,
                prior=prior,
                start=start,
                protected=protected,
                eps_l=eps_l,
                eps_u=eps_u,
                ratio=limits.ratio,
            )
        )
    if promise == TOTAL and given:
        _check_given(records, given, strata)
    return strata


def strata_rows(records: Records, given: int) -> list[NDArray[np.int64]]:
    """Positions of the rows of every combination of the first `given` groups, in the order of the
    codes.
    """
    if not given:
        return [np.arange(len(records))]
    _, stratum = np.unique(records.codes[:, :given], axis=0, return_inverse=True)
    order = np.argsort(stratum.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(stratum.ravel()))
    return np.split(order, ends[:-1])


def stratum_name(records: Records, given: int, rows: NDArray[np.int64]) -> str:
    """``sex=Male, age=30``: the given symbols of a stratum."""
    parts: list[str] = []
    for group, code in enumerate(records.codes[rows[0], :given].tolist()):
        variable = records.groups[group]
        parts.append(f"{','.join(variable.columns)}={variable.names[code]}")
    return ", ".join(parts)


def _check_given(records: Records, given: int, strata: list[Stratum]) -> None:
    """Refuse a total promise that the given columns break (proposition 1: a constant y keeps it if
    and only if they do); the worst stratum is that with the largest excess.
    """
    # At an excess of exactly zero a constant keeps the promise; rounding is left to the exact
    # audit.
    worst_excess = MARGIN
    worst: tuple[Stratum, int] | None = None
    for stratum in strata:
        for excess, s in _excesses(stratum):
            if excess > worst_excess:
                worst_excess = excess
                worst = (stratum, s)
    if worst is None:
        return
    stratum, s = worst
    columns = ",".join(column_names(records.groups[:given]))
    raise NotPrivate(
        f"the given columns {quoted(columns)} break the promise by themselves: among "
        f"the records with {stratum_name(records, given, stratum.rows)} "
        f"({about(100.0 * stratum.mass)} % of all) {quoted(records.sensitive.names[s])} is "
        f"{about(float(stratum.start[s]))} times as likely as in the whole table; release them as "
        "levels in place of giving them (--release), or promise relative to them "
        "(--promise relative)"
    )


def _excesses(stratum: Stratum) -> list[tuple[float, int]]:
    """For each side of the promise, and for quotients, how many nats the given symbols alone exceed
    it by (negative within it), and the sensitive symbol for which they do.
    """
    # An infinite budget allows everything, a lift of zero included; `where` evaluates the other
    # side there too.
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(stratum.start)
        above = np.where(np.isinf(stratum.eps_u), -math.inf, logs - stratum.eps_u)
        below = np.where(np.isinf(stratum.eps_l), -math.inf, -logs - stratum.eps_l)
    excesses = [
        (float(above.max()), int(np.argmax(above))),
        (float(below.max()), int(np.argmax(below))),
    ]
    if math.isfinite(stratum.ratio):
        spread = float(logs.max() - logs.min())
        # Of the two symbols of the largest quotient the one that the message is plainer with.
        excesses.append((spread - stratum.ratio, int(np.argmax(np.abs(logs)))))
    return excesses
