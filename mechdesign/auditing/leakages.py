"""Every leakage measure of a channel from its integers, rounded outwards, and the averages over S
behind them.

With masses m_s proportional to P(s, y), o their sum, r_s proportional to P(s) and N the sum of the
r_s, the lift is

    l(s, y) = P(s, y) / (P(s) P(y)) = m_s N / (r_s o),

a quotient of integers. Mean distances are rational; powers of a real order are enclosed by Arb
balls.

Sums of rationals and of logarithms are taken in balls of `BITS` bits, and each result is the double
next to the ball on the side that claims less privacy: up, and down for minima. What is reported is
therefore a bound that surely holds. The extreme P(s|y) of every sensitive symbol, how far a
released value can move a belief, is rounded outwards from integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import mul
from typing import Any

from flint import arb, fmpq

from mechdesign.auditing.columns import Entries, columns_on
from mechdesign.channel.channel import Channel
from mechdesign.core.balls import lower, precision, quotient_above, upper
from mechdesign.core.wording import order_of
from mechdesign.tables.joint import Joint

BITS = 256
"""Precision of the balls: two hundred bits more than a double, so cancellation costs no digit of
the results.
"""


@dataclass(frozen=True)
class OutputMasses:
    """P(s, y) of one output, in proportion to `masses` with sum `output`; P(s) in proportion to
    `sums` with `total`.
    """

    masses: Sequence[int]
    output: int
    sums: Sequence[int]
    total: int

    def numerators(self) -> list[tuple[int, int]]:
        """Numerators m_s N and denominators r_s o of the lifts."""
        return [
            (m * self.total, r * self.output)
            for m, r in zip(self.masses, self.sums, strict=True)
        ]

    @property
    def is_constant(self) -> bool:
        """Whether every lift is exactly 1."""
        return all(top == bottom for top, bottom in self.numerators())


def masses_by_output(
    columns: Sequence[Entries], joint: Joint
) -> Iterator[OutputMasses]:
    """The masses of each output in turn; columns are over the useful symbols of the table."""
    sums = joint.sensitive_counts
    total = joint.total
    for inputs, values in columns:
        masses = [
            sum(map(mul, [row[x] for x in inputs], values)) for row in joint.counts
        ]
        yield OutputMasses(masses, sum(masses), sums, total)


def distances(output: OutputMasses, power: int, *, inverse: bool = False) -> Any:
    """sum_s P(s) |l - 1|^power, or of 1/l (Zarrabian et al. 2023, eqs. (31), (32), Def. 6); None if
    infinite.
    """
    if inverse and 0 in output.masses:
        return None
    mean = fmpq(0)
    for row, (top, bottom) in zip(output.sums, output.numerators(), strict=True):
        base = top if inverse else bottom
        mean += fmpq(row * abs(top - bottom) ** power, base**power)
    return mean / output.total


def log_power_mean(output: OutputMasses, order: float, *, inverse: bool = False) -> Any:
    """log of (sum_s P(s) l^order)^(1/order), or of 1/l, as a ball; None where it is infinite.

    The order is positive, the exact rational that the double is, or inf (Zarrabian et al. 2023, eq.
    (33), Definition 6).
    """
    if inverse and 0 in output.masses:
        return None
    lifts = output.numerators()
    if inverse:
        lifts = [(bottom, top) for top, bottom in lifts]
    return log_norm(lifts, order, output.sums, output.total)


def log_norm(
    values: Sequence[tuple[int, int]], order: float, weights: Sequence[int], total: int
) -> Any:
    """log of (sum_i w_i v_i^order / total)^(1/order) for quotients v_i >= 0 of integers, not all 0,
    as a ball.

    The largest value is taken out, so that every power lies in [0, 1]: at a large order the powers
    themselves would overflow, or be known too badly for a logarithm.
    """
    exact = [fmpq(top, bottom) for top, bottom in values]
    largest = max(exact)
    if math.isinf(order):
        return arb(largest).log()
    mean = arb(0)
    exponent = arb(order)
    for weight, value in zip(weights, exact, strict=True):
        if value == largest:
            mean += weight
        elif value:
            # log1p keeps the digits of values that are nearly as large
            mean += weight * (arb(value / largest - 1).log1p() * exponent).exp()
    return arb(largest).log() + (mean / total).log() / exponent


def divergence(output: OutputMasses, *, inverse: bool = False) -> Any:
    """KL(P(S|y), P(S)) = sum_s P(s) l log l in nats, as a ball; or KL(P(S), P(S|y)) = sum_s P(s)
    log(1/l).

    None where it is infinite: the second one, with a lift of zero.
    """
    if inverse and 0 in output.masses:
        return None
    total = arb(0)
    for row, mass, lift in zip(
        output.sums, output.masses, output.numerators(), strict=True
    ):
        if not mass:
            continue  # 0 log 0 = 0
        log = arb(fmpq(*lift)).log()
        if inverse:
            total -= log * row / output.total
        else:
            total += log * mass / output.output
    return total


@dataclass(frozen=True, kw_only=True)
class OutputLeakage:
    """The leakage of one output about S; logarithms in nats, infinite where a lift is zero.

    `alpha_lift` and its inverse go from the order to the value; `posterior` is P(s|y) in the order
    of S, correctly rounded.
    """

    output: str
    probability: float
    max_lift: float
    min_lift: float
    max_log_lift: float
    min_log_lift: float
    max_log_lift_ratio: float
    l1_lift: float
    chi2_lift: float
    l1_lift_inverse: float
    chi2_lift_inverse: float
    alpha_lift: dict[float, float]
    alpha_lift_inverse: dict[float, float]
    posterior: tuple[float, ...]


def worst_of(leakages: Sequence[OutputLeakage]) -> OutputLeakage:
    """The worst of each measure, and all posteriors: of several outputs, or of one output about
    several secrets.
    """
    first = leakages[0]
    posteriors = [leakage.posterior for leakage in leakages]
    return OutputLeakage(
        output=first.output,
        probability=max(leakage.probability for leakage in leakages),
        max_lift=max(leakage.max_lift for leakage in leakages),
        min_lift=min(leakage.min_lift for leakage in leakages),
        max_log_lift=max(leakage.max_log_lift for leakage in leakages),
        min_log_lift=min(leakage.min_log_lift for leakage in leakages),
        max_log_lift_ratio=max(leakage.max_log_lift_ratio for leakage in leakages),
        l1_lift=max(leakage.l1_lift for leakage in leakages),
        chi2_lift=max(leakage.chi2_lift for leakage in leakages),
        l1_lift_inverse=max(leakage.l1_lift_inverse for leakage in leakages),
        chi2_lift_inverse=max(leakage.chi2_lift_inverse for leakage in leakages),
        alpha_lift=_largest_by_order([leakage.alpha_lift for leakage in leakages]),
        alpha_lift_inverse=_largest_by_order(
            [leakage.alpha_lift_inverse for leakage in leakages]
        ),
        posterior=tuple(chain.from_iterable(posteriors)),
    )


def _largest_by_order(values: Sequence[dict[float, float]]) -> dict[float, float]:
    """The largest value of each order."""
    return {order: max(value[order] for value in values) for order in values[0]}


@dataclass(frozen=True)
class ReleasedMasses:
    """Everything that may be released, with the masses of each: P(s, y) are the masses over
    `scale`.
    """

    labels: Sequence[str]
    outputs: Sequence[OutputMasses]
    scale: int

    @property
    def sums(self) -> Sequence[int]:
        """P(s) in proportion."""
        return self.outputs[0].sums


def masses_of(channel: Channel, joint: Joint) -> ReleasedMasses:
    """The outputs of a channel of one column."""
    outputs = list(masses_by_output(columns_on(channel, joint), joint))
    return ReleasedMasses(channel.outputs, outputs, joint.total * channel.denominator)


def output_leakages(
    released: ReleasedMasses, alphas: Sequence[float]
) -> list[OutputLeakage]:
    """The measures of every output in turn."""
    with precision(BITS):
        return [
            _output(label, output, released.scale, alphas)
            for label, output in zip(released.labels, released.outputs, strict=True)
        ]


def average_leakages(
    released: ReleasedMasses, orders: Sequence[float]
) -> dict[str, float]:
    """Every measure of `AVERAGE_MEASURES`, and Sibson's and Arimoto's informations of these orders,
    by name.
    """
    outputs = released.outputs
    scale = released.scale
    values: dict[str, float] = {}
    with precision(BITS):
        for name, measure in AVERAGE_MEASURES.items():
            values[name] = _at_least_zero(measure(outputs, scale))
    for order in orders:
        sibson = f"sibson_information[{order_of(order)}]"
        arimoto = f"arimoto_information[{order_of(order)}]"
        if order == 1.0:
            # Both are continued by Shannon's information.
            values[sibson] = values["mutual_information"]
            values[arimoto] = values["mutual_information"]
        else:
            values[sibson] = _at_least_zero(
                _bounded(partial(_sibson, outputs, scale, order))
            )
            values[arimoto] = _at_least_zero(
                _bounded(partial(_arimoto, outputs, scale, order))
            )
    if all(output.is_constant for output in outputs):
        # Every measure is exactly 0, which a ball around zero would round up to something.
        return dict.fromkeys(values, 0.0)
    return values


def _output(
    label: str, masses: OutputMasses, total: int, alphas: Sequence[float]
) -> OutputLeakage:
    lifts = [fmpq(*pair) for pair in masses.numerators()]
    high = max(lifts)
    low = min(lifts)
    if low == 0:
        largest_inverse = None
        log_low = -math.inf
        log_ratio = math.inf
    else:
        largest_inverse = 1 / low
        log_low = min(0.0, lower(arb(low).log()))
        log_ratio = max(0.0, upper(arb(high / low).log()))
    # The largest lift is at least 1 and the smallest at most 1; a ball around log 1 may reach
    # beyond zero.
    return OutputLeakage(
        output=label,
        probability=masses.output / total,
        max_lift=upper(arb(high)),
        min_lift=lower(arb(low)),
        max_log_lift=max(0.0, upper(arb(high).log())),
        min_log_lift=log_low,
        max_log_lift_ratio=log_ratio,
        l1_lift=_up(distances(masses, 1)),
        chi2_lift=_up(distances(masses, 2)),
        l1_lift_inverse=_up(distances(masses, 1, inverse=True)),
        chi2_lift_inverse=_up(distances(masses, 2, inverse=True)),
        alpha_lift={a: _norm(masses, a, high, inverse=False) for a in alphas},
        alpha_lift_inverse={
            a: _norm(masses, a, largest_inverse, inverse=True) for a in alphas
        },
        posterior=tuple(m / masses.output for m in masses.masses),
    )


def _norm(masses: OutputMasses, alpha: float, largest: Any, *, inverse: bool) -> float:
    """The alpha-lift or its inverse; `largest` is the largest lift or inverse, None if infinite."""
    if largest is None or math.isinf(alpha):
        return _up(largest)
    return max(1.0, upper(log_power_mean(masses, alpha, inverse=inverse).exp()))


def _information(outputs: Sequence[OutputMasses], scale: int) -> Any:
    """I(S;Y) = sum of P(s, y) log l(s, y), with 0 log 0 = 0."""
    total = arb(0)
    for output in outputs:
        for mass, lift in zip(output.masses, output.numerators(), strict=True):
            if mass:
                total += mass * arb(fmpq(*lift)).log()
    return total / scale


def _mean_distance(outputs: Sequence[OutputMasses], scale: int, power: int) -> Any:
    """sum_y P(y) sum_s P(s) |l(s, y) - 1|^power."""
    total = arb(0)
    for output in outputs:
        total += output.output * arb(distances(output, power))
    return total / scale


def _total_variation(outputs: Sequence[OutputMasses], scale: int) -> Any:
    """Half of the mean l1-distance between the posterior and the prior."""
    return _mean_distance(outputs, scale, 1) / 2


def _chi2_information(outputs: Sequence[OutputMasses], scale: int) -> Any:
    """The mean chi2-distance between the posterior and the prior."""
    return _mean_distance(outputs, scale, 2)


def _maximal_leakage(outputs: Sequence[OutputMasses], scale: int) -> Any:
    """Sibson's information of order infinity (Issa, Wagner and Kamath 2020)."""
    return _sibson(outputs, scale, math.inf)


def _min_entropy_leakage(outputs: Sequence[OutputMasses], scale: int) -> Any:
    """Arimoto's information of order infinity: by how much guessing S improves."""
    return _arimoto(outputs, scale, math.inf)


def _sibson(outputs: Sequence[OutputMasses], scale: int, order: float) -> Any:
    """order/(order-1) log sum_y P(y) (sum_s P(s) l(s, y)^order)^(1/order)."""
    logs = [log_power_mean(output, order) for output in outputs]
    masses = [output.output for output in outputs]
    return _factor(order) * _log_sum(masses, logs, scale)


def _arimoto(outputs: Sequence[OutputMasses], scale: int, order: float) -> Any:
    """order/(order-1) log of sum_y |P(., y)|_order over |P_S|_order."""
    first = outputs[0]
    ones = [1] * len(first.sums)

    def log_norm_of(values: Sequence[int], total: int) -> Any:
        return log_norm([(value, total) for value in values], order, ones, 1)

    before = log_norm_of(first.sums, first.total)
    logs = [log_norm_of(output.masses, scale) for output in outputs]
    after = _log_sum([1] * len(outputs), logs, 1)
    return _factor(order) * (after - before)


def _log_sum(weights: Sequence[int], logs: Sequence[Any], total: int) -> Any:
    """log of sum_i w_i e^(log_i) / total; the largest term is taken out, so that none overflows."""
    pivot = max(logs, key=upper)
    terms = arb(0)
    for weight, log in zip(weights, logs, strict=True):
        terms += weight * (log - pivot).exp()
    return pivot + (terms / total).log()


def _factor(order: float) -> Any:
    """order / (order - 1), and its limit."""
    if math.isinf(order):
        return arb(1)
    return arb(order) / (arb(order) - 1)


def _bounded(information: Callable[[], Any]) -> Any:
    """The ball at the first precision at which it is one: an order next to 0 needs more bits than
    `BITS`.
    """
    bits = BITS
    while True:
        with precision(bits):
            ball = information()
        if ball.is_finite():
            return ball
        bits *= 2


def _up(value: Any) -> float:
    """The double at or above a rational; None is infinite."""
    if value is None:
        return math.inf
    return upper(arb(value))


def _at_least_zero(ball: Any) -> float:
    """The double above an information, none of which is negative."""
    return max(0.0, upper(ball))


AVERAGE_MEASURES: dict[str, Callable[[Sequence[OutputMasses], int], Any]] = {
    "mutual_information": _information,
    "total_variation": _total_variation,
    "chi2_information": _chi2_information,
    "maximal_leakage": _maximal_leakage,
    "min_entropy_leakage": _min_entropy_leakage,
}
"""Each measure that is an average over the outputs: a ball around its value, at least 0, from the
masses of every output and their sum. `measure`, the command line and files take them from here.
"""


def belief_ranges(channel: Channel, joint: Joint) -> list[tuple[float, float]]:
    """The extremes of P(s|y) over all outputs y, for each s of each secret, from integers and
    rounded outwards.
    """
    if joint.sensitive.protects_columns:
        ranges: list[tuple[float, float]] = []
        for secret in joint.secrets:
            ranges += belief_ranges(channel, secret)
        return ranges
    outputs = masses_of(channel, joint).outputs
    ranges = []
    for s in range(len(joint.sensitive)):
        posteriors = [(output.masses[s], output.output) for output in outputs]
        # Rounding the negative up rounds the posterior itself down; 0.0 - x has no negative zero.
        low = min(0.0 - quotient_above(-mass, of) for mass, of in posteriors)
        high = max(quotient_above(mass, of) for mass, of in posteriors)
        ranges.append((low, high))
    return ranges
