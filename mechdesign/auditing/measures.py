"""Every utility and leakage measure of a channel on a table, in nats.

`measure` puts together:

- `utility`: H(X), I(X;Y) = H(X) - H(X|Y) and their quotient, in doubles with a proven error
  and rounded so that they never claim too much (two equally likely symbols through the rows
  (3/4, 1/4) and (1/4, 3/4): H(X) = 0.6931, I(X;Y) = 0.1308 nats, a share of 0.1887);
- the leakage of every output (`leakages`), its worst output for each measure, and the averages over
  outputs (`average_leakages`), all rounded outwards;
- what bounds on the lift imply for these (`leakages`).

Of several secrets each is measured for itself, and every figure is the worst of all.

*Averages over the outputs* are rounded up from enclosures. Each measure of `AVERAGE_MEASURES` is a
function from the masses of all outputs and their sum (`scale`: P(s, y) = m_s / scale) to a ball
around its value (`columns`):

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

*The best guess.* Whoever knows the table and the channel guesses the likeliest s given the released
y. That is right with the probability sum_y max_s P(s, y), the Bayes vulnerability of S after the
release (Smith 2009), and no other guess is right more often. Without the release it is max_s P(s).
For example, the masses (3, 1) and (2, 4) of two outputs, of 10 in all, give 7/10, and 5/10 without:
both secrets have the mass 5.

Unlike a lift this is an average over all records: single values may tell far more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import chain
from operator import mul
from typing import Any, TypeAlias

import numpy as np
from flint import arb
from numpy.typing import NDArray

from mechdesign.auditing.columns import (
    BITS,
    Entries,
    OutputMasses,
    ReleasedMasses,
    columns_on,
    distances,
    information,
    is_constant,
    log_norm,
    log_power_mean,
    masses_by_output,
    masses_of,
    released_part,
)
from mechdesign.auditing.leakages import (
    Guarantee,
    OutputLeakage,
    guarantee_table,
    output_leakages,
    weakest,
    worst_of,
)
from mechdesign.auditing.lifts import Achieved, log_upper
from mechdesign.auditing.verdict import achieved_by
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import TOTAL
from mechdesign.core.balls import precision, upper
from mechdesign.core.errors import InputError
from mechdesign.core.wording import order_of
from mechdesign.notions import check_alpha
from mechdesign.tables.joint import Joint

BREACHES = (0.01, 0.1, 0.5)
"""Prior probabilities rho1 of the guarantee against privacy breaches, by default."""

ROUNDOFF = 2.0**-53
"""Largest relative error of one floating-point operation."""

SUM_ERROR = 18 * ROUNDOFF
"""Bound on the relative error of a sum of terms t log(m/t), all of one sign: two quotients, a
product and the exact sum round once each; the logarithm is within 4 units in the last place, 8
roundoffs (NumPy's vector loops; usually 1), and repeats the error of its argument. That makes 12.
In arrays the integers of both quotients, and the sums of some outputs, round once more: 17. The
rest is reserve. Computed as log1p((m - t)/t) it loses nothing near m = t.
"""

MANY_ENTRIES = 1 << 20
"""Entries of a channel from which its masses are formed in arrays: 25 million take 3 s so, and 13 s
as integers of Python."""

AT_ONCE = 1 << 16
"""Entries of outputs that are computed at once, at least: they stay in the cache of a processor."""

HALF = 31
"""Bits of the lower half of an entry, in arrays."""

LARGEST_ENTRY, MOST_COUNTED = 1 << 53, 1 << 30
"""Up to these entries, and sums of counts below, the halves of masses and of their sums are exact
in 64 bits, and the upper ones in doubles, too."""


NOTHING = 1e-12
"""Nats of entropy beyond the given columns that are rounding."""

Group: TypeAlias = tuple[list[int], int]
"""Masses of the symbols that one outcome leaves possible, in integers, and their sum."""


@dataclass(frozen=True)
class Utility:
    """Utility in nats. `mutual_information` and `nmi` are never above the true values.

    They are below them by at most about 5e-15 H(X) and 5e-15. `entropy` is H(X), with a relative
    error of at most 2e-15; `nmi` is I(X;Y)/H(X), and 1 when X is constant (nothing is lost).
    """

    mutual_information: float
    entropy: float
    nmi: float


def utility(channel: Channel, joint: Joint) -> Utility:
    """I(X;Y), H(X) and their quotient for the integers of `channel` under `joint`.

    I(X;Y) = H(X) - H(X|Y), each summed exactly from non-negative terms such as P(x, y) log(P(y) /
    P(x, y)), whose arguments are formed of exact integers: their relative error does not grow with
    the channel.
    """
    joint = released_part(channel, joint)
    weights = joint.useful_counts
    total = joint.total
    # A constant X has no information to keep.
    if len(weights) == 1:
        return Utility(0.0, 0.0, 1.0)
    entropy = sum_of_logs([(list(weights), total)], total)
    # H(X) rounded down and H(X|Y) rounded up: I(X;Y) is never claimed to be larger than it is.
    low = entropy * (1.0 - SUM_ERROR)
    # Outputs that all symbols have with one probability tell nothing: together they are one, with
    # the sum of these probabilities. A draw from the frequencies of 5,000 symbols has 5,000 such.
    blind = 0
    telling: list[Entries] = []
    for inputs, values in columns_on(channel, joint):
        if is_constant((inputs, values), len(weights)):
            blind += values[0]
        # An output that names its input leaves no uncertainty.
        elif len(inputs) > 1:
            telling.append((inputs, values))
    if not (telling or blind):
        return Utility(low, entropy, 1.0)
    # H(X|Y) = sum over y and x of P(x, y) log(P(y) / P(x, y)).
    lost = _conditional_entropy(telling, blind, joint, channel.denominator)
    lost *= 1.0 + SUM_ERROR
    # Quotient, product and difference round once each; the share is rounded down.
    share = 1.0 - lost / low * (1.0 + 4 * ROUNDOFF)
    return Utility(
        mutual_information=max(0.0, math.nextafter(low - lost, -math.inf)),
        entropy=entropy,
        nmi=max(0.0, math.nextafter(share, -math.inf)),
    )


def _conditional_entropy(
    columns: Sequence[Entries], blind: int, joint: Joint, denominator: int
) -> float:
    """H(X|Y) in nats of some outputs, and of one that all symbols have with the entry `blind`."""
    weights = joint.useful_counts
    scale = joint.total * denominator
    # For each output the masses P(x, y) in integers, and their sum.
    groups: list[Group] = []
    if blind:
        groups.append(([weight * blind for weight in weights], joint.total * blind))
    if _fits_arrays(columns, joint.total):
        in_arrays = _sums_of_logs(
            columns, np.array(weights, dtype=np.int64), float(scale)
        )
        return math.fsum([*in_arrays, sum_of_logs(groups, scale)])
    for inputs, values in columns:
        masses = list(map(mul, [weights[x] for x in inputs], values))
        groups.append((masses, sum(masses)))
    return sum_of_logs(groups, scale)


def _fits_arrays(columns: Sequence[Entries], total: int) -> bool:
    """Whether columns have so many entries that arrays are worth it, and their halves fit these."""
    if sum(len(inputs) for inputs, _ in columns) < MANY_ENTRIES:
        return False
    return total < MOST_COUNTED and all(
        max(values) <= LARGEST_ENTRY for _, values in columns
    )


def _sums_of_logs(
    columns: Sequence[Entries], weights: NDArray[np.int64], scale: float
) -> list[float]:
    """`sum_of_logs` of some outputs each, from halves of its masses that are exact in 64 bits."""
    sums: list[float] = []
    for batch in _batches(columns):
        lengths = [len(inputs) for inputs, _ in batch]
        size = sum(lengths)
        inputs = np.fromiter(chain.from_iterable(x for x, _ in batch), np.int64, size)
        entries = np.fromiter(chain.from_iterable(w for _, w in batch), np.int64, size)
        starts = np.cumsum([0, *lengths[:-1]])
        of_inputs = weights[inputs]
        # Each half of m is the sum of those of all t, so that no half of m - t is negative.
        halves: list[NDArray[np.int64]] = []
        others: list[NDArray[np.int64]] = []
        for half in (entries >> HALF, entries & ((1 << HALF) - 1)):
            masses = of_inputs * half
            halves.append(masses)
            whole = np.repeat(np.add.reduceat(masses, starts), lengths)
            others.append(whole - masses)
        masses = _joined(*halves)
        terms = masses / scale * np.log1p(_joined(*others) / masses)
        sums.append(math.fsum(terms.tolist()))
    return sums


def _batches(columns: Sequence[Entries]) -> Iterator[list[Entries]]:
    """The columns in turn, as many at once as have few entries together."""
    batch: list[Entries] = []
    size = 0
    for column in columns:
        batch.append(column)
        size += len(column[0])
        if size >= AT_ONCE:
            yield batch
            batch = []
            size = 0
    if batch:
        yield batch


def _joined(upper: NDArray[np.int64], lower: NDArray[np.int64]) -> NDArray[np.float64]:
    """Integers of an upper and a lower half, neither negative, as doubles: each is rounded once."""
    # The lower half may have more than `HALF` bits. Then both halves are doubles exactly.
    carried = upper + (lower >> HALF)
    rest = lower & ((1 << HALF) - 1)
    return carried.astype(np.float64) * float(1 << HALF) + rest.astype(np.float64)


def beyond_given(worth: Utility, joint: Joint, given: Sequence[str]) -> Utility:
    """I(X;Y|K), H(X|K) and their quotient, where I(X;Y) and H(X) include the given columns K."""
    if not given:
        return worth
    of_given = joint.releasing(tuple(given))
    known = sum_of_logs([(list(of_given.useful_counts), joint.total)], joint.total)
    entropy = worth.entropy - known
    # Without anything beyond the given columns, nothing is lost.
    if entropy <= NOTHING:
        return Utility(0.0, 0.0, 1.0)
    information = max(0.0, worth.mutual_information - known)
    return Utility(information, entropy, min(1.0, information / entropy))


def sum_of_logs(groups: list[Group], scale: int) -> float:
    """Sum of t log(m/t) / scale over the positive integers t of every group (list of t, their sum
    m).

    With t / scale = P(x, y) this is H(X|Y); with one group of P(x) it is H(X).
    """
    terms: list[float] = []
    quotients: list[float] = []
    for masses, whole in groups:
        # A quotient of integers rounds once, however long they are.
        terms += [mass / scale for mass in masses]
        # log(m/t) = log1p((m - t)/t), where the difference of integers is exact.
        quotients += [(whole - mass) / mass for mass in masses]
    logs = np.array(terms) * np.log1p(np.array(quotients))
    return math.fsum(logs.tolist())


@dataclass(frozen=True)
class ChannelMeasures:
    """The utility of Y for X and its leakage about S, by name, in nats.

    Leakages are rounded outwards, of the worst output or on average; `outputs` has them output by
    output, and `guarantees` has the bounds that the theorems give for them.
    """

    utility: dict[str, float]
    leakage: dict[str, float]
    achieved: Achieved
    outputs: list[OutputLeakage] = field(default_factory=list[OutputLeakage])
    guarantees: list[Guarantee] = field(default_factory=list[Guarantee])


def measure(
    channel: Channel,
    joint: Joint,
    alphas: Sequence[float] = (2.0,),
    orders: Sequence[float] = (),
    breaches: Sequence[float] = BREACHES,
) -> ChannelMeasures:
    """Measure `channel` on `joint`; of several secrets each figure is the worst of all."""
    joint = released_part(channel, joint)
    # Measures are of the whole row, whatever its promise is relative to.
    channel = channel.with_record(replace(channel.record, promise_kind=TOTAL))
    if joint.sensitive.protects_columns:
        parts: list[ChannelMeasures] = []
        for secret in joint.secrets:
            parts.append(measure(channel, secret, alphas, orders, breaches))
        return _worst_of_secrets(parts, achieved_by(channel, joint))
    return released_measures(
        masses_of(channel, joint),
        _utility_measures(channel, joint),
        achieved_by(channel, joint),
        alphas,
        orders,
        breaches,
    )


def released_measures(
    released: ReleasedMasses,
    utility_measures: dict[str, float],
    achieved: Achieved,
    alphas: Sequence[float],
    orders: Sequence[float],
    breaches: Sequence[float],
) -> ChannelMeasures:
    """All measures of what is released, be it by a channel of one column or of rows.

    Its utility and the budgets that it achieves are computed before, because they depend on the
    kind of the channel.
    """
    alphas = [check_alpha(alpha) for alpha in alphas]
    for order in orders:
        if not order > 0.0:
            raise InputError(f"the order ({order:g}) must be positive, or inf")
    for prior in breaches:
        if not 0.0 < prior < 1.0:
            raise InputError(
                f"the prior of a property ({prior:g}) must be strictly between 0 and 1"
            )
    outputs = output_leakages(released, alphas)
    averages = average_leakages(released, list(dict.fromkeys([*alphas, *orders])))
    leaked = _overall(outputs, alphas) | averages
    return ChannelMeasures(
        utility=utility_measures,
        leakage=leaked,
        achieved=achieved,
        outputs=outputs,
        guarantees=guarantee_table(
            achieved, leaked, outputs, released.sums, alphas, breaches
        ),
    )


def _utility_measures(channel: Channel, joint: Joint) -> dict[str, float]:
    """The utility of Y for X, by name."""
    worth = utility(channel, joint)
    # Maximal leakage of X through Y, log sum_y max_x W(y|x), holds for any distribution of X.
    largest = 0
    for _, entries in channel.columns:
        largest += max(entries)
    return {
        "entropy": worth.entropy,
        "mutual_information": worth.mutual_information,
        "conditional_entropy": worth.entropy - worth.mutual_information,
        "nmi": worth.nmi,
        "maximal_leakage_of_useful": log_upper(largest, channel.denominator),
    }


def _worst_of_secrets(
    parts: Sequence[ChannelMeasures], achieved: Achieved
) -> ChannelMeasures:
    """The measures of several secrets as one: the utility is the same for all."""
    first = parts[0]
    leakage: dict[str, float] = {}
    for name in first.leakage:
        # Of the least log-lift the least value is the worst, of all others the largest.
        worst = min if name.startswith("min_log") else max
        leakage[name] = worst(part.leakage[name] for part in parts)
    # The outputs, and the lines of the table of guarantees, are the same for all secrets.
    by_output = zip(*(part.outputs for part in parts), strict=True)
    by_line = zip(*(part.guarantees for part in parts), strict=True)
    return ChannelMeasures(
        utility=first.utility,
        leakage=leakage,
        achieved=achieved,
        outputs=[worst_of(leakages) for leakages in by_output],
        guarantees=[weakest(lines) for lines in by_line],
    )


def _overall(
    outputs: Sequence[OutputLeakage], alphas: Sequence[float]
) -> dict[str, float]:
    """Each measure on its worst output."""
    worst = worst_of(outputs)
    values = {
        "max_log_lift": worst.max_log_lift,
        "min_log_lift": worst.min_log_lift,
        "max_log_lift_ratio": worst.max_log_lift_ratio,
        "l1_lift": worst.l1_lift,
        "chi2_lift": worst.chi2_lift,
        "l1_lift_inverse": worst.l1_lift_inverse,
        "chi2_lift_inverse": worst.chi2_lift_inverse,
    }
    for alpha in alphas:
        order = order_of(alpha)
        values[f"alpha_lift[{order}]"] = worst.alpha_lift[alpha]
        values[f"alpha_lift_inverse[{order}]"] = worst.alpha_lift_inverse[alpha]
    return values


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


def best_guess(channel: Channel, joint: Joint) -> tuple[Fraction, Fraction]:
    """The share of records whose sensitive value the best guess from the release tells, and the
    share without a release.

    Several sensitive columns are guessed together.
    """
    released = released_part(channel, joint)
    n = len(released.useful)
    telling: list[Entries] = []
    # Of outputs that tell nothing the guess is that without a release.
    blind = 0
    for column in columns_on(channel, released):
        if is_constant(column, n):
            blind += column[1][0]
        else:
            telling.append(column)
    outputs = list(masses_by_output(telling, released))
    scale = sum(output.output for output in outputs) + blind * released.total
    right = sum(max(output.masses) for output in outputs)
    right += blind * max(released.sensitive_counts)
    return Fraction(right, scale), guess_without(joint)


def guess_without(joint: Joint) -> Fraction:
    """The share of the likeliest sensitive value, whose guess is best without a release."""
    return Fraction(max(joint.sensitive_counts), joint.total)


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
