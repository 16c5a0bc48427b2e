"""Measures of leakage that are averages over the outputs, rounded up from enclosures.

Each measure of `AVERAGE_MEASURES` is a function from the masses of all outputs and their sum
(`scale`: P(s, y) = m_s / scale) to a ball around its value (`output_masses`):

    mutual_information    sum_y sum_s P(s, y) log l(s, y)
    total_variation       sum_y P(y) sum_s P(s) |l(s, y) - 1| / 2
    chi2_information      sum_y P(y) sum_s P(s) (l(s, y) - 1)^2
    maximal_leakage       Sibson's information of order infinity
    min_entropy_leakage   Arimoto's information of order infinity

and of any positive order a other than 1

    Sibson    a/(a-1) log sum_y P(y) (sum_s P(s) l(s, y)^a)^(1/a)
    Arimoto   a/(a-1) log [ sum_y (sum_s P(s, y)^a)^(1/a) / (sum_s P(s)^a)^(1/a) ].

Example: masses (3, 1) and (2, 4) of the scale 10 have a mutual information of 0.0863, a total
variation of 1/5, a chi2-information of 1/6, a maximal leakage of log(7/5) = 0.3365 and a Sibson
information of order 2 of 0.1533.

`average_leakages` evaluates them at `BITS` bits, and at more where an order needs it
(`_finite_ball`). It rounds every ball up to a double, so what is reported is a bound that surely
holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from flint import arb

from mechdesign.auditing.output_masses import (
    BITS,
    OutputMasses,
    ReleasedMasses,
    distances,
    information,
    log_norm,
    log_power_mean,
)
from mechdesign.core.balls import precision, upper
from mechdesign.core.wording import order_of


def average_leakages(
    released: ReleasedMasses, orders: Sequence[float]
) -> dict[str, float]:
    """Every measure of `AVERAGE_MEASURES`, and Sibson's and Arimoto's informations of these orders,
    by name.
    """
    outputs = released.outputs
    scale = released.scale
    values: dict[str, float] = {}
    # No power of a lift but the square is taken here, so all balls are finite at `BITS`.
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
            ball = _finite_ball(partial(_sibson, outputs, scale, order))
            values[sibson] = _at_least_zero(ball)
            ball = _finite_ball(partial(_arimoto, outputs, scale, order))
            values[arimoto] = _at_least_zero(ball)
    if all(output.is_constant for output in outputs):
        # Every measure is exactly 0, which a ball around zero would round up to something.
        return dict.fromkeys(values, 0.0)
    return values


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


AVERAGE_MEASURES: dict[str, Callable[[Sequence[OutputMasses], int], Any]] = {
    "mutual_information": information,
    "total_variation": _total_variation,
    "chi2_information": _chi2_information,
    "maximal_leakage": _maximal_leakage,
    "min_entropy_leakage": _min_entropy_leakage,
}
"""Each measure that is an average over the outputs: a ball around its value, at least 0, from the
masses of every output and their sum. `measure`, the command line and files take them from here.
"""


def _mean_distance(outputs: Sequence[OutputMasses], scale: int, power: int) -> Any:
    """sum_y P(y) sum_s P(s) |l(s, y) - 1|^power."""
    total = arb(0)
    for output in outputs:
        total += output.output * arb(distances(output, power))
    return total / scale


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


def _finite_ball(enclosure: Callable[[], Any]) -> Any:
    """The ball at the first precision, from `BITS` on, at which it is finite.

    Two things need more bits. An order next to 0 divides the logarithms of `log_norm`, which
    stretches their radius until the ball of a sum of their exponentials contains 0 and has no
    logarithm. And of two lifts that differ by a factor of more than 2^`BITS`, the quotient minus 1
    is no more different from -1. The loop ends: the value itself is finite, and the ball shrinks to
    it as the precision grows.
    """
    bits = BITS
    while True:
        with precision(bits):
            ball = enclosure()
        if ball.is_finite():
            return ball
        bits *= 2


def _at_least_zero(ball: Any) -> float:
    """The double above an information, none of which is negative."""
    return max(0.0, upper(ball))
