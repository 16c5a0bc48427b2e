"""Extreme lifts as quotients of integers: the worked examples of the modules."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from unittest import mock

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.auditing import lifts
from mechdesign.auditing.columns import directions
from mechdesign.auditing.lifts import (
    Demand,
    LargestQuotients,
    extreme_lifts,
    smallest_budgets,
)
from mechdesign.auditing.population_extremes import Number, Population, _shares
from mechdesign.core.balls import SCALE
from mechdesign.tables.confidence import ConfidenceSet
from tests.profiles import scaled


def demand(sums, names=("s", "t")):
    budgets = (0.5,) * len(sums)
    return Demand((), sums, names, budgets, budgets, 1.0)


def quotients(largest):
    return {extreme.side: Fraction(*extreme.over) for extreme in largest.extremes}


def test_the_quotients_of_one_output():
    largest = LargestQuotients()
    largest.add([3, 1], demand((5, 5)), 0)
    assert quotients(largest) == {"eps_u": Fraction(3, 2), "eps_l": 2, "eps_ldp": 3}
    achieved = smallest_budgets(largest.extremes)
    assert achieved.eps_u >= math.log(1.5)
    assert achieved.eps_l >= math.log(2.0)
    assert achieved.eps_ldp >= math.log(3.0)


def test_larger_quotients_replace_smaller_ones_and_equal_ones_do_not():
    largest = LargestQuotients()
    for y, masses in enumerate(([3, 1], [6, 2], [0, 0], [4, 1])):
        largest.add(masses, demand((5, 5)), y)
    assert {extreme.side: extreme.y for extreme in largest.extremes} == {
        "eps_u": 3,
        "eps_l": 3,
        "eps_ldp": 3,
    }
    largest.add([8, 2], demand((5, 5)), 4)
    assert {extreme.y for extreme in largest.extremes} == {3}


def test_a_symbol_without_records_has_no_lift():
    largest = LargestQuotients()
    largest.add([3, 1, 0], demand((5, 5, 0), ("s", "t", "u")), 0)
    assert quotients(largest) == {"eps_u": Fraction(3, 2), "eps_l": 2, "eps_ldp": 3}


def test_proportional_columns_are_one_direction():
    first = ((0, 1), (2, 4))
    second = ((0, 1), (3, 6))
    everything = [(((0, 1), (1, 1)), ())]
    assert directions(everything, [first, second]) == [(((0, 1), (1, 2)), (0,))]


def test_the_largest_probability_of_an_output_over_a_box():
    tenth = SCALE // 10
    chosen = ConfidenceSet(
        level=0.95,
        lower=((2 * tenth, 3 * tenth),),
        upper=((6 * tenth, 9 * tenth),),
        share_lower=(Fraction(1),),
        share_upper=(Fraction(1),),
    )
    (most,), (least,) = Population(chosen).output(((0, 1), (2, 1)))
    # In units of 1 / 2 of the column: 0.6 * 1 + 0.4 * 0.5, and 0.2 * 1 + 0.8 * 0.5.
    assert math.isclose(most / SCALE / 2, 0.8, rel_tol=1e-15)
    assert math.isclose(least / SCALE / 2, 0.6, rel_tol=1e-15)


@given(
    seed=st.integers(0, 10**6),
    size=st.sampled_from([4, 2**40, 2**62, 10**200]),
    factor=st.sampled_from([1, 7**400]),
    secrets=st.integers(1, 4),
)
@settings(max_examples=scaled(150), deadline=None)
def test_outputs_left_out_by_doubles_are_no_extremes(seed, size, factor, secrets):
    """Against all outputs compared in integers; small entries make ties, and lifts of 0."""
    rng = random.Random(seed)
    n = rng.randint(1, 5)
    counts = [[rng.choice((0, 1, 2, size)) for _ in range(n)] for _ in range(secrets)]
    counts[0][0] = 1
    columns = []
    for _ in range(rng.randint(1, 30)):
        inputs = sorted(rng.sample(range(n), rng.randint(0, n)))
        near = rng.choice((1, 2, size // 2))
        values = [factor * (near + rng.randint(0, 2)) for _ in inputs]
        columns.append((inputs, values))
    lower = tuple(rng.choice((0.5, 1.0)) for _ in range(secrets))
    sums = [sum(row) for row in counts]
    names = tuple("stuv"[:secrets])
    demands = [Demand(counts, sums, names, lower, lower, 1.0)]
    every = extreme_lifts(columns, demands)
    with mock.patch.object(lifts, "MANY_OUTPUTS", 0):
        assert extreme_lifts(columns, demands) == every


def test_few_outputs_of_many_are_compared_in_integers():
    rng = random.Random(3)
    columns = [((0, 1), (rng.randint(1, 999), 500)) for _ in range(4000)]
    compared = []
    add = lifts.LargestQuotients.add

    def counted(largest, masses, demand, y):
        compared.append(y)
        add(largest, masses, demand, y)

    budgets = (0.5, 0.5)
    table = Demand(((3, 1), (1, 2)), (4, 3), ("s", "t"), budgets, budgets, 1.0)
    with mock.patch.object(lifts.LargestQuotients, "add", counted):
        extreme_lifts(columns, [table])
    assert 0 < len(compared) < 40
    # Entries of thousands of bits, as of rows with denominators of their own, are no exception.
    few = list(compared)
    compared.clear()
    factor = 3**700
    long = [
        (inputs, [factor * value for value in values]) for inputs, values in columns
    ]
    with mock.patch.object(lifts.LargestQuotients, "add", counted):
        extreme_lifts(long, [table])
    assert compared == few


@given(st.lists(st.integers(0, 2**62) | st.integers(0, 2**80), min_size=1, max_size=5))
def test_integers_of_any_size_become_the_same_numbers(values):
    """By way of 64 bits where they fit: the entries of 5,000 outputs took 6 s else."""
    expected = np.array(values, dtype=Number) / Number(max(values) + 1)
    assert np.array_equal(_shares(values, max(values) + 1), expected)
