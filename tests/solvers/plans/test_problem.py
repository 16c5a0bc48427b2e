"""Problems of plans: what is refused, and in which words; costs by blocks; cuts into parts."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.errors import InvalidOption
from solvers.plans import (
    CellCosts,
    InvalidPlanProblem,
    MatrixCosts,
    NoPlan,
    PlanLimits,
    PlanPenalty,
    PlanProblem,
    solve_plan,
)
from solvers.plans.dividing import Cutter, Divider
from solvers.plans.program import Group
from solvers.plans.ranges import Ranges
from tests.profiles import scaled
from tests.solvers.plans.problems import Kind, random_problem


def two(**changes):
    """Two symbols of half the mass, each with a secret of its own."""
    masses = np.array([0.5, 0.5])
    given = {
        "masses": masses,
        "targets": masses,
        "costs": MatrixCosts(1.0 - np.eye(2)),
        "limits": PlanLimits(
            values=np.array([[0.0, 2.0], [2.0, 0.0]]),
            lower=np.full(2, 0.5),
            upper=np.full(2, 1.5),
            groups=np.zeros(2, np.int64),
        ),
    }
    return PlanProblem(**(given | changes))


def limits(**changes):
    return replace(two().limits, **changes)


def test_worked_example():
    """At least a quarter of what goes to each symbol comes from either one."""
    plan = solve_plan(two())
    assert plan.cost == pytest.approx(0.25, abs=1e-6)
    assert plan.lower_bound == pytest.approx(0.25, abs=1e-6)


def test_ratio_of_two_is_one_range():
    """With means a and 2 - a, a ratio of 3 says 1/2 <= a <= 3/2: the example again."""
    alone = limits(lower=np.zeros(2), upper=np.full(2, np.inf), ratio=3.0)
    members = np.arange(2)
    ranges = Ranges.of(alone, members, np.array([0.5, 0.5]), 1e-7)
    assert len(ranges.values) == 1
    assert not len(ranges.compared)
    assert solve_plan(two(limits=alone)).cost == pytest.approx(0.25, abs=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MatrixCosts(np.zeros((2, 3))), "square matrix, not one of shape"),
        (lambda: MatrixCosts([[0.0, -1.0], [1.0, 0.0]]), "finite and not negative"),
        (lambda: CellCosts([[0.5]], [1.0]), "integers"),
        (
            lambda: two(penalty=PlanPenalty.none(3)),
            "2 masses need forms of 2 symbols, not of 3",
        ),
        (
            lambda: PlanPenalty(
                forms=np.zeros((2, 2)), groups=np.zeros(1, np.int64), price=0.0
            ),
            "2 finite forms of 2 symbols need 2 groups",
        ),
        (
            lambda: replace(PlanPenalty.none(2), price=-1.0),
            r"the price of a penalty \(-1.0\) must not be negative",
        ),
        (lambda: CellCosts([[0, 1]], [1.0]), "2 columns need 2 finite weights"),
        (lambda: CellCosts([[0]], [-1.0]), "must not be negative"),
        (lambda: CellCosts([[0]], [1.0], [None, None]), "1 columns need 1 entries"),
        (lambda: CellCosts([[3]], [1.0], [[0.0]]), "codes without a position"),
        (lambda: CellCosts([[0]], [1.0], [[math.nan]]), "position that is not finite"),
        (lambda: limits(values=np.zeros(2)), r"array \(k, n\) of values"),
        (lambda: limits(values=-np.ones((2, 2))), "values of limits must not be neg"),
        (lambda: limits(lower=np.zeros(3)), "2 rows of values need 2 limits"),
        (lambda: limits(lower=np.full(2, 2.0)), "0 <= lower <= upper"),
        (lambda: limits(ratio=0.5), r"ratio \(0.5\) must be at least 1"),
        (lambda: two(masses=np.zeros(0)), "at least one number"),
        (lambda: two(masses=np.array([0.0, 1.0])), "positive and finite"),
        (lambda: two(masses=np.array([0.5, 0.6])), "masses sum to 1.1, not to 1"),
        (lambda: two(targets=np.array([0.5, 0.6])), "targets sum to 1.1, not to 1"),
        (lambda: two(targets=np.array([-0.5, 1.5])), "targets must not be negative"),
        (lambda: two(targets=np.ones(1)), "targets need shape"),
        (lambda: two(costs=MatrixCosts(np.zeros((3, 3)))), "not of 3 and 2"),
        (lambda: two(stay=np.array([0.0, 2.0])), "must be between 0 and 1"),
        (
            lambda: two(forbidden=(np.array([2]), np.array([0]))),
            r"must lie within 0\.\.1",
        ),
        (
            lambda: two(
                forbidden=(np.array([1]), np.array([1])), stay=np.array([0.0, 0.1])
            ),
            "must stay is forbidden",
        ),
    ],
)
def test_bad_problems_are_refused(make, message):
    with pytest.raises(InvalidPlanProblem, match=message):
        make()


def test_bad_options_are_refused():
    with pytest.raises(InvalidOption, match=r"time_limit \(0\) must be positive"):
        solve_plan(two(), time_limit=0)
    with pytest.raises(InvalidOption, match="margin"):
        solve_plan(two(), margin=1.0)


def test_no_plan_says_which_limit():
    """The mean over all masses is 1; a limit that excludes it excludes every plan."""
    with pytest.raises(NoPlan, match=r"keeps limit 1: the mean of its values .* is 1,"):
        solve_plan(two(limits=limits(lower=np.array([0.5, 1.2]))))
    uneven = limits(values=np.array([[0.0, 2.0], [6.0, 0.0]]), upper=np.full(2, 9.0))
    with pytest.raises(
        NoPlan, match=r"keeps the ratio 2: .* one mean of a group is 3 "
    ):
        solve_plan(two(limits=replace(uneven, ratio=2.0)))
    apart = np.array([0, 7])
    alone = PlanLimits(
        values=np.array([[0.1, 1.9]]),
        lower=np.array([0.5]),
        upper=np.array([np.inf]),
        groups=np.zeros(1, np.int64),
    )
    with pytest.raises(NoPlan, match=r"keeps limit 0.*\(stratum 0\)"):
        solve_plan(two(limits=alone, strata=apart))
    free = PlanLimits.none(2)
    with pytest.raises(NoPlan, match=r"masses of 0\.5 cannot become 0\.3"):
        solve_plan(two(limits=free, strata=apart, targets=np.array([0.3, 0.7])))
    with pytest.raises(NoPlan, match="more must stay at a symbol than its target"):
        solve_plan(
            two(limits=free, stay=np.array([0.9, 0.0]), targets=np.array([0.3, 0.7]))
        )
    with pytest.raises(NoPlan, match="on the pairs that are allowed"):
        solve_plan(two(forbidden=(np.array([0]), np.array([1]))))


def test_values_of_zero_bind_nothing():
    """What does not occur in a stratum has no limits there."""
    absent = limits(values=np.array([[1.0, 1.0], [0.0, 0.0]]))
    assert solve_plan(two(limits=absent)).cost == 0.0


@given(seed=st.integers(0, 10**6), n=st.integers(1, 9), c=st.integers(1, 4))
@settings(max_examples=scaled(40), deadline=None)
def test_costs_of_cells(seed, n, c):
    """d = weights of the cells that differ, or distances as shares of the span."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, size=(n, c))
    weights = rng.dirichlet(np.ones(c))
    places = [rng.uniform(size=3) if rng.random() < 0.4 else None for _ in range(c)]
    costs = CellCosts(codes, weights, places)
    expected = np.zeros((n, n))
    for x in range(n):
        for y in range(n):
            for j in range(c):
                a, b = codes[x, j], codes[y, j]
                if places[j] is None:
                    expected[x, y] += weights[j] * (a != b)
                else:
                    span = max(places[j]) - min(places[j])
                    expected[x, y] += (
                        weights[j] * abs(places[j][a] - places[j][b]) / span
                    )
    rows, columns = rng.permutation(n), rng.integers(0, n, size=3)
    np.testing.assert_allclose(
        costs.block(rows, columns), expected[np.ix_(rows, columns)], atol=1e-14
    )
    x, y = rng.integers(0, n, size=(2, 20))
    np.testing.assert_allclose(costs.pairs(x, y), expected[x, y], atol=1e-14)
    assert expected.max() <= costs.largest + 1e-12


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 60),
    cells=st.booleans(),
    notion=st.sampled_from(["lip", "ldp", "none"]),
    law=st.sampled_from(["kept", "other", "free"]),
    stay=st.booleans(),
)
@settings(max_examples=scaled(60), deadline=None)
def test_parts_keep_the_limits(seed, n, cells, notion, law, stay):
    """Parts divide all masses, outputs belong to one part each, and every part could be drawn
    blindly.
    """
    kind = Kind(notion=notion, cells=cells, law=law, stay=stay)
    problem = random_problem(seed, n, kind)
    members = np.arange(n)
    ranges = Ranges.of(problem.limits, members, problem.masses, 1e-7)
    is_free = problem.targets is None
    targets = problem.masses if is_free else problem.targets
    outputs = np.flatnonzero(targets > 0.0)
    group = Group(members, outputs, problem.masses, targets[outputs], is_free, ranges)
    rng = np.random.default_rng(seed)
    leaves = Divider(problem, group, rng).parts(group, 4)
    masses = np.zeros(n)
    for leaf in leaves:
        masses[leaf.inputs] += leaf.masses
        assert leaf.masses.sum() == pytest.approx(leaf.targets.sum(), rel=1e-12)
        means = leaf.ranges.limited @ leaf.masses / leaf.masses.sum()
        assert leaf.ranges.usage(means[:, None])[0] <= 1.0
    np.testing.assert_allclose(masses, problem.masses, rtol=1e-9)
    found = np.concatenate([leaf.outputs for leaf in leaves])
    np.testing.assert_array_equal(np.sort(found), outputs)
    halves = Divider(problem, group, rng).halves(group)
    if halves is not None and not stay:
        # A vertex divides one input for each row of the program.
        divided = np.intersect1d(halves[0].inputs, halves[1].inputs)
        assert len(divided) <= len(ranges.limited) + 1
    parts = Cutter(problem.costs, rng).parts(np.arange(n), 4)
    large = [part for part in parts if len(part) > 4]
    for leaf in leaves:
        gets_smaller = len(leaf.inputs) > 2 * len(ranges.limited)
        if len(leaf.inputs) * len(leaf.outputs) > 16 and gets_smaller and not stay:
            large.append(leaf.outputs)
    for part in large:
        # There is nothing to choose between equal outputs.
        assert not problem.costs.block(part, part).any()
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(n))


@pytest.mark.parametrize("seed", range(4))
def test_forbidden_pairs_of_a_block_are_those_of_all_within_it(seed):
    rng = np.random.default_rng(seed)
    problem = random_problem(seed, 15, Kind(forbid=True))
    inputs = np.flatnonzero(rng.random(15) < 0.5)
    outputs = np.flatnonzero(rng.random(15) < 0.5)
    expected = [
        (a, b)
        for a, x in enumerate(inputs)
        for b, y in enumerate(outputs)
        if problem.is_forbidden(np.array([x]), np.array([y]))[0]
    ]
    assert expected
    rows, columns = problem.forbidden_within(inputs, outputs)
    assert list(zip(rows.tolist(), columns.tolist(), strict=True)) == expected
