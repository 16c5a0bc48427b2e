"""The exact verdict on average leakages: what a channel tells about S on average over its outputs.

A channel may have been designed with a budget on one of six averages. With P(s, y) = m_s / scale
and the lift l(s, y) = P(s, y) / (P(s) P(y)) they are

    mi                 I(S;Y) = sum_y sum_s P(s, y) log l(s, y), in nats
    tv                 sum_y P(y) sum_s P(s) |l(s, y) - 1| / 2
    chi2               sum_y P(y) sum_s P(s) (l(s, y) - 1)^2
    maximal-leakage    log sum_y max_s P(y|s), in nats
    guess              sum_y max_s P(s, y), the share of right guesses of S
    gain               sum_y max_g sum_s G(g, s) P(s, y), the expected gain of the best guess g

Example: s and t have the masses (3, 1) at the first output and (2, 4) at the second, of the scale
10. The lifts are (3/2, 1/2) and (2/3, 4/3), so tv = 1/5, chi2 = 1/6 and mi = 0.0863. Their P(y|s)
are at most 3/5 and 4/5, so the maximal leakage is log(7/5) = 0.3365. The best guess from the
output is right for 3 + 4 of 10.

`average_leakage` forms the masses of all outputs and one average of them, rounded up to the
smallest double that is not below it. `average_verdicts` compares this double with the budget, also
a double, so the comparison decides exactly. `tv`, `chi2` and `guess` are rational numbers and the
maximal leakage is the logarithm of one (`lifts.log_upper`). The mutual information is the
logarithm of a product of rational powers of rationals: it is zero where every lift is 1, and else
no rational number (Lindemann), so a ball of growing precision ends between two doubles.

An average promises nothing about one record: single values may tell far more. What `guess` limits
is `measures.best_guess`.

*Charges* are what average budgets contribute to the bound of a least cost. An output y of mass m_y
leaks L_j(l), a convex function of its lifts l, and a budget limits sum_y m_y L_j <= e_j. Take a
price beta_j >= 0 and slopes u_gy with a constant c_y such that

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
from math import lcm
from typing import Any, TypeAlias

import numpy as np
from flint import fmpq
from numpy.typing import NDArray

from mechdesign.auditing.columns import (
    OutputMasses,
    columns_on,
    distances,
    information,
    masses_by_output,
    released_part,
)
from mechdesign.auditing.lifts import log_upper
from mechdesign.channel.channel import Channel
from mechdesign.channel.proof import CostProof
from mechdesign.channel.record import AverageBudget
from mechdesign.core.balls import (
    FIRST_BITS,
    double_above,
    precision,
    quotient_above,
    upper,
)
from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed
from mechdesign.tables.joint import Joint

Gains: TypeAlias = Sequence[Sequence[Fraction]]
"""G(g, s): what each guess gains (rows) where the sensitive symbol is s."""


@dataclass(frozen=True)
class AverageVerdict:
    """What a channel leaks on average, rounded upwards to a double, and whether that is allowed.

    `kept` is decided exactly: the leakage is at most the budget, and at most what the channel's
    record says that it achieves.
    """

    measure: str
    budget: float
    leakage: float
    kept: bool


def average_verdicts(
    channel: Channel, joint: Joint, averages: Sequence[AverageBudget]
) -> tuple[AverageVerdict, ...]:
    """The verdict on every average budget.

    A budget is a double and the leakage is rounded up to one, so the comparison is exact.

    Raises
    ------
    InputError
        If the table protects each of several secrets: an average is one about a single S.
    """
    if averages and joint.sensitive.protects_columns:
        raise InputError(
            "an average budget is about one sensitive column, or the combinations of several: "
            "leave protect_each out"
        )
    verdicts: list[AverageVerdict] = []
    for average in averages:
        gains = _gains_on(average.exact_gains, channel, joint)
        leakage = average_leakage(channel, joint, average.measure, gains)
        kept = leakage <= average.budget
        if average.achieved is not None and leakage > average.achieved:
            kept = False
        verdicts.append(AverageVerdict(average.measure, average.budget, leakage, kept))
    return tuple(verdicts)


def _gains_on(gains: Gains, channel: Channel, joint: Joint) -> Gains:
    """The gains of guesses for the sensitive symbols of a table, which may be in another order."""
    if not gains or channel.sensitive is None:
        return gains
    names = channel.sensitive.names
    if len(gains[0]) != len(names):
        raise InputError(
            f"the gains of the average are for {len(gains[0])} sensitive symbols, and the channel "
            f"has {len(names)}"
        )
    unknown = [name for name in joint.sensitive.names if name not in names]
    if unknown:
        raise InputError(
            f"the gains of the average do not say what a guess gains for {listed(unknown)}"
        )
    places = [names.index(name) for name in joint.sensitive.names]
    return tuple(tuple(row[place] for place in places) for row in gains)


def average_leakage(
    channel: Channel, joint: Joint, measure: str, gains: Gains = ()
) -> float:
    """The smallest double at or above an average leakage, in the unit of the measure.

    `gains` are those of every guess for every sensitive symbol of the table, for the measure gain.
    """
    released = released_part(channel, joint)
    outputs = list(masses_by_output(columns_on(channel, released), released))
    scale = sum(output.output for output in outputs)
    if measure == "mi":
        return _information(outputs, scale)
    if measure == "maximal-leakage":
        return _maximal(outputs, scale)
    if measure == "guess":
        return _guessed(outputs, scale)
    if measure == "gain":
        gained = Fraction(0)
        for output in outputs:
            gained += largest_gain(output.masses, gains)
        gained /= int(scale)
        return quotient_above(gained.numerator, gained.denominator)
    # What is left are sum_y P(y) sum_s P(s) |l - 1|^power, rational and summed exactly.
    power = {"tv": 1, "chi2": 2}[measure]
    mean = fmpq(0)
    for output in outputs:
        mean += output.output * distances(output, power)
    mean /= scale
    if measure == "tv":
        mean /= 2
    return quotient_above(int(mean.p), int(mean.q))


def largest_gain(masses: Sequence[Any], gains: Gains) -> Fraction:
    """max_g sum_s G(g, s) m_s: what the best guess gains, in units of the masses."""
    best = Fraction(0)
    for row in gains:
        gained = Fraction(0)
        for gain, mass in zip(row, masses, strict=True):
            gained += gain * int(mass)
        best = max(best, gained)
    return best


def gain_without(joint: Joint, gains: Gains) -> Fraction:
    """What the best guess gains on average without a release."""
    return largest_gain(joint.sensitive_counts, gains) / joint.total


def _guessed(outputs: Sequence[OutputMasses], scale: int) -> float:
    """sum_y max_s P(s, y), the share of right guesses."""
    right = sum(int(max(output.masses)) for output in outputs)
    return quotient_above(right, int(scale))


def _information(outputs: Sequence[OutputMasses], scale: int) -> float:
    """I(S;Y) in nats."""
    if all(output.is_constant for output in outputs):
        return 0.0
    return double_above(lambda: information(outputs, scale))


def _maximal(outputs: Sequence[OutputMasses], scale: int) -> float:
    """log sum_y max_s P(y|s) in nats."""
    total = Fraction(0)
    unit = lcm(*outputs[0].sums)
    for output in outputs:
        # P(y|s) = P(s, y) / P(s) = (m_s / scale) (N / r_s). Every r_s divides the unit, so over the
        # unit the largest is found among integers.
        largest = 0
        for mass, row in zip(output.masses, output.sums, strict=True):
            largest = max(largest, mass * (unit // row))
        total += Fraction(largest * output.total, unit * scale)
    return log_upper(total.numerator, total.denominator)


# -------------------------------------------------------------- charges of a least cost

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
