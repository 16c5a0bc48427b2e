"""floor(2^epsilon) is decided exactly, also where a double is next to log2 of an integer."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.noiseless import (
    LARGEST_EPSILON,
    allowance,
    epsilon_for,
    outputs_allowed,
    smallest_cell,
)


@given(st.fractions(0, 12, max_denominator=40))
def test_floor_by_integer_arithmetic(epsilon):
    """m = floor(2^(p/q)) iff m^q <= 2^p < (m+1)^q."""
    outputs = outputs_allowed(epsilon)
    p, q = epsilon.numerator, epsilon.denominator
    assert outputs**q <= 2**p < (outputs + 1) ** q


@given(st.integers(1, 10**6))
def test_epsilon_for_is_the_smallest_double(outputs):
    epsilon = epsilon_for(outputs)
    assert outputs_allowed(epsilon) >= outputs
    assert epsilon == 0 or outputs_allowed(math.nextafter(epsilon, 0)) < outputs


def test_a_rounded_logarithm_can_be_too_small():
    """The double nearest to log2(3) is below it, so 2^epsilon < 3 although 2.0**epsilon may say 3."""
    epsilon = math.log2(3)
    assert Fraction(epsilon) < Fraction(15849625007211561814537389439478, 10**31)
    assert outputs_allowed(epsilon) == 2
    assert "for 3 say epsilon 1.5849625007211563" in allowance(epsilon).notice
    assert outputs_allowed(1.5849625007211563) == 3


def test_notices():
    assert allowance(3).notice == ""
    assert allowance(3.0).outputs == 8
    assert "5.65685 is rounded down: 5 outputs" in allowance("2.5").notice
    assert allowance(1000).outputs == 2**1000
    assert "rounded down" in allowance(100.5).notice


@pytest.mark.parametrize("symbols", [1, 2, 7, 100, 10**6])
@pytest.mark.parametrize("epsilon", [0, 1, Fraction(3, 2), 2.7, 8, 40])
def test_smallest_cell(symbols, epsilon):
    """k is the least integer with k^q 2^p >= n^q."""
    k = smallest_cell(symbols, epsilon)
    eps = Fraction(epsilon).limit_denominator(10**3)
    p, q = eps.numerator, eps.denominator
    if eps == Fraction(epsilon):
        assert k**q * 2**p >= symbols**q
        assert k == 1 or (k - 1) ** q * 2**p < symbols**q
    else:
        assert k == max(1, math.ceil(symbols * 2.0**-epsilon - 1e-9))


@pytest.mark.parametrize(
    ("epsilon", "message"),
    [
        (-1, "allows fewer than one output"),
        (-0.0001, "allows fewer than one output"),
        (math.nan, "must be a number of bits"),
        (math.inf, "must be a number of bits"),
        ("two", "must be a number of bits"),
        (True, "must be a number of bits"),
        (None, "must be a number of bits"),
        (LARGEST_EPSILON + 1, "must be at most"),
    ],
)
def test_bad_epsilon(epsilon, message):
    with pytest.raises(InputError, match=message):
        outputs_allowed(epsilon)


@pytest.mark.parametrize("outputs", [0, -1, True])
def test_bad_outputs(outputs):
    with pytest.raises(InputError, match="must be an integer of at least 1"):
        epsilon_for(outputs)
