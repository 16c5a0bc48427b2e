"""Theorem 4: the blurring policy, what it claims, and what is true."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic import (
    JointRange,
    TestingProblem,
)
from mechdesign.nonstochastic.blurring import (
    BlurringPolicy,
    blurred_measure,
    preimage_epsilon,
)
from mechdesign.nonstochastic.indistinguishability import Boxes
from tests.oracles.nonstochastic import accuracy
from tests.oracles.spaces import from_function


def constant(value):
    return lambda others: np.full(others.shape[0], value)


def bmi(others):
    return 30 * (others[:, 0] / 100) ** 2


def test_theorem_4_claims_privacy_where_there_is_none():
    """docs/explanation/corrections.md, 'Hypothesis testing': X = [0, 1]^2, g = 1.05, 1/rho = 0.2:
    claimed 0.176, true 0.
    """
    policy = BlurringPolicy(boundary=constant(1.05), coordinate=0, rho=5)
    measured = blurred_measure(policy, [(0, 1), (0, 1)], monotone=[1])
    assert measured.claimed == pytest.approx((3 / 17, 3 / 17))
    assert measured.epsilon == (0, 0)


def test_with_lebesgue_measure_on_the_outputs_nothing_is_gained():
    """docs/explanation/corrections.md, 'Hypothesis testing': the strip [0.3, 0.7] x [0, 1] is
    reported as the surface {0.5} x [0, 1].
    """
    surface = Boxes.union([[("0.5", "0.5"), (0, 1)]])
    null = Boxes.union([[("0.7", 1), (0, 1)]]) | surface
    alternative = Boxes.union([[(0, "0.3"), (0, 1)]]) | surface
    assert TestingProblem(null, alternative).epsilon == 0
    policy = BlurringPolicy(boundary=constant(0.5), coordinate=0, rho=5)
    low, high = blurred_measure(policy, [(0, 1), (0, 1)], monotone=[1]).epsilon
    assert low < Fraction(2, 3) < high, "by pre-images the strip counts: 0.4 / 0.6"
    assert high - low < 1e-11


def test_example_3_encloses_the_integral():
    """BMI >= 30 on [0, 200] kg x [0, 250] cm with 1/rho = 10 kg: the strip's area in closed form."""
    policy = BlurringPolicy(boundary=bmi, coordinate=0, rho=0.1)
    measured = blurred_measure(
        policy, [(0, 200), (0, 250)], monotone=[1], cells=100_000
    )

    def integral(limit):  # of 0.003 t^2 up to where it reaches `limit`
        t = min(math.sqrt(limit / 0.003), 250.0)
        return t, 0.003 * t**3 / 3

    reached, under = integral(10)  # below it, the strip starts at 0 instead of g - 10
    area = 250 * 20 - (10 * reached - under)
    assert measured.ambiguous[0] < area < measured.ambiguous[1]
    assert measured.strip[0] < area < measured.strip[1]
    assert measured.epsilon[0] == pytest.approx(area / (50_000 - area), rel=1e-4)


def test_reports_move_at_most_the_radius_and_hide_the_side():
    policy = BlurringPolicy(boundary=bmi, coordinate=0, rho=0.25)
    people = np.array([[86.0, 170.0], [88.0, 170.0], [60.0, 170.0], [90.7, 170.0]])
    reports = policy.apply(people)
    limit = 30 * 1.7**2
    assert reports[:2, 0] == pytest.approx([limit, limit])
    assert reports[2:].tolist() == people[2:].tolist()
    assert policy.hypothesis(people).tolist() == [False, True, False, True]
    assert accuracy(people, reports) >= policy.rho


def test_pre_images_on_a_finite_grid():
    """x in {0..9}, p0 from 5 on; 4, 5 and 6 are all reported as 5: three ambiguous, seven telling."""
    policy = BlurringPolicy(boundary=constant(5.0), coordinate=0, rho=1)
    grid = np.arange(10.0)[:, None]
    joint = JointRange.from_columns(grid[:, 0], policy.apply(grid)[:, 0])
    assert preimage_epsilon(joint, lambda x: x >= 5) == Fraction(3, 7)
    all_merged = from_function(lambda _: 0, range(4))
    assert preimage_epsilon(all_merged, lambda x: x > 1) is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: BlurringPolicy(boundary=bmi, coordinate=0, rho=0),
            r"rho \(0\) must be positive",
        ),
        (
            lambda: BlurringPolicy(boundary=bmi, coordinate=0, rho=math.nan),
            r"rho \(nan\)",
        ),
        (
            lambda: BlurringPolicy(boundary=bmi, coordinate=-1, rho=1),
            r"coordinate \(-1\) must be 0 or more",
        ),
        (lambda: policy().apply([1.0, 2.0]), r"points must have shape \(N, n\)"),
        (lambda: policy().apply([[1.0, math.nan]]), "drop NaN and infinities"),
        (
            lambda: policy(lambda z: z).apply([[1.0, 2.0]]),
            r"must return shape \(1,\), not \(1, 1\)",
        ),
        (
            lambda: policy(lambda z: z[:, 0] + math.inf).apply([[1.0, 2.0]]),
            "must return finite numbers",
        ),
        (
            lambda: blurred_measure(policy(), [(0, 1), (0, 1)], monotone=[1, 1]),
            "for each of the 1 other",
        ),
        (
            lambda: blurred_measure(policy(), [(0, 1), (0, 1)], monotone=[0]),
            r"must hold \+1 \(rises\)",
        ),
        (
            lambda: blurred_measure(policy(), [(0, 1), (0, 1)], monotone=[-1]),
            "not monotone as said",
        ),
        (
            lambda: blurred_measure(policy(), [(0, 1), (1, 0)], monotone=[1]),
            "is reversed",
        ),
        (
            lambda: blurred_measure(policy(), [(0, 1), (1, 1)], monotone=[1]),
            "the domain has measure zero",
        ),
        (
            lambda: blurred_measure(policy(), [(0, 1), (0, 1)], monotone=[1], cells=0),
            r"cells \(0\) must be positive",
        ),
        (
            lambda: blurred_measure(policy(), [(0, 1)] * 9, monotone=[1] * 8),
            "at most 4,000,000 over all coordinates",
        ),
        (
            lambda: blurred_measure(
                BlurringPolicy(boundary=bmi, coordinate=2, rho=1),
                [(0, 1), (0, 1)],
                monotone=[1],
            ),
            r"coordinate \(2\) must be below the 2 of the domain",
        ),
        (
            lambda: preimage_epsilon(JointRange.from_pairs([(1, 1), (1, 2)]), bool),
            "some x has several outputs",
        ),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


def policy(boundary=bmi):
    return BlurringPolicy(boundary=boundary, coordinate=0, rho=1)
