from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from mechdesign.core.errors import InputError
from mechdesign.core.integers import IntegerRows
from mechdesign.release.draws import CHUNK, Key, RowNumbers, Sampler
from mechdesign.tables.variable import Variable
from tests.profiles import scaled

D = 2**53

REJECTION = 1e-6
"""Level of the goodness-of-fit tests; the seeds are fixed, so a sound sampler passes for good."""


@dataclass(frozen=True)
class StandIn:
    useful: Variable
    outputs: tuple[str, ...]
    rows: tuple[tuple[int, ...], ...]
    denominator: int = D


class Listed:
    """Randomness that gives the listed integers in order and remembers what it was asked for."""

    def __init__(self, numbers):
        self.numbers = list(numbers)
        self.asked = []

    def below(self, bound, size):
        self.asked.append((bound, size))
        given, self.numbers = self.numbers[:size], self.numbers[size:]
        return np.array(given, dtype=np.int64)


def rows_from(cuts, denominator):
    """One row of integers between consecutive cut points of [0, denominator]."""
    edges = [0, *sorted(cuts), denominator]
    return tuple(b - a for a, b in pairwise(edges))


def by_hand(row, number):
    """The output whose interval of cumulated integers has the number."""
    upper = 0
    for y, width in enumerate(row):
        upper += width
        if number < upper:
            return y
    raise AssertionError("the number is not below the sum of the row")


@settings(max_examples=scaled(150))
@given(st.data())
def test_draws_compare_with_cumulated_integers_exactly(data):
    """At and around every threshold, for denominators small, odd, 2^53 and 2^62."""
    denominator = data.draw(st.sampled_from([1, 2, 7, 1000, 2**20 + 1, D, 2**62]))
    outputs = data.draw(st.integers(1, 6))
    cut = st.integers(0, denominator)
    rows = tuple(
        rows_from(
            data.draw(st.lists(cut, min_size=outputs - 1, max_size=outputs - 1)),
            denominator,
        )
        for _ in range(data.draw(st.integers(1, 5)))
    )
    codes = []
    numbers = []
    for x, row in enumerate(rows):
        thresholds = {0, denominator - 1} | {
            int(t) + d for t in np.cumsum(row, dtype=object) for d in (-1, 0, 1)
        }
        for number in sorted(t for t in thresholds if 0 <= t < denominator):
            codes.append(x)
            numbers.append(number)
    sampler = Sampler(rows, denominator)
    source = Listed(numbers)
    drawn = sampler.draw(np.array(codes), source)
    assert drawn.tolist() == [
        by_hand(rows[x], number) for x, number in zip(codes, numbers, strict=True)
    ]
    assert source.numbers == []


def test_the_share_of_integers_of_an_output_is_its_probability_exactly():
    rows = ((3, 0, 7, 6), (16, 0, 0, 0), (1, 1, 1, 13))
    sampler = Sampler(rows, 16)
    for x, row in enumerate(rows):
        drawn = sampler.outputs(np.full(16, x), np.arange(16))
        counts = np.bincount(drawn, minlength=4)
        assert [Fraction(int(c), 16) for c in counts] == [Fraction(v, 16) for v in row]


def test_the_smallest_probability_is_one_integer_of_two_to_the_53():
    sampler = Sampler(((1, D - 2, 1),), D)
    numbers = np.array([0, 1, D - 2, D - 1])
    assert sampler.outputs(np.zeros(4, dtype=np.int64), numbers).tolist() == [
        0,
        1,
        1,
        2,
    ]


def test_every_record_takes_one_integer_even_where_nothing_is_random():
    source = Listed([5, 0, D - 1])
    assert Sampler(((D,),), D).draw(np.zeros(3, dtype=np.int64), source).tolist() == [
        0,
        0,
        0,
    ]
    assert source.asked == [(D, 3)]


def test_many_inputs_and_outputs_agree_with_a_plain_search():
    rng = np.random.default_rng(3)
    weights = rng.random((700, 60)) * (rng.random((700, 60)) < 0.1)
    weights[:, 0] += 0.01
    table = np.floor(weights / weights.sum(axis=1, keepdims=True) * (D - 100)).astype(
        np.int64
    )
    table[:, 5] += D - table.sum(axis=1)
    codes = rng.integers(0, 700, 20_000)
    numbers = rng.integers(0, D, 20_000)
    drawn = Sampler(IntegerRows.of(table), D).draw(codes, Listed(numbers))
    cumulated = np.cumsum(table, axis=1)
    assert drawn.tolist() == [
        int(np.searchsorted(cumulated[x], u, side="right"))
        for x, u in zip(codes, numbers, strict=True)
    ]


def goodness(counts, row, denominator):
    """P-value of a chi-square test of the counts against the row's probabilities."""
    probabilities = np.array([v / denominator for v in row])
    assert not counts[probabilities == 0].any()
    kept = probabilities > 0
    expected = counts.sum() * probabilities[kept]
    statistic = ((counts[kept] - expected) ** 2 / expected).sum()
    return chi2.sf(statistic, kept.sum() - 1)


@pytest.mark.parametrize("denominator", [D, 12, 1000])
def test_frequencies_follow_the_rows(denominator):
    part = denominator // 12
    rows = (
        (part, 2 * part, 0, denominator - 3 * part),
        (0, denominator // 2, denominator - denominator // 2, 0),
        (0, 0, 0, denominator),
    )
    n = 400_000
    codes = np.random.default_rng(0).integers(0, 3, n)
    drawn = Sampler(rows, denominator).draw(
        codes, RowNumbers(0, 10**6).source(Key.insecure(11))
    )
    for x, row in enumerate(rows):
        counts = np.bincount(drawn[codes == x], minlength=4)
        if sum(v > 0 for v in row) == 1:
            assert counts[3] == counts.sum()
        else:
            assert goodness(counts, row, denominator) > REJECTION


def test_consecutive_draws_are_independent():
    drawn = Sampler(((D // 2, D // 2),), D).draw(
        np.zeros(200_000, dtype=np.int64), RowNumbers(0, 10**6).source(Key.insecure(5))
    )
    pairs = np.bincount(drawn[:-1:2] * 2 + drawn[1::2], minlength=4)
    assert goodness(pairs, (1, 1, 1, 1), 4) > REJECTION


def test_a_seeded_release_does_not_depend_on_the_size_of_the_batches():
    rows = ((D // 3, D - D // 3), (D // 5, D - D // 5))
    codes = np.random.default_rng(1).integers(0, 2, CHUNK + 1000)
    whole = Sampler(rows, D).draw(codes, RowNumbers(0, 10**6).source(Key.insecure(3)))
    stream = RowNumbers(0, 10**6).source(Key.insecure(3))
    sampler = Sampler(rows, D)
    parts = [sampler.draw(part, stream) for part in np.array_split(codes, 7)]
    assert np.concatenate(parts).tolist() == whole.tolist()


def test_rows_must_sum_to_the_denominator():
    with pytest.raises(InputError, match="row 1 sums to 9, not to the denominator 10"):
        Sampler(((10, 0), (4, 5)), 10)


TOTALS = [1, 2, 7, 1000, 2**20 + 1, D, 3 * 2**40, 2**62]


@settings(max_examples=scaled(100))
@given(st.data())
def test_rows_with_totals_of_their_own_are_compared_exactly(data):
    """At and around every threshold of every row, whatever the totals of the others are."""
    outputs = data.draw(st.integers(1, 5))
    totals = data.draw(st.lists(st.sampled_from(TOTALS), min_size=2, max_size=6))
    rows = []
    for total in totals:
        cut = st.integers(0, total)
        cuts = data.draw(st.lists(cut, min_size=outputs - 1, max_size=outputs - 1))
        rows.append(rows_from(cuts, total))
    sampler = Sampler(tuple(rows), tuple(totals))
    for x, (row, total) in enumerate(zip(rows, totals, strict=True)):
        thresholds = {0, total - 1} | {
            int(t) + d for t in np.cumsum(row, dtype=object) for d in (-1, 0, 1)
        }
        numbers = sorted(t for t in thresholds if 0 <= t < total)
        drawn = sampler.outputs(np.full(len(numbers), x), np.array(numbers))
        assert drawn.tolist() == [by_hand(row, number) for number in numbers]


def test_every_number_of_small_totals_is_an_output_exactly_as_often_as_its_integer():
    rows = ((3, 0, 7), (1, 1, 1), (0, 5, 0), (2, 9, 1))
    totals = (10, 3, 5, 12)
    sampler = Sampler(rows, totals)
    for x, (row, total) in enumerate(zip(rows, totals, strict=True)):
        drawn = sampler.outputs(np.full(total, x), np.arange(total))
        assert np.bincount(drawn, minlength=3).tolist() == list(row)


def test_records_take_numbers_below_the_totals_of_their_rows():
    class Each(Listed):
        def below_each(self, bounds):
            self.asked.append(bounds.tolist())
            return np.array(bounds) - 1

    source = Each([])
    sampler = Sampler(((1, 2), (4, 1)), (3, 5))
    drawn = sampler.draw(np.array([0, 1, 1, 0]), source)
    assert drawn.tolist() == [1, 1, 1, 1]
    assert source.asked == [[3, 5, 5, 3]]


def test_draws_with_totals_follow_the_law():
    rows = ((5, 2, 0, 1), (1, 1, 1, 0), (0, 2**40, 1, 2**41))
    totals = tuple(map(sum, rows))
    n = 30_000
    codes = np.resize(np.arange(3), n)
    source = RowNumbers(0, n).source(Key.insecure(5))
    drawn = Sampler(rows, totals).draw(codes, source)
    for x, (row, total) in enumerate(zip(rows, totals, strict=True)):
        own = np.bincount(drawn[codes == x], minlength=4)
        expected = np.array([w / total for w in row]) * own.sum()
        likely = expected > 1e-3
        assert (own[~likely] <= 1).all()
        statistic = ((own - expected)[likely] ** 2 / expected[likely]).sum()
        assert chi2.sf(statistic, max(1, likely.sum() - 1)) > REJECTION


@pytest.mark.parametrize("totals", [4, (4, 4), (3, 5)])
def test_rows_with_another_sum_are_refused(totals):
    with pytest.raises(InputError, match=r"row [01] sums to"):
        Sampler(((1, 2), (4, 0)), totals)
