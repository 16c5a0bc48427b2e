"""Farokhi and Ding 2020: every proposition, by brute force over all features of small ranges."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from guessing_leakage import composed_maximal_leakage
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.nonstochastic import (
    JointRange,
    brute_force_leakage,
    identifiable_epsilon,
    maximal_leakage,
)
from mechdesign.nonstochastic.ranges import (
    is_identifiable,
    largest_stochastic_leakage,
    range_report,
    worst_attribute,
)
from mechdesign.nonstochastic.ranges import product as unrelated_product
from tests.oracles.nonstochastic import (
    chain,
    identifiable_bound,
    maximin_information,
    one_shot_attribute,
    one_shot_leakage,
    stochastic_maximal_leakage,
)
from tests.oracles.spaces import from_function
from tests.profiles import scaled

CLOSE = 1e-12

relations = st.sets(
    st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=12
).map(sorted)
joints = relations.map(JointRange.from_pairs)


def features(symbols):
    """Every feature of X up to the names of its values: all partitions, as tables."""
    for labels in product(range(len(symbols)), repeat=len(symbols)):
        if all(
            label <= max(labels[:k], default=-1) + 1 for k, label in enumerate(labels)
        ):
            yield dict(zip(symbols, labels, strict=True))


def guesses(pairs, feature):
    """|U| and the least |U|y| by plain sets."""
    fewest = min(len({feature[x] for x, b in pairs if b == y}) for _, y in pairs)
    return len({feature[x] for x, _ in pairs}), fewest


@given(joints, st.lists(st.integers(0, 2), min_size=5, max_size=5), relations)
def test_proposition_1_data_processing(joint, labels, further):
    """U - X - Y - Z: L(U -> Z) <= L(U -> Y)."""
    post = JointRange.from_pairs([*further, *((y, "y") for y in joint.y_symbols)])
    released = chain(joint, post)
    assert (
        brute_force_leakage(released, labels.__getitem__)
        <= brute_force_leakage(joint, labels.__getitem__) + CLOSE
    )


@given(joints, st.lists(st.integers(0, 2), min_size=5, max_size=5))
def test_proposition_2_leakage_is_non_negative_and_zero_if_unrelated(joint, labels):
    expected = math.log2(np.divide(*guesses(joint.pairs(), dict(enumerate(labels)))))
    assert brute_force_leakage(joint, labels.__getitem__) == pytest.approx(
        expected, abs=CLOSE
    )
    assert expected >= 0
    unrelated = JointRange.from_columns(
        *zip(*product(joint.x_symbols, "ab"), strict=True)
    )
    assert brute_force_leakage(unrelated, labels.__getitem__) == 0


@given(joints)
def test_proposition_3_a_to_c(joint):
    """L* >= 0; L* = 0 iff unrelated; L* <= H0(X), with equality for Y = X."""
    assert (maximal_leakage(joint) == 0) == (joint.n_pairs == math.prod(joint.shape))
    assert 0 <= maximal_leakage(joint) <= range_report(joint).entropy
    identity = from_function(lambda x: x, joint.x_symbols)
    assert maximal_leakage(identity) == range_report(identity).entropy


@given(joints, relations)
def test_proposition_3_d_data_processing(joint, further):
    post = JointRange.from_pairs([*further, *((y, "y") for y in joint.y_symbols)])
    assert maximal_leakage(chain(joint, post)) <= maximal_leakage(joint)


@given(joints, joints)
def test_proposition_3_e_as_corrected(first, second):
    """L* of unrelated pairs is at least the sum, and exactly Proposition 4 on the product."""
    together = composed_maximal_leakage([first, second])
    assert together == maximal_leakage(unrelated_product(first, second))
    assert together >= maximal_leakage(first) + maximal_leakage(second) - CLOSE


@settings(max_examples=scaled(60))
@given(joints)
def test_proposition_4_over_all_features(joint):
    """L* = log2(|X| - min |X|y| + 1) is the largest leakage of any feature; Remark 1 attains it."""
    pairs = joint.pairs()
    largest = max(
        np.divide(*guesses(pairs, feature)) for feature in features(joint.x_symbols)
    )
    assert maximal_leakage(joint) == pytest.approx(math.log2(largest), abs=CLOSE)
    worst = worst_attribute(joint)
    merged = brute_force_leakage(joint, lambda x: () if x in worst.merged else (x,))
    assert merged == math.log2(worst.n_values) == maximal_leakage(joint)


@given(joints, st.floats(0, 6))
def test_corollary_6(joint, epsilon):
    """eps-identifiable: L* <= log2(|X|(1 - 2^-eps) + 1), and the sharper bound in whole symbols."""
    n = len(joint.x_symbols)
    published = math.log2(n * (1 - 2**-epsilon) + 1)
    assert identifiable_bound(n, epsilon) <= published + CLOSE
    fewest = min(len(joint.x_given(y)) for y in joint.y_symbols)
    if abs(math.log2(n / fewest) - epsilon) > CLOSE:
        assert is_identifiable(joint, epsilon) == (fewest > n * 2**-epsilon)
    if is_identifiable(joint, epsilon):
        assert maximal_leakage(joint) <= identifiable_bound(n, epsilon)
    assert is_identifiable(joint, identifiable_epsilon(joint))
    assert identifiable_epsilon(joint) == pytest.approx(
        math.log2(n / fewest), abs=CLOSE
    )


@settings(max_examples=scaled(60))
@given(joints)
def test_proposition_7_over_all_features(joint):
    """I* is the largest leakage of a feature that every output determines, and at most L*."""
    sure = [f for f in features(joint.x_symbols) if guesses(joint.pairs(), f)[1] == 1
            and all(len({f[x] for x in joint.x_given(y)}) == 1 for y in joint.y_symbols)]  # fmt: skip
    largest = max(len(set(f.values())) for f in sure)
    assert one_shot_leakage(joint) == maximin_information(joint) == math.log2(largest)
    assert one_shot_leakage(joint) <= maximal_leakage(joint) + CLOSE
    attribute = one_shot_attribute(joint)
    assert joint.map_x(attribute.__getitem__).largest_x == 1
    assert brute_force_leakage(joint, attribute.__getitem__) == one_shot_leakage(joint)
    assert all(joint.map_x(f.__getitem__).largest_x == 1 for f in sure)


@given(joints, st.randoms(use_true_random=False))
def test_proposition_8_as_corrected(joint, random):
    """L* <= sup of the stochastic leakage + H0(X|Y); that sup is a matching, often below H0(Y)."""
    pairs = joint.pairs()
    announced = product(*(sorted(joint.x_given(y)) for y in joint.y_symbols))
    supremum = max(len(set(choice)) for choice in announced)
    assert largest_stochastic_leakage(joint) == math.log2(supremum)
    assert supremum <= min(joint.shape)
    assert (
        maximal_leakage(joint)
        <= math.log2(supremum) + range_report(joint).conditional_entropy + CLOSE
    )
    weights = {pair: random.random() + 1e-9 for pair in pairs}
    rows = [
        [weights.get((x, y), 0.0) for y in joint.y_symbols] for x in joint.x_symbols
    ]
    channel = [[w / math.fsum(row) for w in row] for row in rows]
    assert (
        stochastic_maximal_leakage(channel) <= largest_stochastic_leakage(joint) + CLOSE
    )


@given(joints)
def test_chain_of_leakages(joint):
    """I* <= L* <= H0(Y) + H0(X|Y) (docs/explanation/ranges-theory.md, 'Guessing')."""
    assert maximin_information(joint) <= maximal_leakage(joint) + CLOSE
    assert (
        maximal_leakage(joint)
        <= range_report(joint.reverse).entropy
        + range_report(joint).conditional_entropy
        + CLOSE
    )
