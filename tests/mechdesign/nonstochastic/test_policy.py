"""The reporting policy against a hypothesis that moves values least, against all policies there
are.
"""

from __future__ import annotations

import csv
import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.core.errors import InputError, NotPrivate, SolverFailure
from mechdesign.nonstochastic import JointRange, hypothesis, reporting_policy
from mechdesign.nonstochastic.hypothesis import finite_problem
from tests.profiles import scaled


@st.composite
def cases(draw):
    """Points of a grid, the hypotheses that hold at each, an epsilon and a largest distance."""
    size = draw(st.integers(2, 5))
    grid = draw(st.sampled_from([LINE, SQUARE]))
    points = draw(
        st.lists(st.sampled_from(grid), min_size=size, max_size=size, unique=True)
    )
    sides = st.sampled_from([(True, False), (False, True), (True, True)])
    holds = np.array(draw(st.lists(sides, min_size=size, max_size=size)))
    if not holds.any(axis=0).all():
        holds[0] = True
    epsilon = draw(
        st.sampled_from([Fraction(0), Fraction(1, 3), Fraction(1), Fraction(5, 2)])
    )
    within = draw(st.sampled_from([1.0, 2.0, 3.0, np.inf]))
    return np.array(points, dtype=float), holds, epsilon, within


LINE = [(x,) for x in range(7)]
SQUARE = list(itertools.product(range(3), repeat=2))


def least_of_all(points, holds, epsilon, within):
    """The least mean squared distance over all maps of points to points; None if none is private."""
    squared = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    reach = [np.flatnonzero(row <= within**2).tolist() for row in squared]
    errors = []
    for reports in itertools.product(*reach):
        outputs = np.array(reports)
        opposing = set(outputs[holds[:, 0]].tolist())
        supporting = set(outputs[holds[:, 1]].tolist())
        if len(opposing & supporting) >= epsilon * len(opposing ^ supporting):
            errors.append(squared[range(len(points)), reports].mean())
    return min(errors, default=None)


@settings(max_examples=scaled(40), deadline=None)
@given(cases())
def test_no_policy_moves_values_less(case):
    """Definition 3 holds (ambiguous >= epsilon * telling, counted from the map), and no other map
    has less error.
    """
    points, holds, epsilon, within = case
    least = least_of_all(*case)
    if least is None:
        with pytest.raises(NotPrivate, match="no policy within"):
            reporting_policy(*case)
        return
    report, optimal = reporting_policy(*case)
    squared = ((points - points[report]) ** 2).sum(axis=1)
    assert optimal
    assert squared.mean() == pytest.approx(least)
    assert squared.max() <= within**2
    pairs = [((k, side), int(report[k])) for k, side in np.argwhere(holds).tolist()]
    counted = finite_problem(JointRange.from_pairs(pairs), lambda x: x[1] == 1)
    assert counted.epsilon is None or counted.epsilon >= epsilon


def test_the_survey_of_young_people(data):
    """The figures of docs/how-to/measuring-ranges.md: weights hide whether the body mass index
    reaches 30 (Example 3 of the paper).
    """
    path = data / "young-people" / "responses.csv"
    with open(path, newline="", encoding="utf-8") as stream:
        people = [
            row for row in csv.DictReader(stream) if row["Weight"] and row["Height"]
        ]
    weights = np.array([float(row["Weight"]) for row in people])
    metres = np.array([float(row["Height"]) / 100 for row in people])
    points, place = np.unique(weights[:, None], axis=0, return_inverse=True)
    holds = np.zeros((len(points), 2), dtype=bool)
    holds[place.ravel(), (weights >= 30 * metres**2).astype(int)] = True
    report, optimal = reporting_policy(points, holds, Fraction(1, 2), 10.0)
    assert optimal
    assert len(points) == 68
    opposing = set(report[holds[:, 0]].tolist())
    supporting = set(report[holds[:, 1]].tolist())
    assert len(opposing | supporting) == 18
    assert len(opposing ^ supporting) == 12
    distance = np.abs(points - points[report])
    assert (distance**2).mean() == pytest.approx(2.0882, abs=1e-4)


def test_refusals(monkeypatch):
    points = np.array([[0.0], [1.0]])
    holds = np.array([[True, False], [False, True]])
    with pytest.raises(InputError, match="a ratio of whole numbers up to 10,000"):
        reporting_policy(points, holds, Fraction(1, 10_001))
    with pytest.raises(InputError, match="must not be negative"):
        reporting_policy(points, holds, Fraction(1), -1.0)
    with pytest.raises(NotPrivate, match=r"no policy within 0.5 is 1-private"):
        reporting_policy(points, holds, Fraction(1), 0.5)
    with pytest.raises(SolverFailure, match="more time"):
        reporting_policy(points, holds, Fraction(1), time_limit=0)
    monkeypatch.setattr(hypothesis, "LARGEST_POLICY", 3)
    with pytest.raises(
        InputError, match="4 pairs of a value and a report are too many"
    ):
        reporting_policy(points, holds, Fraction(1))
