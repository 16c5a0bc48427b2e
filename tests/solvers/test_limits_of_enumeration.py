"""Time limits of enumerations: they stop in the middle of a walk."""

from __future__ import annotations

import numpy as np
import pytest

from solvers import EnvelopeStatus, OutOfTime, Polytope, lower_envelope
from solvers.enumeration import vertices
from tests.ending import ends_by_itself
from tests.solvers.reference import lift_matrix, random_table, table_polytope


def many_vertices() -> tuple[Polytope, np.ndarray]:
    p = random_table(np.random.default_rng(0), "random", 6, 70)
    return Polytope(
        lift_matrix(p), np.full(6, np.exp(-0.5)), np.full(6, np.exp(0.5))
    ), p.sum(axis=0)


@pytest.mark.parametrize("method", ["auto", "pivot"])
def test_a_walk_stops_at_its_limit(method):
    """Half a million vertices take many seconds; the limit does not wait for them."""
    expected = "the vertices were not enumerated in time; allow more seconds"
    with ends_by_itself(), pytest.raises(OutOfTime, match=expected):
        vertices(many_vertices()[0], method, time_limit=0.2)


def test_no_time_at_all():
    polytope, _ = table_polytope(np.random.default_rng(0), "random", "both", 3, 6)
    with pytest.raises(OutOfTime):
        vertices(polytope, time_limit=0.0)


def test_the_envelope_by_vertices_keeps_its_limit():
    """What is known at the start is returned, with the bound that costs are not negative."""
    polytope, target = many_vertices()
    found = lower_envelope(polytope, target, method="vertices", time_limit=0.2)
    assert found.status is EnvelopeStatus.TIME_LIMIT
    assert found.bound == 0.0
    assert found.seconds < 30.0
    np.testing.assert_allclose(found.points.combine(found.weights), target, rtol=1e-7)
