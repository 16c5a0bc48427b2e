"""Clopper-Pearson ends against exact binomial sums, and what is refused."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from statistics import NormalDist

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign import InputError, Joint
from mechdesign.core import balls
from mechdesign.core.balls import SCALE, lower_end
from mechdesign.notions import ALIP, LDP
from mechdesign.tables.confidence import ConfidenceSet, check_level, confidence_set
from tests.profiles import scaled

COUNTS = [[12, 0, 3], [5, 7, 8]]


def _tail(k: int, count: int, total: int) -> Fraction:
    p = Fraction(k, SCALE)
    return sum(
        (
            math.comb(total, i) * p**i * (1 - p) ** (total - i)
            for i in range(count, total + 1)
        ),
        Fraction(0),
    )


@settings(max_examples=scaled(30), deadline=None)
@given(st.integers(1, 60), st.data())
def test_an_end_is_the_last_multiple_with_a_small_enough_tail(
    total: int, data: st.DataObject
) -> None:
    """P(Bin(N, k/2^60) >= c) <= alpha < P(Bin(N, (k+1)/2^60) >= c), in rationals."""
    count = data.draw(st.integers(1, total))
    alpha = data.draw(
        st.sampled_from(
            [Fraction(1, 5), Fraction(1, 40), Fraction(1, 3000), Fraction(1, 10**9)]
        )
    )
    k = lower_end(count, total, alpha)
    assert _tail(k, count, total) <= alpha < _tail(k + 1, count, total)


LARGE = [(1, 10**9), (5 * 10**8, 10**9), (10**9, 10**9), (27580, 31580), (3, 10**6)]
LARGE += [(10**10 // 7, 10**10), (10**12 // 3, 10**12)]


def assert_end_agrees_with_arb(
    count: int, total: int, alpha: Fraction, slope: Fraction
) -> None:
    from flint import arb, ctx

    k = lower_end(count, total, alpha, slope)
    with ctx.workprec(400):
        for end, within in ((k, True), (k + 1, False)):
            level = alpha + slope * Fraction(end, SCALE)
            tail = (arb(end) / SCALE).beta_lower(
                count, total - count + 1, regularized=True
            )
            bound = arb(level.numerator) / level.denominator
            assert tail <= bound if within else tail > bound


@pytest.mark.parametrize(("count", "total"), LARGE)
def test_an_end_for_many_records_agrees_with_arb(count: int, total: int) -> None:
    """The library's own sum of the tail against the incomplete beta function of another."""
    assert_end_agrees_with_arb(count, total, Fraction(1, 3000), Fraction(0))


@settings(max_examples=scaled(20), deadline=None)
@given(
    st.integers(10**5, 10**7),
    st.floats(0.05, 0.95),
    st.sampled_from([Fraction(1, 5), Fraction(1, 3000), Fraction(1, 10**12)]),
    st.sampled_from([Fraction(0), Fraction(1, 100), Fraction(-1, 10**13)]),
)
def test_an_integrated_tail_has_the_ends_of_a_sum(
    total: int, share: float, alpha: Fraction, slope: Fraction
) -> None:
    """Beyond `SUMMED` a tail is integrated; the summed ones are the oracle."""
    count = int(total * share)
    ends: list[int] = []
    for summed in (0, 2**80):
        balls.lower_end.cache_clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(balls, "SUMMED", summed)
            ends.append(lower_end(count, total, alpha, slope))
    integrated, added = ends
    assert integrated == added


@pytest.mark.parametrize("records", [10**10, 10**12])
def test_an_end_for_any_number_of_records_takes_no_time(records: int) -> None:
    """Summed term by term it took .4 s of 10^10 records, and 6 s of 10^12."""
    counts = tuple(records // divisor for divisor in range(2, 72))
    before = time.process_time()
    level = Fraction(1, 4000), Fraction(1, 100)
    (found,) = balls.ends_of_rows([balls.RowOfCounts(counts, records, *level)])
    assert time.process_time() - before < 5.0
    for count, end in zip(counts, found, strict=True):
        # The normal approximation: errors of a share of so many records are small.
        share = count / records
        level = 1 / 4000 + share / 100
        z = -NormalDist().inv_cdf(level)
        deviation = math.sqrt(share * (1 - share) / records)
        assert end / SCALE == pytest.approx(share - z * deviation, abs=1e-3 * deviation)


@settings(max_examples=scaled(60), deadline=None)
@given(
    st.integers(61, 10**7), st.floats(0.0, 1.0), st.integers(-100, 100), st.booleans()
)
def test_an_end_of_one_newton_step_agrees_with_arb(
    total: int, rare: float, part: int, many: bool
) -> None:
    """P(Bin(N, k/2^60) >= c) <= a + b k/2^60 and the reverse at k + 1, from one record to all of
    them.
    """
    count = max(1, int(total**rare))
    count, alpha = (total + 1 - count if many else count), Fraction(1, 10**5)
    low, high = sorted((alpha, alpha + abs(part) * alpha))
    assert_end_agrees_with_arb(
        count, total, low if part > 0 else high, (high - low) * (1 if part > 0 else -1)
    )


@settings(max_examples=scaled(30), deadline=None)
@given(st.integers(1, 40), st.booleans(), st.data())
def test_an_end_at_a_level_that_depends_on_p(
    total: int, falling: bool, data: st.DataObject
) -> None:
    """P(Bin(N, p) >= c) <= a + b p up to the end, and at no later point of a grid."""
    count = data.draw(st.integers(1, total))
    whole = data.draw(
        st.sampled_from([Fraction(1, 8), Fraction(1, 100), Fraction(1, 10**6)])
    )
    part = whole / data.draw(st.sampled_from([2, 10, 1000]))
    alpha, slope = (whole, part - whole) if falling else (part, whole - part)
    k = lower_end(count, total, alpha, slope)

    def within(end: int) -> bool:
        return _tail(end, count, total) <= alpha + slope * Fraction(end, SCALE)

    assert all(within(k * i // 16) for i in range(17))
    assert not any(within(k + 1 + (SCALE - k - 1) * i // 16) for i in range(17))


@pytest.mark.parametrize("falling", [False, True])
def test_ends_of_many_counts_are_those_of_each(monkeypatch, falling: bool) -> None:
    """And their quantiles are found together."""
    alpha, slope = Fraction(1, 4000), Fraction(1, 100)
    if falling:
        alpha, slope = alpha + slope, -slope
    rows = [
        balls.RowOfCounts((0, 1, 2, *range(3, 300, 3), 300), 300, alpha, slope),
        balls.RowOfCounts((0, 1, 5, 7), 7, alpha / 2, slope / 3),
        balls.RowOfCounts((2, 400, 9999), 10_000, alpha, slope),
    ]
    each = [tuple(lower_end(count, *row[1:]) for count in row.counts) for row in rows]
    balls.lower_end.cache_clear()
    single = []
    quantile = balls._quantile
    monkeypatch.setattr(
        balls, "_quantile", lambda *given: single.append(given[0]) or quantile(*given)
    )
    assert balls.ends_of_rows(rows) == each
    assert not single
    # In batches of a row and more.
    monkeypatch.setattr(balls, "AT_ONCE", 104)
    assert balls.ends_of_rows(rows) == each


def _row_ends(counts: Sequence[int], n: int, spent: Fraction) -> list[tuple[int, int]]:
    alpha, slope = spent / (4 * n), spent / 4
    total = sum(counts)
    return [
        (
            lower_end(c, total, alpha, slope),
            SCALE - lower_end(total - c, total, alpha + slope, -slope),
        )
        for c in counts
    ]


def test_the_level_is_split_over_all_ends() -> None:
    """Shares take one part in |X| + 1; rows half equally, half as 1 / N_s; cells half equally, half
    as p.
    """
    chosen = confidence_set(Joint.from_counts(COUNTS), 0.9)
    spent = Fraction(1, 10) * Fraction(3, 4)
    for s, (row, other) in enumerate(((15, 20), (20, 15))):
        part = (Fraction(1, 2) + Fraction(other, row + other)) / 2
        ends = _row_ends(COUNTS[s], 3, part * spent)
        assert list(zip(chosen.lower[s], chosen.upper[s], strict=True)) == ends
    (low, high), _ = _row_ends([15, 20], 2, Fraction(1, 40))
    assert (chosen.share_lower[0], chosen.share_upper[0]) == (
        Fraction(low, SCALE),
        Fraction(high, SCALE),
    )
    assert chosen.lower[0][1] == 0
    assert chosen.upper[0][1] > 0
    assert not chosen.shares_are_known


@pytest.mark.parametrize("level", [0.5, 0.9])
@pytest.mark.parametrize("totals", [(4, 7), (2, 6)])
def test_rows_hold_the_truth_as_often_as_they_say(
    level: float, totals: tuple[int, int]
) -> None:
    """For every truth of a grid the rows hold it with probability `level` or more, summed over all
    samples exactly.
    """
    n = 3

    def samples(total: int) -> list[tuple[int, ...]]:
        return [
            (a, b, total - a - b)
            for a in range(total + 1)
            for b in range(total + 1 - a)
        ]

    # The set of each row depends on the other row through its total alone, so rows may be looked at one by one.
    rows: list[dict[tuple[int, ...], tuple[tuple[int, ...], tuple[int, ...]]]] = []
    for s, total in enumerate(totals):
        found = {}
        for counts in samples(total):
            other = (1, totals[1 - s] - 1, 0)
            seen = [x for x in range(n) if counts[x] or other[x]]
            table = [[row[x] for x in seen] for row in (counts, other)]
            chosen = confidence_set(
                Joint.from_counts(table),
                level,
                estimate_shares=False,
                unseen=n - len(seen),
            )
            lower, upper = (
                [0] * n,
                [chosen.rest[0] // (n - len(seen)) if chosen.rest else 0] * n,
            )
            for i, x in enumerate(seen):
                lower[x], upper[x] = chosen.lower[0][i], chosen.upper[0][i]
            found[counts] = tuple(lower), tuple(upper)
        rows.append(found)
    grid = [Fraction(i, 20) for i in (0, 1, 3, 7)]
    for truth in ((p, q, 1 - p - q) for p in grid for q in grid):
        missed = Fraction(0)
        for found, total in zip(rows, totals, strict=True):
            for counts, (lower, upper) in found.items():
                if not all(
                    a <= p * SCALE <= b
                    for a, p, b in zip(lower, truth, upper, strict=True)
                ):
                    ways = math.factorial(total) // math.prod(
                        map(math.factorial, counts)
                    )
                    missed += ways * math.prod(
                        p**c for p, c in zip(truth, counts, strict=True)
                    )
        assert missed <= 1 - Fraction(repr(level))


def test_shares_that_are_known_or_not_needed_cost_nothing() -> None:
    joint = Joint.from_counts(COUNTS)
    free = confidence_set(joint, 0.9, estimate_shares=False)
    known = confidence_set(joint, 0.9, shares={"s0": "0.25", "s1": Decimal("0.75")})
    ends = _row_ends(
        COUNTS[0], 3, Fraction(1, 10) * (Fraction(1, 2) + Fraction(20, 35)) / 2
    )
    assert free.lower == known.lower
    assert list(zip(free.lower[0], free.upper[0], strict=True)) == ends
    assert free.stated["shares"] == "free"
    assert known.shares_are_known
    assert known.share_lower == (Fraction(1, 4), Fraction(3, 4))


def test_more_records_and_lower_levels_give_smaller_sets() -> None:
    def widths(chosen: ConfidenceSet) -> int:
        return sum(map(sum, chosen.upper)) - sum(map(sum, chosen.lower))

    few = Joint.from_counts(COUNTS)
    many = Joint.from_counts([[100 * c for c in row] for row in COUNTS])
    assert (
        widths(confidence_set(many))
        < widths(confidence_set(few, 0.6))
        < widths(confidence_set(few))
    )


@pytest.mark.parametrize("level", [0.4, 1.0, 1.5, -1, float("nan"), True, "0.95", None])
def test_levels_out_of_range_are_refused(level: object) -> None:
    with pytest.raises(
        InputError, match=r"confidence level .* must be a number from 0.5"
    ):
        check_level(level)


def test_probabilities_and_weights_are_refused() -> None:
    joint = Joint.from_probabilities([[0.25, 0.25], [0.25, 0.25]])
    with pytest.raises(InputError, match="confidence needs counts of records"):
        confidence_set(joint)


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({"s0": 0.5, "s1": 0.4}, "shares sum to 0.9 and not to 1"),
        ({"s0": 0.5, "s9": 0.5}, "names 's9', which the table has no records of"),
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
    assert ALIP(1.0, 1.0).limits.need_shares
    assert not LDP(1.0).limits.need_shares


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ((0, SCALE), (0, SCALE - 1), "no place in"),
        ((0, 0), (SCALE // 3, SCALE // 3), "no distribution at all"),
    ],
)
def test_impossible_sets_are_refused(
    lower: tuple[int, int], upper: tuple[int, int], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        ConfidenceSet(0.9, (lower,), (upper,), (Fraction(1),), (Fraction(1),))
