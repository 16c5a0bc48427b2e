"""First columns along one row: members of the polytope that decompose the point, at about the least
cost.
"""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from solvers import EnvelopeStatus, Points, Polytope, lower_envelope
from solvers.envelope import preparation
from solvers.envelope.preparation import FEWEST, at_mean, first_columns
from solvers.pricing.line import LineSearch, leading_row
from tests.profiles import scaled, slow
from tests.solvers.reference import TABLES, table_polytope


def begin(polytope: Polytope, point: np.ndarray) -> tuple[LineSearch, Points]:
    lead = leading_row(polytope)
    assert lead is not None
    search = LineSearch(polytope, polytope, lead)
    return search, first_columns(search, point, 1e-6, np.inf)


def skewed(rng: np.random.Generator, n: int) -> tuple[Polytope, np.ndarray]:
    """Shares over eight orders of magnitude, a third of the symbols exclusive to one sensitive
    value.
    """
    mass = 10.0 ** rng.uniform(-8.0, 0.0, n)
    share = np.where(rng.random(n) < 1 / 3, rng.integers(0, 2, n), rng.random(n))
    table = np.stack([mass * share, mass * (1.0 - share)])
    table /= table.sum()
    p = table.sum(axis=0)
    rows = table / p / table.sum(axis=1, keepdims=True)
    return Polytope(rows, np.full(2, 0.8), np.full(2, 1.25)), p


@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(TABLES),
    notion=st.sampled_from(["both", "upper", "lower", "touching"]),
    n=st.integers(2, 12),
)
@settings(max_examples=scaled(60))
def test_small_tables_begin_with_every_pair(seed, kind, notion, n):
    """All vertices of two symbols are listed, so one master program finds the optimum."""
    polytope, p = table_polytope(np.random.default_rng(seed), kind, notion, 2, n)
    if leading_row(polytope) is None:
        return
    _, columns = begin(polytope, p)
    assert polytope.residual(columns.toarray()).max(initial=0.0) < 1e-12 * (
        1.0 + np.abs(polytope.rows).max()
    )
    found = lower_envelope(polytope, p, gap=1e-8)
    assert found.value == pytest.approx(
        lower_envelope(polytope, p, method="vertices").value, abs=1e-6
    )


@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(TABLES),
    notion=st.sampled_from(["both", "upper", "lower", "touching", "ratio"]),
    n=st.integers(8, 30),
    empty=st.integers(0, 5),
)
@settings(max_examples=scaled(60))
def test_merged_symbols_lead_to_the_optimum_of_all_vertices(
    seed, kind, notion, n, empty
):
    """One-sided limits, ratios, ties, symbols of no mass, in levels of six symbols: each proves the
    other.
    """
    rng = np.random.default_rng(seed)
    polytope, p = table_polytope(rng, kind, notion, 2, n)
    polytope = polytope.explicit
    if leading_row(polytope) is None:
        return
    if empty:
        rows = np.hstack([polytope.rows, polytope.rows[:, rng.integers(0, n, empty)]])
        polytope = Polytope(rows, polytope.lower, polytope.upper)
        p = np.append(p, np.zeros(empty))
    with patch.object(preparation, "FEWEST", 6):
        found = lower_envelope(polytope, p, gap=1e-7)
    listed = lower_envelope(polytope, p, method="vertices", gap=1e-7)
    assert found.method == "line"
    assert found.bound <= listed.value + 1e-9
    assert listed.bound <= found.value + 1e-9
    assert found.value == pytest.approx(listed.value, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_columns_of_merged_symbols_decompose_the_point(seed):
    """Non-negative weights exist; otherwise a master without a price box has no answer but the
    point.
    """
    polytope, p = skewed(np.random.default_rng(seed), 2 * FEWEST)
    search, columns = begin(polytope, p)
    assert polytope.residual(columns.toarray()).max() < 1e-12
    whole = Points.concatenate(
        [Points.units(np.flatnonzero(search.units), search.n), columns]
    )
    assert (
        nnls(whole.toarray().T / p[:, None], np.ones(len(p)), maxiter=10**5)[1] < 1e-6
    )


@pytest.mark.parametrize("seed", [0, slow(1), slow(2)])
@pytest.mark.parametrize("n", [FEWEST + 1, 700, 1500])
def test_a_few_rounds_are_enough(seed, n):
    polytope, p = skewed(np.random.default_rng(seed), n)
    found = lower_envelope(polytope, p, gap=1e-5)
    assert found.status is EnvelopeStatus.OPTIMAL
    assert found.rounds <= 12
    assert np.abs(found.points.combine(found.weights) / p - 1.0).max() < 1e-6


def test_symbols_of_no_mass_and_of_equal_numbers():
    polytope, p = skewed(np.random.default_rng(0), 400)
    rows = np.repeat(polytope.rows, 2, axis=1)
    twice = Polytope(rows, polytope.lower, polytope.upper)
    mass = np.stack([p, np.zeros_like(p)], axis=1).ravel()
    found = lower_envelope(twice, mass, gap=1e-5)
    assert found.status is EnvelopeStatus.OPTIMAL
    assert found.value == pytest.approx(
        lower_envelope(polytope, p, gap=1e-5).value, abs=3e-5
    )


@pytest.mark.parametrize("n", [2, 50, 2000])
def test_pairs_at_the_mean_decompose_the_point(n):
    """Two symbols an output, all of the value of the mean: a decomposition that costs at most log
    2, at once.
    """
    polytope, p = skewed(np.random.default_rng(n), n)
    lead = leading_row(polytope)
    assert lead is not None
    search = LineSearch(polytope, polytope, lead)
    weights, points = at_mean(search, p)
    assert weights.min() > 0.0
    assert np.abs(points.combine(weights) / p - 1.0).max() < 1e-9
    assert (
        np.abs(points.dot(search.a) - float(search.a @ p)).max()
        < 1e-12 * polytope.rows.max()
    )
    assert (
        lower_envelope(polytope, p, time_limit=0.0).value
        <= weights @ points.entropies()
        <= np.log(2.0)
    )
