"""Quantisers: exact comparisons, cells, refusals; composition of several."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.core.balls import quotient_above
from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.fibres import most_outputs
from mechdesign.nonstochastic.noiseless import certify, composed_epsilon, epsilon_for
from mechdesign.nonstochastic.quantizers import (
    EvenThresholds,
    Quantizer,
    quantizer_between,
    uniform_quantizer,
)
from mechdesign.nonstochastic.queries import (
    interval,
    linear_query,
    mean_query,
    sum_query,
)
from tests.oracles.nonstochastic import certify_together, most_on_a_line

thirds = uniform_quantizer(0, 1, 3)


def test_cells_are_closed_below_and_the_last_one_on_both_sides():
    quantizer = Quantizer(Fraction(0), Fraction(2), (Fraction(1),))
    assert quantizer.cells([0, 0.999, 1, 2]).tolist() == [0, 0, 1, 1]
    assert quantizer.release([0, 1]).tolist() == [0.5, 1.5]
    assert quantizer.widest_cell == 1
    assert quantizer.levels == 2


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_doubles_are_compared_without_rounding(answers):
    """1/3 is no double; the doubles on both sides of it are told apart."""
    answers = [
        *answers,
        1 / 3,
        math.nextafter(1 / 3, 1),
        2 / 3,
        math.nextafter(2 / 3, 1),
    ]
    want = [bisect_right(thirds.thresholds, Fraction(a)) for a in answers]
    assert thirds.cells(answers).tolist() == want == [thirds.cell(a) for a in answers]
    assert thirds.cell(1 / 3) == 0  # the double is below one third


@given(st.fractions())
def test_the_double_at_or_above_a_threshold(value):
    found = quotient_above(*value.as_integer_ratio())
    assert Fraction(found) >= value > Fraction(math.nextafter(found, -math.inf))


def test_thresholds_beyond_the_doubles():
    assert quotient_above(10**400, 1) == math.inf
    assert quotient_above(-(10**400), 1) == -np.finfo(float).max


def test_outside_values():
    with pytest.raises(
        InputError, match="2 of the values lie outside the range 0 to 1;"
    ) as refusal:
        thirds.cells([0.5, 1.5, -1])
    assert "1.5" not in str(refusal.value), "it is somebody's value"
    with pytest.raises(InputError, match="1 of the values lies outside"):
        thirds.cell(2)
    with pytest.raises(InputError, match="contain NaN"):
        thirds.cells([math.nan])


@pytest.mark.parametrize(
    "answers", [["0.5"], [b"1"], [True], [0.5, "1"], [[0.1], [0.2, 0.3]], [None, "x"]]
)
def test_only_numbers_have_cells(answers):
    with pytest.raises(InputError, match="the answers must be numbers"):
        thirds.cells(answers)
    assert thirds.cells([Fraction(1, 2), 1]).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Quantizer(Fraction(1), Fraction(0)), "reversed"),
        (
            lambda: Quantizer(
                Fraction(0), Fraction(1), (Fraction(1, 2), Fraction(1, 2))
            ),
            "increase strictly",
        ),
        (
            lambda: Quantizer(Fraction(0), Fraction(1), (Fraction(0),)),
            "must lie above 0",
        ),
        (lambda: Quantizer(Fraction(0), Fraction(1), (Fraction(2),)), "not above 1"),
        (lambda: Quantizer(Fraction(0), Fraction(1), (math.nan,)), "threshold 1"),
        (lambda: uniform_quantizer(0, 1, 0), "levels"),
        (lambda: uniform_quantizer(1, 1, 2), "without width"),
        (lambda: uniform_quantizer(0, math.nan, 2), "upper end"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_thresholds_in_gaps():
    quantizer = quantizer_between([Fraction(0), Fraction(1), Fraction(4)], [1])
    assert quantizer.thresholds == (Fraction(5, 2),)
    assert quantizer.cells([0, 1, 4]).tolist() == [0, 0, 1]


@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=3),
    st.integers(1, 4),
    st.integers(0, 10**6),
)
def test_theorem_6_budgets_add(shape, labels, seed):
    """Releasing two mechanisms has at most the product of their outputs on a fibre."""
    rng = np.random.default_rng(seed)
    one, two = rng.integers(0, labels, size=shape), rng.integers(0, labels, size=shape)
    counts = [most_on_a_line(t) for t in (one, two)]
    both = most_on_a_line(one * labels + two)
    assert both <= counts[0] * counts[1]
    assert (
        both
        <= counts[0] * counts[1]
        <= 2 ** composed_epsilon([(k, 1) for k in counts]) * (1 + 1e-12)
    )


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 5))
def test_quantisers_of_one_query_cost_less_together(first, second, people):
    """The common refinement: at most the sum less one, and never above the product."""
    query = mean_query(people, interval(0, 1))
    pair = [uniform_quantizer(0, 1, first), uniform_quantizer(0, 1, second)]
    alone = [certify(query, q).outputs for q in pair]
    together = certify_together(query, pair)
    assert (
        max(alone)
        <= together.outputs
        <= min(alone[0] * alone[1], alone[0] + alone[1] - 1)
    )


def test_bits_of_several_releases():
    """log2 of the product of all outputs, rounded upwards."""
    assert composed_epsilon([(2, 2)]) == 2.0
    assert composed_epsilon([(2, 2), (3, 1)]) == epsilon_for(12)
    assert composed_epsilon([(256, 365)]) == 8 * 365
    with pytest.raises(InputError, match="outputs"):
        composed_epsilon([(0, 1)])
    with pytest.raises(InputError, match="times"):
        composed_epsilon([(2, 0)])


def test_together_refusals():
    query = sum_query(2, interval(0, 1))
    with pytest.raises(InputError, match="at least one"):
        certify_together(query, [])
    with pytest.raises(InputError, match="same range"):
        certify_together(
            query, [uniform_quantizer(0, 2, 2), uniform_quantizer(0, 3, 2)]
        )


steps = st.fractions(Fraction(1, 20), 3, max_denominator=20)


@given(
    lo=st.fractions(-3, 3, max_denominator=6),
    first=steps,
    step=steps,
    number=st.integers(3, 30),
    room=st.fractions(0, 4, max_denominator=12),
    people=st.integers(1, 5),
)
def test_even_thresholds_are_counted_as_any_others(
    lo, first, step, number, room, people
):
    """A rule has the length, the members, the cells, the count and the witness of the same
    thresholds in a list.
    """
    cuts = EvenThresholds(lo + first, step, number)
    quantizer = Quantizer(lo, cuts[-1] + room, cuts)
    assert quantizer == Quantizer(lo, cuts[-1] + room, tuple(cuts))
    assert hash(quantizer) == hash(Quantizer(lo, cuts[-1] + room, tuple(cuts)))
    assert quantizer.widest_cell == max(
        b - a for a, b in itertools.pairwise(quantizer.edges)
    )
    assert [quantizer.edge(k) for k in range(number + 2)] == list(quantizer.edges)
    for value in (*quantizer.edges, *quantizer.midpoints):
        assert quantizer.cell(value) == bisect_right(tuple(cuts), value)
    query = mean_query(people, interval(lo, quantizer.hi))
    assert most_outputs(query, cuts) == most_outputs(query, tuple(cuts))
    uneven = linear_query([1, Fraction(-2, 3)], interval(lo, quantizer.hi))
    assert most_outputs(uneven, cuts) == most_outputs(uneven, tuple(cuts))


def test_a_rule_that_does_not_increase_is_refused():
    with pytest.raises(InputError, match="increase strictly"):
        Quantizer(
            Fraction(0), Fraction(9), EvenThresholds(Fraction(5), Fraction(-1), 4)
        )
    with pytest.raises(InputError, match="must lie above 0 and not above 9"):
        Quantizer(Fraction(0), Fraction(9), EvenThresholds(Fraction(5), Fraction(2), 4))
    assert EvenThresholds(Fraction(1), Fraction(1), 4)[1:3] == (2, 3)
    assert EvenThresholds(Fraction(1), Fraction(1), 4)[-1] == 4
