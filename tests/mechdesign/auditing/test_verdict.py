from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from mechdesign.auditing.lifts import log_upper
from mechdesign.auditing.verdict import Achieved, audit_on_table, failing_outputs
from mechdesign.channel.channel import DENOMINATOR as D
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.integers import IntegerRows
from mechdesign.notions import ALIP, LDP, LIP, MaxLift, MinLift
from mechdesign.tables.joint import Joint
from tests.oracles.lifts import exp_bounds, smallest_budget


def released(joint: Joint) -> Channel:
    """The channel that publishes X."""
    n = len(joint.useful)
    return Channel(
        joint.useful,
        joint.useful.names,
        [[D * (i == j) for j in range(n)] for i in range(n)],
    )


def constant(joint: Joint) -> Channel:
    return Channel(joint.useful, ("all",), [[D]] * len(joint.useful))


@pytest.fixture
def joint() -> Joint:
    # P(s0) = P(s1) = 1/2, P(x) = 1/4, 1/4, 1/2; lifts of s0: 2/3, 4/3, 1; of s1: 4/3, 2/3, 1.
    return Joint.from_counts([[1, 2, 3], [2, 1, 3]])


def test_the_constant_channel_achieves_zero_and_satisfies_every_notion(joint):
    for notion in (
        ALIP(1e-300, 1e-300),
        LIP(5e-324),
        LDP(1e-9),
        MaxLift(1e-9),
        MinLift(1e-9),
    ):
        verdict = audit_on_table(constant(joint), joint, notion)
        assert verdict.satisfied
        assert verdict.notion is notion
        assert verdict.achieved == Achieved(0.0, 0.0, 0.0)
        assert verdict.worst.output == "all"
        assert verdict.worst.lift == 1.0


def test_achieved_budgets_are_the_smallest_doubles_that_hold(joint):
    achieved = audit_on_table(released(joint), joint, LIP(1.0)).achieved
    assert achieved.eps_u == smallest_budget(Fraction(4, 3))
    assert achieved.eps_l == smallest_budget(Fraction(3, 2))
    assert achieved.eps_ldp == smallest_budget(Fraction(2))


@pytest.mark.parametrize(
    ("ratio", "notion"),
    [
        (Fraction(4, 3), MaxLift),
        (Fraction(3, 2), MinLift),
        (Fraction(3, 2), LIP),
        (Fraction(2), LDP),
    ],
)
def test_the_verdict_turns_between_two_neighbouring_doubles(joint, ratio, notion):
    enough = smallest_budget(ratio)
    assert audit_on_table(released(joint), joint, notion(enough)).satisfied
    assert not audit_on_table(
        released(joint), joint, notion(math.nextafter(enough, 0.0))
    ).satisfied


def test_worst_names_the_cell_that_uses_most_of_its_budget(joint):
    verdict = audit_on_table(released(joint), joint, ALIP(eps_l=0.7, eps_u=0.3))
    # log(4/3)/0.3 = 0.96 of the upper budget, log(3/2)/0.7 = 0.58 of the lower.
    assert (verdict.worst.sensitive, verdict.worst.output) == ("s1", "x0")
    assert verdict.worst.lift == 4 / 3
    verdict = audit_on_table(released(joint), joint, ALIP(eps_l=0.3, eps_u=0.3))
    assert not verdict.satisfied
    assert (verdict.worst.sensitive, verdict.worst.output, verdict.worst.against) == (
        "s0",
        "x0",
        None,
    )
    assert verdict.worst.lift == 2 / 3


def test_worst_of_ldp_names_both_symbols(joint):
    worst = audit_on_table(released(joint), joint, LDP(0.5)).worst
    assert (worst.sensitive, worst.against, worst.output, worst.lift) == (
        "s1",
        "s0",
        "x0",
        4 / 3,
    )


def test_a_violated_side_is_named_before_a_satisfied_one_that_is_nearly_used_up():
    joint = Joint.from_counts([[1, 2, 3], [2, 1, 3]])
    upper = math.nextafter(smallest_budget(Fraction(4, 3)), 0.0)
    lower = smallest_budget(Fraction(3, 2))
    verdict = audit_on_table(released(joint), joint, ALIP(eps_l=lower, eps_u=upper))
    assert not verdict.satisfied
    assert verdict.worst.lift == 4 / 3


def test_a_zero_lift_is_infinite_and_breaks_every_lower_budget():
    joint = Joint.from_counts([[0, 5], [5, 5]])
    for notion in (MinLift(700.0), LDP(700.0), LIP(700.0)):
        verdict = audit_on_table(released(joint), joint, notion)
        assert not verdict.satisfied
        assert verdict.worst.output == "x0"
        assert verdict.worst.lift == (0.0 if notion.name != "ldp" else 1.5)
        assert verdict.achieved.eps_l == verdict.achieved.eps_ldp == math.inf
    assert audit_on_table(released(joint), joint, ALIP(math.inf, 1.1)).satisfied
    assert audit_on_table(released(joint), joint, MaxLift(1.1)).satisfied


def test_one_sensitive_symbol_leaks_nothing():
    joint = Joint.from_counts([[1, 2, 3]])
    verdict = audit_on_table(released(joint), joint, LDP(1e-300))
    assert verdict.satisfied
    assert verdict.achieved == Achieved(0.0, 0.0, 0.0)
    assert verdict.worst.sensitive == verdict.worst.against == "s0"


def test_rows_in_another_order_are_matched_by_symbol(joint):
    channel = Channel(joint.useful, ("a", "b"), [[D, 0], [0, D], [D // 2, D // 2]])
    order = [2, 0, 1]
    shuffled = Joint.from_counts(
        [[row[x] for x in order] for row in joint.counts],
        useful_labels=[f"x{x}" for x in order],
    )
    assert audit_on_table(channel, shuffled, LIP(0.4)) == audit_on_table(
        channel, joint, LIP(0.4)
    )


def test_a_table_with_other_symbols_is_refused(joint):
    channel = released(joint)
    more = Joint.from_counts([[1, 2, 3, 1], [2, 1, 3, 1]])
    with pytest.raises(InputError, match=r"no row for the useful symbol 'x3'"):
        audit_on_table(channel, more, LIP(1.0))
    fewer = Joint.from_counts([[1, 2], [2, 1]])
    with pytest.raises(
        InputError, match=r"the table has no useful symbol 'x2', which the channel has"
    ):
        audit_on_table(channel, fewer, LIP(1.0))
    spelled = Joint.from_counts(joint.counts, useful_labels=["X0", "x01", "x2 "])
    with pytest.raises(
        InputError, match="which the channel has; one of them differs in"
    ):
        audit_on_table(channel, spelled, LIP(1.0))


class Tampered(Channel):
    """A channel whose constructor was bypassed."""

    useful = outputs = integers = denominator = (
        None  # in the place of what the constructor checks
    )

    def __init__(self, channel: Channel, **changes) -> None:
        names = ("useful", "outputs", "integers", "denominator")
        self.__dict__.update({name: getattr(channel, name) for name in names} | changes)


def test_the_audit_adds_up_the_rows_itself(joint):
    wrong = Tampered(released(joint), denominator=D - 1)
    with pytest.raises(
        InputError,
        match=r"row 'x0' sums to 9007199254740992, not to the denominator 90071992547409",
    ):
        audit_on_table(wrong, joint, LIP(1.0))


def test_the_audit_refuses_outputs_without_mass_and_negative_entries(joint):
    without_mass = IntegerRows(
        (3, 2), np.array([0, 1, 2, 3]), np.array([0, 0, 0]), np.array([D, D, D])
    )
    negative = IntegerRows(
        (3, 2),
        np.array([0, 2, 3, 4]),
        np.array([0, 1, 0, 0]),
        np.array([D + 1, -1, D, D]),
    )
    for integers in (without_mass, negative):
        with pytest.raises(
            InputError, match=r"the output 'b' has no mass, or an entry below zero"
        ):
            audit_on_table(
                Tampered(released(joint), outputs=("a", "b"), integers=integers),
                joint,
                LIP(1.0),
            )


def test_failing_outputs_are_those_that_break_the_budget(joint):
    assert failing_outputs(released(joint), joint, LIP(0.3)) == (0, 1)
    assert failing_outputs(released(joint), joint, LIP(0.5)) == ()
    assert failing_outputs(released(joint), joint, LDP(0.5)) == (0, 1)


@pytest.mark.parametrize("exponent", [1e-30, 0.1, 0.5, 0.7, 17.3, 699.9, 700.0])
def test_comparisons_with_exp_are_decided_however_close(exponent):
    low, high = exp_bounds(Fraction(exponent), 100)
    assert 0 < high / low - 1 < Fraction(1, 2**500)
    assert log_upper(low.numerator, low.denominator) <= exponent
    assert log_upper(high.numerator, high.denominator) > exponent


def test_comparisons_with_exp_at_the_ends():
    assert log_upper(1, 1) == 0.0
    assert log_upper(2**600 + 1, 2**600) > 0.0
    assert log_upper(2**600 + 1, 2**600) <= math.ldexp(1.0, -599)
    assert log_upper(0, 5) <= 0.3
    assert log_upper(5, 0) > 700.0


@pytest.mark.parametrize(
    "ratio",
    [
        Fraction(1),
        Fraction(2),
        Fraction(4, 3),
        1 + Fraction(1, 2**70),
        Fraction(2**300 + 1, 2**299),
        Fraction(10**300),
    ],
)
def test_log_upper_is_the_smallest_double(ratio):
    assert log_upper(ratio.numerator, ratio.denominator) == smallest_budget(ratio)


def test_log_upper_of_extremes():
    assert log_upper(1, 0) == math.inf
    assert log_upper(3, 5) == 0.0
    assert log_upper(2**1100 + 1, 2**1100) == 5e-324  # nothing smaller but zero
    huge = log_upper(2**2000, 1)  # no double, but its logarithm is one
    assert abs(huge - 2000 * math.log(2)) < 1e-12
    assert log_upper(2**2000, 1) <= huge
    assert log_upper(2**2000, 1) > math.nextafter(huge, 0.0)


def test_huge_counts_are_exact():
    # P(s) = P(x) = 1/2, so the lift at the first cell is 4 c / total: beside e^0.5 by one part in 2^230.
    half = 2**232
    low, high = (end * half / 2 for end in exp_bounds(Fraction(0.5), 60))
    for c, expected in ((math.floor(low), True), (math.ceil(high), False)):
        joint = Joint.from_counts([[c, half - c], [half - c, c]])
        assert (
            audit_on_table(released(joint), joint, MaxLift(0.5)).satisfied is expected
        )
        assert audit_on_table(
            released(joint), joint, MaxLift(math.nextafter(0.5, 1.0))
        ).satisfied


def test_the_published_table_is_audited_in_full(adult):
    verdict = audit_on_table(released(adult), adult, MaxLift(0.5))
    lift = np.array(adult.lift)
    s, x = np.unravel_index(lift.argmax(), lift.shape)
    assert verdict.achieved.eps_u == pytest.approx(math.log(lift.max()), rel=1e-14)
    assert (verdict.worst.sensitive, verdict.worst.output) == (
        adult.sensitive.names[s],
        adult.useful.names[x],
    )
