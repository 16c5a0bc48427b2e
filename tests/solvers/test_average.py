"""Channels for average budgets: against grids of posteriors, lists of vertices, and local methods."""

from __future__ import annotations

import math
import time
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from solvers import (
    BackendFailure,
    EmptyPolytope,
    InvalidOption,
    Points,
    Polytope,
    Progress,
    vertices,
)
from solvers.average.channels import (
    Array,
    BaselineChannel,
    Measure,
    best_channel_within,
    convex_concave,
    funnel_measures,
    greedy_merging,
    least_leakage,
)
from solvers.average.goals import Charge, Master
from solvers.average.pricing import AveragePricing, Tangents
from solvers.pricing.concave import SearchCounts, SearchResult, SearchStatus
from solvers.results import EnvelopeStatus
from tests.ending import ends_by_itself, processor_seconds
from tests.oracles.simplex_grid import simplex_grid
from tests.profiles import scaled, slow

MEASURES = [measure.value for measure in Measure if measure is not Measure.GAIN]

COUNTS = np.array(
    # An invented table; its columns are tripled where more symbols are needed.
    [
        [40, 250, 700, 300],
        [500, 90, 210, 160],
        [330, 310, 60, 520],
    ],
    dtype=float,
)


def best_on_average(joint: Array, measure: str, budget: float, **options: Any):
    """The channel that keeps most within one budget."""
    return best_channel_within(joint, {measure: budget}, **options)


def table(secrets: int, symbols: int, seed: int) -> Array:
    """A random joint table."""
    random = np.random.default_rng(seed)
    joint: Array = random.dirichlet(np.ones(secrets * symbols))
    return joint.reshape(secrets, symbols)


def leakage_of(joint: Array, measure: str, posteriors: Array) -> Array:
    """L of each posterior (k, n), by its definition and without the module's code."""
    lifts = posteriors @ (joint / joint.sum(0) / joint.sum(1)[:, None]).T
    weight = joint.sum(1)
    if measure == "tv":
        return np.maximum(lifts - 1.0, 0.0) @ weight
    if measure == "chi2":
        return (lifts**2) @ weight - 1.0
    if measure == "maximal-leakage":
        return lifts.max(axis=1) - 1.0
    return (
        np.where(lifts > 0.0, lifts * np.log(np.maximum(lifts, 1e-300)), 0.0) @ weight
    )


def entropy_of(posteriors: Array) -> Array:
    logs = np.log(np.maximum(posteriors, 1e-300))
    return -np.where(posteriors > 0.0, posteriors * logs, 0.0).sum(axis=1)


def kept_on_grid(joint: Array, measure: str, budget: float, posteriors: Array) -> float:
    """Most information of a channel with these posteriors: one linear program."""
    point = joint.sum(0)
    program = linprog(
        entropy_of(posteriors),
        A_eq=posteriors.T,
        b_eq=point,
        A_ub=[leakage_of(joint, measure, posteriors)],
        b_ub=[budget],
    )
    assert program.status == 0
    return float(entropy_of(point[None])[0] - program.fun)


def full_leakage(joint: Array, measure: str) -> float:
    """What the identity leaks."""
    return float(joint.sum(0) @ leakage_of(joint, measure, np.eye(joint.shape[1])))


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    ("secrets", "symbols"),
    [
        pytest.param(2, 2, marks=pytest.mark.slow),
        (2, 3),
        (3, 3),
        pytest.param(3, 2, marks=pytest.mark.slow),
    ],
)
def test_best_channel_is_the_optimum_over_a_grid(measure, secrets, symbols):
    """No grid keeps more than the bound, and the value is not below the best of the grid."""
    steps = 30 if symbols == 3 else 400
    for seed, share in enumerate((0.05, 0.5)):
        joint = table(secrets, symbols, seed)
        posteriors = np.vstack([simplex_grid(symbols, steps), joint.sum(0)])
        budget = share * full_leakage(joint, measure)
        found = best_on_average(joint, measure, budget, tolerance=1e-5, time_limit=10.0)
        known = kept_on_grid(joint, measure, budget, posteriors)
        assert found.status is EnvelopeStatus.OPTIMAL
        assert found.bound >= known - 1e-9
        assert found.value >= known - 1e-5
        assert found.leakage <= budget
        assert 0.0 <= found.bound - found.value <= 1e-5


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("secrets", [slow(2), 3])
def test_least_leakage_is_the_inverse(measure, secrets):
    """What the best channel keeps cannot be had for less than its budget."""
    joint = table(secrets, 4, 7)
    budget = 0.3 * full_leakage(joint, measure)
    best = best_on_average(joint, measure, budget, tolerance=1e-5)
    keep = best.value / entropy_of(joint.sum(0)[None])[0]
    least = least_leakage(joint, measure, keep, tolerance=1e-5)
    assert least.status is EnvelopeStatus.OPTIMAL
    assert least.bound <= budget + 1e-9
    assert least.value >= least.bound
    assert least.value == pytest.approx(budget, abs=1e-4)
    assert least.information >= keep * entropy_of(joint.sum(0)[None])[0] - 1e-9


@settings(max_examples=scaled(12), deadline=None)
@given(
    st.integers(2, 4),
    st.integers(2, 7),
    st.integers(0, 10**6),
    st.sampled_from(MEASURES),
    st.floats(0.0, 1.0),
)
def test_certificates_hold(secrets, symbols, seed, measure, share):
    """H(X|Y) + beta E L >= y.p + m: no channel beats the bound, whenever the search stops."""
    joint = table(secrets, symbols, seed)
    budget = share * full_leakage(joint, measure)
    found = best_on_average(joint, measure, budget, tolerance=1e-4, time_limit=0.3)
    channel = found.channel(joint.sum(0))
    assert np.allclose(channel.sum(axis=1), 1.0, atol=1e-7)
    information, leakage = funnel_measures(joint, measure, channel)
    assert information == pytest.approx(found.value, abs=1e-6)
    assert leakage <= budget + 1e-6
    # Random channels, thinned to the budget, stay below the bound.
    random = np.random.default_rng(seed)
    for concentration in (0.05, 0.3, 2.0):
        rival = random.dirichlet(np.full(symbols, concentration), size=symbols)
        kept, leaks = funnel_measures(joint, measure, rival[:, rival.sum(0) > 0])
        within = min(1.0, budget / max(leaks, 1e-300))
        assert kept * within <= found.bound + 1e-9


@pytest.mark.parametrize("measure", MEASURES)
def test_with_lift_bounds_it_agrees_with_a_fine_grid(measure):
    joint = table(3, 3, 3)
    lifts = joint / joint.sum(0) / joint.sum(1)[:, None]
    box = Polytope(lifts, np.full(3, 0.7), np.full(3, 1.4))
    posteriors = np.vstack(
        [simplex_grid(3, 90), joint.sum(0), vertices(box, max_vertices=1000).points]
    )
    inside = posteriors[box.excess(posteriors) <= 1e-9]
    alone = kept_on_grid(joint, measure, 10.0, inside)
    budget = 0.4 * float(leakage_of(joint, measure, inside).max())
    found = best_on_average(joint, measure, budget, inner=box, tolerance=1e-5)
    known = kept_on_grid(joint, measure, budget, inside)
    assert found.status is EnvelopeStatus.OPTIMAL
    assert found.bound >= known - 1e-8
    assert found.value >= known - 1e-5
    assert (box.excess(found.points.toarray()) <= 1e-9).all()
    keep = 0.8 * alone / entropy_of(joint.sum(0)[None])[0]
    least = least_leakage(joint, measure, keep, inner=box, tolerance=1e-5)
    assert least.status is EnvelopeStatus.OPTIMAL
    assert (
        kept_on_grid(joint, measure, least.bound * (1 - 1e-6), inside)
        <= 0.8 * alone + 1e-6
    )
    assert (box.excess(least.points.toarray()) <= 1e-9).all()


def test_a_slack_budget_leaves_the_optimum_of_the_polytope():
    """Where the average does not bind, the vertices of the polytope and one linear program decide."""
    joint = table(3, 5, 5)
    lifts = joint / joint.sum(0) / joint.sum(1)[:, None]
    box = Polytope(lifts, np.full(3, 0.5), np.full(3, 1.6))
    listed = vertices(box, max_vertices=1000).points
    found = best_on_average(joint, "mi", 10.0, inner=box, tolerance=1e-6)
    known = kept_on_grid(joint, "mi", 10.0, listed)
    assert found.value == pytest.approx(known, abs=2e-6)


@pytest.mark.parametrize(
    ("tolerance", "shares"),
    [
        (1e-4, (0.5, 0.1)),
        pytest.param(1e-5, (0.5, 0.1, 0.02), marks=pytest.mark.slow),
    ],
)
def test_never_below_published_heuristics(tolerance, shares):
    joint = COUNTS / COUNTS.sum()
    joint = np.hstack([joint * share for share in (0.5, 0.3, 0.2)])
    joint *= np.linspace(0.6, 1.4, 12)
    joint /= joint.sum()
    full = full_leakage(joint, "mi")
    for share in shares:
        found = best_on_average(joint, "mi", share * full, tolerance=tolerance)
        greedy = greedy_merging(joint, "mi", budget=share * full)
        local = convex_concave(joint, share * full, restarts=3)
        for rival in (greedy, local):
            assert rival.leakage <= share * full * (1.0 + 1e-9)
            assert rival.information <= found.bound + 1e-9
            assert found.value >= rival.information - tolerance
    merged = greedy_merging(joint, "mi", budget=0.5 * full)
    keep = merged.information / float(entropy_of(joint.sum(axis=0)[None])[0])
    least = least_leakage(joint, "mi", keep, tolerance=tolerance)
    assert least.bound <= merged.leakage + 1e-9
    assert least.value <= merged.leakage + tolerance


def test_ends_of_the_range():
    joint = table(3, 4, 1)
    entropy = float(entropy_of(joint.sum(0)[None])[0])
    everything = best_on_average(joint, "mi", 10.0, tolerance=1e-6)
    assert everything.value == pytest.approx(entropy, abs=1e-9)
    all_kept = least_leakage(joint, "mi", 1.0, tolerance=1e-6)
    assert all_kept.value == pytest.approx(full_leakage(joint, "mi"), abs=1e-6)
    nothing_asked = least_leakage(joint, "mi", 0.0, tolerance=1e-6)
    assert nothing_asked.value <= 1e-6
    # Without any leakage all lifts are 1: the vertices of that polytope decide.
    lifts = joint / joint.sum(0) / joint.sum(1)[:, None]
    silent = Polytope(lifts, np.full(3, 1.0 - 1e-12), np.full(3, 1.0 + 1e-12))
    known = kept_on_grid(joint, "tv", 1e-9, vertices(silent, max_vertices=100).points)
    for measure in MEASURES:
        nothing = best_on_average(joint, measure, 0.0, tolerance=1e-5)
        assert nothing.leakage <= 1e-9
        assert nothing.value == pytest.approx(known, abs=1e-4)
        assert nothing.bound >= known - 1e-6


@pytest.mark.parametrize("shape", [(6, 60), (2, 600)])
def test_the_time_limit_holds(shape):
    joint = table(*shape, seed=0)
    moments: list[Progress] = []
    with ends_by_itself():
        found = best_on_average(
            joint,
            "mi",
            0.05 * full_leakage(joint, "mi"),
            tolerance=1e-9,
            time_limit=0.3,
            progress=moments.append,
        )
    assert found.status is EnvelopeStatus.TIME_LIMIT
    assert found.value <= found.bound
    assert [m.value for m in moments] == sorted(m.value for m in moments)


def test_without_time_for_a_program_the_known_channel_is_the_answer(monkeypatch):
    """A constant leaks nothing, and X itself keeps everything; both within their bounds."""
    joint = table(3, 5, seed=0)
    monkeypatch.setattr(Master, "solve", lambda self, seconds: None)
    constant = best_on_average(joint, "mi", 0.01, time_limit=1e-9)
    assert constant.status is EnvelopeStatus.TIME_LIMIT
    assert constant.value == 0.0
    assert constant.leakage == pytest.approx(0.0, abs=1e-12)
    assert constant.bound > 0.0
    np.testing.assert_allclose(constant.points.toarray()[0], joint.sum(axis=0))
    whole = least_leakage(joint, "mi", 0.5, time_limit=1e-9)
    assert whole.status is EnvelopeStatus.TIME_LIMIT
    assert whole.value == pytest.approx(full_leakage(joint, "mi"))
    assert whole.bound <= whole.value
    # With time left it is the program that failed.
    with pytest.raises(BackendFailure, match="HiGHS failed on the master program"):
        best_on_average(joint, "mi", 0.01)


def test_bad_input_is_refused():
    joint = table(2, 3, 0)
    with pytest.raises(InvalidOption, match="budget"):
        best_on_average(joint, "mi", -1.0)
    with pytest.raises(InvalidOption, match="keep"):
        least_leakage(joint, "mi", 1.5)
    with pytest.raises(InvalidOption, match="must be one of mi, tv"):
        best_on_average(joint, "renyi", 1.0)
    with pytest.raises(InvalidOption, match="sums to"):
        best_on_average(2.0 * joint, "mi", 1.0)
    with pytest.raises(InvalidOption, match="without mass"):
        best_on_average(joint * [1.0, 0.0, 1.0], "mi", 1.0)
    with pytest.raises(InvalidOption, match="negative"):
        best_on_average(-joint, "mi", 1.0)
    with pytest.raises(InvalidOption, match="tolerance"):
        best_on_average(joint, "mi", 1.0, tolerance=0.0)
    with pytest.raises(InvalidOption, match="time_limit"):
        best_on_average(joint, "mi", 1.0, time_limit=0.0)
    far = Polytope(np.eye(3), np.zeros(3), np.full(3, 1e-3))
    with pytest.raises(EmptyPolytope, match="not a member"):
        best_on_average(joint, "mi", 1.0, inner=far)


def test_more_than_a_polytope_allows_cannot_be_kept():
    joint = table(3, 4, 2)
    lifts = joint / joint.sum(0) / joint.sum(1)[:, None]
    box = Polytope(lifts, np.full(3, 0.9), np.full(3, 1.1))
    with pytest.raises(EmptyPolytope, match="keeps so much"):
        least_leakage(joint, "mi", 0.999, inner=box)


def test_start_columns_are_used():
    joint = table(3, 5, 9)
    budget = 0.2 * full_leakage(joint, "mi")
    cold = best_on_average(joint, "mi", budget, tolerance=1e-5)
    warm = best_on_average(joint, "mi", budget, tolerance=1e-5, start=cold.points)
    assert isinstance(warm.points, Points)
    assert warm.columns <= cold.columns
    assert warm.value == pytest.approx(cold.value, abs=1e-5)


def test_references_end_in_time_and_keep_their_promises():
    joint = table(3, 20, 4)
    budget = 0.1 * full_leakage(joint, "mi")

    def merged_until(end: float) -> BaselineChannel:
        return greedy_merging(joint, "mi", budget=budget, end=end)

    def alternated_until(end: float) -> BaselineChannel:
        return convex_concave(joint, budget, restarts=2, end=end)

    over = time.process_time()
    for method in (merged_until, alternated_until):
        rival = method(over)
        assert rival.leakage <= budget * (1.0 + 1e-9)
        assert np.allclose(rival.channel.sum(axis=1), 1.0)
        # The same method takes several hundred times as long if it may.
        ended = processor_seconds(partial(method, over))
        whole = processor_seconds(partial(method, math.inf))
        assert ended < whole / 4


def test_budgets_of_several_measures():
    joint = table(3, 4, 2)
    with pytest.raises(InvalidOption, match="must name a measure"):
        best_channel_within(joint, {})
    with pytest.raises(InvalidOption, match="each must be above 0"):
        best_channel_within(joint, {"mi": 0.1, "tv": 0.0})
    with pytest.raises(InvalidOption, match=r"budget \(nan\)"):
        best_channel_within(joint, {"mi": 0.1, "tv": math.nan})
    budgets = {"mi": 0.02, "tv": 0.08, "maximal-leakage": 0.3}
    found = best_channel_within(joint, budgets, tolerance=1e-5)
    assert found.gap <= 1e-5
    channel = found.channel(joint.sum(0))
    for (measure, most), leakage in zip(budgets.items(), found.leakages, strict=True):
        _, leaks = funnel_measures(joint, measure, channel)
        assert leaks == pytest.approx(leakage, abs=1e-7)
        assert leaks <= most + 1e-9
        alone = best_on_average(joint, measure, most, tolerance=1e-5)
        assert found.value <= alone.bound + 1e-9


def test_rounds_that_only_add_tangents_are_not_idle(monkeypatch):
    """Where local searches and the tree both add tangents, the next round sees more."""
    joint = table(3, 5, 9)
    units = Points.units(np.arange(5), 5)
    rounds: list[Charge] = []

    def search_tree(self, charge, seconds):
        rounds.append(charge)
        if len(rounds) == 20:
            raise KeyboardInterrupt
        return SearchResult(SearchStatus.DONE, -math.inf, units, SearchCounts())

    monkeypatch.setattr(AveragePricing, "descend", lambda self, charge, seconds: units)
    monkeypatch.setattr(AveragePricing, "search_tree", search_tree)
    monkeypatch.setattr(Tangents, "touch", lambda self, points, room: 1)
    found = best_on_average(joint, "mi", 0.01, tolerance=1e-9)
    assert found.status is EnvelopeStatus.INTERRUPTED
    # Without new tangents the search gives up.
    rounds.clear()
    monkeypatch.setattr(Tangents, "touch", lambda self, points, room: 0)
    found = best_on_average(joint, "mi", 0.01, tolerance=1e-9)
    assert found.status is EnvelopeStatus.STALLED
