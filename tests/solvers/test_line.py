"""Pricing along one row: the same answers as branch and bound and as every vertex in rationals."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers import EnvelopeStatus, Polytope, SearchStatus, lower_envelope
from solvers.pricing.line import LineSearch, leading_row
from tests.oracles.concave_minimum import concave_minimum
from tests.profiles import scaled
from tests.solvers.reference import (
    INF,
    TABLES,
    exact,
    lift_matrix,
    random_prices,
    random_table,
    ratio_polytope,
    table_polytope,
)


def line(polytope: Polytope, relaxation: Polytope | None = None) -> LineSearch:
    lead = leading_row(polytope)
    assert lead is not None
    return LineSearch(polytope, polytope if relaxation is None else relaxation, lead)


def price(search: LineSearch, prices: np.ndarray, **options):
    return search.run(
        prices, cutoff=0.0, tolerance=0.0, slack=0.0, column_cutoff=np.inf, **options
    )


@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(TABLES),
    notion=st.sampled_from(["both", "upper", "lower", "tiny", "touching"]),
    n=st.integers(1, 9),
)
@settings(max_examples=scaled(120))
def test_two_rows_against_every_vertex_in_rationals(seed, kind, notion, n):
    """With two lift rows either determines the other; the bound holds to the last digit."""
    rng = np.random.default_rng(seed)
    polytope, _ = table_polytope(rng, kind, notion, 2, n)
    if leading_row(polytope) is None:  # independent or equal rows
        assert np.ptp(polytope.rows, axis=1).max() < 1e-6
        return
    truth = exact(polytope)
    prices = random_prices(rng, n)
    found = price(line(polytope), prices)
    least = truth.minimum(prices)
    assert found.status is SearchStatus.DONE
    assert bool(arb(found.bound) <= least)
    assert float(least.mid()) - found.bound < 1e-9 * max(
        1.0, float(np.abs(prices).max())
    )
    values = found.points.entropies() - found.points.dot(prices)
    assert values.min() == pytest.approx(float(least.mid()), abs=1e-7)
    assert values.tolist() == sorted(values)
    size = float(np.abs(polytope.rows).max())
    assert polytope.residual(found.points.toarray()).max() < 1e-14 * (1.0 + size)


@given(seed=st.integers(0, 10**6), m=st.integers(1, 4), n=st.integers(2, 8))
@settings(max_examples=scaled(60))
def test_any_number_of_rows_that_follow_one(seed, m, n):
    """Rows offset + slope a, of both signs and of sizes 1e-3 .. 1e3, with bounds of their own."""
    rng = np.random.default_rng(seed)
    a = rng.random(n)
    slope = rng.standard_normal(m) * 10.0 ** rng.uniform(-3.0, 3.0, m)
    rows = rng.standard_normal(m)[:, None] + slope[:, None] * a
    w = rows @ rng.dirichlet(np.ones(n))
    width = np.ptp(rows, axis=1) * rng.random(m)
    polytope = Polytope(rows, w - width * rng.random(m), w + width * rng.random(m))
    assert leading_row(polytope) == int(np.argmax(np.ptp(rows, axis=1)))
    truth = exact(polytope)
    prices = random_prices(rng, n)
    found = price(line(polytope), prices)
    assert bool(arb(found.bound) <= truth.minimum(prices))
    assert polytope.residual(found.points.toarray()).max() < 1e-12 * (
        1.0 + np.abs(rows).max()
    )
    searched = concave_minimum(polytope, prices, tolerance=1e-9)
    assert found.bound == pytest.approx(searched.value, abs=1e-7)


def test_agrees_with_branch_and_bound_on_many_symbols():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        polytope, _ = table_polytope(rng, "random", "both", 2, 300)
        prices = rng.random(300) + np.log(2.0)
        found = price(line(polytope), prices)
        searched = concave_minimum(polytope, prices, tolerance=1e-8)
        assert found.bound == pytest.approx(searched.value, abs=1e-8)
        assert searched.bound <= found.bound + 1e-12


def test_points_lie_in_the_polytope_and_bounds_hold_for_the_relaxation():
    rows = lift_matrix(random_table(np.random.default_rng(0), "random", 2, 8))
    polytope, wide = (
        Polytope(rows, np.full(2, 1.0 - w), np.full(2, 1.0 + w)) for w in (0.05, 0.1)
    )
    prices = np.linspace(0.0, 0.1, 8)
    found = price(line(polytope, wide), prices)
    inner, outer = (price(line(p), prices) for p in (polytope, wide))
    assert found.bound == outer.bound < inner.bound
    assert polytope.residual(found.points.toarray()).max() < 1e-14
    assert wide.residual(outer.points.toarray()).max() < 1e-14
    assert polytope.residual(outer.points.toarray()).max() > 0.04


def test_columns_below_the_cutoff_only():
    polytope, _ = table_polytope(np.random.default_rng(1), "random", "both", 2, 30)
    search = line(polytope)
    prices = np.full(30, 0.5)
    everything = search.run(
        prices, cutoff=0.0, tolerance=0.0, slack=0.0, column_cutoff=np.inf
    )
    some = search.run(prices, cutoff=0.0, tolerance=0.0, slack=0.0, column_cutoff=-0.2)
    values = some.points.entropies() - some.points.dot(prices)
    assert 0 < len(some.points) < len(everything.points)
    assert values.max() < -0.2
    assert some.bound == everything.bound


def test_time_limit():
    """No bound is known before the last pair is priced; the units are there at once."""
    polytope, _ = table_polytope(np.random.default_rng(1), "random", "both", 2, 30)
    found = price(line(polytope), np.zeros(30), time_limit=-1.0)
    assert (found.status, found.bound) == (SearchStatus.TIME_LIMIT, -INF)
    inside = polytope.contains(np.eye(30))
    assert len(found.points) == inside.sum()


@pytest.mark.parametrize(
    ("polytope", "lead"),
    [
        (Polytope(np.zeros((0, 3)), [], []), None),
        (Polytope([[1.0, 1.0, 1.0]], [0.5], [1.5]), None),
        (Polytope([[0.0, 1.0, 3.0]], [0.5], [1.5]), 0),
        (
            Polytope(
                [[0.0, 1.0, 3.0], [2.0, 4.0, 8.0], [5.0, 5.0, 5.0]],
                [0.5, -9.0, 0.0],
                [1.5, 9.0, 9.0],
            ),
            1,
        ),
        (
            Polytope([[0.0, 1.0, 3.0], [0.0, 1.0, 3.0 + 1e-9]], [0.5, 0.5], [1.5, 1.5]),
            None,
        ),
        # A tiny row of its own must not pass for the rounding of a huge one.
        (Polytope([[0.0, 1e6, 3e6], [1e-7, 0.0, 0.0]], [0.0, 0.0], [2e6, 1e-8]), None),
        (ratio_polytope(np.array([[0.5, 1.5], [1.5, 0.5]]), 2.0), None),
    ],
)
def test_leading_row(polytope, lead):
    assert leading_row(polytope) == lead


def test_a_rare_sensitive_symbol_leaves_the_bound_sharp():
    """Lifts up to 1e9 on one of two rows, everyday ones on the other: no digit is lost to their
    ratio.
    """
    rng = np.random.default_rng(0)
    for exponent in (3, 6, 9):
        p = random_table(rng, "random", 2, 8)
        p[0] *= 10.0**-exponent * (np.arange(8) < 3)
        p /= p.sum()
        polytope = Polytope(
            lift_matrix(p), np.full(2, np.exp(-1.0)), np.full(2, np.exp(1.0))
        )
        truth = exact(polytope)
        for prices in (np.zeros(8), rng.random(8), np.full(8, 1.5)):
            found = price(line(polytope), prices)
            least = truth.minimum(prices)
            assert bool(arb(found.bound) <= least)
            assert float(least.mid()) - found.bound < 1e-12
        result = lower_envelope(polytope, p.sum(axis=0), gap=1e-9)
        assert (result.method, result.status) == ("line", EnvelopeStatus.OPTIMAL)


def test_many_symbols_need_no_kernel():
    """The kernel numbers at most 32,767 rows and columns; one row needs none."""
    n = 40_000
    polytope = Polytope([np.linspace(0.0, 2.0, n)], [0.5], [1.5])
    found = lower_envelope(polytope, np.full(n, 1.0 / n), time_limit=0.0)
    assert (found.method, found.status, found.bound) == (
        "line",
        EnvelopeStatus.TIME_LIMIT,
        0.0,
    )
    assert found.value <= np.log(
        2.0
    )  # without time, pairs of symbols that meet at their mean
