"""Every utility and leakage measure of a channel on a table, in nats.

`measure` puts together what other modules compute:

- `utility`, here: H(X), I(X;Y) = H(X) - H(X|Y) and their quotient, in doubles with a proven error
  and rounded so that they never claim too much (two equally likely symbols through the rows
  (3/4, 1/4) and (1/4, 3/4): H(X) = 0.6931, I(X;Y) = 0.1308 nats, a share of 0.1887);
- the leakage of every output (`leakages`), its worst output for each measure, and the averages over
  outputs (`average_measures`), all rounded outwards;
- what bounds on the lift imply for these (`implied_bounds`).

Of several secrets each is measured for itself, and every figure is the worst of all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import mul
from typing import TypeAlias

import numpy as np

from mechdesign.auditing.average_measures import average_leakages
from mechdesign.auditing.columns import columns_on, released_part
from mechdesign.auditing.extremes import Achieved, log_upper
from mechdesign.auditing.implied_bounds import Guarantee, guarantee_table, weakest
from mechdesign.auditing.leakages import OutputLeakage, output_leakages, worst_of
from mechdesign.auditing.output_masses import ReleasedMasses, masses_of
from mechdesign.auditing.verdict import achieved_by
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import TOTAL
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
roundoffs (NumPy's vector loops; usually 1), and repeats the error of its argument. The rest is
reserve. Computed as log1p((m - t)/t) it loses nothing near m = t.
"""


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
    # For each output the masses P(x, y) in integers, and their sum.
    groups: list[Group] = []
    for inputs, values in columns_on(channel, joint):
        # An output that names its input leaves no uncertainty.
        if len(inputs) > 1:
            input_weights = [weights[x] for x in inputs]
            masses = list(map(mul, input_weights, values))
            groups.append((masses, sum(masses)))
    if not groups:
        return Utility(low, entropy, 1.0)
    # H(X|Y) = sum over y and x of P(x, y) log(P(y) / P(x, y)).
    lost = sum_of_logs(groups, total * channel.denominator) * (1.0 + SUM_ERROR)
    # Quotient, product and difference round once each; the share is rounded down.
    share = 1.0 - lost / low * (1.0 + 4 * ROUNDOFF)
    return Utility(
        mutual_information=max(0.0, math.nextafter(low - lost, -math.inf)),
        entropy=entropy,
        nmi=max(0.0, math.nextafter(share, -math.inf)),
    )


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
