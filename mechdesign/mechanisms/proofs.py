"""The multipliers of a search, as the proof that a channel file keeps.

Solvers have their own rows: of classes of symbols, of several tables, each end of a limit for
itself. `of_assignment` and `of_plan` bring them into the one form of `auditing.proofs`, a
multiplier of every lift in every output. `kept` then computes the bound from it, as anybody will
who reads the file, and keeps the proof if that is the bound which is stated.

For example, the row l(s, y) >= a with the multiplier 2 and the row l(s, y) <= b with 3 have the
multiplier -1 together: 2 (l - a) - 3 (l - b) is less than the bound of b alone where a < b.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.lifts import Demand
from mechdesign.auditing.proofs import cost_bound
from mechdesign.channel.channel import Channel
from mechdesign.channel.proof import AverageCharge, CostProof
from mechdesign.channel.record import AverageBudget
from mechdesign.core.errors import InputError
from mechdesign.core.limits import LiftLimits, MeanLimits
from mechdesign.mechanisms.average_budgets import GUESSES, NO_PROMISE
from mechdesign.mechanisms.classes import proportional
from mechdesign.mechanisms.plan_request import rows_of_demands
from mechdesign.mechanisms.posteriors import LOWER, UPPER
from mechdesign.mechanisms.rules import Rules
from solvers import Array, Polytope
from solvers.assignment.assignment import Multipliers
from solvers.plans import PlanProof

SLACK = 1e-9
"""Largest difference of a stated bound and the one that its proof gives, relative to 1 or the
bound: solvers and `auditing.proofs` round in different ways."""

MOST_SYMBOLS = 12_000
"""Symbols or rows up to which a proof is kept. To compute its bound takes time by their square: for
so many rows of 19 columns 9 s of processor time, for 100,000 ten minutes.
"""

DRAWN_IN = 1.0 - 2.0**-40
"""Factor on negative multipliers of quotients, so that rounding does not make them too large; on
slopes of averages, too."""

LARGEST = ("maximal-leakage", *GUESSES)
"""Averages that are the largest of some functions of an output."""


def of_assignment(
    rules: Rules, polytope: Polytope, multipliers: Multipliers, *, keep: bool
) -> CostProof | None:
    """The proof of a program over `rules.polytope()`; None for promises that have no such form."""
    limits = rules.notion.limits
    if type(rules) is not Rules or isinstance(limits, MeanLimits):
        return None
    reduced = rules.reduced
    symbols = len(rules.joint.useful)
    rows = _signed(polytope, multipliers.rows)
    if rules.demands is None:
        found = _unstacked(rules, limits, rows)
    else:
        found = _stacked(rules, rows)
    if found is None:
        return None
    lifts, ratios = found
    prices = np.zeros(symbols)
    if keep:
        prices = multipliers.masses[reduced.group]
    return _proof(
        prices, lifts[:, reduced.group], ratios[:, reduced.group], limits.ratio
    )


def with_charges(
    proof: CostProof,
    rules: Rules,
    averages: Sequence[AverageBudget],
    charges: Sequence[tuple[float, Array]],
) -> CostProof:
    """The proof with what average budgets add to it, from a program over classes."""
    reduced = rules.reduced
    class_of = list(range(len(rules.joint.sensitive)))
    if len(reduced.joint.sensitive) < len(class_of):
        class_of = proportional(rules.joint.counts)
    is_first = np.array([class_of.index(c) == s for s, c in enumerate(class_of)])
    found: list[AverageCharge] = []
    for average, (price, slopes) in zip(averages, charges, strict=True):
        of_symbols = slopes[:, reduced.group]
        if average.measure not in GUESSES:
            of_symbols = of_symbols[class_of]
        if average.measure == "maximal-leakage":
            # All secrets of a class have one lift, and the largest is counted once.
            of_symbols = of_symbols * is_first[:, None]
        found.append(charge_of(average, price, of_symbols))
    return charged(proof, found, alone=rules.notion == NO_PROMISE)


def charge_of(average: AverageBudget, price: float, slopes: Array) -> AverageCharge:
    """What an average adds to a proof, from slopes (k, n) of all symbols or guesses."""
    if average.measure in LARGEST:
        # No sum of slopes may be above the price.
        slopes = slopes * DRAWN_IN
    return AverageCharge(price=price, slopes=plain_rows(slopes))


def charged(
    proof: CostProof, charges: Sequence[AverageCharge], *, alone: bool
) -> CostProof:
    """The proof with what averages add to it; `alone` without a promise on single lifts."""
    changes: dict[str, Any] = {"averages": tuple(charges)}
    if alone:
        # The lifts that the file promises are those that its channel happens to have.
        changes |= {"lifts": (), "ratios": ()}
    return proof.model_copy(update=changes)


def of_sides(sides: Array, masses: Array | None) -> CostProof:
    """The proof of a program over an uncertain set."""
    n = len(sides)
    prices = np.zeros(n) if masses is None else masses
    return CostProof(
        prices=tuple(np.nan_to_num(prices).tolist()), lifts=(), sides=plain_rows(sides)
    )


def _signed(polytope: Polytope, one_sided: Array) -> Array:
    """Multipliers of the rows of a polytope: positive at lower ends, negative at upper ones."""
    finite = np.nan_to_num(one_sided, nan=0.0, posinf=0.0, neginf=0.0)
    # `Polytope.one_sided` has all rows with an upper end, then all with a lower one.
    with_upper = np.isfinite(polytope.upper)
    rows = np.zeros((len(polytope.upper), finite.shape[1]))
    split = int(with_upper.sum())
    rows[with_upper] -= np.maximum(finite[:split], 0.0)
    rows[np.isfinite(polytope.lower)] += np.maximum(finite[split:], 0.0)
    return rows


def _unstacked(
    rules: Rules, limits: LiftLimits, rows: Array
) -> tuple[Array, Array] | None:
    """Multipliers of all sensitive symbols, from the rows of `posteriors` on classes of them."""
    joint = rules.joint
    place = {name: s for s, name in enumerate(joint.sensitive.names)}
    # A class has the lifts of each of its symbols, and the name of the first one.
    of_class = [place[name] for name in rules.reduced.joint.sensitive.names]
    blocks = rows.reshape(-1, len(of_class), rows.shape[1])
    lifts = np.zeros((len(place), rows.shape[1]))
    ratios = np.zeros_like(lifts)
    # A budget that is beyond the numbers of a program has no rows, and so no multipliers.
    if not len(blocks):
        return lifts, ratios
    has_lifts = math.isfinite(limits.lower) or math.isfinite(limits.upper)
    if len(blocks) != has_lifts + 2 * math.isfinite(limits.ratio):
        return None
    if has_lifts:
        lifts[of_class] = blocks[0]
        blocks = blocks[1:]
    if math.isfinite(limits.ratio):
        # l(s) >= t and l(s) <= e^eps t.
        ratios[of_class] = blocks[0] + blocks[1]
    return lifts, ratios


def _stacked(rules: Rules, rows: Array) -> tuple[Array, Array] | None:
    """Multipliers of the symbols of all tables, from the rows of `StackedRows`."""
    stacked = rules.rows
    if stacked is None:
        return None
    bounded = np.isfinite(stacked.lower) | np.isfinite(stacked.upper)
    plain = bounded & ~stacked.differing[stacked.table_of]
    lifts = np.zeros((len(bounded), rows.shape[1]))
    ratios = np.zeros_like(lifts)
    lifts[plain] = rows[: plain.sum()]
    # Of the rows positive v <= negative v, those that bind are in the polytope; upper ends only.
    positive, negative, _ = stacked.opposed(~plain)
    paid = np.zeros((len(positive), rows.shape[1]))
    binding = (positive > negative).any(axis=1)
    if binding.sum() != len(rows) - plain.sum():
        # A budget beyond the numbers of a program.
        return None
    paid[binding] = -rows[plain.sum() :]
    for (kind, s, t), paid_for in zip(stacked.names(~plain), paid, strict=True):
        if kind == UPPER:
            lifts[s] -= paid_for
        elif kind == LOWER:
            lifts[s] += paid_for
        else:
            ratios[s] -= paid_for
            ratios[t] += math.exp(stacked.ratio) * paid_for
    return lifts, ratios


def of_plan(
    proof: PlanProof | None,
    limits: LiftLimits | MeanLimits,
    demands: Sequence[Demand],
    counts: Sequence[int],
) -> CostProof | None:
    """The proof of a plan with the limits of `limits_of_demands`, on one stratum or for all."""
    if proof is None or isinstance(limits, MeanLimits):
        return None
    rows = sum(len(demand.sums) for demand in demands)
    if not any(demand.before for demand in demands):
        return _proof(proof.masses, proof.limits, proof.compared, limits.ratio)
    lifts = np.zeros((rows, proof.limits.shape[1]))
    for place, s, factor in rows_of_demands(demands, counts):
        lifts[s] += factor * proof.limits[place]
    return _proof(proof.masses, lifts, np.zeros_like(lifts), limits.ratio)


def _proof(prices: Array, lifts: Array, ratios: Array, ratio: float) -> CostProof:
    """The record; multipliers of quotients are reduced to what proves something."""
    compared: tuple[tuple[float, ...], ...] = ()
    if math.isfinite(ratio) and ratios.any():
        paid = np.maximum(ratios, 0.0).sum(axis=0)
        gained = math.exp(ratio) * np.maximum(-ratios, 0.0).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(gained > 0.0, np.minimum(paid / gained, 1.0), 1.0)
        lowered = np.where(ratios < 0.0, factor * DRAWN_IN, 1.0) * ratios
        compared = plain_rows(lowered)
    return CostProof(
        prices=tuple(np.nan_to_num(prices).tolist()),
        lifts=plain_rows(lifts),
        ratios=compared,
    )


def plain_rows(rows: Array) -> tuple[tuple[float, ...], ...]:
    """The numbers of an array, as a proof has them."""
    # Adding zero turns -0.0 into 0.0.
    return tuple(tuple(row) for row in (rows + 0.0).tolist())


def kept(
    channel: Channel,
    proof: CostProof | None,
    bound: float,
    demands: Sequence[Demand] | None = None,
) -> Channel:
    """The channel with the proof in its certificate, if that proves the bound which is stated.

    `demands` are those after earlier releases. The record must have the objective and the promise
    already.
    """
    if proof is None or len(channel.useful) > MOST_SYMBOLS:
        return channel
    try:
        proven = cost_bound(channel, proof, demands)
    except InputError:
        # Nothing is kept where nothing can be proven from the file alone.
        return channel
    if proven < bound - SLACK * max(1.0, abs(bound)):
        return channel
    return channel.with_proof(proof)


def texts_of(units: NDArray[Any], unit: int) -> tuple[tuple[str, ...], ...]:
    """A matrix of exact costs, integers over one unit, as the proof has it."""
    rows: list[tuple[str, ...]] = []
    for row in units.tolist():
        rows.append(tuple(str(Fraction(int(value), unit)) for value in row))
    return tuple(rows)
