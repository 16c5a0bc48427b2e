"""Unions of intervals and boxes: exact measures, set algebra, conditional ranges."""

from __future__ import annotations

from fractions import Fraction

import pytest

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic import indistinguishability
from mechdesign.nonstochastic.indistinguishability import Boxes
from tests.oracles.measured_ranges import (
    MeasuredRange,
    box_space,
    boxes_of,
    largest_region_difference,
)

PLANE = MeasuredRange.from_boxes([([(0, 1)], [(0, 1)])])


def test_measures_are_exact_rationals():
    assert Boxes.union([[("0.1", "0.3")], [(Fraction(1, 5), 1)]]).measure == Fraction(
        9, 10
    )
    assert Boxes.interval(0, 0.1).measure == Fraction(*(0.1).as_integer_ratio())
    assert Boxes.union(
        [[(0, Fraction(1, 3)), (0, Fraction(1, 7)), (0, 3)]]
    ).measure == Fraction(1, 7)
    assert Boxes.union([[(0, 2), (0, 2)], [(1, 3), (1, 3)]]).measure == 7


def test_equal_sets_are_equal_however_they_were_written():
    halves = Boxes.union([[(0, 1), (0, 1)]]) | Boxes.union([[(1, 2), (0, 1)]])
    assert halves == Boxes.union([[(0, 2), (0, 1)]])
    assert hash(halves) == hash(Boxes.union([[(0, 2), ("0", "1")]]))
    assert halves != Boxes.union([[(0, 2), (0, 2)]])
    assert halves != "a string"


def test_set_algebra_on_the_line():
    a, b = Boxes.interval(0, 2), Boxes.interval(1, 3)
    assert a | b == Boxes.interval(0, 3)
    assert a & b == Boxes.interval(1, 2)
    assert a - b == Boxes.interval(0, 1)
    assert a ^ b == Boxes.union([[(0, 1)], [(2, 3)]])
    assert (a - a).measure == 0
    assert (a - a) | b == b
    assert repr(a ^ b) == "Boxes(1 coordinate(s), measure 2)"


def test_points_and_surfaces_have_measure_zero():
    surface = Boxes.union([[("0.5", "0.5"), (0, 1)]])
    assert surface.measure == 0
    assert Boxes.union([[(0, 1), (0, 1)]]) - surface == Boxes.union([[(0, 1), (0, 1)]])


def test_the_boxes_of_a_region_are_disjoint_and_cover_it():
    region = Boxes.union([[(0, 2), (0, 2)], [(1, 3), (1, 3)], [(5, 6), (0, 1)]])
    parts = [Boxes.union([box]) for box in boxes_of(region)]
    assert sum(part.measure for part in parts) == region.measure == 8


def test_a_quantised_interval():
    joint = MeasuredRange.from_regions(
        {"low": Boxes.interval(0, 1), "high": Boxes.interval(1, 4)}
    )
    assert joint.unit == "nats"
    assert joint.x_total == 4
    assert joint.x_measures == (1, 3)
    assert joint.reverse.x_total == 2
    assert joint.x_range() == Boxes.interval(0, 4)
    assert joint.reverse.x_range() == {"low", "high"}
    assert joint.x_given("high") == Boxes.interval(1, 4)
    assert joint.reverse.x_given(Fraction(1, 2)) == {"low"}
    assert joint.reverse.x_given(Boxes.interval("0.5", 2)) == {"low", "high"}
    assert not joint.is_unrelated()


def test_boxes_in_the_plane_have_the_conditional_ranges_of_a_picture():
    # A plus sign: x in [1, 2] with y in [0, 3], and x in [0, 3] with y in [1, 2].
    joint = MeasuredRange.from_boxes([([(1, 2)], [(0, 3)]), ([(0, 3)], [(1, 2)])])
    assert joint.x_total == 3
    assert sorted(joint.x_measures) == [1, 1, 3]
    assert (joint.smallest_x, joint.largest_x) == (1, 3)
    assert joint.x_given(0.5) == Boxes.interval(1, 2)
    assert joint.x_given([1.5]) == Boxes.interval(0, 3)
    assert joint.x_given(Boxes.interval(2, 3)) == Boxes.interval(1, 2)
    assert not joint.is_unrelated()
    assert largest_region_difference(joint) == 2


def test_unrelatedness_and_markov_chains_of_boxes():
    unrelated = MeasuredRange.from_boxes([([(0, 1)], [(0, 3)]), ([(1, 2)], [(0, 3)])])
    assert unrelated.is_unrelated()
    assert largest_region_difference(unrelated) == 0
    # Given the half of y, x and z range freely; together they do not.
    pieces = [{"x": [(k, k + 1)], "y": [(k, k + 1)], "z": [(k, k + 2)]} for k in (0, 1)]
    space = box_space(pieces)
    assert space.is_markov("x", "y", "z")
    assert not space.is_unrelated("x", "z")
    linked = box_space([*pieces, {"x": [(1, 2)], "y": [(0, 1)], "z": [(2, 3)]}])
    assert not linked.is_markov("x", "y", "z")


def test_pieces_without_volume_are_dropped():
    joint = MeasuredRange.from_boxes([([(0, 1)], [(0, 1)]), ([(0, 9)], [(1, 1)])])
    assert joint.x_total == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Boxes.interval(2, 1), r"\(2, 1\) is reversed"),
        (lambda: Boxes.interval(0, float("nan")), "not a pair of finite numbers"),
        (lambda: Boxes.interval(0, float("inf")), "not a pair of finite numbers"),
        (lambda: Boxes.interval("a", 1), "not a pair of finite numbers"),
        (
            lambda: Boxes.union([]),
            "the range is empty: give at least one interval or box",
        ),
        (lambda: Boxes.union([[]]), r"box 1 must have at least one \(low, high\) pair"),
        (
            lambda: Boxes.union([[1, 2]]),
            r"box 1, coordinate 1 must be a pair \(low, high\), not 1",
        ),
        (
            lambda: Boxes.union([[(0, 1)], [(0, 1), (0, 1)]]),
            r"box 2 must have 1 \(low, high\)",
        ),
        (
            lambda: Boxes.interval(0, 1) | Boxes.union([[(0, 1), (0, 1)]]),
            "1 and 2 coordinates cannot be combined",
        ),
        (lambda: MeasuredRange.from_boxes([]), "the joint range is empty"),
        (
            lambda: MeasuredRange.from_boxes([([(0, 1)],)]),
            r"piece 1 must be a pair \(x box, y box\)",
        ),
        (
            lambda: MeasuredRange.from_boxes([([(0, 1)], [(2, 2)])]),
            "the joint range has measure zero",
        ),
        (
            lambda: MeasuredRange.from_boxes([([(1, 0)], [(2, 2)])]),
            "x box 1, coordinate 1 .* is reversed",
        ),
        (lambda: PLANE.x_given(7), "value '7' is not in the range"),
        (lambda: PLANE.x_given((0, 0)), r"a point must have 1 coordinate\(s\), not 2"),
        (lambda: box_space([]), "at least one piece, and the same variables"),
        (
            lambda: box_space([{"x": [(0, 1)]}, {"y": [(0, 1)]}]),
            "the same variables in all of them",
        ),
        (lambda: box_space([{"x": [(0, 0)]}]), "the joint range has measure zero"),
        (lambda: MeasuredRange.from_regions({}), "the joint range is empty"),
        (
            lambda: MeasuredRange.from_regions({"y": Boxes.interval(1, 1)}),
            "output 'y' has an empty conditional range",
        ),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_tangled_boxes_are_refused_before_memory_runs_out(monkeypatch):
    monkeypatch.setattr(indistinguishability, "LARGEST_GRID", 8)
    with pytest.raises(InputError, match="9 cells, more than 8; use fewer boxes"):
        Boxes.union([[(k, k + 1), (k, k + 1)] for k in range(3)])
    monkeypatch.setattr("tests.oracles.measured_ranges.LARGEST_ENUMERATION", 3)
    with pytest.raises(InputError, match="5 pairs of cells, more than 3"):
        MeasuredRange.from_boxes([([(0, 2)], [(0, 2)]), ([(0, 1)], [(0, 1)])])
