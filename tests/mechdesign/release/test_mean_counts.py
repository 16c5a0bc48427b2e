"""Mean counts of channels on tables: exact, in the smallest common unit, refused if not of halves."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.core.errors import InputError
from mechdesign.core.integers import IntegerRows
from mechdesign.release.draws import Key
from mechdesign.release.fixed_counts import integer_flows, mean_counts


def flows_of(means):
    return integer_flows(
        means.rows,
        means.columns,
        means.values,
        means.row_units,
        means.column_units,
        means.unit,
        Key.insecure(1),
    )


def test_the_example_of_the_module():
    means = mean_counts(IntegerRows.of([[3, 5], [5, 3]]), np.array([2, 1]))
    assert means.unit == 8
    assert means.values.tolist() == [6, 10, 5, 3]
    assert means.column_units is None


@given(
    shares=st.lists(
        st.tuples(
            st.integers(0, 16), st.integers(0, 5), st.sampled_from([1, 3, 2**40])
        ),
        min_size=1,
        max_size=5,
    )
)
def test_means_are_those_of_the_channel(shares):
    """Rows of (a, 16 - a) times any factor, and any number of records."""
    table = [[a * factor, (16 - a) * factor] for a, _, factor in shares]
    counts = np.array([count for _, count, _ in shares])
    means = mean_counts(IntegerRows.of(table), counts)
    assert means.row_units.tolist() == counts.tolist()
    found = np.zeros((len(shares), 2), dtype=object)
    for row, column, value in zip(means.rows, means.columns, means.values, strict=True):
        assert value > 0
        found[row, column] = Fraction(value, means.unit)
    for (a, count, _), row in zip(shares, found.tolist(), strict=True):
        assert row == [Fraction(count * a, 16), Fraction(count * (16 - a), 16)]
    sums = found.sum(axis=0).tolist()
    if all(Fraction(total).denominator == 1 for total in sums):
        assert means.column_units.tolist() == sums
    else:
        assert means.column_units is None
    flows = flows_of(means)
    assert np.bincount(flows.rows, flows.counts, len(counts)).tolist() == [*counts]


def test_the_sums_of_a_row_may_exceed_64_bits():
    large = 2**62
    means = mean_counts(
        IntegerRows.of([[large] * 4, [large, 0, 0, 0]]), np.array([4, 3])
    )
    assert means.unit == 1
    assert means.column_units.tolist() == [4, 1, 1, 1]
    assert flows_of(means).counts.tolist() == [1, 1, 1, 1, 3]


def test_other_units_are_refused():
    rows = IntegerRows.of([[1, 2]])
    # Three records make whole numbers of these thirds.
    assert mean_counts(rows, np.array([3])).unit == 1
    with pytest.raises(InputError, match="a record divided by a power of two"):
        mean_counts(rows, np.array([2]))


def test_every_input_has_a_count():
    with pytest.raises(InputError, match="has 1 inputs, and there are counts for 2"):
        mean_counts(IntegerRows.of([[1, 2]]), np.array([2, 1]))
