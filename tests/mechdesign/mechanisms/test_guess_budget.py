"""Budgets on the success of the best guess: against an oracle, exactly, and refusals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.auditing.averages import average_leakage
from mechdesign.auditing.measures import best_guess
from mechdesign.core.errors import InputError
from tests.oracles.guessing import most_information
from tests.profiles import scaled

JOINT = md.Joint.from_counts([[8, 3, 1, 5], [2, 6, 4, 5], [1, 1, 9, 5]])


def tables(sensitive):
    rows = st.lists(st.integers(1, 30), min_size=4, max_size=4)
    return st.lists(rows, min_size=sensitive, max_size=sensitive)


def success(channel, joint) -> Fraction:
    """sum_y max_s P(s, y), straight from the integers."""
    total = Fraction(0)
    rows = [list(row) for row in channel.rows]
    for y in range(len(channel.outputs)):
        masses = []
        for row in joint.counts:
            mass = sum(c * rows[x][y] for x, c in enumerate(row))
            masses.append(mass)
        total += Fraction(max(masses), joint.total * channel.denominator)
    return total


@settings(max_examples=scaled(25))
@given(st.one_of(tables(2), tables(3)), st.floats(0.05, 0.95))
def test_the_optimum_is_that_of_the_oracle(counts, share):
    """Between the success without a release and that of X itself."""
    joint = md.Joint.from_counts(counts)
    without = max(joint.sensitive_counts) / joint.total
    whole = sum(max(column) for column in zip(*counts, strict=True)) / joint.total
    if whole - without < 1e-3:
        return
    budget = without + share * (whole - without)
    found = md.design(joint, average={"guess": budget}, gap=1e-4)
    best = most_information(joint.p, budget) / -(joint.p_x * np.log(joint.p_x)).sum()
    assert found.nmi == pytest.approx(best, abs=3e-4)
    assert found.certificate.upper_bound_nmi >= best - 1e-9
    after, before = best_guess(found.channel, joint)
    assert before == Fraction(max(joint.sensitive_counts), joint.total)
    assert before <= after <= Fraction(budget)


def test_the_success_is_exact():
    design = md.design(JOINT, average={"guess": "55%"})
    after, before = best_guess(design.channel, JOINT)
    assert after == success(design.channel, JOINT)
    assert before == Fraction(17, 50)
    (average,) = design.channel.record.averages
    assert average.measure == "guess"
    assert average.budget == 0.55
    leakage = average_leakage(design.channel, JOINT, "guess")
    assert leakage == average.achieved
    assert Fraction(leakage) >= after
    assert Fraction(np.nextafter(leakage, 0.0)) < after


def test_beside_a_notion_and_other_averages():
    design = md.design(JOINT, md.LIP(0.5), average={"guess": 0.45, "mi": "30%"})
    after, _ = best_guess(design.channel, JOINT)
    assert after <= Fraction(0.45)
    alone = md.design(JOINT, md.LIP(0.5))
    assert design.nmi <= alone.certificate.upper_bound_nmi + 1e-9


def test_least_success_that_keeps_a_share():
    """The bound is one on all channels that keep the share, also that of the opposite problem."""
    design = md.design(JOINT, average={"guess": None}, keep=0.6)
    (average,) = design.channel.record.averages
    assert design.nmi >= 0.6
    assert 0.34 <= average.lower_bound <= average.achieved
    assert average.achieved - average.lower_bound < 1e-3
    back = md.design(JOINT, average={"guess": average.achieved})
    assert back.nmi >= 0.6 - 1e-3


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("30%", r"must be above 34 %, the share that is guessed right without"),
        (0.33, r"must be above 34 %"),
        ("101%", "at most 100 %"),
        (1.5, "at most 100 %"),
        ("many", "must be a number, or a per cent"),
        ("x%", "must be a number, or a per cent"),
        (None, "the average guess"),
    ],
)
def test_budgets_that_are_none(value, message):
    with pytest.raises(InputError, match=message):
        md.design(JOINT, average={"guess": value})


def test_a_column_that_improves_no_guess():
    """X may tell of S and still leave the best guess what it was."""
    joint = md.Joint.from_counts([[9, 8], [1, 2]])
    with pytest.raises(InputError, match="nothing to limit"):
        md.design(joint, average={"guess": None}, keep=0.5)
