"""Designs that would take too long to verify have fewer outputs; the promise and P_X stay."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.auditing.measures import utility
from mechdesign.mechanisms import fewer_outputs
from mechdesign.mechanisms.fewer_outputs import (
    lengthened,
    merged_outputs,
    rounded_in_time,
)
from mechdesign.mechanisms.population import PopulationRules
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.search_options import AFTERWARDS_SHARE, Search
from mechdesign.notions import LIP
from mechdesign.tables.confidence import confidence_set
from mechdesign.tables.joint import Joint
from solvers import Points


def _stars(n: int, share: float) -> tuple[np.ndarray, Points]:
    """An output on the way to each of n equally frequent symbols."""
    posteriors = (1.0 - share) / n + share * np.eye(n)
    return np.full(n, 1.0 / n), Points.from_dense(posteriors)


def _table(n: int) -> Joint:
    """Two sensitive symbols and n useful ones of equal frequency."""
    return Joint.from_counts(_counts(n).tolist())


def _counts(n: int) -> np.ndarray:
    """The counts of that table, (2, n)."""
    first = np.arange(n) % 7 + 2
    return np.array([first, 10 - first])


@given(seed=st.integers(0, 10**6), k=st.integers(1, 12), most=st.integers(1, 12))
def test_merged_outputs_decompose_the_same_point(seed, k, most):
    """sum_k beta_k v_k is the same, and at most so many outputs are left."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(k))
    posteriors = rng.dirichlet(np.ones(5), size=k)
    p_x = weights @ posteriors
    beta, points = merged_outputs(weights, Points.from_dense(posteriors), p_x, most)
    assert len(beta) == len(points) == min(k, most)
    assert beta.sum() == pytest.approx(1.0)
    assert np.allclose(points.toarray().sum(axis=1), 1.0)
    assert np.allclose(points.combine(beta), p_x)


def test_outputs_that_tell_most_stay_by_themselves():
    weights = np.array([0.5, 0.2, 0.2, 0.1])
    near = [0.26, 0.25, 0.25, 0.24]
    posteriors = np.array([[0.7, 0.1, 0.1, 0.1], near, near, near])
    p_x = weights @ posteriors
    _, points = merged_outputs(weights, Points.from_dense(posteriors), p_x, 3)
    assert np.abs(points.toarray() - posteriors[0]).max(axis=1).min() < 1e-12


@given(seed=st.integers(0, 10**6), k=st.integers(2, 8))
def test_lengthened_outputs_decompose_the_same_point_and_tell_more(seed, k):
    """I(X;Y) does not fall, and every posterior is still inside."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(k))
    posteriors = rng.dirichlet(np.ones(5), size=k)
    p_x = weights @ posteriors
    posteriors = p_x + 0.1 * (posteriors - p_x)

    def is_inside(v):
        return np.abs(v / p_x - 1.0).max(axis=1) <= 0.5

    inside = is_inside(posteriors)
    beta, points = lengthened(weights, posteriors, p_x, is_inside)
    far = points.toarray()
    assert np.allclose(points.combine(beta), p_x)
    assert beta.sum() == pytest.approx(1.0)
    assert is_inside(far)[inside].all()
    assert far.min() >= 0.0

    def told(t, v):
        return float(t @ (v * np.log(v / p_x)).sum(axis=1))

    assert told(beta, far) >= told(weights, posteriors) - 1e-12


def test_merged_outputs_for_a_population_use_up_its_budget(monkeypatch):
    """Merged outputs lie inside the set; with less to tell apart they may tell it more clearly."""
    monkeypatch.setattr(fewer_outputs, "PROBED_FROM", 0)
    monkeypatch.setattr(fewer_outputs, "PROBED", 5)
    joint = Joint.from_counts((_counts(20) * 50).tolist())
    populations = confidence_set(joint, 0.95)
    rules = PopulationRules(joint, LIP(0.5), populations=populations)
    weights, points = _stars(20, 0.05)
    rounded = rounded_in_time(rules, weights, points, 0.0)
    assert len(rounded.channel.outputs) == 5
    assert rounded.audit.satisfied
    merged = merged_outputs(weights, points, joint.p_x, 5)
    kept = utility(rounded.channel, joint).mutual_information
    before = utility(rules.rounded(*merged).channel, joint).mutual_information
    assert kept > 2.0 * before


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes on by a second whenever it is asked, where every design counts as large."""
    monkeypatch.setattr(fewer_outputs, "PROBED_FROM", 0)
    monkeypatch.setattr(fewer_outputs, "PROBED", 4)
    ticks = itertools.count()
    monkeypatch.setattr(fewer_outputs.time, "process_time", lambda: float(next(ticks)))


def _outputs(seconds: float | None) -> int:
    """The outputs of a channel of 40, of which 4 take one second to round and to verify."""
    joint = _table(40)
    rounded = rounded_in_time(Rules(joint, LIP(0.5)), *_stars(40, 0.02), seconds)
    assert rounded.audit.satisfied
    assert md.audit(rounded.channel, joint, LIP(0.5)).satisfied
    return len(rounded.channel.outputs)


def test_there_are_as_many_outputs_as_there_is_time_for(clock):
    """Forty outputs take ten seconds, and the figures twice as many."""
    assert _outputs(30.0) == 40
    assert _outputs(15.0) == 20
    assert _outputs(0.0) == 4
    assert _outputs(None) == 40


def test_more_time_gives_no_worse_channel(clock):
    joint = _table(40)
    rules = Rules(joint, LIP(0.5))
    kept = []
    for seconds in (0.0, 7.0, 15.0, 22.0, 30.0):
        rounded = rounded_in_time(rules, *_stars(40, 0.02), seconds)
        kept.append(utility(rounded.channel, joint).mutual_information)
    assert kept == sorted(kept)
    assert kept[0] < kept[-1]


def test_what_the_first_verification_loads_is_not_timed(monkeypatch):
    """It loads libraries for as many outputs, which takes 100 seconds here, and each later one a second."""
    monkeypatch.setattr(fewer_outputs, "PROBED_FROM", 0)
    monkeypatch.setattr(fewer_outputs, "PROBED", 4)
    now = [0.0]
    monkeypatch.setattr(fewer_outputs.time, "process_time", lambda: now[0])
    known = set()
    round_all = Rules.rounded

    def rounded(rules, weights, points):
        now[0] += 1.0 if len(weights) in known else 100.0
        known.add(len(weights))
        return round_all(rules, weights, points)

    monkeypatch.setattr(Rules, "rounded", rounded)
    assert _outputs(30.0) == 40


def test_a_small_design_is_rounded_at_once(monkeypatch):
    """No probe: a search that ends by itself gives the same channel on a loaded machine."""
    calls = []
    round_all = Rules.rounded
    monkeypatch.setattr(
        Rules, "rounded", lambda *given: calls.append(1) or round_all(*given)
    )
    rounded_in_time(Rules(_table(40), LIP(0.5)), *_stars(40, 0.02), 0.0)
    assert len(calls) == 1


def test_time_after_a_search_is_what_is_left_or_a_share_of_the_limit(monkeypatch):
    monkeypatch.setattr("time.process_time", lambda: 100.0)
    assert Search().afterwards() is None
    assert Search(time_limit=8.0, since=99.0).afterwards() == 7.0
    late = Search(time_limit=8.0, since=50.0).afterwards()
    assert late == AFTERWARDS_SHARE * 8.0
    assert Search(time_limit=math.inf, since=50.0).afterwards() == math.inf
