"""What average budgets contribute to the bound of a least cost.

An output y of mass m_y leaks L_j(l), a convex function of its lifts l, and a budget limits sum_y
m_y L_j <= e_j. Take a price beta_j >= 0 and slopes u_gy with a constant c_y such that

    sum_g u_gy F_g - c_y <= beta_j L_j   for all lifts,

where the F_g are linear in the output. Summed with the masses, every channel within the budget has
sum_y m_y (sum_g u_gy F_g - c_y) <= beta_j e_j. So this sum may be added to its cost, if beta_j e_j
is taken off the bound (`proofs.cost_bound`). With q_s = P(s|y) and p_s = P(s) the functions are

    mi                  F_s = q_s            c = beta log sum_s p_s e^(u_s / beta)
    tv                  F_s = q_s            c = sum_s p_s (u_s + max(0, largest u - u_s - beta))
    chi2                F_s = q_s            c = mean of u + variance of u / (4 beta), over p
    maximal-leakage     F_s = l_s            c = sum_s u_s
    guess, gain         F_g = sum_s (G_gs - G_ts) q_s     c = 0

with the best guess t without a release. The first three c are the largest u q - beta L over all
distributions q, that of chi2 over all q that sum to 1. The others need slopes that are not negative
and sum to at most beta: L is the largest of l_s - 1, or of the F_g.

For example, let P(s) = (1/2, 1/2), beta = 1 and u = (1/2, -1/2). With tv c is 0, and u q = (q_1 -
q_2) / 2 = q_1 - 1/2 is at most L = |q_1 - 1/2|.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.averages import Gains, gain_without
from mechdesign.channel.channel import Channel
from mechdesign.channel.proof import CostProof
from mechdesign.channel.record import AverageBudget
from mechdesign.core.balls import FIRST_BITS, precision, quotient_above, upper
from mechdesign.core.errors import InputError
from mechdesign.tables.joint import Joint

Array = NDArray[np.float64]

PROVES_NOTHING = "the proof has slopes of an average that prove nothing"


@dataclass(frozen=True, eq=False)
class Charges:
    """What is added to the costs: `functions`, (k, n) F of every input, `slopes`, (k, n) of every
    output, and `constants`, (n,), rounded up. `spent` is the sum of the beta_j e_j.
    """

    functions: Array
    slopes: Array
    constants: Array
    spent: Fraction


def charges_of(channel: Channel, joint: Joint, proof: CostProof) -> Charges | None:
    """The charges of a proof, rounded so that the bound is lower; None without averages.

    Raises
    ------
    InputError
        If the proof is of other averages or of another table, or its slopes prove nothing.
    """
    averages = channel.record.averages
    charged = proof.averages or ()
    if len(charged) != len(averages):
        raise InputError(
            f"the proof is of another file: it has charges of {len(charged)} averages for "
            f"{len(averages)}"
        )
    if not averages:
        return None
    functions: list[Array] = []
    slopes: list[Array] = []
    constants = np.zeros(len(joint.useful))
    spent = Fraction(0)
    for average, charge in zip(averages, charged, strict=True):
        rows = _functions(average, joint)
        if len(charge.slopes) != len(rows) or any(
            len(row) != len(constants) for row in charge.slopes
        ):
            raise InputError(
                "the proof is of another table: its slopes have another size"
            )
        price = Fraction(charge.price)
        added = [
            _constant(average.measure, column, price, joint)
            for column in zip(*charge.slopes, strict=True)
        ]
        # Each sum is rounded up once more.
        constants = np.nextafter(constants + np.array(added), np.inf)
        functions.append(np.array([[float(value) for value in row] for row in rows]))
        slopes.append(np.array(charge.slopes))
        spent += price * _budget(average, joint)
    return Charges(np.vstack(functions), np.vstack(slopes), constants, spent)


def _functions(average: AverageBudget, joint: Joint) -> list[list[Fraction]]:
    """F_g of every useful symbol, exactly."""
    posteriors: list[list[Fraction]] = []
    for row in joint.counts:
        cells = zip(row, joint.useful_counts, strict=True)
        posteriors.append([Fraction(count, total) for count, total in cells])
    if average.measure == "maximal-leakage":
        scaled: list[list[Fraction]] = []
        for row, count in zip(posteriors, joint.sensitive_counts, strict=True):
            scaled.append([value * joint.total / count for value in row])
        return scaled
    gains = _gains(average, joint)
    if not gains:
        return posteriors
    shares = joint.sensitive_counts
    best = max(gains, key=lambda row: _product(row, shares))
    more = [[a - b for a, b in zip(row, best, strict=True)] for row in gains]
    by_symbol = list(zip(*posteriors, strict=True))
    return [[_product(row, values) for values in by_symbol] for row in more]


def _gains(average: AverageBudget, joint: Joint) -> Gains:
    """G(g, s) of guesses; empty for other measures."""
    if average.measure != "guess":
        return average.exact_gains
    m = len(joint.sensitive)
    return [[Fraction(int(s == g)) for s in range(m)] for g in range(m)]


def _product(row: Sequence[Fraction], values: Sequence[Fraction | int]) -> Fraction:
    return sum((a * b for a, b in zip(row, values, strict=True)), Fraction(0))


def _budget(average: AverageBudget, joint: Joint) -> Fraction:
    """e_j of a sum over the outputs that is 0 for a constant, rounded up."""
    budget = Fraction(average.budget)
    if average.measure == "maximal-leakage":
        return Fraction(_upper_exp(budget)) - 1
    gains = _gains(average, joint)
    if gains:
        return budget - gain_without(joint, gains)
    return budget


def _constant(
    measure: str, slopes: Sequence[float], price: Fraction, joint: Joint
) -> float:
    """c of one output, rounded up."""
    u = [Fraction(value) for value in slopes]
    p = [Fraction(count, joint.total) for count in joint.sensitive_counts]
    if measure in ("maximal-leakage", "guess", "gain"):
        if min(u) < 0 or sum(u) > price:
            raise InputError(PROVES_NOTHING)
        return _above(
            sum(u, Fraction(0)) if measure == "maximal-leakage" else Fraction(0)
        )
    mean = _product(u, p)
    if measure == "tv":
        most = max(u) - price
        return _above(mean + _product(p, [max(Fraction(0), most - one) for one in u]))
    if len(set(u)) == 1:
        return _above(mean)
    if not price:
        raise InputError(PROVES_NOTHING)
    if measure == "chi2":
        variance = _product(p, [(one - mean) ** 2 for one in u])
        return _above(mean + variance / (4 * price))
    # Taken off first, so that no exponential overflows.
    most = max(u)
    terms = [Fraction(_upper_exp((one - most) / price)) for one in u]
    from flint import arb, fmpq

    inside = _product(p, terms)
    with precision(FIRST_BITS):
        logarithm = upper(arb(fmpq(inside.numerator, inside.denominator)).log())
    return _above(most + price * Fraction(logarithm))


def _upper_exp(value: Fraction) -> float:
    """A double at or above e^value."""
    from flint import arb, fmpq

    with precision(FIRST_BITS):
        return upper(arb(fmpq(value.numerator, value.denominator)).exp())


def _above(value: Fraction) -> float:
    return quotient_above(value.numerator, value.denominator)
