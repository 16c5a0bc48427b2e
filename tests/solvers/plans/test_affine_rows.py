"""Rows that are affine functions of each other: those of all pairs are found, of few compared."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvers.plans import affine_rows
from solvers.plans.affine_rows import FLATTEST, AffineRows, affine, marks_of

SLOPES = [-2.0 / FLATTEST, -1.0, -0.5, -FLATTEST, 0.5 * FLATTEST, FLATTEST, 0.3, 1.0]


def of_mean_1(values):
    return values / values.mean(axis=1)[:, None]


def first_by_brute_force(kept, values):
    """The number of the first row that these values are an affine function of, or None."""
    for j, row in enumerate(kept):
        slope, _ = affine(row, values)
        if FLATTEST <= abs(slope) <= 1.0 / FLATTEST:
            return j
    return None


@given(st.integers(0, 2**32 - 1), st.integers(2, 9), st.sampled_from([1.0, 1e-4, 1e-9]))
def test_the_same_rows_are_joined_as_by_comparing_all_pairs(seed, n, width):
    rng = np.random.default_rng(seed)
    known = list(1.0 + width * rng.random((6, n)))
    # Rows of few values have the same marks although they are no functions of each other.
    known.extend(rng.integers(0, 2, (4, n)) + 0.25)
    known.append(np.ones(n))
    for _ in range(20):
        of = known[rng.integers(len(known))]
        slope = rng.choice(SLOPES)
        values = slope * of
        noise = rng.choice([0.0, 1e-15, 1e-13, 1e-12, 1e-11]) * rng.standard_normal(n)
        shift = max(0.0, -float(values.min())) + rng.choice([0.0, 1e-3, 1.0, 50.0])
        known.append(np.maximum(values + shift + noise, 0.0) + 1e-6)
    values = of_mean_1(np.array(known))
    rows = AffineRows()
    for row, mark in zip(values, marks_of(values), strict=True):
        found = rows.find(row, mark)
        right = first_by_brute_force(rows.values, row)
        assert (None if found is None else found.of) == right
        if found is None:
            rows.append(row, mark)
        else:
            there = found.offset + found.slope * rows.values[found.of]
            assert there == pytest.approx(row, rel=1e-9)


def test_marks_do_not_depend_on_units_and_chunks(monkeypatch):
    values = np.random.default_rng(4).random((30, 7)) + 0.1
    marks = np.array(marks_of(values))
    monkeypatch.setattr(affine_rows, "CHUNK", 20)
    assert np.array(marks_of(values)) == pytest.approx(marks, rel=1e-12)
    assert np.array(marks_of(1000.0 * values)) == pytest.approx(marks, rel=1e-9)


def test_comparisons_grow_as_the_rows_do(monkeypatch):
    """After an earlier release of rows there are a hundred thousand limits on a few symbols."""
    compared = []
    real = affine_rows.affine

    def counted(of, values):
        compared.append(1)
        return real(of, values)

    monkeypatch.setattr(affine_rows, "affine", counted)
    rng = np.random.default_rng(5)
    for size in (500, 1000, 2000):
        of = rng.random((size, 12)) + 0.1
        # Half of the rows are functions of the other half.
        values = of_mean_1(np.concatenate([of, 1.2 - of]))
        compared.clear()
        rows = AffineRows()
        for row, mark in zip(values, marks_of(values), strict=True):
            if rows.find(row, mark) is None:
                rows.append(row, mark)
        assert len(rows.values) == size
        assert len(compared) <= 1.1 * size


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_of_two_rows_the_first_is_taken(sign):
    """Both are the same as a third one up to rounding, and not as each other."""
    base = np.array([0.5, 1.2, 1.5, 0.8])
    noise = sign * 2e-12 * np.array([0.0, 1.0, 0.0, -1.0])
    values = np.array([base, base + noise, base + noise / 2.0])
    rows = AffineRows()
    marks = marks_of(values)
    for k in range(2):
        assert rows.find(values[k], marks[k]) is None
        rows.append(values[k], marks[k])
    found = rows.find(values[2], marks[2])
    assert found is not None
    assert found.of == 0
