"""Theorems on ranges, information and zero-error capacity, against brute force on small relations."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.nonstochastic import (
    JointRange,
    capacity_bounds,
    maximal_leakage,
    one_shot_code,
    range_leakage,
    range_report,
    symmetric_leakage,
)
from mechdesign.nonstochastic.indistinguishability import Boxes
from mechdesign.nonstochastic.ranges import product as unrelated_product
from mechdesign.nonstochastic.zero_error import fractional_cover, theta_bound
from tests.oracles.measured_ranges import MeasuredRange, boxes_of
from tests.oracles.nonstochastic import (
    chain,
    maximin_information,
    restrict_x,
    subrange_leakage,
    x_sets,
)
from tests.oracles.spaces import UncertainSpace
from tests.profiles import scaled

CLOSE = 1e-12

relations = st.sets(
    st.tuples(st.integers(0, 5), st.integers(0, 4)), min_size=1, max_size=16
).map(sorted)
intervals = st.tuples(st.integers(0, 4), st.integers(1, 4)).map(
    lambda s: (s[0], s[0] + s[1])
)


def conditionals(pairs):
    """[[X|y]] for every y, as plain sets."""
    return {y: {a for a, b in pairs if b == y} for _, y in pairs}


@given(relations)
def test_measures_are_those_of_their_definitions(pairs):
    joint = JointRange.from_pairs(pairs)
    n_x = len({x for x, _ in pairs})
    sizes = [len(xs) for xs in conditionals(pairs).values()]
    assert range_report(joint).entropy == math.log2(n_x)
    assert range_report(joint).conditional_entropy == math.log2(max(sizes))
    assert range_report(joint).information == pytest.approx(
        math.log2(n_x / max(sizes)), abs=CLOSE
    )
    assert range_leakage(joint) == pytest.approx(math.log2(n_x / min(sizes)), abs=CLOSE)


@given(relations)
def test_the_overlap_partition_is_the_finest_one_that_no_conditional_range_crosses(
    pairs,
):
    """Nair 2013; and |[[X|Y]]_*| = |[[Y|X]]_*|."""
    joint = JointRange.from_pairs(pairs)
    classes: list[set[int]] = []
    for xs in conditionals(pairs).values():
        met = [c for c in classes if c & xs]
        classes = [c for c in classes if not c & xs] + [xs.union(*met)]
    assert set(x_sets(joint)) == {frozenset(c) for c in classes}
    assert maximin_information(joint) == maximin_information(joint.reverse)


@given(relations)
def test_the_chain_of_informations(pairs):
    """I* <= L0s(X;Y) <= L0(Y;X), and I0 <= L0 (Farokhi 2019, Prop. 1)."""
    joint = JointRange.from_pairs(pairs)
    assert maximin_information(joint) <= symmetric_leakage(joint) + CLOSE
    assert symmetric_leakage(joint) <= range_leakage(joint.reverse)
    assert range_report(joint).information <= range_leakage(joint) + CLOSE


@given(relations, relations)
def test_leakage_of_unrelated_pairs_adds(first, second):
    """L0 of a product is the sum; I* too."""
    a = JointRange.from_pairs(first)
    b = JointRange.from_pairs(second)
    both = unrelated_product(a, b)
    assert range_leakage(both) == pytest.approx(
        range_leakage(a) + range_leakage(b), abs=CLOSE
    )
    assert maximin_information(both) == pytest.approx(
        maximin_information(a) + maximin_information(b), abs=CLOSE
    )


@given(relations, relations)
def test_what_is_chained_is_a_markov_chain(first, second):
    """chain() gives X - Y - Z, and Z leaks no more of X than Y does (data processing)."""
    ys = {y for _, y in first}
    channel = [(y, z) for y, z in second if y in ys] + [(y, "lost") for y in ys]
    triples = [(x, y, z) for x, y in first for y2, z in channel if y == y2]
    space = UncertainSpace.from_columns({"x": [t[0] for t in triples], "y": [t[1] for t in triples],
                                         "z": [t[2] for t in triples]})  # fmt: skip
    assert space.is_markov("x", "y", "z")
    assert space.is_markov("z", "y", "x")
    joint = chain(JointRange.from_pairs(first), JointRange.from_pairs(channel))
    assert set(joint.pairs()) == set(space.joint("x", "z").pairs())
    assert range_leakage(joint) <= range_leakage(JointRange.from_pairs(first)) + CLOSE


@given(st.sets(st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=12))
def test_unrelatedness_by_its_definition(outcomes):
    """X and Z are unrelated given Y iff [[X|z,y]] = [[X|y]] for all (z, y) that occur."""
    space = UncertainSpace.from_columns(
        dict(zip("xyz", zip(*sorted(outcomes), strict=True), strict=True))
    )
    by_definition = all(
        {a for a, b, c in outcomes if (b, c) == (y, z)}
        == {a for a, b, _ in outcomes if b == y}
        for _, y, z in outcomes
    )
    assert space.is_markov("x", "y", "z") == by_definition
    xs = {o[0] for o in outcomes}
    zs = {o[2] for o in outcomes}
    assert space.is_unrelated("x", "z") == (
        {(o[0], o[2]) for o in outcomes} == set(product(xs, zs))
    )


def largest_code(pairs):
    """Independence number by trying all sets of inputs, largest first."""
    outputs = {x: {b for a, b in pairs if a == x} for x, _ in pairs}
    for size in range(len(outputs), 0, -1):
        for code in combinations(outputs, size):
            if all(not outputs[a] & outputs[b] for a, b in combinations(code, 2)):
                return size
    return 0


@settings(max_examples=scaled(60))
@given(relations)
def test_one_shot_code_is_the_independence_number(pairs):
    code = one_shot_code(JointRange.from_pairs(pairs))
    outputs = [{b for a, b in pairs if a == word} for word in code.codewords]
    assert all(not a & b for a, b in combinations(outputs, 2))
    assert code.size == code.upper_bound == largest_code(pairs)


@settings(max_examples=scaled(60))
@given(relations)
def test_zero_error_bounds_as_corrected(pairs):
    """log2 alpha <= C0 <= log2 cover <= sup over sub-ranges of L0s <= min(L0(Y;X), L*(X -> Y))."""
    joint = JointRange.from_pairs(pairs)
    cover = fractional_cover(joint)
    xs = joint.x_symbols
    by_hand = max(
        symmetric_leakage(restrict_x(joint, kept))
        for size in range(1, len(xs) + 1)
        for kept in combinations(xs, size)
    )
    subranges = subrange_leakage(joint)
    assert math.log2(subranges) == pytest.approx(by_hand, abs=CLOSE)
    assert largest_code(pairs) <= cover <= subranges
    assert (
        math.log2(subranges)
        <= min(range_leakage(joint.reverse), maximal_leakage(joint)) + CLOSE
    )
    bounds = capacity_bounds(joint)
    assert maximin_information(joint) <= bounds.lower + CLOSE
    assert bounds.lower <= bounds.upper


@settings(max_examples=scaled(15), deadline=None)
@given(relations)
def test_theta_lies_between_code_and_cover(pairs):
    """alpha(G) <= theta(G) <= fractional cover by conditional ranges, which are cliques (Lovász
    1979).
    """
    joint = JointRange.from_pairs(pairs)
    theta = theta_bound(joint)
    assert largest_code(pairs) <= theta <= float(fractional_cover(joint)) * (1 + 1e-5)


@settings(max_examples=scaled(25))
@given(
    st.sets(
        st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=9
    ).map(sorted)
)
def test_two_uses_obey_the_bound(pairs):
    joint = JointRange.from_pairs(pairs)
    twice = one_shot_code(joint, uses=2)
    assert one_shot_code(joint).size ** 2 <= twice.size <= fractional_cover(joint) ** 2


@given(st.lists(st.tuples(intervals, intervals), min_size=1, max_size=5))
def test_boxes_with_whole_endpoints_are_sets_of_unit_cells(pieces):
    """A continuous range made of unit squares has the measures of the discrete range of squares."""
    cells = {
        (x, y) for (a, b), (c, d) in pieces for x in range(a, b) for y in range(c, d)
    }
    discrete = JointRange.from_pairs(cells)
    continuous = MeasuredRange.from_boxes([([xs], [ys]) for xs, ys in pieces])
    expected = range_report(discrete)
    found = range_report(continuous)
    for name in (
        "entropy",
        "conditional_entropy",
        "information",
        "leakage",
        "leakage_reverse",
        "maximin",
    ):
        assert getattr(found, name) == pytest.approx(
            getattr(expected, name) * math.log(2), abs=CLOSE
        )
    assert found.maximin <= found.symmetric_leakage + CLOSE
    assert Boxes.union([(xs, ys) for xs, ys in pieces]).measure == len(cells)


@given(
    st.lists(st.tuples(intervals, intervals), max_size=4),
    st.lists(st.tuples(intervals, intervals), max_size=4),
)
def test_set_algebra_of_regions_is_that_of_sets(first, second):
    def squares(boxes):
        return {
            (x, y) for (a, b), (c, d) in boxes for x in range(a, b) for y in range(c, d)
        }

    def region(boxes):
        return Boxes.union([*boxes, ((0, 0), (0, 0))])

    a = squares(first)
    b = squares(second)
    left = region(first)
    right = region(second)
    for ours, theirs in (
        (left | right, a | b),
        (left & right, a & b),
        (left - right, a - b),
        (left ^ right, a ^ b),
    ):
        assert ours == region([((x, x + 1), (y, y + 1)) for x, y in theirs])
        assert ours.measure == len(theirs)
        assert sum(
            (Boxes.union([box]).measure for box in boxes_of(ours)), Fraction(0)
        ) == len(theirs)
    assert (not (left - right).measure) == (a <= b)
