"""The theorems of noiseless privacy: counterexamples to the published ones, and the corrected ones."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.noiseless import (
    certify,
    design_quantizer,
    lay_out,
    promises,
    uniform_levels,
)
from mechdesign.nonstochastic.quantizers import Quantizer, uniform_quantizer
from mechdesign.nonstochastic.queries import (
    identity_query,
    interval,
    linear_query,
    mean_query,
)
from tests.oracles.nonstochastic import most_on_a_line, outputs_of_uniform


def test_theorem_8_as_published_is_false():
    """f = (x1 + x2)/2 on [0,1]^2, epsilon 1: q = 4 <= 2 R/S, yet x2 = 0.1 gives 3 outputs."""
    query = mean_query(2, interval(0, 1))
    published = 2 * (query.range[1] - query.range[0]) / query.sensitivity
    assert published == 4
    found = certify(query, uniform_quantizer(0, 1, 4))
    assert found.outputs == found.attained == 3 > 2
    cells = {int(4 * (x / 1000 + 0.1) / 2) for x in range(1001)}
    assert cells == {0, 1, 2}
    corrected = design_quantizer(query, 1, layout="uniform")
    assert corrected.quantizer.levels == 2
    assert corrected.certificate.outputs == 2


@given(st.integers(1, 9), st.integers(1, 40))
def test_corrected_theorem_8_is_attained(people, levels):
    """Means on intervals reach min(q, ceil(q S/R) + 1), S/R = 1/n."""
    found = certify(mean_query(people, interval(0, 1)), uniform_quantizer(0, 1, levels))
    assert found.outputs == outputs_of_uniform(levels, Fraction(1, people), Fraction(1))


@given(st.integers(1, 50), st.fractions(Fraction(1, 40), 1, max_denominator=60))
def test_uniform_levels_are_the_most(outputs, share):
    levels = uniform_levels(outputs, share, Fraction(1))
    assert outputs_of_uniform(levels, share, Fraction(1)) <= outputs
    assert all(
        outputs_of_uniform(more, share, Fraction(1)) > outputs
        for more in range(levels + 1, levels + 60)
    )


def test_random_interval_queries_are_never_over_budget():
    """Every layout, random weights, ranges and budgets; the count is exact and never above
    floor(2^eps).
    """
    rng = np.random.default_rng(5)
    for trial in range(1_500):
        people = int(rng.integers(1, 5))
        lows = rng.integers(-5, 5, size=people)
        domains = [
            interval(int(lo), int(lo + w))
            for lo, w in zip(lows, rng.integers(0, 4, size=people), strict=True)
        ]
        weights = [
            Fraction(int(a), int(b))
            for a, b in zip(
                rng.integers(-6, 7, size=people),
                rng.integers(1, 4, size=people),
                strict=True,
            )
        ]
        epsilon = Fraction(int(rng.integers(0, 13)), 4)
        layout = ("uniform", "widest", "levels")[trial % 3]
        design = design_quantizer(
            linear_query(weights, domains), epsilon, layout=layout
        )
        assert design.certificate.exact
        assert design.certificate.outputs <= design.allowance.outputs


def test_layouts_are_optimal_for_means():
    """Levels: (K-1) n + 1 against (K-1) n; widest cell: R/(n (K-1)), never above the uniform one."""
    for people, epsilon in itertools.product((2, 3, 10), (1, 2, Fraction(5, 2))):
        query = mean_query(people, interval(0, 1))
        designs = {
            name: design_quantizer(query, epsilon, layout=name)
            for name in ("uniform", "widest", "levels")
        }
        outputs = designs["uniform"].allowance.outputs
        assert designs["uniform"].quantizer.levels == max(
            outputs, (outputs - 1) * people
        )
        assert designs["levels"].quantizer.levels == (outputs - 1) * people + 1
        assert (
            designs["widest"].quantizer.widest_cell
            <= designs["uniform"].quantizer.widest_cell
        )
        assert designs["widest"].quantizer.widest_cell == min(
            Fraction(1, people * (outputs - 1)), Fraction(1, outputs)
        )


@given(
    st.fractions(Fraction(1, 30), 1, max_denominator=40),
    st.integers(2, 6),
    st.lists(st.integers(1, 119), max_size=9),
)
def test_no_other_thresholds_beat_the_layouts(share, outputs, places):
    """Any thresholds on a grid that keep the budget have no more levels and no narrower widest
    cell.
    """
    query = linear_query([share, 1 - share], interval(0, 1))
    sensitivity = query.sensitivity
    quantizer = Quantizer(
        Fraction(0), Fraction(1), tuple(sorted({Fraction(p, 120) for p in places}))
    )
    if certify(query, quantizer).outputs > outputs:
        return
    most = lay_out(Fraction(0), Fraction(1), sensitivity, outputs, "levels")
    widest = lay_out(Fraction(0), Fraction(1), sensitivity, outputs, "widest")
    assert quantizer.levels <= most.levels
    assert quantizer.widest_cell >= widest.widest_cell
    for design in (most, widest):
        assert certify(query, design).outputs <= outputs


def test_many_levels_are_capped_within_the_budget():
    design = design_quantizer(mean_query(10**6, interval(0, 1)), 8)
    assert design.quantizer.levels <= 100_001
    assert design.certificate.outputs <= 256


def test_theorem_4_as_corrected():
    """K equal cells under the uniform density reach the bound: K times the integral of |x - middle|
    over a cell.
    """
    for outputs in (1, 2, 5):
        cell = Fraction(3, outputs)
        error = promises(outputs, 3)[-1]
        assert error.name == "estimation error"
        assert error.bound == math.nextafter(
            float(outputs * 2 * (cell / 2) ** 2 / 2 / 3), 0
        )


@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=3),
    st.integers(1, 6),
    st.integers(0, 10**6),
)
def test_theorems_1_3_and_5_on_random_mechanisms(shape, labels, seed):
    """L0, tests between subsets, and stochastic maximal leakage on every fibre are at most log2 K."""
    rng = np.random.default_rng(seed)
    outputs = rng.integers(0, labels, size=shape)
    bits = {g.name: g.bound for g in promises(most_on_a_line(outputs))}
    for axis in range(len(shape)):
        for line in np.moveaxis(outputs, axis, -1).reshape(-1, shape[axis]).tolist():
            reach = set(line)
            # L0(Y; X_i) = log2 |Y| - log2 1, as x_i settles Y; the channel is 0/1, so its maximal leakage too.
            assert math.log2(len(reach)) <= bits["leakage"]
            assert (
                math.log2(sum(max(y == v for v in line) for y in reach))
                <= bits["maximal leakage"]
            )
            for k in range(2 ** len(line)):
                one = {y for i, y in enumerate(line) if k >> i & 1}
                two = {y for i, y in enumerate(line) if not k >> i & 1}
                assert len(one ^ two) <= 2 ** bits["hypothesis test"] + 1e-9
            for a, b in itertools.combinations(line, 2):
                assert math.log2(max(len({a} ^ {b}), 0.5)) <= max(
                    bits["test of two values"], -1.0
                )


def test_one_output_promises_everything():
    promised = {g.name: g.bound for g in promises(1, 10)}
    assert promised["leakage"] == 0
    assert promised["test of two values"] == -math.inf
    assert promised["estimation error"] == pytest.approx(2.5)


def test_refusals():
    query = mean_query(2, interval(0, 1))
    with pytest.raises(InputError, match="beyond the quantiser's"):
        certify(query, uniform_quantizer(0, 0.5, 2))
    with pytest.raises(InputError, match="layout"):
        design_quantizer(query, 1, layout="best")
    assert (
        certify(
            identity_query(interval(3, 3)), Quantizer(Fraction(3), Fraction(3))
        ).outputs
        == 1
    )
