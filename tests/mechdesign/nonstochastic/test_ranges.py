"""Discrete uncertain variables: every way in gives the same relation; bad input is named."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic import JointRange
from mechdesign.nonstochastic.ranges import product
from tests.oracles.nonstochastic import chain, restrict_x
from tests.oracles.spaces import (
    UncertainSpace,
    enumerate_domain,
    from_channel,
    from_function,
)

PAIRS = [("a", 1), ("b", 1), ("b", 2), ("c", 3)]


def as_set(joint):
    return set(joint.pairs())


@pytest.mark.parametrize(
    "joint",
    [
        JointRange.from_pairs([*PAIRS, ("b", 1)]),
        JointRange.from_columns([x for x, _ in PAIRS], [y for _, y in PAIRS]),
        JointRange.from_columns(
            np.array([x for x, _ in PAIRS]), np.array([y for _, y in PAIRS])
        ),
        from_channel({"a": [1], "b": [2, 1], "c": {3}}.__getitem__, "abc"),
        JointRange.from_pairs([(y, x) for x, y in PAIRS]).reverse,
    ],
)
def test_every_source_gives_the_same_relation(joint):
    assert as_set(joint) == set(PAIRS)
    assert joint.shape == (3, 3)
    assert joint.x_given(1) == {"a", "b"}
    assert joint.y_given("b") == {1, 2}
    assert joint.x_given(2, 3) == {"b", "c"}
    assert dict(zip(joint.y_symbols, joint.x_sizes.tolist(), strict=True)) == {
        1: 2,
        2: 1,
        3: 1,
    }
    assert joint.n_pairs < math.prod(joint.shape)
    assert joint.incidence.toarray().sum() == 4


def test_symbols_keep_the_order_of_first_appearance():
    for values in (["c", "a", "c", "b"], np.array(["c", "a", "c", "b"])):
        joint = JointRange.from_columns(values, [0, 0, 0, 0])
        assert joint.x_symbols == ("c", "a", "b")
        assert joint.n_pairs == math.prod(joint.shape)


def test_functions_of_either_side():
    joint = from_function(lambda x: x % 3, range(6))
    assert joint.x_given(1) == {1, 4}
    assert as_set(joint.map_x(lambda x: x // 3)) == {
        (u, y) for u in (0, 1) for y in range(3)
    }
    assert as_set(joint.reverse.map_x(lambda y: y == 0)) == {
        (x % 3 == 0, x) for x in range(6)
    }


def test_operations_agree_with_their_definitions():
    joint = JointRange.from_pairs(PAIRS)
    assert as_set(restrict_x(joint, ["a", "b"])) == {("a", 1), ("b", 1), ("b", 2)}
    second = JointRange.from_pairs([(1, "u"), (2, "u"), (2, "v"), (3, "w"), (4, "z")])
    assert as_set(chain(joint, second)) == {
        (x, z) for x, y in PAIRS for y2, z in second.pairs() if y == y2
    }
    square = product(joint, joint)
    assert as_set(square) == {((a, c), (b, d)) for a, b in PAIRS for c, d in PAIRS}


def test_a_space_knows_marginals_conditionals_and_markov_chains():
    space = UncertainSpace.from_product(
        {"a": range(3), "b": range(2)}, s=lambda a, b: a + b
    )
    assert space.marginal("s") == {0, 1, 2, 3}
    assert space.conditional("a", {"s": 1}) == {0, 1}
    assert space.conditional(("a", "b"), {"s": 3}) == {(2, 1)}
    assert as_set(space.joint("a", "s")) == {
        (a, a + b) for a in range(3) for b in range(2)
    }
    assert space.joint(("a", "b"), "s").shape == (6, 4)
    assert space.is_unrelated("a", "b")
    assert not space.is_unrelated("a", "b", given="s")
    assert not space.is_unrelated("a", "s")
    assert space.is_markov("a", ("a", "b"), "s")
    assert not space.is_markov("a", "s", "b")
    table = UncertainSpace.from_columns({"p": [0, 0, 1, 1], "q": [0, 1, 0, 1]})
    assert table.is_unrelated("p", "q")


def test_three_variables_can_be_pairwise_but_not_mutually_unrelated():
    space = UncertainSpace.from_product(
        {"a": range(2), "b": range(2)}, x=lambda a, b: a ^ b
    )
    assert space.is_unrelated("a", "x")
    assert space.is_unrelated("b", "x")
    assert not space.is_unrelated("a", "b", "x")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: JointRange.from_pairs([]),
            "x is empty; a range needs at least one value",
        ),
        (
            lambda: JointRange.from_pairs([(1, 2, 3)]),
            r"pairs must hold \(x, y\) tuples",
        ),
        (
            lambda: JointRange.from_columns([1.0, float("nan")], [1, 2]),
            "x contains NaN",
        ),
        (
            lambda: JointRange.from_columns([1, 2], np.array([1.0, np.nan])),
            "y contains NaN",
        ),
        (lambda: JointRange.from_columns([1, 2], [1]), "same length, not 2 and 1"),
        (
            lambda: JointRange.from_columns([[1]], [1]),
            r"x holds '\[1\]', which cannot be hashed",
        ),
        (
            lambda: JointRange.from_columns(np.ones((2, 2)), [1]),
            "x must have one dimension, not 2",
        ),
        (
            lambda: JointRange.from_codes(["a"], ["b"], [0, 0], [0]),
            "same length, not 2 and 1",
        ),
        (lambda: JointRange.from_codes(["a"], ["b"], [1], [0]), "outside its range"),
        (
            lambda: JointRange.from_pairs(PAIRS).x_given(9),
            "value '9' is not in the range",
        ),
        (
            lambda: JointRange.from_pairs(PAIRS).x_given(),
            "give at least one value to condition on",
        ),
        (
            lambda: restrict_x(JointRange.from_pairs(PAIRS), []),
            "the restricted range is empty",
        ),
        (
            lambda: restrict_x(JointRange.from_pairs(PAIRS), ["q"]),
            "value 'q' is not in the range of X",
        ),
        (
            lambda: chain(
                JointRange.from_pairs(PAIRS), JointRange.from_pairs([(1, 1)])
            ),
            "'2' of Y is not an input",
        ),
        (
            lambda: UncertainSpace.from_columns({}),
            "a space needs at least one variable",
        ),
        (lambda: UncertainSpace.from_columns({"a": [1], "b": [1, 2]}), "'a' 1, 'b' 2"),
        (
            lambda: UncertainSpace.from_product({"a": [1]}, a=lambda a: a),
            "'a' is given to a domain and to a function",
        ),
        (
            lambda: UncertainSpace.from_columns({"a": [1]}).marginal("b"),
            "variable 'b' is missing; the space has 'a'",
        ),
        (
            lambda: UncertainSpace.from_columns({"a": [1]}).conditional("a", {"a": 2}),
            "value '2' is not in the range",
        ),
        (
            lambda: UncertainSpace.from_columns({"a": [1, 2], "b": [1, 2]}).conditional(
                "a", {"a": 1, "b": 2}
            ),
            "the conditional range is empty",
        ),
        (
            lambda: UncertainSpace.from_columns({"a": [1]}).is_unrelated("a"),
            "at least two variables",
        ),
        (
            lambda: UncertainSpace.from_columns({"a": [1]}).is_markov("a", "a"),
            "at least three variables",
        ),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_a_domain_too_large_says_which_structure_would_do(monkeypatch):
    for module in ("mechdesign.nonstochastic.ranges", "tests.oracles.spaces"):
        monkeypatch.setattr(f"{module}.LARGEST_ENUMERATION", 8)
    with pytest.raises(
        InputError,
        match=r"more than 8 points.*give its domain as a product of intervals",
    ):
        enumerate_domain(range(10**9))
    with pytest.raises(
        InputError, match=r"has 9 points, more than 8.*product of intervals"
    ):
        UncertainSpace.from_product({"a": range(3), "b": range(3)})
    joint = from_function(abs, range(3))
    with pytest.raises(
        InputError, match=r"9 pairs, over 8.*smallest conditional range"
    ):
        product(joint, joint)


def test_every_public_name_is_there():
    from mechdesign import nonstochastic

    assert set(nonstochastic.__all__) <= set(dir(nonstochastic))
    assert all(
        getattr(nonstochastic, name) is not None for name in nonstochastic.__all__
    )
    with pytest.raises(AttributeError, match="nonstochastic attribute measure"):
        _ = nonstochastic.measure
