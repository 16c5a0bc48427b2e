"""l1 and chi2 with both sides, whose posteriors are not convex: bounds against dense grids."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import mechdesign as md
from mechdesign.mechanisms.convex_means import InverseDistanceFunction, allowed_set
from solvers import Polytope, covered_envelope, vertices
from tests.oracles.simplex_grid import simplex_grid
from tests.profiles import scaled, slow

KINDS = (md.L1Lift, md.Chi2Lift)


def table(seed, secrets, symbols):
    random = np.random.default_rng(seed)
    return md.Joint.from_counts(random.integers(1, 30, (secrets, symbols)))


def entropies_of(v):
    return -np.where(v > 0, v * np.log(np.where(v > 0, v, 1)), 0).sum(axis=1)


def best_on_a_grid(joint, power, eps_l, eps_u, steps):
    """The largest share of H(X) that allowed posteriors on a grid keep, by one linear program."""
    n = len(joint.p_x)
    v = np.vstack([simplex_grid(n, steps), joint.p_x])
    lifts = (v / joint.p_x) @ joint.p.T / joint.p_s
    with np.errstate(divide="ignore"):
        inverse = abs(1 / lifts - 1) ** power @ joint.p_s
    inside = inverse <= np.expm1(eps_l) ** power * (1 + 1e-12)
    inside &= abs(lifts - 1) ** power @ joint.p_s <= np.expm1(eps_u) ** power
    v = v[inside]
    solved = linprog(entropies_of(v), A_eq=v.T, b_eq=joint.p_x)
    assert solved.status == 0
    return 1 - solved.fun / float(entropies_of(joint.p_x[None])[0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("secrets", "symbols", "steps"), [(3, 3, 100), slow(4, 4, 24)])
def test_no_grid_keeps_more_than_the_bound(kind, secrets, symbols, steps):
    power = 1 if kind is md.L1Lift else 2
    for seed, (eps_l, eps_u) in itertools.product(range(2), ((0.15, 0.6), (0.5, 0.3))):
        joint = table(seed, secrets, symbols)
        design = md.design(joint, kind(eps_l, eps_u), gap=1e-3)
        grid = best_on_a_grid(joint, power, eps_l, eps_u, steps)
        assert design.verified
        assert md.audit(design.channel, joint, kind(eps_l, eps_u)).satisfied
        assert design.certificate.upper_bound_nmi >= grid - 1e-9
        assert design.nmi >= grid - 1e-3
        assert design.certificate.gap_nmi <= 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_the_lower_side_alone(kind):
    joint = table(1, 3, 3)
    power = 1 if kind is md.L1Lift else 2
    design = md.design(joint, kind(0.3, np.inf), gap=1e-3)
    grid = best_on_a_grid(joint, power, 0.3, np.inf, 150)
    assert design.nmi - 1e-2 <= grid <= design.certificate.upper_bound_nmi + 1e-9
    assert design.certificate.gap_nmi <= 1e-3


@pytest.mark.parametrize("kind", [slow(md.L1Lift), md.Chi2Lift])
def test_more_than_the_mergings_and_less_than_one_side(kind):
    joint = table(7, 4, 7)
    both = md.design(joint, kind(0.4, 0.4), gap=1e-3)
    one = md.design(joint, kind(np.inf, 0.4))
    assert both.nmi <= one.certificate.upper_bound_nmi
    for mechanism in ("subset-merging", "complete-merging", "subset-response"):
        other = md.design(joint, kind(0.4, 0.4), mechanism=mechanism, gap=1e-3)
        assert both.nmi >= other.nmi - 1e-3
        assert other.nmi <= both.certificate.upper_bound_nmi + 1e-9


@pytest.mark.parametrize("epsilon", [1e-5, 1e-7])
@pytest.mark.parametrize(
    "notion",
    [
        lambda epsilon: md.L1Lift(epsilon, epsilon),
        lambda epsilon: md.Chi2Lift(epsilon, epsilon),
        lambda epsilon: md.Chi2Lift(np.inf, epsilon),
        lambda epsilon: md.AlphaLift(epsilon, epsilon, 2.0),
    ],
)
def test_tiny_budgets_close(notion, epsilon):
    """Without any leakage all lifts are 1: the vertices of that polytope and one linear program
    are what every notion tends to.
    """
    joint = table(11, 3, 6)
    design = md.design(joint, notion(epsilon), gap=1e-3)
    assert md.audit(design.channel, joint, notion(epsilon)).satisfied
    assert design.certificate.gap_nmi <= 1e-3
    silent = Polytope(joint.lift, np.full(3, 1 - 1e-13), np.full(3, 1 + 1e-13))
    points = vertices(silent, max_vertices=100).points
    solved = linprog(entropies_of(points), A_eq=points.T, b_eq=joint.p_x)
    kept = 1 - solved.fun / float(entropies_of(joint.p_x[None])[0])
    assert kept > 0.2
    assert design.certificate.upper_bound_nmi >= kept - 1e-9
    assert design.nmi >= kept - 1e-3
    assert design.nmi <= kept + 10 * np.sqrt(epsilon)


def test_a_short_limit_leaves_a_real_gap():
    joint = table(3, 5, 25)
    design = md.design(joint, md.L1Lift(0.1, 0.1), time_limit=0.3)
    assert md.audit(design.channel, joint, md.L1Lift(0.1, 0.1)).satisfied
    assert design.nmi <= design.certificate.upper_bound_nmi
    assert design.certificate.gap_nmi > 1e-4


@pytest.mark.parametrize(("eps_l", "eps_u"), [(400.0, 0.5), (700.0, 700.0)])
def test_budgets_of_hundreds_of_nats(eps_l, eps_u):
    joint = table(1, 3, 4)
    for kind in KINDS:
        design = md.design(joint, kind(eps_l, eps_u), gap=1e-3, time_limit=5.0)
        assert md.audit(design.channel, joint, kind(eps_l, eps_u)).satisfied
        one = md.design(joint, kind(np.inf, eps_u), gap=1e-3)
        assert design.certificate.upper_bound_nmi >= one.nmi - 1e-9


@settings(deadline=None, max_examples=scaled(200))
@given(data=st.data())
def test_the_function_below_is_below_and_convex(data):
    """On every box, and its tangents are below it."""
    power = data.draw(st.sampled_from([1, 2]))
    ends = st.floats(0.05, 6.0)
    a, b = sorted((data.draw(ends), data.draw(ends)))
    if b - a < 1e-3:
        b = a + 1e-3
    mean = KINDS[power - 1](0.5, 0.5).limits.mean
    whole = InverseDistanceFunction(np.ones(1), mean, 0.5)
    below = whole.below(np.array([a]), np.array([b]))
    w = np.linspace(a, b, 400)[None]
    phi = abs(1 / w[0] - 1) ** power
    g = below.terms(w)[0]
    scale = 1 + phi.max()
    assert (g <= phi + 1e-12 * scale).all()
    assert g[-1] == pytest.approx(phi[-1], abs=1e-9 * scale)
    touch = data.draw(st.integers(0, 399))
    tangent = g[touch] + below.gradients(w)[0, touch] * (w[0] - w[0, touch])
    assert (tangent <= g + 1e-11 * scale).all()


def test_every_cut_holds_for_random_members():
    random = np.random.default_rng(2)
    joint = table(5, 4, 6)
    for kind, budget in itertools.product(KINDS, (0.2, 0.6)):
        allowed = allowed_set(joint, kind(budget, budget).limits)
        (function,) = allowed.nonconvex
        lifts = joint.lift @ random.dirichlet(np.full(6, 0.7), size=4000).T
        lifts = 1 + random.random(4000) * (lifts - 1)
        members = lifts[:, allowed.excess_of(lifts, 0.0) <= 0.0]
        assert members.shape[1] > 100
        assert (members >= allowed.low[:, None]).all()
        assert (members <= allowed.high[:, None]).all()
        for _ in range(40):
            low, high = allowed.low.copy(), allowed.high.copy()
            s = random.integers(4)
            place = random.uniform(low[s], high[s])
            (low if random.random() < 0.5 else high)[s] = place
            inside = (members >= low[:, None]) & (members <= high[:, None])
            kept = members[:, inside.all(axis=0)]
            at = joint.lift @ random.dirichlet(np.full(6, 0.3))
            cut = function.below(low, high).cut(at)
            assert (cut.normal @ kept <= cut.offset + 1e-12 * cut.size).all()


def test_the_bound_of_the_solver_on_larger_tables():
    """The gap of issue 29: 1e-3 for tables of up to 3 x 30."""
    joint = table(0, 3, 30)
    entropy = float(entropies_of(joint.p_x[None])[0])
    for kind in KINDS:
        allowed = allowed_set(joint, kind(0.25, 0.25).limits)
        found = covered_envelope(allowed, joint.p_x, gap=1e-3 * entropy)
        assert found.value - found.bound <= 1e-3 * entropy
