"""Entropies and leakages on worked examples, zero-error bounds, and the size of a million pairs."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.nonstochastic import (
    JointRange,
    brute_force_leakage,
    capacity_bounds,
    maximal_leakage,
    one_shot_code,
    overlap_partition,
    range_leakage,
    range_report,
    symmetric_leakage,
    zero_error,
)
from mechdesign.nonstochastic.indistinguishability import Boxes
from mechdesign.nonstochastic.zero_error import fractional_cover, theta_bound
from solvers.errors import BackendFailure
from solvers.programs import theta_matrix
from tests.oracles.measured_ranges import MeasuredRange
from tests.oracles.nonstochastic import maximin_information, subrange_leakage, x_sets
from tests.oracles.spaces import from_channel, from_function

PENTAGON = from_channel(lambda x: [x, (x + 1) % 5], range(5))
HUB = from_channel(lambda x: range(1, 10) if x == 0 else [x], range(10))


def test_example_1_an_unfair_dice():
    """Farokhi 2020, Example 1: X in {1..6}, Y says whether it is even."""
    dice = from_function(lambda x: "yes" if x % 2 == 0 else "no", range(1, 7))
    assert dice.x_given("yes") == {2, 4, 6}
    assert dice.x_given("no") == {1, 3, 5}
    assert range_report(dice).entropy == pytest.approx(math.log2(6), abs=1e-15)
    assert range_report(dice).conditional_entropy == pytest.approx(
        math.log2(3), abs=1e-15
    )
    assert range_report(dice).information == range_leakage(dice) == 1
    assert range_leakage(dice.reverse) == 1
    assert maximin_information(dice) == 1
    assert x_sets(dice) == [frozenset({1, 3, 5}), frozenset({2, 4, 6})]


def test_leakage_is_worst_case_and_not_symmetric():
    joint = JointRange.from_pairs([(1, "a"), (2, "a"), (3, "b")])
    assert range_report(joint).information == pytest.approx(math.log2(3 / 2))
    assert range_leakage(joint) == pytest.approx(math.log2(3))
    assert range_leakage(joint.reverse) == 1
    assert symmetric_leakage(joint) == symmetric_leakage(joint.reverse) == 1


def test_a_continuous_range_is_measured_in_nats():
    joint = MeasuredRange.from_regions(
        {0: Boxes.interval(0, 1), 1: Boxes.interval(1, 4)}
    )
    report = range_report(joint)
    assert report.unit == "nats"
    assert report.entropy == pytest.approx(math.log(4))
    assert report.conditional_entropy == pytest.approx(math.log(3))
    assert report.information == pytest.approx(math.log(4 / 3))
    assert report.leakage == pytest.approx(math.log(4))
    assert (
        report.leakage_reverse
        == report.symmetric_leakage
        == report.maximin
        == pytest.approx(math.log(2))
    )
    assert report.classes == 2
    assert maximin_information(joint) == 1, "a number of classes is in bits even here"


def test_ranges_that_merely_touch_are_not_connected():
    touching = MeasuredRange.from_boxes([([(0, 1)], [(0, 1)]), ([(1, 2)], [(1, 2)])])
    assert overlap_partition(touching)[0] == 2
    sharing = MeasuredRange.from_boxes(
        [([(0, 1)], [(0, "1.001")]), ([(1, 2)], [(1, 2)])]
    )
    assert overlap_partition(sharing)[0] == 1


def test_a_null_set_changes_nothing():
    """The essential supremum ignores an output that occurs at a single point."""
    plain = range_report(MeasuredRange.from_boxes([([(0, 4)], [(0, 1)])]))
    spiked = range_report(
        MeasuredRange.from_boxes([([(0, 4)], [(0, 1)]), ([(0, 1)], [(2, 2)])])
    )
    assert spiked == plain
    assert plain.leakage == 0


def test_the_full_range_alone_bounds_no_capacity():
    """docs/explanation/ranges-theory.md, 'Zero-error capacity': a hub and 9 leaves have L0s = log2
    5, yet the leaves carry log2 9 bits.
    """
    assert symmetric_leakage(HUB) == pytest.approx(math.log2(5))
    code = one_shot_code(HUB)
    assert (set(code.codewords), code.is_optimal, code.proof) == (
        set(range(1, 10)),
        True,
        "cover",
    )
    assert subrange_leakage(HUB) == fractional_cover(HUB) == 9
    bounds = capacity_bounds(HUB)
    assert bounds.lower <= math.log2(9) <= bounds.upper
    assert bounds.upper - bounds.lower < 1e-14


def test_no_code_is_searched_for_that_the_upper_bound_excludes(monkeypatch):
    """The theta number sqrt(5) leaves 11 words of three uses, and the code of two uses is worth 5 ** 1.5 > 11."""
    searched = []

    def watched(joint, *, uses=1, **options):
        searched.append(uses)
        return one_shot_code(joint, uses=uses, **options)

    monkeypatch.setattr(zero_error, "one_shot_code", watched)
    assert capacity_bounds(PENTAGON).code.size == 5
    assert searched == [1, 2]


def test_one_use_is_not_the_capacity():
    """Farokhi and Ding 2020, Remark 2, takes C0 for the one-shot value; the pentagon has more
    (Shannon).
    """
    assert one_shot_code(PENTAGON).size == 2
    twice = one_shot_code(PENTAGON, uses=2)
    assert (twice.size, twice.upper_bound, twice.is_optimal) == (5, 5, True)
    for (a, b), (c, d) in (
        (p, q) for p in twice.codewords for q in twice.codewords if p != q
    ):
        assert (c - a) % 5 in (2, 3) or (d - b) % 5 in (2, 3)
    bounds = capacity_bounds(PENTAGON)
    assert bounds.cover == Fraction(5, 2)
    assert (bounds.uses, bounds.code) == (2, twice)
    assert bounds.lower <= math.log2(5) / 2 <= bounds.upper
    assert bounds.upper - bounds.lower < 1e-8, (
        "Lovász 1979: the capacity is log2 sqrt(5)"
    )


def cycle(n):
    """Each input is confused with the two next to it."""
    return JointRange.from_pairs([(i, j) for i in range(n) for j in (i, (i + 1) % n)])


@pytest.mark.parametrize("n", [5, 7, 9, 11])
def test_theta_of_odd_cycles(n):
    """theta(C_n) = n cos(pi/n) / (1 + cos(pi/n)) for odd n (Lovász 1979, Corollary 5)."""
    exact = n * math.cos(math.pi / n) / (1 + math.cos(math.pi / n))
    assert exact * (1 - 1e-12) <= theta_bound(cycle(n)) <= exact * (1 + 1e-6)


def test_theta_is_proven_whatever_the_solver_proposes(monkeypatch):
    """A bad matrix gives a bad bound, never a wrong one, and so do bad eigenvalues."""
    exact = math.sqrt(5)

    def noisy(vertices, edges):
        rng = np.random.default_rng(3)
        matrix = theta_matrix(vertices, edges)
        for i, j in edges.tolist():
            matrix[i, j] = matrix[j, i] = matrix[i, j] + rng.normal() / 10
        return matrix

    monkeypatch.setattr(zero_error, "theta_matrix", noisy)
    assert exact <= theta_bound(PENTAGON) <= 5
    monkeypatch.setattr(
        np.linalg, "eigh", lambda matrix: (np.arange(len(matrix)) * 0.1, matrix / 9)
    )
    assert exact <= theta_bound(PENTAGON) <= 5
    monkeypatch.setattr(
        np.linalg, "eigh", lambda matrix: (np.full(len(matrix), np.nan), matrix)
    )
    assert theta_bound(PENTAGON) == 5, "unproven, so all the inputs remain"

    def fails(vertices, edges):
        raise BackendFailure("Clarabel ended with 'infeasible'")

    monkeypatch.setattr(zero_error, "theta_matrix", fails)
    with pytest.raises(SolverFailure, match="Clarabel ended"):
        theta_bound(PENTAGON)
    with pytest.raises(
        InputError, match="has 65 inputs, and 64 is the most for a theta number"
    ):
        theta_bound(cycle(65))


def test_powers_of_two_are_not_blurred_by_rounding():
    identity = capacity_bounds(from_function(lambda x: x, range(8)))
    assert (identity.lower, identity.upper) == (3, 3)
    constant = capacity_bounds(from_function(lambda _: 0, range(8)))
    assert (constant.lower, constant.upper) == (0, 0)


def test_a_large_channel_falls_back_on_leakages(monkeypatch):
    monkeypatch.setattr(zero_error, "LARGEST_PROGRAM", 5)
    bounds = capacity_bounds(HUB)
    assert bounds.code is None
    assert bounds.lower == 0
    assert bounds.upper == pytest.approx(math.log2(9))
    with pytest.raises(
        InputError, match="18 pairs, more than the 5 of a MILP; use capacity_bounds"
    ):
        one_shot_code(HUB)
    with pytest.raises(InputError, match="18 pairs, more than 5; use leakages"):
        fractional_cover(HUB)


def test_bad_requests_are_named():
    with pytest.raises(
        InputError, match=r"uses \(0\) and time_limit \(60 s\) must be positive"
    ):
        one_shot_code(HUB, uses=0)
    with pytest.raises(InputError, match="X has 17 values, and 16 is the most"):
        subrange_leakage(from_function(lambda x: x, range(17)))


def test_a_code_that_shares_an_output_is_not_believed(monkeypatch):
    monkeypatch.setattr(
        zero_error,
        "_largest_packing",
        lambda joint, time_limit: (np.ones(joint.shape[0]), float(joint.shape[0])),
    )
    with pytest.raises(SolverFailure, match="inputs that share an output"):
        one_shot_code(PENTAGON)


def test_a_poor_cover_is_scaled_until_it_covers(monkeypatch):
    """Whatever the solver proposes, the bound is proven: too small a cover is scaled up exactly."""
    monkeypatch.setattr(
        zero_error, "_smallest_cover", lambda joint: np.full(joint.shape[1], 0.4)
    )
    assert fractional_cover(PENTAGON) == Fraction(5, 2)
    monkeypatch.setattr(
        zero_error, "_smallest_cover", lambda joint: np.zeros(joint.shape[1])
    )
    assert fractional_cover(PENTAGON) == Fraction(5, 2), (
        "without a cover, L0(Y;X) remains"
    )


def test_many_pairs_partition_and_leakages():
    """200,000 pairs with a known answer: 20,000 shuffled blocks of 5 x 2 pairs, one thinned out."""
    rng = np.random.default_rng(5)
    block = np.repeat(np.arange(20_000), 10)
    within = np.tile(np.arange(10), 20_000)
    x, y = block * 5 + within % 5, block * 2 + within // 5
    kept = (block > 0) | (within == 0)
    order = rng.permutation(int(kept.sum()))
    x, y = (
        rng.permutation(100_000)[x][kept][order],
        rng.permutation(40_000)[y][kept][order],
    )
    joint = JointRange.from_columns(x, y)
    report = range_report(joint)
    assert joint.n_pairs == 199_991
    assert report.classes == 20_000
    assert report.maximin == maximin_information(joint) == math.log2(20_000)
    assert report.entropy == math.log2(99_996)
    assert report.entropy_reverse == math.log2(39_999)
    assert report.conditional_entropy == math.log2(5)
    assert report.conditional_entropy_reverse == 1
    assert report.leakage == brute_force_leakage(joint) == math.log2(99_996)
    assert report.leakage_reverse == report.symmetric_leakage == math.log2(39_999)
    assert maximal_leakage(joint) == math.log2(99_996)
