"""Farokhi 2020: theorems on tests, privacy and indistinguishability, against brute force."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mechdesign.nonstochastic import (
    JointRange,
    TestingProblem,
)
from mechdesign.nonstochastic.blurring import (
    BlurringPolicy,
    blurred_measure,
    leakage_bound,
    preimage_epsilon,
)
from mechdesign.nonstochastic.hypothesis import finite_problem, size
from mechdesign.nonstochastic.indistinguishability import (
    Boxes,
    box_difference,
    linear_levels,
)
from tests.oracles.nonstochastic import (
    accuracy,
    best_accuracy,
    finite_difference,
    is_private,
    largest_difference,
    least_accuracy,
    shift_bound,
    total_variation,
)
from tests.oracles.spaces import UncertainSpace
from tests.profiles import scaled

CLOSE = 1e-12

outputs = st.sets(st.integers(0, 5), min_size=1).map(frozenset)
problems = st.builds(TestingProblem, outputs, outputs)
segments = st.lists(
    st.tuples(st.integers(0, 8), st.integers(1, 4)).map(lambda s: (s[0], s[0] + s[1])),
    min_size=1,
    max_size=3,
).map(lambda pairs: Boxes.union([[pair] for pair in pairs]))
ratios = st.fractions(min_value=Fraction(1, 8), max_value=8, max_denominator=8)


@settings(max_examples=scaled(60))
@given(
    st.sets(st.tuples(st.integers(0, 5), st.integers(0, 4)), min_size=1, max_size=14),
    st.lists(st.booleans(), min_size=6, max_size=6),
)
def test_theorems_1_and_2_over_all_tests(pairs, holds):
    """No test beats log |Y|p0 delta Y|p1|, and exactly the consistent ones attain it everywhere."""
    joint = JointRange.from_pairs(sorted(pairs))
    assume(len({holds[x] for x, _ in pairs}) == 2)
    problem = finite_problem(joint, holds.__getitem__)
    ys = sorted({y for _, y in pairs})
    possible = {y: {holds[x] for x, b in pairs if b == y} for y in ys}
    best = -math.inf
    for answers in product([True, False], repeat=len(ys)):
        accepted = frozenset(y for y, answer in zip(ys, answers, strict=True) if answer)
        right = {
            y for y, answer in zip(ys, answers, strict=True) if possible[y] == {answer}
        }
        assert problem.correct(accepted) == right
        reached = math.log2(len(right)) if right else -math.inf
        assert problem.performance(accepted) == reached
        consistent = all(
            answer in possible[y] for y, answer in zip(ys, answers, strict=True)
        )
        assert problem.is_consistent(accepted) == consistent
        assert reached <= problem.performance_bound
        if consistent:
            assert reached == problem.performance_bound
        best = max(best, reached)
    assert best == problem.performance_bound


@given(segments, segments, segments)
def test_theorem_2_on_the_line(null, alternative, accepted):
    problem = TestingProblem(null, alternative)
    assert problem.performance(accepted) <= problem.performance_bound
    assert problem.performance(null) == problem.performance_bound
    assert not size(problem.correct(accepted) - problem.telling)


@given(st.one_of(problems, st.builds(TestingProblem, segments, segments)))
def test_privacy_is_the_overlap_over_the_difference(problem):
    """|Y| >= (1 + eps) |telling| iff |overlap| >= eps |telling|; Priv = log(1 + eps) at the largest
    eps.
    """
    if problem.epsilon is None:
        assert problem.privacy == math.inf
        return
    log = math.log2 if problem.unit == "bits" else math.log
    assert problem.privacy == pytest.approx(log(1 + problem.epsilon), abs=CLOSE)
    if problem.epsilon > 0:
        assert is_private(problem, problem.epsilon)
        assert not is_private(problem, problem.epsilon * Fraction(1000001, 1000000))


@given(st.one_of(problems, st.builds(TestingProblem, segments, segments)))
def test_proposition_1_as_corrected(problem):
    """eps-privacy implies L0(Y;H) <= log((1 + eps)/eps)."""
    if problem.epsilon is None:
        assert problem.leakage == 0
    elif problem.epsilon > 0:
        assert problem.leakage <= leakage_bound(problem.epsilon, problem.unit) + CLOSE


@given(st.sets(st.integers(0, 9), min_size=1), st.integers(1, 9))
def test_proposition_1_as_corrected_is_attained(overlap, extra):
    """Whenever one hypothesis is possible everywhere."""
    problem = TestingProblem(
        frozenset(overlap) | {("only", k) for k in range(extra)}, frozenset(overlap)
    )
    assert problem.leakage == pytest.approx(
        leakage_bound(problem.epsilon, "bits"), abs=CLOSE
    )


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=6),
    st.floats(0, 1),
)
def test_theorem_3_for_every_prior(weights, prior):
    """Best accuracy >= (density / 2) |telling| for every prior; (1 + TV)/2 at equal ones."""
    p, q = (np.asarray(side, dtype=float) for side in zip(*weights, strict=True))
    assume(p.sum() > 0 and q.sum() > 0)
    p = p / p.sum()
    q = q / q.sum()
    problem = TestingProblem(
        frozenset(np.flatnonzero(p).tolist()), frozenset(np.flatnonzero(q).tolist())
    )
    density = float(min(p[p > 0].min(), q[q > 0].min())) * (1 - CLOSE)
    published = density / 2 * len(problem.telling)
    guesses = [sum((prior * a if said else (1 - prior) * b) for a, b, said in zip(p, q, test, strict=True))
               for test in product([True, False], repeat=len(p))]  # fmt: skip
    assert best_accuracy(p, q, prior) == pytest.approx(max(guesses), abs=CLOSE)
    assert best_accuracy(p, q, prior) >= published - CLOSE
    assert best_accuracy(p, q) == pytest.approx(
        (1 + total_variation(p, q)) / 2, abs=CLOSE
    )
    assert best_accuracy(p, q) >= least_accuracy(problem, density) - CLOSE
    assert least_accuracy(problem, density) >= published


@given(st.integers(1, 8), st.integers(-2, 10), st.integers(1, 4))
def test_theorem_4_as_corrected_on_finite_grids(n, limit, radius):
    """Blurring x in {0..n} at `limit`: an x tells nothing iff it is moved and both sides are."""
    policy = BlurringPolicy(
        boundary=lambda z: np.full(len(z), float(limit)), coordinate=0, rho=1 / radius
    )
    grid = np.arange(n + 1.0)[:, None]
    assume(0 < limit <= n)
    reports = policy.apply(grid)[:, 0]
    assert accuracy(grid[:, 0], reports) >= policy.rho * (1 - CLOSE)
    joint = JointRange.from_columns(grid[:, 0], reports)
    hidden = sum(abs(x - limit) <= radius for x in range(n + 1))
    expected = None if hidden == n + 1 else Fraction(hidden, n + 1 - hidden)
    assert preimage_epsilon(joint, lambda x: x >= limit) == expected


@settings(max_examples=scaled(60))
@given(st.floats(-1, 2), st.floats(-2, 2), st.floats(0.02, 0.8))
def test_theorem_4_as_corrected_encloses_the_area(start, slope, radius):
    """A slanted boundary on the unit square, against a midpoint sum of the ambiguous fibres."""
    policy = BlurringPolicy(
        boundary=lambda z: start + slope * z[:, 0], coordinate=0, rho=1 / radius
    )
    sign = 1 if slope >= 0 else -1
    measured = blurred_measure(policy, [(0, 1), (0, 1)], monotone=[sign], cells=400)
    n = 4000
    area = strip = 0.0
    for k in range(n):
        limit = start + slope * (k + 0.5) / n
        length = max(min(1, limit + radius) - max(0, limit - radius), 0)
        strip += length / n
        area += length / n if 0 < limit < 1 else 0
    slack = (
        4 / n
    )  # the midpoint sum itself may be off where a fibre starts or stops to count
    assert measured.ambiguous[0] - slack <= area <= measured.ambiguous[1] + slack
    assert measured.strip[0] - slack <= strip <= measured.strip[1] + slack
    assert measured.ambiguous[1] <= measured.strip[1] * (1 + CLOSE)
    assert measured.strip[1] - measured.strip[0] < 0.02


def touched(low, high, levels):
    """Cells [k, k + 1) of [0, levels] that the closed interval touches, the last cell closed."""
    return frozenset(
        min(k, levels - 1) for k in range(levels + 1) if k <= high and low < k + 1
    )


@settings(max_examples=scaled(80))
@given(
    st.lists(st.integers(1, 6).map(Fraction), min_size=1, max_size=4),
    st.integers(1, 10),
)
def test_box_difference_by_sliding_on_a_fine_grid(coefficients, levels):
    """All positions on a grid that contains every place where a cell is entered or left."""
    exact = box_difference(coefficients, (0, 1), levels)
    width = sum(coefficients)
    best = 0
    for influence in set(coefficients):
        shift = levels * influence / width
        positions = [Fraction(k, shift.denominator) for k in range(shift.numerator + 1)]
        cells = {touched(a, a + levels - shift, levels) for a in positions}
        best = max([best, *(len(a ^ b) for a in cells for b in cells)])
    assert exact == best
    assert exact <= shift_bound(levels, width / max(coefficients))


@given(st.lists(ratios, min_size=1, max_size=6), st.integers(0, 5))
def test_theorem_5_as_corrected_is_never_over_budget(coefficients, epsilon):
    """q < (w/d)(2^(eps-1) + 1), and at least as many levels as Theorem 5 grants."""
    choice = linear_levels(epsilon, coefficients, (0, 1))
    assert box_difference(coefficients, (0, 1), choice.levels) <= 2**epsilon
    assert shift_bound(choice.levels + 1, choice.ratio) > 2**epsilon
    published = max(1, math.floor(choice.ratio * (Fraction(2) ** (epsilon - 1) - 1)))
    assert choice.levels >= published
    if epsilon >= 1 and choice.levels > 1:
        assert choice.levels < choice.ratio * (2 ** (epsilon - 1) + 1)


@settings(max_examples=scaled(60))
@given(
    st.lists(st.tuples(st.integers(-6, 6), st.integers(2, 3)), min_size=1, max_size=3),
    st.integers(1, 9),
)
def test_finite_domains_by_enumeration(queries, levels):
    """finite_difference against the whole product, quantised in rational arithmetic."""
    coefficients, sizes = zip(*queries, strict=True)
    assume(any(coefficients))
    names = [f"x{k}" for k in range(len(sizes))]
    values = {name: range(size) for name, size in zip(names, sizes, strict=True)}

    def query(*xs):
        return sum(c * x for c, x in zip(coefficients, xs, strict=True))

    answers = [query(*xs) for xs in product(*values.values())]
    low = min(answers)
    width = max(answers) - min(answers)
    space = UncertainSpace.from_product(
        values,
        y=lambda *xs: min(
            math.floor(Fraction(levels * (query(*xs) - low), width)), levels - 1
        ),
    )
    expected = max(largest_difference(space.joint(name, "y")).size for name in names)
    individual, found = finite_difference(
        coefficients, [range(size) for size in sizes], levels
    )
    assert found.size == expected
    a, b = (space.joint(names[individual], "y").y_given(int(v)) for v in found.pair)
    assert len(a ^ b) == expected
