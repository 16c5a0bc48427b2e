from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mechdesign.core.errors import InputError
from tests.oracles import measures as m

CLOSE = 1e-9
ORDERS = (0.1, 0.5, 0.9, 1.0, 1.1, 2.0, 5.0, 40.0, math.inf)


@st.composite
def tables(draw):
    """Joint distributions of 1 x 1 to 4 x 4, with zero cells, each row and column with some mass."""
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    cells = st.one_of(st.just(0.0), st.floats(1e-6, 1.0))
    p = draw(hnp.arrays(float, shape, elements=cells))
    p[np.arange(max(shape)) % shape[0], np.arange(max(shape)) % shape[1]] += 0.1
    return p / p.sum()


def cells(p):
    """(P(s, y), P(s), P(y)) of every cell, one by one."""
    rows, columns = [sum(r) for r in p.tolist()], [sum(c) for c in p.T.tolist()]
    return [
        (p[s, y], rows[s], columns[y])
        for s in range(p.shape[0])
        for y in range(p.shape[1])
    ]


def per_output(p, term, combine=sum):
    """combine over s of term(P(s), l(s, y)), for every y."""
    count_s, count_y = p.shape
    every = [term(ps, psy / (ps * py)) for psy, ps, py in cells(p)]
    return [
        combine(every[s * count_y + y] for s in range(count_s)) for y in range(count_y)
    ]


def inverse(lift):
    return 1.0 / lift if lift else math.inf


@given(tables())
def test_measures_of_lift_are_their_definitions(p):
    assert m.max_lift(p) == pytest.approx(
        per_output(p, lambda ps, lift: lift, max), rel=CLOSE
    )
    assert m.min_lift(p) == pytest.approx(
        per_output(p, lambda ps, lift: lift, min), rel=CLOSE
    )
    ratio = [h * inverse(v) for h, v in zip(m.max_lift(p), m.min_lift(p), strict=True)]
    assert m.lift_ratio(p) == pytest.approx(ratio, rel=CLOSE)
    assert m.l1_lift(p) == pytest.approx(
        per_output(p, lambda ps, v: ps * abs(v - 1)), rel=CLOSE, abs=CLOSE
    )
    assert m.chi2_lift(p) == pytest.approx(
        per_output(p, lambda ps, v: ps * (v - 1) ** 2), rel=CLOSE, abs=CLOSE
    )
    l1 = per_output(p, lambda ps, v: ps * abs(inverse(v) - 1))
    assert m.l1_lift_inverse(p) == pytest.approx(l1, rel=CLOSE, abs=CLOSE)
    chi2 = per_output(p, lambda ps, v: ps * (inverse(v) - 1) ** 2)
    assert m.chi2_lift_inverse(p) == pytest.approx(chi2, rel=CLOSE, abs=CLOSE)
    for alpha in (1.5, 2.0, 7.0):
        power = [
            v ** (1 / alpha) for v in per_output(p, lambda ps, v, a=alpha: ps * v**a)
        ]
        assert m.alpha_lift(p, alpha) == pytest.approx(power, rel=CLOSE)
        power = [
            v ** (1 / alpha)
            for v in per_output(p, lambda ps, v, a=alpha: ps * inverse(v) ** a)
        ]
        assert m.alpha_lift_inverse(p, alpha) == pytest.approx(power, rel=CLOSE)
    assert m.alpha_lift(p, math.inf) == pytest.approx(m.max_lift(p), rel=CLOSE)


@given(tables())
def test_averages_are_their_definitions(p):
    h = {
        axis: -sum(v * math.log(v) for v in p.sum(axis=axis).tolist())
        for axis in (0, 1)
    }
    both = -sum(v * math.log(v) for v in p.ravel().tolist() if v)
    assert m.entropy(p.sum(axis=1)) == pytest.approx(h[1], abs=CLOSE)
    assert m.entropy(p) == pytest.approx(both, abs=CLOSE)
    assert m.mutual_information(p) == pytest.approx(h[0] + h[1] - both, abs=CLOSE)
    if h[1] > 1e-3:
        assert m.normalised_information(p) == pytest.approx(
            (h[0] + h[1] - both) / h[1], abs=1e-6
        )
    assert m.total_variation(p) == pytest.approx(
        0.5 * sum(abs(q - a * b) for q, a, b in cells(p)), abs=CLOSE
    )
    chi2 = sum((q - a * b) ** 2 / (a * b) for q, a, b in cells(p))
    assert m.chi2_information(p) == pytest.approx(chi2, rel=CLOSE, abs=CLOSE)


@given(tables(), st.sampled_from([v for v in ORDERS if v != 1.0 and math.isfinite(v)]))
def test_informations_of_an_order_are_their_definitions(p, order):
    p_s, n, k = p.sum(axis=1).tolist(), *p.shape
    factor = order / (order - 1)
    sums = [
        sum(p_s[s] * (p[s, y] / p_s[s]) ** order for s in range(n)) ** (1 / order)
        for y in range(k)
    ]
    assert m.sibson_information(p, order) == pytest.approx(
        factor * math.log(sum(sums)), abs=1e-7
    )
    sums = [sum(p[s, y] ** order for s in range(n)) ** (1 / order) for y in range(k)]
    before = sum(v**order for v in p_s) ** (1 / order)
    assert m.arimoto_information(p, order) == pytest.approx(
        factor * math.log(sum(sums) / before), abs=1e-7
    )


@given(tables())
def test_informations_grow_with_the_order_and_meet_their_limits(p):
    given_s = p / p.sum(axis=1, keepdims=True)
    leakage = math.log(sum(given_s.max(axis=0)))
    guessing = math.log(sum(p.max(axis=0)) / max(p.sum(axis=1)))
    assert m.maximal_leakage(p) == pytest.approx(leakage, abs=CLOSE)
    assert m.arimoto_information(p, math.inf) == pytest.approx(guessing, abs=CLOSE)
    assert (
        m.sibson_information(p, 1.0)
        == m.arimoto_information(p, 1.0)
        == m.mutual_information(p)
    )
    sibson = [m.sibson_information(p, order) for order in ORDERS]
    assert all(b >= a - CLOSE for a, b in pairwise(sibson))
    assert m.sibson_information(p, 1 + 1e-6) == pytest.approx(
        m.mutual_information(p), abs=1e-4
    )
    assert m.sibson_information(p, 1 + 1e-12) == m.mutual_information(p)
    # Large orders do not underflow: P(y|s)^10000 is no double.
    assert m.sibson_information(p, 1e4) == pytest.approx(leakage, abs=1e-2)


@given(tables())
def test_every_leakage_is_at_most_the_largest_log_lift(p):
    """Theory, section 2: I, Sibson's and Arimoto's information of every order are at most max log l."""
    most = math.log(m.max_lift(p).max()) + CLOSE
    for order in ORDERS:
        assert m.sibson_information(p, order) <= most
        assert m.arimoto_information(p, order) <= most


@given(tables())
def test_corrected_propositions_bound_every_measure(p):
    """Theory, section 2: with all lifts in [a, b], the extremes of a mean-one variable on [a, b]."""
    a, b = float(m.min_lift(p).min()), float(m.max_lift(p).max())
    slack = 1 + CLOSE
    if b - a > 1e-9:
        assert m.l1_lift(p).max() <= 2 * (b - 1) * (1 - a) / (b - a) * slack + CLOSE
        assert m.total_variation(p) <= (b - 1) * (1 - a) / (b - a) * slack + CLOSE
    assert m.chi2_lift(p).max() <= (b - 1) * (1 - a) * slack + CLOSE
    assert m.chi2_information(p) <= (b - 1) * (1 - a) * slack + CLOSE
    if a > 0:
        worst = max(1 / a - 1, 1 - 1 / b)
        assert m.l1_lift_inverse(p).max() <= worst * slack + CLOSE
        assert m.chi2_lift_inverse(p).max() <= worst**2 * slack + CLOSE
        assert m.alpha_lift_inverse(p, 2.0).max() <= slack / a
    assert m.alpha_lift(p, 2.0).max() <= b * slack


@given(tables())
def test_lifts_are_bounded_by_the_other_measures(p):
    """Zarrabian et al. 2023, Propositions 4 and 6 with their square roots; P(s) of the least likely s."""
    least = p.sum(axis=1).min()
    top, bottom = m.max_lift(p), m.min_lift(p)
    slack = 1 + CLOSE
    assert (top <= (np.sqrt(m.chi2_lift(p) / least) + 1) * slack).all()
    assert (top <= (m.l1_lift(p) / (2 * least) + 1) * slack).all()
    assert (top <= m.alpha_lift(p, 2.0) / least**0.5 * slack).all()
    for y in range(p.shape[1]):
        if bottom[y] > 0:
            l1, chi2 = m.l1_lift_inverse(p)[y], m.chi2_lift_inverse(p)[y]
            assert bottom[y] * slack >= least / (l1 + least)
            assert bottom[y] * slack >= 1 / (1 + math.sqrt(chi2 / least))
            assert bottom[y] * slack >= least**0.5 / m.alpha_lift_inverse(p, 2.0)[y]


def test_the_printed_propositions_fail_for_asymmetric_budgets():
    """Theory, section 9: lam 0.65, eps 1, S uniform on 15 values with two lifts in cyclic order."""
    eps_l, eps_u = 0.65, 0.35
    high = 1.418
    low = (15 - 8 * high) / 7
    assert low == pytest.approx(0.52229, abs=1e-5)
    lifts = np.array(
        [[high if (s + y) % 15 < 8 else low for y in range(15)] for s in range(15)]
    )
    p = lifts / 225
    assert math.log(high) <= eps_u
    assert -math.log(low) <= eps_l
    a, b = math.exp(-eps_l), math.exp(eps_u)
    assert m.total_variation(p) == pytest.approx(0.2229, abs=1e-4)
    assert m.total_variation(p) > (b - 1) / 2 == pytest.approx(0.2095, abs=1e-4)
    assert m.chi2_information(p) == pytest.approx(0.1997, abs=1e-4)
    assert m.chi2_information(p) > (b - 1) ** 2 == pytest.approx(0.1756, abs=1e-4)
    assert m.total_variation(p) <= (b - 1) * (1 - a) / (b - a)
    assert m.chi2_information(p) <= (b - 1) * (1 - a)


def test_l1_budgets_on_both_sides_do_not_imply_ldp():
    """Theory, section 2: P = (.05, .95), l = (5, .789) is within e^0.5 - 1 on both sides, yet Gamma = 6.33."""
    prior = np.array([0.05, 0.95])
    lifts = np.array([5.0, (1 - 0.25) / 0.95])
    p_y = 0.05
    other = (1 - p_y * lifts) / (1 - p_y)
    p = prior[:, None] * np.stack([p_y * lifts, (1 - p_y) * other], axis=1)
    assert m.l1_lift(p)[0] <= math.exp(0.5) - 1
    assert m.l1_lift_inverse(p)[0] <= math.exp(0.5) - 1
    assert m.lift_ratio(p)[0] == pytest.approx(6.33, abs=0.01)


@pytest.mark.parametrize(
    ("inverse_measure", "prior", "lifts", "ends", "middle"),
    [
        (m.l1_lift_inverse, [1 / 3] * 3, [[1.5, 1, 0.5], [1, 1.5, 0.5]], 0.444, 0.467),
        (
            m.chi2_lift_inverse,
            [0.1, 0.1, 0.8],
            [[1.5, 3.5, 0.625], [3.5, 1.5, 0.625]],
            0.3501,
            0.3600,
        ),
    ],
)
def test_two_inverse_measures_are_not_convex(
    inverse_measure, prior, lifts, ends, middle
):
    """Theory, section 2: their values at two lift vectors and at the midpoint."""
    prior = np.array(prior)

    def value(lift):
        rest = (1 - 0.2 * np.array(lift)) / 0.8
        return inverse_measure(
            prior[:, None] * np.stack([0.2 * np.array(lift), 0.8 * rest], axis=1)
        )[0]

    assert value(lifts[0]) == pytest.approx(ends, abs=5e-4)
    assert value(lifts[1]) == pytest.approx(ends, abs=5e-4)
    assert value(np.mean(lifts, axis=0)) == pytest.approx(middle, abs=5e-4)
    assert value(np.mean(lifts, axis=0)) > value(lifts[0]) + 1e-3


def test_a_zero_lift_is_infinite_and_never_skipped():
    p = np.array([[0.0, 0.3], [0.5, 0.2]])
    assert m.min_lift(p)[0] == 0.0
    for measure in (
        m.lift_ratio,
        m.l1_lift_inverse,
        m.chi2_lift_inverse,
        lambda q: m.alpha_lift_inverse(q, 2.0),
    ):
        assert measure(p)[0] == math.inf
        assert math.isfinite(measure(p)[1])
    values = m.leakage(p)
    assert values["min_log_lift"] == -math.inf
    assert values["max_log_lift_ratio"] == math.inf
    assert values["l1_lift_inverse"] == values["alpha_lift_inverse[2]"] == math.inf
    assert math.isfinite(values["max_log_lift"])
    assert m.l1_lift(p)[0] == pytest.approx(0.3 * 1.0 + 0.7 * abs(1 / 0.7 - 1))


def test_leakage_collects_the_worst_output_of_every_measure():
    p = np.array([[0.1, 0.2, 0.1], [0.2, 0.1, 0.3]])
    values = m.leakage(p, alphas=(2.0, 3.5))
    assert values["max_log_lift"] == math.log(m.max_lift(p).max())
    assert values["min_log_lift"] == math.log(m.min_lift(p).min())
    assert values["max_log_lift_ratio"] == math.log(m.lift_ratio(p).max())
    assert values["l1_lift"] == m.l1_lift(p).max()
    assert values["chi2_lift_inverse"] == m.chi2_lift_inverse(p).max()
    assert values["alpha_lift[3.5]"] == m.alpha_lift(p, 3.5).max()
    assert values["sibson_information[2]"] == m.sibson_information(p, 2.0)
    assert values["arimoto_information[3.5]"] == m.arimoto_information(p, 3.5)
    assert values["min_entropy_leakage"] == m.arimoto_information(p, math.inf)


def test_a_constant_row_variable_loses_nothing():
    assert m.normalised_information([[0.5, 0.5]]) == 1.0
    assert m.mutual_information([[0.5, 0.5]]) == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: m.entropy([0.5, 0.6]), r"must sum to 1, not 1.1"),
        (lambda: m.entropy([1.5, -0.5]), r"finite, non-negative entries"),
        (lambda: m.lift([[0.5, math.nan]]), r"finite, non-negative entries"),
        (lambda: m.lift([0.5, 0.5]), r"must have 2 dimensions, not 1"),
        (
            lambda: m.lift([[0.5, 0.0], [0.5, 0.0]]),
            r"column 2 of the joint distribution has no mass; drop it",
        ),
        (
            lambda: m.lift([[0.5, 0.5], [0.0, 0.0]]),
            r"row 2 of the joint distribution has no mass; drop it",
        ),
        (lambda: m.alpha_lift([[1.0]], 1.0), r"alpha \(1\) must be above 1"),
        (
            lambda: m.alpha_lift_inverse([[1.0]], math.nan),
            r"alpha \(nan\) must be above 1",
        ),
        (
            lambda: m.sibson_information([[1.0]], 0.0),
            r"the order \(0\) must be positive",
        ),
        (
            lambda: m.arimoto_information([[1.0]], -1.0),
            r"the order \(-1\) must be positive",
        ),
    ],
)
def test_what_is_no_distribution_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
