"""The reporting policy against a hypothesis that moves values least, against all policies there are."""

from __future__ import annotations

import csv
import itertools
from fractions import Fraction

import numpy as np
import pytest
from boxes import finite_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.core.errors import InputError, NotPrivate, SolverFailure
from mechdesign.nonstochastic import JointRange, policy, reporting_policy


@st.composite
def cases(draw):
    size, dimensions = draw(st.integers(2, 5)), draw(st.integers(1, 2))
    grid = list(
        itertools.product(range(7 if dimensions == 1 else 3), repeat=dimensions)
    )
    points = draw(
        st.lists(st.sampled_from(grid), min_size=size, max_size=size, unique=True)
    )
    sides = draw(
        st.lists(
            st.sampled_from([(True, False), (False, True), (True, True)]),
            min_size=size,
            max_size=size,
        )
    )
    holds = np.array(sides)
    if not holds.any(axis=0).all():
        holds[0] = True
    epsilon = draw(
        st.sampled_from([Fraction(0), Fraction(1, 3), Fraction(1), Fraction(5, 2)])
    )
    return (
        np.array(points, dtype=float),
        holds,
        epsilon,
        draw(st.sampled_from([1.0, 2.0, 3.0, np.inf])),
    )


def least_of_all(points, holds, epsilon, within):
    """The least mean squared distance over all maps of points to points; None if none is private."""
    squared, best = ((points[:, None] - points[None]) ** 2).sum(axis=2), None
    reach = [np.flatnonzero(row <= within**2).tolist() for row in squared]
    for chosen in itertools.product(*reach):
        no, yes = (
            {out for out, held in zip(chosen, side, strict=True) if held}
            for side in holds.T
        )
        if len(no & yes) >= epsilon * len(no ^ yes):
            error = squared[range(len(points)), chosen].mean()
            best = error if best is None else min(best, error)
    return best


@settings(max_examples=40, deadline=None)
@given(cases())
def test_no_policy_moves_values_less(case):
    """Definition 3 holds (ambiguous >= epsilon * telling, counted from the map), and no other map has less error."""
    points, holds, epsilon, within = case
    least = least_of_all(*case)
    if least is None:
        with pytest.raises(NotPrivate, match="no policy within"):
            reporting_policy(*case)
        return
    report, optimal = reporting_policy(*case)
    away = ((points - points[report]) ** 2).sum(axis=1)
    assert optimal
    assert away.mean() == pytest.approx(least)
    assert away.max() <= within**2
    pairs = [((k, side), int(report[k])) for k, side in np.argwhere(holds).tolist()]
    counted = finite_problem(JointRange.from_pairs(pairs), lambda x: x[1] == 1)
    assert counted.epsilon is None or counted.epsilon >= epsilon


def test_the_survey_of_young_people(data):
    """The figures of docs/how-to/measuring-ranges.md: weights hide whether the body mass index reaches 30 (Example 3 of the paper)."""
    with open(
        data / "young-people" / "responses.csv", newline="", encoding="utf-8"
    ) as stream:
        people = [
            (float(r["Weight"]), float(r["Height"]))
            for r in csv.DictReader(stream)
            if r["Weight"] and r["Height"]
        ]
    weights = np.array([weight for weight, _ in people])
    points, place = np.unique(weights[:, None], axis=0, return_inverse=True)
    holds = np.zeros((len(points), 2), dtype=bool)
    holds[
        place, [int(weight >= 30 * (height / 100) ** 2) for weight, height in people]
    ] = True
    report, optimal = reporting_policy(points, holds, Fraction(1, 2), 10.0)
    yes, no = (set(report[side].tolist()) for side in holds.T[::-1])
    away = np.abs(points - points[report])
    assert (optimal, len(points), len(yes | no), len(yes ^ no)) == (True, 68, 18, 12)
    assert (away**2).mean() == pytest.approx(2.0882, abs=1e-4)


def test_refusals(monkeypatch):
    points, holds = np.array([[0.0], [1.0]]), np.array([[True, False], [False, True]])
    with pytest.raises(InputError, match="a ratio of whole numbers up to 10,000"):
        reporting_policy(points, holds, Fraction(1, 10_001))
    with pytest.raises(InputError, match="must not be negative"):
        reporting_policy(points, holds, Fraction(1), -1.0)
    with pytest.raises(NotPrivate, match=r"no policy within 0.5 is 1-private"):
        reporting_policy(points, holds, Fraction(1), 0.5)
    with pytest.raises(SolverFailure, match="more time"):
        reporting_policy(points, holds, Fraction(1), time_limit=0)
    monkeypatch.setattr(policy, "LARGEST_POLICY", 3)
    with pytest.raises(
        InputError, match="4 pairs of a value and a report are too many"
    ):
        reporting_policy(points, holds, Fraction(1))
