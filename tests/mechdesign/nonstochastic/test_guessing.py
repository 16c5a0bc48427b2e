"""Guessing leakages on worked examples, and how bad input is named."""

from __future__ import annotations

import math

import numpy as np
import pytest
from guessing_leakage import composed_maximal_leakage

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic import (
    JointRange,
    brute_force_leakage,
    identifiable_epsilon,
    maximal_leakage,
)
from mechdesign.nonstochastic.ranges import (
    is_identifiable,
    largest_stochastic_leakage,
    product,
    worst_attribute,
)
from tests.oracles.nonstochastic import (
    identifiable_bound,
    one_shot_attribute,
    one_shot_leakage,
    stochastic_maximal_leakage,
)
from tests.oracles.spaces import from_channel, from_function

THREE = JointRange.from_pairs([("x1", "y1"), ("x2", "y1"), ("x3", "y2")])


def test_corollary_5_maximal_leakage_is_not_symmetric():
    assert maximal_leakage(THREE) == pytest.approx(math.log2(3))
    assert maximal_leakage(THREE.reverse) == 1


def test_the_worst_attribute_merges_the_smallest_range():
    joint = from_channel(lambda x: ["even" if x % 2 == 0 else "odd"], range(7))
    worst = worst_attribute(joint)
    assert (worst.output, worst.merged, worst.n_values) == ("odd", {1, 3, 5}, 5)
    merged = brute_force_leakage(joint, lambda x: () if x in worst.merged else (x,))
    assert math.log2(worst.n_values) == maximal_leakage(joint) == merged
    assert brute_force_leakage(joint) == pytest.approx(math.log2(7 / 3))


def test_proposition_3e_fails():
    """docs/explanation/corrections.md, 'Brute-force guessing': |X| = 3 and min |X|y| = 2, twice:
    log2 6 is more than 2 log2 2.
    """
    part = JointRange.from_pairs([(1, "a"), (2, "a"), (2, "b"), (3, "b")])
    assert maximal_leakage(part) == 1
    assert composed_maximal_leakage([part, part]) == pytest.approx(math.log2(6))
    assert (
        composed_maximal_leakage([part, part])
        == maximal_leakage(product(part, part))
        > 2
    )


def test_a_composition_of_a_thousand_parts_needs_no_enumeration():
    part = JointRange.from_pairs([(1, "a"), (2, "a"), (2, "b"), (3, "b")])
    leakage = composed_maximal_leakage([part] * 1000)
    assert leakage == pytest.approx(1000 * math.log2(3))
    with pytest.raises(InputError, match="at least one joint range"):
        composed_maximal_leakage([])


def test_identifiability_is_decided_exactly():
    assert identifiable_epsilon(THREE) >= math.log2(3)
    assert is_identifiable(THREE, identifiable_epsilon(THREE))
    assert not is_identifiable(THREE, math.nextafter(identifiable_epsilon(THREE), 0))
    constant = from_function(lambda _: 0, range(5))
    assert identifiable_epsilon(constant) == 0
    assert is_identifiable(constant, 0)
    assert identifiable_bound(8, 1) == math.log2(5)
    assert identifiable_bound(8, 0) == 0


def test_one_shot_guessing_tells_the_class():
    joint = JointRange.from_pairs(
        [(0, "a"), (1, "a"), (1, "b"), (2, "c"), (3, "c"), (4, "d")]
    )
    attribute = one_shot_attribute(joint)
    assert one_shot_leakage(joint) == pytest.approx(math.log2(3))
    assert attribute[0] == attribute[1]
    assert attribute[2] == attribute[3]
    assert len(set(attribute.values())) == 3
    assert joint.map_x(attribute.__getitem__).largest_x == 1
    assert joint.map_x(lambda x: x == 0).largest_x > 1


def test_stochastic_maximal_leakage_of_known_channels():
    assert stochastic_maximal_leakage(np.eye(4)) == 2
    assert stochastic_maximal_leakage(np.full((3, 5), 0.2)) == pytest.approx(
        0, abs=1e-15
    )
    assert stochastic_maximal_leakage([[0.75, 0.25], [0.25, 0.75]]) == pytest.approx(
        math.log2(1.5)
    )
    fewer_inputs = from_channel(lambda _: "abc", [0, 1])
    assert largest_stochastic_leakage(fewer_inputs) == 1, (
        "not H0(Y) = log2 3: two inputs, three outputs"
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: stochastic_maximal_leakage([0.5, 0.5]),
            "must be a matrix with rows and columns",
        ),
        (
            lambda: stochastic_maximal_leakage([[0.5, 0.4]]),
            "row 1 of the channel sums to 0.9, not to 1",
        ),
        (lambda: stochastic_maximal_leakage([[1.5, -0.5]]), "none negative"),
        (lambda: stochastic_maximal_leakage([[math.nan, 1]]), "finite numbers"),
        (lambda: is_identifiable(THREE, -1), r"epsilon \(-1\)"),
        (lambda: is_identifiable(THREE, math.nan), "epsilon"),
        (lambda: identifiable_bound(0, 1), r"n_symbols \(0\) must be at least 1"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_nearly_equal_sizes_are_distinguished():
    """|X| = 10^5 and min |X|y| = 10^5 - 1: log2 of the ratio is 1.4e-5, to the last digit."""
    joint = JointRange.from_columns(
        [*range(10**5), *range(1, 10**5)], [0] * 10**5 + [1] * (10**5 - 1)
    )
    epsilon = identifiable_epsilon(joint)
    assert epsilon == pytest.approx(
        math.log1p(1 / (10**5 - 1)) / math.log(2), rel=1e-15
    )
    assert is_identifiable(joint, epsilon)
    assert not is_identifiable(joint, math.nextafter(epsilon, 0))
