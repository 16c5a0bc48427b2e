"""The polytope of posteriors against the exact set, in rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from mechdesign.mechanisms.posteriors import posteriors
from mechdesign.notions import ALIP, LDP, LIP, MaxLift, MinLift
from mechdesign.tables.joint import Joint
from tests.cases.designs import notions_of, uniform_table
from tests.oracles.float_designs import random_table
from tests.oracles.lifts import exceeds_exp, exp_bounds
from tests.profiles import slow

BUDGETS = (1e-9, 1e-6, 0.01, 0.5, 2.0, 20.0)
MARGINS = (1e-12, 1e-9, 1e-7)
PRECISION = 40
"""Terms of the exponential series: far more digits than a double has."""


def exact_lift(joint: Joint) -> list[list[Fraction]]:
    rows, columns, total = joint.sensitive_counts, joint.useful_counts, joint.total
    return [
        [Fraction(c * total, r * k) for c, k in zip(row, columns, strict=True)]
        for row, r in zip(joint.counts, rows, strict=True)
    ]


def exact_image(matrix, v) -> list[Fraction]:
    return [
        sum((a * x for a, x in zip(row, v, strict=True)), Fraction(0)) for row in matrix
    ]


def in_exact_set(lifts: list[Fraction], limits) -> bool:
    """Whether the lifts of one output keep the limits."""
    low, high = min(lifts), max(lifts)
    if math.isfinite(limits.upper) and exceeds_exp(high, limits.upper):
        return False
    if math.isfinite(limits.lower) and (low == 0 or exceeds_exp(1 / low, limits.lower)):
        return False
    return not (
        math.isfinite(limits.ratio)
        and (low == 0 or exceeds_exp(high / low, limits.ratio))
    )


def in_polytope(polytope, v) -> bool:
    """Membership in the set that the doubles of the polytope describe, in rationals; one auxiliary at most."""
    image = exact_image(
        [[Fraction(a) for a in row] for row in polytope.rows.tolist()], v
    )
    least, most = Fraction(0), None  # of the auxiliary variable
    column = (
        np.zeros(polytope.m) if polytope.auxiliary is None else polytope.auxiliary[:, 0]
    )
    bounds = zip(
        image,
        column.tolist(),
        polytope.lower.tolist(),
        polytope.upper.tolist(),
        strict=True,
    )
    for w, c, low, high in bounds:
        if c == 0.0:
            if (math.isfinite(low) and w < Fraction(low)) or (
                math.isfinite(high) and w > Fraction(high)
            ):
                return False
            continue
        assert c < 0.0
        if math.isfinite(low):  # w + c t >= low
            reach = (w - Fraction(low)) / -Fraction(c)
            most = reach if most is None else min(most, reach)
        if math.isfinite(high):  # w + c t <= high
            least = max(least, (w - Fraction(high)) / -Fraction(c))
    return most is None or least <= most


def edge_points(joint: Joint, limits, rng: np.random.Generator, count: int):
    """Rational posteriors on both sides of the boundary of the exact set, closer to it than any margin."""
    matrix, n = exact_lift(joint), len(joint.useful)
    prior = [Fraction(k, joint.total) for k in joint.useful_counts]
    for _ in range(count):
        share = [
            Fraction(int(k)) for k in rng.integers(0, 1000, n) * (rng.random(n) < 0.5)
        ]
        if not sum(share):
            continue
        outer = [x / sum(share) for x in share]
        if in_exact_set(exact_image(matrix, outer), limits):
            yield outer
            continue
        inside, outside = Fraction(0), Fraction(1)  # share of `outer` against the prior
        for _ in range(70):
            middle = (inside + outside) / 2
            v = [
                middle * a + (1 - middle) * b for a, b in zip(outer, prior, strict=True)
            ]
            if in_exact_set(exact_image(matrix, v), limits):
                inside = middle
            else:
                outside = middle
        yield [inside * a + (1 - inside) * b for a, b in zip(outer, prior, strict=True)]
        yield [
            outside * a + (1 - outside) * b for a, b in zip(outer, prior, strict=True)
        ]


@pytest.mark.parametrize(
    "epsilon", [1e-9, slow(1e-6), slow(0.01), 0.5, slow(2.0), 20.0]
)
def test_the_relaxation_contains_the_exact_set_and_a_margin_stays_inside_it(epsilon):
    """Points within 2^-70 of the boundary, judged in rationals by the exact set and by the doubles.

    The outside ones are so near that the relaxation, 2^-49 wider, must have them too.
    """
    rng = np.random.default_rng(3)
    inside = 0
    for notion in notions_of(epsilon):
        joint = random_table(rng, most_s=4, most_x=5)
        relaxation = posteriors(joint, notion)
        shrunk = [posteriors(joint, notion, margin=margin) for margin in MARGINS]
        matrix = exact_lift(joint)
        for v in edge_points(joint, notion.limits, rng, 4):
            assert in_polytope(relaxation, v)
            if in_exact_set(exact_image(matrix, v), notion.limits):
                inside += 1
            else:
                assert not any(in_polytope(p, v) for p in shrunk)
    assert inside >= 9


@pytest.mark.parametrize("epsilon", BUDGETS)
@pytest.mark.parametrize("seed", range(4))
def test_no_rounding_of_rows_and_bounds_can_cut_a_member_off(epsilon, seed):
    """For every v at once: A v is at most (1 + 2^-53) times, at least (1 - 2^-53) times the exact one."""
    joint = random_table(np.random.default_rng(seed), most_s=6, most_x=12)
    exact = exact_lift(joint)
    ulp = Fraction(1, 2**53)
    for row, doubles in zip(exact, joint.lift.tolist(), strict=True):
        for a, b in zip(row, doubles, strict=True):
            assert abs(Fraction(b) - a) <= ulp * a
    low, high = exp_bounds(Fraction(epsilon), PRECISION)
    outer = posteriors(joint, LIP(epsilon))
    assert Fraction(outer.upper.min()) >= high * (1 + ulp)
    assert Fraction(outer.lower.max()) <= 1 / high * (1 - ulp)
    for margin in MARGINS:
        inner = posteriors(joint, LIP(epsilon), margin=margin)
        assert Fraction(inner.upper.max()) <= low * (1 - ulp)
        assert Fraction(inner.lower.min()) >= 1 / low * (1 + ulp)
    pairs = posteriors(joint, LDP(epsilon))
    assert -Fraction(pairs.auxiliary.min()) >= high * (1 + ulp) / (1 - ulp)


@pytest.mark.parametrize("epsilon", [1e-15, *BUDGETS, 700.0])
@pytest.mark.parametrize("margin", [0.0, *MARGINS])
def test_the_prior_is_always_inside(epsilon, margin):
    """All its lifts are 1: no margin may be as large as the budget."""
    for seed in range(6):
        joint = random_table(np.random.default_rng(100 + seed), most_s=6, most_x=12)
        for notion in notions_of(epsilon):
            polytope = posteriors(joint, notion, margin=margin)
            assert polytope.residual(joint.p_x)[0] <= 1e-14
            if epsilon >= 1e-9 and not math.isfinite(notion.limits.ratio):
                assert (polytope.lower < 1.0).all()
                assert (polytope.upper > 1.0).all()
            elif epsilon >= 1e-9:
                assert -polytope.auxiliary.min() > 1.0


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.5, 2.0])
def test_ldp_with_one_auxiliary_variable_is_the_set_of_all_pairs(epsilon):
    joint = uniform_table(6, 4, seed=5)
    polytope = posteriors(joint, LDP(epsilon))
    assert polytope.rows.shape == (8, 6)
    assert polytope.auxiliary.shape == (8, 1)
    factor = -polytope.auxiliary.min()
    rng = np.random.default_rng(1)
    mixed = rng.dirichlet(np.full(6, 0.3), 2000)
    share = rng.random((2000, 1)) * min(1.0, 4.0 * epsilon)
    points = share * mixed + (1.0 - share) * joint.p_x
    w = points @ joint.lift.T
    pairs = np.max(
        [w[:, s] - factor * w[:, t] for s, t in product(range(4), repeat=2) if s != t],
        axis=0,
    )
    clear = np.abs(pairs) > 1e-13
    assert np.array_equal(
        polytope.contains(points, 1e-15)[clear], (pairs <= 0.0)[clear]
    )
    assert 5 <= (pairs <= 0.0).sum() <= 1995
    assert polytope.explicit.auxiliary is None


def test_infinite_sides_are_no_rows_at_all():
    joint = uniform_table(4, 3)
    assert (posteriors(joint, MaxLift(1.0)).lower == -np.inf).all()
    assert (posteriors(joint, MinLift(1.0)).upper == np.inf).all()
    one, other = posteriors(joint, ALIP(math.inf, 1.0)), posteriors(joint, MaxLift(1.0))
    assert np.array_equal(one.upper, other.upper)
    assert np.array_equal(one.lower, other.lower)
    assert posteriors(joint, LIP(1.0)).rows.shape == (3, 4)


def test_the_largest_budget_overflows_nothing():
    joint = uniform_table(4, 3)
    for notion in notions_of(700.0):
        for margin in (0.0, 1e-12):
            polytope = posteriors(joint, notion, margin=margin)
            assert np.isfinite(polytope.rows).all()
            assert not np.isnan([polytope.lower, polytope.upper]).any()
