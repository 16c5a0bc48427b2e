"""Extreme lifts as quotients of integers: the worked examples of the modules."""

from __future__ import annotations

import math
from fractions import Fraction

from mechdesign.auditing.columns import directions
from mechdesign.auditing.demands import Demand
from mechdesign.auditing.extremes import LargestQuotients, smallest_budgets
from mechdesign.auditing.population_extremes import Population
from mechdesign.core.binomial import SCALE
from mechdesign.tables.confidence import ConfidenceSet


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
