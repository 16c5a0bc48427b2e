"""The observer of a whole file: the scaling, its sums, exact beliefs of large tables, its end."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.core.errors import InputError
from mechdesign.leaks.whole_file import posterior_given_file, success
from mechdesign.release.draws import Key
from mechdesign.release.fixed_counts import integer_flows
from tests.profiles import scaled

ROWS = np.array([0, 0, 1, 1])
COLUMNS = np.array([0, 1, 0, 1])
SHARES = np.array([[1.0, 0.0], [0.0, 1.0]])


def test_the_example_of_the_module():
    found = posterior_given_file(
        ROWS, COLUMNS, [75, 25, 25, 75], np.array([120, 80]), SHARES
    )
    assert found.flows == pytest.approx([83.69, 16.31, 36.31, 63.69], abs=0.01)
    assert found.posteriors[0, 1] == pytest.approx(0.204, abs=0.001)
    assert found.posteriors.sum(axis=0) == pytest.approx([1, 1])


def exact_mean(counts, stay, released):
    """E[records of row 0 with output 0 | their number in all], by listing, in integers."""
    chances = {}
    for first in range(counts[0] + 1):
        second = released - first
        if not 0 <= second <= counts[1]:
            continue
        # Numerators over a common denominator: 4^(all records).
        moved = (counts[0] - first) + second
        kept = counts[0] + counts[1] - moved
        ways = comb(counts[0], first) * comb(counts[1], second)
        chances[first] = ways * stay**kept * (4 - stay) ** moved
    total = sum(chances.values())
    return sum(first * chance for first, chance in chances.items()) / total


@pytest.mark.parametrize("released", [350, 375, 450])
def test_large_tables_have_the_exact_mean(released):
    counts = (300, 500)
    values = [225, 75, 125, 375]
    found = posterior_given_file(
        ROWS, COLUMNS, values, np.array([released, 800 - released]), SHARES
    )
    exact = exact_mean(counts, 3, released)
    assert found.flows[0] == pytest.approx(exact, rel=0.002)


@st.composite
def files(draw):
    """Pairs, shares of two secrets, and the counts of independent draws."""
    size = draw(st.integers(2, 6))
    seed = draw(st.integers(0, 2**16))
    generator = np.random.default_rng(seed)
    law = generator.dirichlet(np.ones(size), size=size)
    law[generator.random((size, size)) < 0.4] = 0
    np.fill_diagonal(law, law.diagonal() + 0.2)
    law /= law.sum(axis=1, keepdims=True)
    counts = generator.integers(1, 200, size)
    drawn = sum(
        generator.multinomial(count, row)
        for count, row in zip(counts, law, strict=True)
    )
    rows, columns = np.nonzero(law)
    share = generator.random(size)
    values = counts[rows] * law[rows, columns]
    return rows, columns, values, drawn, np.array([share, 1 - share]), counts


@settings(max_examples=scaled(60), deadline=None)
@given(file=files())
def test_rows_and_columns_add_up_to_what_is_known(file):
    rows, columns, values, drawn, shares, counts = file
    found = posterior_given_file(rows, columns, values, drawn, shares, most_rounds=500)
    sums = np.bincount(columns, found.flows, minlength=len(drawn))
    assert sums == pytest.approx(drawn)
    row_sums = np.bincount(rows, found.flows, minlength=len(counts))
    assert np.abs(row_sums / counts - 1).max() <= found.deviation * (1 + 1e-6) + 1e-12
    assert found.deviation <= 1e-9 or found.rounds == 500
    seen = drawn > 0
    assert np.isnan(found.posteriors[:, ~seen]).all()
    assert found.posteriors[:, seen].sum(axis=0) == pytest.approx(np.ones(seen.sum()))


def test_fixed_counts_tell_what_the_channel_says():
    unit = 8
    table = np.array([[20, 4, 0], [4, 10, 10], [0, 10, 6]])
    rows, columns = np.nonzero(table)
    values = table[rows, columns]
    sums = table.sum(axis=0) // unit
    flows = integer_flows(rows, columns, values, sums, sums, unit, key=Key.insecure(1))
    released = np.bincount(flows.columns, flows.counts).astype(np.int64)
    shares = np.array([[0.2, 0.5, 1.0]])
    found = posterior_given_file(rows, columns, values, released, shares)
    own = shares @ table / table.sum(axis=0)
    assert found.rounds == 1
    assert found.posteriors == pytest.approx(own)


def test_scaling_ends_where_only_the_border_fits():
    """The counts need flows of zero, which scaling approaches and never reaches."""
    rows = np.array([0, 0, 1])
    columns = np.array([0, 1, 1])
    found = posterior_given_file(
        rows, columns, [1, 1, 2], np.array([2, 2]), SHARES, most_rounds=40
    )
    assert found.rounds == 40
    assert 0 < found.deviation < 0.1
    assert found.posteriors[0, 1] < 0.05


def test_files_that_cannot_be():
    rows = np.array([0, 1])
    with pytest.raises(InputError, match="can give the released counts"):
        posterior_given_file(rows, rows, [1, 1], np.array([1, 0, 1]), SHARES)
    with pytest.raises(InputError, match="can give the released counts"):
        posterior_given_file(rows, rows, [1, 1], np.array([2, 0]), SHARES)
    with pytest.raises(InputError, match="at least one pair and one released record"):
        posterior_given_file(rows, rows, [1, 1], np.array([0, 0]), SHARES)


def test_success_is_the_truth_of_the_surest():
    believed = np.array([0.9, 0.1, 0.5, 0.7])
    holds = np.array([True, True, False, False])
    assert success(believed, holds, 0.25) == 1
    assert success(believed, holds, 0.5) == 0.5
    assert success(believed, holds, 0.7) == pytest.approx(1 / 3)
    assert success(believed, holds, 1) == 0.5


def test_equally_sure_records_count_by_their_mean():
    believed = np.array([0.9, 0.2, 0.2, 0.2])
    holds = np.array([False, True, True, False])
    assert success(believed, holds, 0.5) == pytest.approx((0 + 2 / 3) / 2)


@pytest.mark.parametrize("share", [0, -0.1, 1.01])
def test_shares_are_shares(share):
    with pytest.raises(InputError, match="must be above 0 and at most 1"):
        success(np.array([0.5]), np.array([True]), share)
