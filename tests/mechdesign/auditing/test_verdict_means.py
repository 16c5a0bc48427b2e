"""The exact verdict on averages over S, against 80 digits and against algebra."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.auditing.verdict import audit_on_table, failing_outputs
from mechdesign.channel.channel import DENOMINATOR as D
from mechdesign.channel.channel import Channel
from mechdesign.core.balls import quotient_above
from mechdesign.notions import ALIP, KL, AlphaLift, Chi2Lift, L1Lift
from mechdesign.tables.joint import Joint
from tests.oracles import means as mean_oracle
from tests.oracles.lifts import smallest_budget
from tests.profiles import scaled

KINDS = {
    "l1": lambda a, b: L1Lift(a, b),
    "chi2": lambda a, b: Chi2Lift(a, b),
    "alpha 2": lambda a, b: AlphaLift(a, b, 2.0),
    "alpha 2.5": lambda a, b: AlphaLift(a, b, 2.5),
    "alpha 1.001": lambda a, b: AlphaLift(a, b, 1.001),
    "alpha 100": lambda a, b: AlphaLift(a, b, 100.0),
    "kl": lambda a, b: KL(a, b),
}


def channel_of(joint: Joint, seed: int) -> Channel:
    """A random channel to four outputs with some zeros."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 5, (len(joint.useful), 4))
    rows[np.arange(len(rows)), rng.integers(0, 4, len(rows))] += 1
    rows = rows[:, rows.any(axis=0)]
    exact = [[int(v) * (D // int(row.sum())) for v in row] for row in rows]
    for row in exact:
        row[int(np.argmax(row))] += D - sum(row)
    return Channel(joint.useful, tuple(f"y{k}" for k in range(rows.shape[1])), exact)


@st.composite
def cases(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    m = int(rng.integers(2, 5))
    n = int(rng.integers(2, 6))
    counts = rng.integers(0, draw(st.sampled_from([4, 1000])), (m, n))
    counts[rng.integers(0, m, n), np.arange(n)] += 1
    counts[np.arange(m), rng.integers(0, n, m)] += 1
    joint = Joint.from_counts(counts)
    return joint, channel_of(joint, draw(st.integers(0, 2**32)))


def is_smallest_double(value: float, exact: Decimal | None) -> bool:
    if exact is None or exact == 0:
        return value == (math.inf if exact is None else 0.0)
    return Decimal(math.nextafter(value, 0.0)) < exact <= Decimal(value)


@settings(max_examples=scaled(60))
@given(
    cases(), st.sampled_from(sorted(KINDS)), st.floats(0.01, 3.0), st.floats(0.01, 3.0)
)
def test_verdict_and_used_budgets_agree_with_80_digits(case, name, eps_l, eps_u):
    joint, channel = case
    notion = KINDS[name](eps_l, eps_u)
    verdict = audit_on_table(channel, joint, notion)
    limits = notion.limits
    order = getattr(limits.mean, "order", math.nan)
    below, above = mean_oracle.used(joint.counts, channel.rows, limits.mean.name, order)
    assert is_smallest_double(verdict.used.eps_u, above)
    assert is_smallest_double(verdict.used.eps_l, below)
    assert verdict.satisfied == mean_oracle.satisfies(
        joint.counts, channel.rows, limits
    )
    assert verdict.satisfied == (failing_outputs(channel, joint, notion) == ())


@pytest.mark.parametrize("name", sorted(KINDS))
def test_the_verdict_turns_between_two_neighbouring_doubles(name):
    """Allowed at the budgets used, refused one double below, on either side."""
    joint = Joint.from_counts([[3, 1, 5], [2, 7, 1], [4, 4, 4]])
    channel = channel_of(joint, 7)
    used = audit_on_table(channel, joint, KINDS[name](1.0, 1.0)).used
    assert audit_on_table(channel, joint, KINDS[name](used.eps_l, used.eps_u)).satisfied
    assert not audit_on_table(
        channel, joint, KINDS[name](math.nextafter(used.eps_l, 0.0), used.eps_u)
    ).satisfied
    assert not audit_on_table(
        channel, joint, KINDS[name](used.eps_l, math.nextafter(used.eps_u, 0.0))
    ).satisfied


def test_l1_and_chi2_of_a_table_done_by_hand():
    """P(s) = 1/2 and lifts 2/3, 4/3: l1 = 1/3 and chi2 = 1/9, so both use log(4/3)."""
    joint = Joint.from_counts([[1, 2, 3], [2, 1, 3]])
    released = Channel(
        joint.useful,
        joint.useful.names,
        [[D * (i == j) for j in range(3)] for i in range(3)],
    )
    expected = smallest_budget(Fraction(4, 3))
    assert audit_on_table(released, joint, L1Lift(1.0, 1.0)).used.eps_u == expected
    assert audit_on_table(released, joint, Chi2Lift(1.0, 1.0)).used.eps_u == expected
    # The inverses 3/2 and 3/4: l1 = 3/8.
    assert audit_on_table(
        released, joint, L1Lift(1.0, 1.0)
    ).used.eps_l == smallest_budget(Fraction(11, 8))


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_constant_channel_uses_nothing_at_the_smallest_budget(name):
    joint = Joint.from_counts([[1, 2, 3], [2, 1, 3]])
    constant = Channel(joint.useful, ("all",), [[D]] * 3)
    verdict = audit_on_table(constant, joint, KINDS[name](5e-324, 5e-324))
    assert verdict.satisfied
    assert (verdict.used.eps_l, verdict.used.eps_u) == (0.0, 0.0)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_lift_of_zero_makes_the_inverse_infinite(name):
    """Zero lift is never a skipped cell; dropping the inverse drops its verdict, not its value."""
    joint = Joint.from_counts([[1, 0, 3], [2, 1, 3]])
    released = Channel(
        joint.useful,
        joint.useful.names,
        [[D * (i == j) for j in range(3)] for i in range(3)],
    )
    verdict = audit_on_table(released, joint, KINDS[name](700.0, 700.0))
    assert not verdict.satisfied
    assert verdict.used.eps_l == math.inf
    assert (verdict.worst.sensitive, verdict.worst.output, verdict.worst.lift) == (
        "s0",
        "x1",
        0.0,
    )
    assert failing_outputs(released, joint, KINDS[name](700.0, 700.0)) == (1,)
    assert audit_on_table(released, joint, KINDS[name](math.inf, 700.0)).satisfied


def test_an_infinite_order_is_the_verdict_of_alip():
    joint = Joint.from_counts([[3, 1, 5], [2, 7, 1], [4, 4, 4]])
    channel = channel_of(joint, 3)
    for eps in (0.05, 0.1, 0.5, 1.0):
        alpha = audit_on_table(channel, joint, AlphaLift(eps, eps, math.inf))
        alip = audit_on_table(channel, joint, ALIP(eps, eps))
        assert (alpha.satisfied, alpha.achieved, alpha.worst) == (
            alip.satisfied,
            alip.achieved,
            alip.worst,
        )


def test_worst_names_the_output_that_violates():
    """Output x0 is far from its budget above, output x1 breaks the one below."""
    joint = Joint.from_counts([[90, 1, 9], [10, 50, 40]])
    released = Channel(
        joint.useful,
        joint.useful.names,
        [[D * (i == j) for j in range(3)] for i in range(3)],
    )
    verdict = audit_on_table(released, joint, L1Lift(0.5, 3.0))
    assert not verdict.satisfied
    assert (verdict.worst.sensitive, verdict.worst.output) == ("s0", "x1")
    assert verdict.worst.lift == pytest.approx(1 * 200 / (100 * 51))


@given(st.integers(0, 10**40), st.integers(1, 10**40))
def test_quotients_round_up_to_the_next_double(numerator, denominator):
    value = quotient_above(numerator, denominator)
    assert Fraction(value) >= Fraction(numerator, denominator)
    assert numerator == 0 or Fraction(math.nextafter(value, -1.0)) < Fraction(
        numerator, denominator
    )


def test_quotients_beyond_doubles():
    assert quotient_above(10**400, 1) == quotient_above(1, 0) == math.inf
    assert quotient_above(1, 10**400) == 5e-324
