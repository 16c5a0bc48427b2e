from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.core import integers
from mechdesign.core.errors import InputError
from mechdesign.core.integers import LARGEST_INTEGER, IntegerRows

tables = st.integers(1, 4).flatmap(
    lambda k: st.lists(
        st.lists(
            st.one_of(st.just(0), st.integers(0, LARGEST_INTEGER)),
            min_size=k,
            max_size=k,
        ),
        min_size=1,
        max_size=5,
    )
)


@given(tables)
def test_it_reads_like_the_rows_it_was_made_of(table):
    rows = IntegerRows.of(table)
    expected = tuple(map(tuple, table))
    assert tuple(rows) == expected
    assert rows == expected
    assert rows == table
    assert rows == IntegerRows.of(np.array(table, dtype=np.int64))
    assert hash(rows) == hash(IntegerRows.of(expected))
    assert [rows[i] for i in range(-len(rows), len(rows))] == [*expected, *expected]
    assert rows[1:] == expected[1:]
    assert np.asarray(rows).tolist() == table
    assert rows.row_sums() == list(map(sum, table))
    for y, (at, values) in enumerate(rows.columns):
        assert [(x, row[y]) for x, row in enumerate(table) if row[y]] == list(
            zip(at, values, strict=True)
        )
    assert all(type(value) is int for row in rows for value in row)


def test_it_differs_from_other_rows():
    rows = IntegerRows.of([[1, 0], [0, 2]])
    assert rows != IntegerRows.of([[1, 0], [0, 3]])
    assert rows != [[1, 0]]
    assert rows != "rows"
    assert repr(rows) == "IntegerRows(2 x 2, 2 positive)"
    with pytest.raises(IndexError):
        rows[2]


def test_it_cannot_be_changed():
    rows = IntegerRows.of([[1, 0], [0, 2]])
    with pytest.raises(ValueError, match="read-only"):
        rows.values[0] = 7
    with pytest.raises(TypeError):
        rows[0][0] = 7
    with pytest.raises(TypeError):
        rows.columns[0][1][0] = 7
    source = np.array([[1, 0], [0, 2]])
    rows = IntegerRows.of(source)
    source[0, 0] = 7
    assert rows == [[1, 0], [0, 2]]


def test_sums_of_many_large_entries_do_not_overflow():
    assert IntegerRows.of([[LARGEST_INTEGER] * 9]).row_sums() == [9 * LARGEST_INTEGER]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1, 2], [3]], r"row 'b' has 1 entries where the first row has 2"),
        (
            [[1, 2], [3, 0.5]],
            r"row 'b': entry 2 \('0.5'\) is not a non-negative integer",
        ),
        (
            [[1, 2], [3, 1.0]],
            r"row 'b': entry 2 \('1.0'\) is not a non-negative integer",
        ),
        ([[1, 2], [-3, 1]], r"row 'b': entry 1 \('-3'\) is not a non-negative integer"),
        (
            [[True, 2], [3, 1]],
            r"row 'a': entry 1 \('True'\) is not a non-negative integer",
        ),
        ([[1, "2"], [3, 1]], r"row 'a': entry 2 \('2'\) is not a non-negative integer"),
        (
            [[1, None], [3, 1]],
            r"row 'a': entry 2 \('None'\) is not a non-negative integer",
        ),
        (
            [[1, 2**62 + 1], [3, 1]],
            r"row 'a': entry 2 \('4611686018427387905'\) is not .* of at most",
        ),
        (
            [[1, 10**6000], [3, 1]],
            r"row 'a': entry 2 \(an integer of 19932 bits\) is not",
        ),
        ([1, 2], r"row 'a' is not a list of integers"),
        (["ab", "cd"], r"row 'a' is not a list of integers"),
        ("ab", r"rows must be a list of lists of integers, not str"),
        (7, r"rows must be a list of lists of integers, not int"),
        (np.array([1, 2]), r"rows must have 2 dimensions, not 1"),
        (
            np.array([[1, 2], [3, -1]]),
            r"row 'b': entry 2 \('-1'\) is not a non-negative integer",
        ),
        (
            np.array([[1.0, 2.0]]),
            r"row 'a': entry 1 \('1.0'\) is not a non-negative integer",
        ),
        (
            np.array([[1, 2**63]], dtype=np.uint64),
            r"row 'a': entry 2 \('9223372036854775808'\) is not",
        ),
    ],
)
def test_anything_but_non_negative_integers_is_refused(rows, message):
    with pytest.raises(InputError, match=message):
        IntegerRows.of(rows, ["a", "b"])


def test_rows_without_names_are_counted():
    with pytest.raises(InputError, match=r"row 2: entry 1"):
        IntegerRows.of([[1], [-1]])


EQUAL = ((0, 3, 0, 1),) * 5


def test_rows_that_are_all_the_same_read_as_any_others() -> None:
    repeated = IntegerRows.repeated(EQUAL[0], 5)
    one_by_one = IntegerRows.of(EQUAL)
    assert repeated == one_by_one == EQUAL
    assert repeated.has_equal_rows
    assert one_by_one.has_equal_rows
    every = (0, 1, 2, 3, 4)
    assert repeated.columns == (
        ((), ()),
        (every, (3,) * 5),
        ((), ()),
        (every, (1,) * 5),
    )
    assert list(repeated) == list(EQUAL)
    assert list(repeated.pairs()) == [[1, 3, 3, 1]] * 5


@pytest.mark.parametrize(
    "rows", [((1, 2), (2, 1)), ((1, 0), (0, 1)), ((1, 2), (3, 0)), ((1, 2), (1, 3)), ()]
)
def test_other_rows_are_told_apart(rows: tuple[tuple[int, ...], ...]) -> None:
    assert not IntegerRows.of(rows).has_equal_rows
    assert list(IntegerRows.of(rows)) == list(rows)


@pytest.mark.parametrize("many", [0, 1 << 20])
def test_weighted_sums_are_exact(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In arrays and in Python's integers, up to the largest entries and weights."""
    monkeypatch.setattr(integers, "MANY_ENTRIES", many)
    rows = ((LARGEST_INTEGER, 0, 5), (LARGEST_INTEGER - 1, 7, 0), (1, 0, 0))
    for weights in ([3, 2**31, 1], [2**40, 1, 0]):
        sums = [0, 0, 0]
        for weight, row in zip(weights, rows, strict=True):
            sums = [sum + weight * entry for sum, entry in zip(sums, row, strict=True)]
        assert IntegerRows.of(rows).weighted_sums(weights) == sums


def test_columns_without_zeros_are_read_without_a_sort() -> None:
    """The rows of all columns are one tuple: 25 million integers of 5,000 outputs took 200 MB."""
    table = ((3, 1, 4), (1, 5, 9))
    columns = IntegerRows.of(table).columns
    assert columns == (((0, 1), (3, 1)), ((0, 1), (1, 5)), ((0, 1), (4, 9)))
    assert columns[0][0] is columns[2][0]
    with_zero = IntegerRows.of(((3, 1, 4), (0, 5, 9))).columns
    assert with_zero == (((0,), (3,)), ((0, 1), (1, 5)), ((0, 1), (4, 9)))


def test_rows_that_are_the_same_but_for_some(monkeypatch: pytest.MonkeyPatch) -> None:
    row = np.array([3, 0, 2])
    rows = IntegerRows.with_rows(row, 4, {1: np.array([0, 5, 0])})
    expected = ((3, 0, 2), (0, 5, 0), (3, 0, 2), (3, 0, 2))
    assert rows == IntegerRows.of(expected)
    assert tuple(rows) == expected
    # A long row that is like the one before is the same object, which is written once.
    monkeypatch.setattr(integers, "LONG_ROW", 2)
    one, _, third, fourth = rows
    assert (one, third) == (fourth, fourth)
    assert third is fourth
    assert rows.columns == (
        ((0, 2, 3), (3, 3, 3)),
        ((1,), (5,)),
        ((0, 2, 3), (2, 2, 2)),
    )


def test_equal_entries_of_a_column_are_one_integer() -> None:
    """25 million integers of their own take a gigabyte, and their time."""
    rows = np.full((40, 3), 10**12) + np.diag([7] * 40)[:, :3]
    rows[:, 2] = np.arange(40) + 10**12
    first, second, third = IntegerRows.of(rows).columns
    assert (first[1], second[1]) == (tuple(rows[:, 0]), tuple(rows[:, 1]))
    assert third[1] == tuple(rows[:, 2])
    assert [len({id(entry) for entry in column[1]}) for column in (first, second)] == [
        2,
        2,
    ]
