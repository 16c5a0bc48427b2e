"""Clopper-Pearson ends against exact binomial sums, and what is refused."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign import InputError, Joint
from mechdesign.core.binomial import SCALE, lower_end
from mechdesign.notions import ALIP, LDP
from mechdesign.tables.confidence import ConfidenceSet, check_level, confidence_set

COUNTS = [[12, 0, 3], [5, 7, 8]]


def _tail(k: int, count: int, total: int) -> Fraction:
    p = Fraction(k, SCALE)
    return sum(
        (math.comb(total, i) * p**i * (1 - p) ** (total - i) for i in range(count, total + 1)), Fraction(0)
    )


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60), st.data())
def test_an_end_is_the_last_multiple_with_a_small_enough_tail(total: int, data: st.DataObject) -> None:
    """P(Bin(N, k/2^60) >= c) <= alpha < P(Bin(N, (k+1)/2^60) >= c), in rationals."""
    count = data.draw(st.integers(1, total))
    alpha = data.draw(
        st.sampled_from([Fraction(1, 5), Fraction(1, 40), Fraction(1, 3000), Fraction(1, 10**9)])
    )
    k = lower_end(count, total, alpha)
    assert _tail(k, count, total) <= alpha < _tail(k + 1, count, total)


@pytest.mark.parametrize(
    ("count", "total"), [(1, 10**9), (5 * 10**8, 10**9), (10**9, 10**9), (27580, 31580), (3, 10**6)]
)
def test_an_end_for_many_records_agrees_with_arb(count: int, total: int) -> None:
    """The library's own sum of the tail against the incomplete beta function of another."""
    from flint import arb, ctx

    alpha = Fraction(1, 3000)
    k = lower_end(count, total, alpha)
    with ctx.workprec(400):
        within, beyond = (
            (arb(end) / SCALE).beta_lower(count, total - count + 1, regularized=True) for end in (k, k + 1)
        )
        assert within <= arb(1) / 3000
        assert beyond > arb(1) / 3000


def test_the_level_is_split_over_all_ends() -> None:
    chosen = confidence_set(Joint.from_counts(COUNTS), 0.9)
    alpha = Fraction(1, 10) / (2 * (6 + 2))
    assert chosen.lower[0] == tuple(lower_end(c, 15, alpha) for c in COUNTS[0])
    assert chosen.upper[1] == tuple(SCALE - lower_end(20 - c, 20, alpha) for c in COUNTS[1])
    assert chosen.share_lower[0] == Fraction(lower_end(15, 35, alpha), SCALE)
    assert chosen.lower[0][1] == 0
    assert chosen.upper[0][1] > 0
    assert not chosen.shares_are_known


def test_shares_that_are_known_or_not_needed_cost_nothing() -> None:
    joint = Joint.from_counts(COUNTS)
    alpha = Fraction(1, 10) / (2 * 6)
    free = confidence_set(joint, 0.9, estimate_shares=False)
    known = confidence_set(joint, 0.9, shares={"s0": "0.25", "s1": Decimal("0.75")})
    assert free.lower == known.lower == tuple(tuple(lower_end(c, sum(r), alpha) for c in r) for r in COUNTS)
    assert free.shares_are_free
    assert known.shares_are_known
    assert known.share_lower == (Fraction(1, 4), Fraction(3, 4))


def test_more_records_and_lower_levels_give_smaller_sets() -> None:
    def widths(chosen: ConfidenceSet) -> int:
        return sum(map(sum, chosen.upper)) - sum(map(sum, chosen.lower))

    few = Joint.from_counts(COUNTS)
    many = Joint.from_counts([[100 * c for c in row] for row in COUNTS])
    assert widths(confidence_set(many)) < widths(confidence_set(few, 0.6)) < widths(confidence_set(few))


@pytest.mark.parametrize("level", [0.4, 1.0, 1.5, -1, float("nan"), True, "0.95", None])
def test_levels_out_of_range_are_refused(level: object) -> None:
    with pytest.raises(InputError, match=r"confidence level .* must be a number from 0.5"):
        check_level(level)


def test_probabilities_and_weights_are_refused() -> None:
    joint = Joint.from_probabilities([[0.25, 0.25], [0.25, 0.25]])
    with pytest.raises(InputError, match="confidence needs counts of records"):
        confidence_set(joint)


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({"s0": 0.5, "s1": 0.4}, "shares sum to 0.9 and not to 1"),
        ({"s0": 0.5, "s9": 0.5}, "shares name 's9', which the table has no records of"),
        ({"s0": 1}, "shares do not name 's1'"),
        ({"s0": 0, "s1": 1}, r"share of 's0' \('0'\) must be above 0"),
        ({"s0": "x", "s1": 1}, "share of 's0' is not usable"),
        ({"s0": 0.5, ("s0",): 0.5, "s1": 0.5}, "is given twice"),
    ],
)
def test_bad_shares_are_refused(shares: dict[object, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        confidence_set(Joint.from_counts(COUNTS), shares=shares)


def test_shares_matter_to_lifts_only() -> None:
    from mechdesign.tables.confidence import needs_shares

    assert needs_shares(ALIP(1.0, 1.0))
    assert not needs_shares(LDP(1.0))


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ((0, SCALE), (0, SCALE - 1), "no place in"),
        ((0, 0), (SCALE // 3, SCALE // 3), "no distribution at all"),
    ],
)
def test_impossible_sets_are_refused(lower: tuple[int, int], upper: tuple[int, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ConfidenceSet(0.9, (lower,), (upper,), (Fraction(1),), (Fraction(1),))
