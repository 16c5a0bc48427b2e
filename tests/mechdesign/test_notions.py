"""Notions on averages over S: what they take, what they refuse, and how they are recorded."""

from __future__ import annotations

import math

import pytest

import mechdesign as md
from mechdesign.auditing.measures import measure
from mechdesign.core.errors import InputError
from mechdesign.core.limits import LiftLimits, MeanLimits, PowerMean
from mechdesign.core.wording import percent_of
from mechdesign.notions import (
    ALIP,
    NOTIONS,
    AlphaLift,
    Chi2Lift,
    L1Lift,
    from_record,
    to_record,
)

MEANS = [L1Lift, Chi2Lift, AlphaLift]


@pytest.mark.parametrize("kind", MEANS)
def test_a_split_epsilon_gives_the_budgets_of_alip(kind):
    alip = ALIP.from_epsilon(2.0, 0.65)
    notion = kind.from_epsilon(2.0, 0.65)
    assert (notion.eps_l, notion.eps_u) == (alip.eps_l, alip.eps_u)
    assert kind.from_epsilon(2.0) == kind(1.0, 1.0)


@pytest.mark.parametrize("kind", MEANS)
def test_limits_carry_kind_and_budgets(kind):
    limits = kind(math.inf, 0.5).limits
    assert isinstance(limits, MeanLimits)
    assert (limits.mean.name, limits.lower, limits.upper) == (kind.name, math.inf, 0.5)


def test_alpha_of_infinity_bounds_the_lifts_themselves():
    assert (
        AlphaLift(1.0, 2.0, math.inf).limits
        == LiftLimits(lower=1.0, upper=2.0)
        == ALIP(1.0, 2.0).limits
    )
    assert AlphaLift(1.0, 2.0, 3.0).limits == MeanLimits(
        PowerMean(3.0), lower=1.0, upper=2.0
    )


@pytest.mark.parametrize(
    "notion",
    [
        L1Lift(0.5, 1.0),
        Chi2Lift(math.inf, 1.0),
        AlphaLift(0.5, 1.0, 2.5),
        AlphaLift(0.5, 1.0, math.inf),
    ],
)
def test_records_come_back_with_infinities_as_texts(notion):
    record = {
        key: "inf" if value == math.inf else value
        for key, value in to_record(notion).items()
    }
    assert record["name"] in NOTIONS
    assert from_record(record) == notion


@pytest.mark.parametrize("kind", MEANS)
@pytest.mark.parametrize(
    ("eps_l", "eps_u", "message"),
    [
        (math.inf, math.inf, "both inf"),
        (0.0, 1.0, r"eps_l \(0\) must be positive"),
        (1.0, -1.0, r"eps_u \(-1\) must be positive"),
        (1.0, math.nan, r"eps_u \(nan\) must be positive"),
        (701.0, 1.0, r"eps_l \(701\) must be at most 700"),
    ],
)
def test_bad_budgets_are_refused(kind, eps_l, eps_u, message):
    with pytest.raises(InputError, match=message):
        kind(eps_l, eps_u)


@pytest.mark.parametrize("alpha", [1.0, 0.5, -2.0, math.nan, -math.inf])
def test_alpha_must_exceed_one(alpha):
    with pytest.raises(InputError, match=r"alpha \(.*\) must be above 1"):
        AlphaLift(1.0, 1.0, alpha)


@pytest.mark.parametrize("alpha", ["two", None, True])
def test_alpha_must_be_a_number(alpha):
    with pytest.raises(InputError, match=r"alpha \(.*\) must be"):
        AlphaLift(1.0, 1.0, alpha)


def test_a_record_without_its_order_is_refused():
    with pytest.raises(
        InputError, match="notion alpha needs exactly eps_l and eps_u and alpha"
    ):
        from_record({"name": "alpha", "eps_l": 1.0, "eps_u": 1.0})


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (md.LDP, {"epsilon": 1.0}),
        (md.L1Lift, {"eps_l": 1.0, "eps_u": 1.0}),
        (md.Chi2Lift, {"eps_l": 1.0, "eps_u": 1.0}),
    ],
)
def test_a_notion_without_lifts_takes_no_budgets_of_symbols_that_nobody_would_check(
    kind, arguments
) -> None:
    with pytest.raises(md.InputError, match="budgets of single symbols bound lifts"):
        kind(**arguments, symbol_budgets=(("HIV", 0.01, 0.01),))


def test_budgets_of_symbols_are_checked_however_they_are_given() -> None:
    with pytest.raises(md.InputError, match="both budgets of 'HIV' are inf"):
        md.ALIP(0.1, 0.1, symbol_budgets=(("HIV", math.inf, math.inf),))
    with pytest.raises(
        md.InputError, match=r"a budget of 'HIV' \(-1\) must be positive"
    ):
        md.LIP(0.1, symbol_budgets=(("HIV", 1.0, -1.0),))


def test_the_words_of_an_order_round_it_down() -> None:
    """Power means grow with the order: what is said of a smaller one is true, of a larger one it is not."""
    words = md.AlphaLift(math.inf, 0.5, alpha=2.9999999).limits.condition("job")
    assert "l^2.9999 is at most exp(2.9999 * 0.5)" in words


def test_the_order_is_never_said_to_be_larger_than_it_is():
    """Means of lifts grow with the order, so an order rounded up would be a stronger promise."""
    assert (
        AlphaLift(1.0, 2.0, 1.99999999).text == "alpha (order 1.9999, eps_l 1, eps_u 2)"
    )


@pytest.mark.parametrize("kind", MEANS)
def test_the_largest_budgets_overflow_nothing(kind):
    """Squares of exp(700) are no doubles; a lift of zero keeps to no finite budget all the same."""
    joint = md.Joint.from_counts([[1, 3, 0], [2, 6, 5]])
    made = md.design(joint, kind(700.0, 700.0), mechanism="subset-merging")
    assert made.nmi > 0.0
    assert md.audit(made.channel, joint, kind(700.0, 700.0)).satisfied


def test_no_level_and_no_order_is_said_to_be_more_than_it_is():
    """0.9999999 is no certainty, and orders that look alike in six digits keep their own measures."""
    assert [percent_of(level) for level in (0.5, 0.57, 0.95, 0.999, 0.9999999)] == [
        "50 %", "57 %", "95 %", "99.9 %", "99.999 %"
    ]  # fmt: skip
    joint = md.Joint.from_counts([[3, 1], [1, 4]])
    channel = md.design(joint, ALIP(0.5, 0.5)).channel
    found = measure(channel, joint, (2.0, 2.0000001, 2.5, math.inf)).leakage
    assert {
        "alpha_lift[2]",
        "alpha_lift[2.0000001]",
        "alpha_lift[2.5]",
        "alpha_lift[inf]",
    } <= {*found}
    assert found["alpha_lift[2]"] <= found["alpha_lift[2.0000001]"]
