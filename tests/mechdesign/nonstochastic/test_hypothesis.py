"""Hypothesis testing: Example 2, the counterexamples of
docs/explanation/corrections.md, 'Hypothesis testing', and how bad input is named."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic import (
    JointRange,
    TestingProblem,
)
from mechdesign.nonstochastic.blurring import leakage_bound
from mechdesign.nonstochastic.hypothesis import finite_problem, reporting_policy
from mechdesign.nonstochastic.indistinguishability import Boxes
from tests.oracles.nonstochastic import (
    accuracy,
    best_accuracy,
    is_private,
    least_accuracy,
    total_variation,
)
from tests.oracles.spaces import from_function

HEIGHTS = TestingProblem(Boxes.interval(90, 160), Boxes.interval(140, 260))


def test_example_2_heights_with_a_measurement_error():
    """Farokhi 2020, Example 2: X1 in [100, 250] cm, error within 10 (then 20) cm, short up to 150
    cm.
    """
    midpoint = Boxes.interval(90, 150)
    assert HEIGHTS.unit == "nats"
    assert HEIGHTS.ambiguous == Boxes.interval(140, 160)
    assert HEIGHTS.is_consistent(midpoint)
    assert (
        HEIGHTS.performance(midpoint)
        == HEIGHTS.performance_bound
        == pytest.approx(math.log(150))
    )
    assert HEIGHTS.performance(midpoint) - math.log(170) == pytest.approx(
        -0.1251, abs=1e-4
    )
    doubled = TestingProblem(Boxes.interval(80, 170), Boxes.interval(130, 270))
    assert doubled.performance_bound - math.log(190) == pytest.approx(-0.2364, abs=1e-4)
    assert HEIGHTS.privacy == pytest.approx(0.1251, abs=1e-4)
    assert HEIGHTS.epsilon == Fraction(20, 150)


def test_a_test_that_says_the_impossible_is_not_consistent_and_loses():
    everything = HEIGHTS.outputs
    assert not HEIGHTS.is_consistent(everything)
    assert HEIGHTS.performance(everything) == pytest.approx(math.log(50))
    assert HEIGHTS.is_consistent(HEIGHTS.null)


def test_theorem_2_holds_with_equality():
    """docs/explanation/corrections.md, 'Hypothesis testing': the '<' of Theorem 2 must be '<=',
    because consistent tests attain the bound.
    """
    discrete = TestingProblem(frozenset("ab"), frozenset("bc"))
    for problem in (HEIGHTS, discrete):
        assert problem.performance(problem.null) == problem.performance_bound


def test_proposition_1_fails_and_its_correction_is_tight():
    """docs/explanation/corrections.md, 'Hypothesis testing': Y = [0, 1], [[Y|p1]] = [0.5, 1]:
    epsilon = 1, L0 = 0.693 > 0.459.
    """
    problem = TestingProblem(Boxes.interval(0, 1), Boxes.interval("0.5", 1))
    assert problem.epsilon == 1
    assert is_private(problem, 1)
    assert not is_private(problem, "1.0000001")
    assert problem.leakage == pytest.approx(math.log(2))
    assert problem.leakage > -math.log(1 - math.exp(-1)) + 0.2, "the published bound"
    assert problem.leakage == leakage_bound(1) == pytest.approx(math.log(2))


def test_nothing_told_is_private_without_limit_and_everything_told_not_at_all():
    blind = TestingProblem(frozenset("ab"), frozenset("ab"))
    assert blind.epsilon is None
    assert blind.privacy == math.inf
    assert is_private(blind, 10**9)
    assert blind.performance_bound == -math.inf
    open_book = TestingProblem(frozenset("ab"), frozenset("c"))
    assert open_book.privacy == 0
    assert not is_private(open_book, 1e-9)


def test_a_finite_policy_and_a_hypothesis_about_x():
    joint = from_function(lambda x: min(x, 3), range(6))
    problem = finite_problem(joint, lambda x: x >= 4)
    assert (problem.null, problem.alternative) == ({3}, {0, 1, 2, 3})
    assert problem.epsilon == Fraction(1, 3)
    assert finite_problem(joint, {x: x >= 4 for x in range(6)}) == problem


def test_theorem_3_says_less_than_the_truth():
    """docs/explanation/corrections.md, 'Hypothesis testing': at equal priors the best accuracy is
    (1 + TV)/2, not TV.
    """
    p, q = [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]
    assert total_variation(p, q) == 0.5
    assert best_accuracy(p, q) == 0.75
    problem = TestingProblem(frozenset({0, 1}), frozenset({1, 2}))
    assert least_accuracy(problem, 0.5) == 0.75
    assert best_accuracy(p, q, 1.0) == 1


def test_accuracy_is_one_over_the_largest_move():
    assert accuracy([[0, 0], [1, 1]], [[3, 4], [1, 1]]) == pytest.approx(0.2)
    assert accuracy([1.0, 2.0], [1.0, 2.5]) == 2
    assert accuracy([1.0], [1.0]) == math.inf


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: TestingProblem(frozenset(), frozenset("a")),
            "compatible with the null hypothesis: its range is empty",
        ),
        (
            lambda: TestingProblem(Boxes.interval(0, 1), Boxes.interval(2, 2)),
            "compatible with the alternative hypothesis",
        ),
        (
            lambda: TestingProblem(frozenset("a"), Boxes.interval(0, 1)),
            "both be sets of outputs or both be regions",
        ),
        (lambda: is_private(HEIGHTS, 0), r"epsilon \(0\) must be positive"),
        (lambda: is_private(HEIGHTS, math.nan), r"epsilon \('nan'\) must be a number"),
        (lambda: leakage_bound(-1), r"epsilon \(-1\) must be positive"),
        (lambda: leakage_bound(1, "metres"), "must be 'nats' or 'bits'"),
        (
            lambda: finite_problem(JointRange.from_pairs([(1, 2)]), {}),
            "the hypothesis says nothing about '1'",
        ),
        (
            lambda: finite_problem(JointRange.from_pairs([(1, 2)]), {1: True}),
            "alternative hypothesis",
        ),
        (
            lambda: accuracy([[1, 2]], [[1, 2], [3, 4]]),
            r"one shape, not \(1, 2\) and \(2, 2\)",
        ),
        (lambda: accuracy([math.nan], [1.0]), "finite numbers; drop NaN"),
        (lambda: total_variation([0.5, 0.5], [1.0]), "the same outputs, not 2 and 1"),
        (lambda: total_variation([0.5, 0.4], [0.5, 0.5]), "null sums to 0.9, not to 1"),
        (
            lambda: total_variation([1.5, -0.5], [0.5, 0.5]),
            "null must hold probabilities",
        ),
        (
            lambda: best_accuracy([1.0], [1.0], 1.5),
            r"prior_null \(1.5\) must be between 0 and 1",
        ),
        (lambda: best_accuracy([1.0], [0.5, 0.5]), "the same outputs, not 1 and 2"),
        (
            lambda: least_accuracy(HEIGHTS, 0.01),
            r"density \(0.01\) must be positive and at most 0.00833333",
        ),
        (lambda: least_accuracy(HEIGHTS, math.nan), "must be positive"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize("wrong", [(90, 160), [1, 2], "ab", 5])
def test_what_is_neither_a_set_nor_a_region_is_refused(wrong):
    with pytest.raises(
        InputError, match=r"null must be a set of outputs \(a frozenset\)"
    ):
        TestingProblem(wrong, frozenset({1}))
    with pytest.raises(InputError, match=r"alternative must be a set of outputs"):
        TestingProblem(frozenset({1}), wrong)


def test_a_policy_of_plain_lists():
    """1 and 3 hold, 2 does not: one report for all three is the only private policy at 1."""
    reports, optimal = reporting_policy([1, 2, 3], [True, False, True], 1.0)
    assert optimal
    opposing, supporting = {int(reports[1])}, {int(reports[0]), int(reports[2])}
    assert len(opposing & supporting) >= len(opposing ^ supporting)
    as_pairs = [[False, True], [True, False], [False, True]]
    again, _ = reporting_policy([[1.0], [2.0], [3.0]], as_pairs, Fraction(1))
    assert again.tolist() == reports.tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("abc", [True], 1.0), r"points must be numbers"),
        (([], [], 1.0), r"points must be finite numbers"),
        (([1, math.nan], [True, False], 1.0), r"points must be finite numbers"),
        (
            ([1, 2], [True], 1.0),
            r"holds must be truth values, one or two for each of the 2",
        ),
        (([1, 2], [1, 0], 1.0), r"holds must be truth values"),
        (([1, 2], [True, False], -1.0), r"epsilon must be 0 or more"),
        (([1, 2], [True, False], "x"), r"epsilon must be 0 or more"),
    ],
)
def test_arguments_that_are_no_policy(arguments, message):
    with pytest.raises(InputError, match=message):
        reporting_policy(*arguments)
