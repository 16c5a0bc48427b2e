"""Least variance over the sets of a staircase, against all vertices at once."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mechdesign as md
from mechdesign.mechanisms.rules import Rules
from solvers import vertices
from solvers.pricing.separate import staircase, staircase_vertices
from solvers.purposes import queries
from solvers.purposes.queries import least_variance, least_variance_of_sets


def column(n, seed=0):
    counts = np.random.default_rng(seed).integers(5, 90, n)
    labels = [f"v{x}" for x in range(n)]
    joint = md.Joint.from_counts(
        np.diag(counts).tolist(),
        sensitive="v",
        useful="v",
        sensitive_labels=labels,
        useful_labels=labels,
    )
    return joint.p_x, Rules(joint, md.LDP(1.0)).relaxation


@pytest.mark.parametrize("n", [2, 3, 5])
def test_vertices_are_the_sets(n):
    _, polytope = column(n)
    listed = staircase_vertices(polytope, 1000)
    assert len(listed) == 2**n - 2
    walked = vertices(polytope, "pivot").points
    assert len(walked) == len(listed)
    for vertex in walked:
        assert np.abs(listed - vertex).max(axis=1).min() < 1e-9
    assert staircase_vertices(polytope, 2**n - 3) is None
    assert np.array_equal(vertices(polytope).points, np.array(sorted(listed.tolist())))


@pytest.mark.parametrize("listed", [16, 0])
@pytest.mark.parametrize("n", [4, 8])
def test_the_variance_is_that_of_all_vertices(n, listed, monkeypatch):
    """Whether all sets are looked at, or single coordinates exchanged."""
    monkeypatch.setattr(queries, "MOST_LISTED", listed)
    point, polytope = column(n, seed=n)
    gram = np.tril(np.ones((n, n))).T @ np.tril(np.ones((n, n)))
    expected = least_variance(vertices(polytope).points, point, gram, gap=1e-6)
    stairs = staircase(polytope)
    found = least_variance_of_sets(stairs, stairs, point, gram, gap=1e-4)
    assert found.value == pytest.approx(expected.value, rel=2e-4)
    assert np.allclose(found.weights @ found.points.toarray(), point, atol=1e-9)
    if listed:
        assert found.value * (1 - 2e-4) <= found.bound <= expected.value
    else:
        assert found.bound == -math.inf
        assert found.prices is None
