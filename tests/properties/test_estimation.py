"""Estimators: unbiasedness in exact rationals, likelihood, identifiability, posteriors and weights."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from flint import fmpq, fmpq_mat
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.analysis import (
    expand_records,
    identifiability,
    posterior_table,
    record_weights,
)
from mechdesign.analysis.likelihood import _Likelihood, _newton, maximum_likelihood
from mechdesign.analysis.linear import coefficients, identify
from tests.cases.releases import channel_of
from tests.profiles import scaled


@st.composite
def small_rows(draw, least=2, most=5):
    """Rows of small integers that sum to the same power of two, each output reached."""
    size = draw(st.integers(least, most))
    outputs = draw(st.integers(least, most))
    rows = []
    for _ in range(size):
        cuts = sorted(
            draw(
                st.lists(st.integers(0, 64), min_size=outputs - 1, max_size=outputs - 1)
            )
        )
        edges = [0, *cuts, 64]
        rows.append([b - a for a, b in pairwise(edges)])
    assume(all(any(row[y] for row in rows) for y in range(outputs)))
    return rows


@st.composite
def invertible_rows(draw, least=2, most=5):
    """Square, with more than half of each row on its diagonal."""
    size = draw(st.integers(least, most))
    rows = []
    for x in range(size):
        edges = [
            0,
            *sorted(
                draw(st.lists(st.integers(0, 31), min_size=size - 1, max_size=size - 1))
            ),
            31,
        ]
        row = [b - a for a, b in pairwise(edges)]
        row[x] += 33
        rows.append(row)
    return rows


def channel_from(rows):
    names = tuple(f"x{i}" for i in range(len(rows)))
    return channel_of(rows, [list(range(1, len(rows) + 1)), [1] * len(rows)], names)


def exact(rows):
    return fmpq_mat([[fmpq(entry, 64) for entry in row] for row in rows])


@given(small_rows())
def test_rank_and_groups_are_those_of_rational_arithmetic(rows):
    """A functional is identified iff adding it as a column leaves the exact rank as it was."""
    channel = channel_from(rows)
    known = identifiability(channel)
    matrix = exact(rows)
    rank = matrix.rank()
    assert known.rank == rank

    def identified(c):
        wider = fmpq_mat(
            [
                [*(fmpq(e, 64) for e in row), fmpq(v)]
                for row, v in zip(rows, c, strict=True)
            ]
        )
        return wider.rank() == rank

    size = len(rows)
    assert sorted(x for group in known.groups for x in group) == list(range(size))
    for group in known.groups:
        assert identified([int(x in group) for x in range(size)])
    for x in range(size):
        alone = [int(x == other) for other in range(size)]
        assert identified(alone) == ((x,) in known.groups) == known.identifies(alone)


@given(small_rows())
def test_groups_of_several_hide_each_of_their_symbols(rows):
    """Each symbol of such a group can change without any change of the released frequencies."""
    known = identify([str(i) for i in range(len(rows))], np.array(rows) / 64)
    for group in known.groups:
        moved = np.linalg.norm(known.null[:, list(group)], axis=0)
        assert (moved > 1e-6).all() if len(group) > 1 else moved[0] < 1e-6
    for vector in known.null:
        np.testing.assert_allclose(vector @ (np.array(rows) / 64), 0.0, atol=1e-12)


@given(small_rows(), st.lists(st.integers(0, 20), min_size=5, max_size=5))
def test_unbiased_in_exact_expectation(rows, masses):
    """E estimate = P_X (summed over the groups) for every P_X: W b = c with b as rationals."""
    channel = channel_from(rows)
    masses = masses[: len(rows)]
    assume(sum(masses) > 0)
    prior = [Fraction(m, sum(masses)) for m in masses]
    # Whether n records are drawn, or these are the shares of a file: the expected share of each label.
    shares = [
        sum(p * Fraction(row[y], 64) for p, row in zip(prior, rows, strict=True))
        for y in range(len(rows[0]))
    ]
    scale = 64 * sum(masses) * 4
    counts = {
        label: int(share * scale)
        for label, share in zip(channel.outputs, shares, strict=True)
    }
    assert all(share * scale == int(share * scale) for share in shares)
    result = md.estimate_frequencies(channel, counts)
    groups = identifiability(channel).groups
    expected = [float(sum(prior[x] for x in group)) for group in groups]
    condition = identifiability(channel).condition
    np.testing.assert_allclose(result.unbiased, expected, atol=1e-11 * condition)


@given(invertible_rows())
def test_weights_in_rational_arithmetic(rows):
    """The weights are the inverse that rational arithmetic gives."""
    inverse = exact(rows).inv()
    size = len(rows)
    expected = [
        [
            float(Fraction(int(inverse[i, j].p), int(inverse[i, j].q)))
            for j in range(size)
        ]
        for i in range(size)
    ]
    matrix = np.array(rows) / 64
    weights = coefficients(matrix, np.eye(size), np.full(size, 1 / size) @ matrix, size)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(weights / scale, np.array(expected) / scale, atol=1e-9)


counts_of = st.lists(st.integers(0, 500), min_size=5, max_size=5)


@given(small_rows(), counts_of)
@settings(max_examples=scaled(60))
def test_every_step_raises_the_likelihood_and_the_certificate_holds(rows, numbers):
    matrix = np.array(rows) / 64
    counts = np.array(numbers[: len(rows[0])], dtype=float)
    assume(counts.sum() > 0)
    problem = _Likelihood(matrix, counts)
    p = np.full(len(rows), 1 / len(rows))
    fit = maximum_likelihood(matrix, counts)
    assert fit.converged
    newton = partial(_newton, problem)

    def update(p):
        return p * problem.gradient(p) / (p @ problem.gradient(p))

    for step in (update, newton, update, newton):
        after = step(p)
        assert problem.value(after) >= problem.value(p) - 1e-14
        assert (
            problem.value(after)
            <= fit.log_likelihood / counts.sum() + fit.deficit / counts.sum() + 1e-14
        )
        assert after.min() >= 0
        assert after.sum() == pytest.approx(1.0)
        p = after


@given(small_rows(), counts_of)
@settings(max_examples=scaled(60))
def test_the_maximum_satisfies_the_first_order_conditions(rows, numbers):
    """Kuhn-Tucker: g(x) <= 1 for all symbols, and = 1 where the fit is positive."""
    matrix = np.array(rows) / 64
    counts = np.array(numbers[: len(rows[0])], dtype=float)
    assume(counts.sum() > 0)
    fit = maximum_likelihood(matrix, counts)
    shares = counts / counts.sum()
    seen = counts > 0
    slope = matrix[:, seen] @ (shares[seen] / (fit.frequencies @ matrix[:, seen]))
    assert slope.max() <= 1 + 1e-5
    assert float(fit.frequencies @ np.abs(slope - 1)) <= 2e-5


@given(small_rows(), st.lists(st.integers(1, 30), min_size=5, max_size=5))
def test_posterior_rows_are_bayes_rule_and_sum_to_one(rows, masses):
    channel = channel_from(rows)
    prior = [m / sum(masses[: len(rows)]) for m in masses[: len(rows)]]
    table = posterior_table(channel, prior)
    np.testing.assert_allclose(table.matrix.sum(axis=1), 1.0, rtol=1e-12)
    for y in range(len(channel.outputs)):
        exact_row = [Fraction(m) * row[y] for m, row in zip(masses, rows, strict=False)]
        expected = [float(value / sum(exact_row)) for value in exact_row]
        np.testing.assert_allclose(table.matrix[y], expected, rtol=1e-9)


@given(small_rows(2, 3) | invertible_rows())
def test_unbiased_weights_sum_to_one_and_invert_the_channel(rows):
    assume(exact(rows).rank() == len(rows))
    channel = channel_from(rows)
    weights = record_weights(channel)
    scale = np.abs(weights).max()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-10 * scale)
    np.testing.assert_allclose(
        channel.matrix @ weights, np.eye(len(rows)), atol=1e-10 * scale
    )


@given(small_rows(), st.lists(st.integers(0, 4), min_size=3, max_size=30))
def test_expanded_records_are_the_rows_of_the_weight_table(rows, codes):
    channel = channel_from(rows)
    codes = [code % len(channel.outputs) for code in codes]
    released = [channel.outputs[code] for code in codes]
    expanded = expand_records(channel, released, kind="posterior")
    table = record_weights(channel, kind="posterior")
    dense = np.zeros((len(codes), len(rows)))
    np.add.at(dense, (expanded.record, expanded.symbol), expanded.weight)
    np.testing.assert_allclose(dense, table[codes])
    assert (expanded.weight != 0).all()
    assert (np.diff(expanded.record) >= 0).all()
