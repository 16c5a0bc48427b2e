"""Classes of symbols that a notion cannot tell apart: the same optimum with fewer symbols."""

from __future__ import annotations

import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.mechanisms import classes as of_classes
from mechdesign.mechanisms.classes import (
    Classes,
    classes,
    proportional,
    proportional_columns,
)
from mechdesign.mechanisms.design_call import design
from mechdesign.mechanisms.posteriors import posteriors
from mechdesign.notions import ALIP, LDP, LIP, L1Lift, MaxLift, MinLift, Notion
from mechdesign.tables.joint import Joint
from solvers import Points, lower_envelope
from tests.cases.designs import is_private
from tests.profiles import scaled
from tests.solvers.reference import exact

NOTIONS: tuple[Notion, ...] = (
    LIP(0.4),
    ALIP(0.3, 0.9),
    LDP(0.7),
    MaxLift(0.5),
    MinLift(0.6),
    L1Lift(math.inf, 0.4),
)


def duplicated(seed: int, s: int = 3, types: int = 4, n: int = 7) -> Joint:
    """A small table of counts with proportional columns and, now and then, proportional rows."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 4, (s, types))
    if seed % 3 == 0:
        kinds[-1] = 2 * kinds[0]
    kinds[0] += kinds.sum(axis=0) == 0
    counts = kinds[:, rng.integers(0, types, n)] * rng.integers(1, 5, n)
    counts = counts[counts.sum(axis=1) > 0]
    return Joint.from_counts(counts.tolist())


@given(seed=st.integers(0, 10**6), k=st.integers(0, len(NOTIONS) - 1))
@settings(max_examples=scaled(30))
def test_the_optimum_of_the_classes_is_that_of_the_symbols(seed, k):
    """min H(X|Y) = min H(T|Y): the exhaustive optimum over all vertices, before and after the reduction."""
    joint, notion = duplicated(seed), NOTIONS[k]
    reduced = classes(joint)
    before, after = posteriors(joint, notion), posteriors(reduced.joint, notion)
    truth = exact(before.explicit).envelope(joint.p_x)
    assert exact(after.explicit).envelope(reduced.joint.p_x) == pytest.approx(
        truth, abs=1e-9
    )


@given(seed=st.integers(0, 10**6), k=st.integers(0, len(NOTIONS) - 1))
@settings(max_examples=scaled(60))
def test_a_channel_of_the_classes_becomes_one_of_the_symbols(seed, k):
    """Same cost, same mean, members of the polytope of the symbols, and at most |X| - |T| outputs more."""
    joint, notion = duplicated(seed, types=3, n=9), NOTIONS[k]
    reduced = classes(joint)
    found = lower_envelope(
        posteriors(reduced.joint, notion, margin=1e-12), reduced.joint.p_x, gap=1e-8
    )
    weights, points = reduced.split(found.weights, found.points)
    np.testing.assert_allclose(points.combine(weights), joint.p_x, rtol=1e-7)
    assert weights @ points.entropies() == pytest.approx(found.value, abs=1e-9)
    assert posteriors(joint, notion).residual(points.toarray()).max() < 1e-9
    assert len(points) <= len(found.points) + len(joint.useful) - len(
        reduced.joint.useful
    )
    back = reduced.merged(points)
    assert weights @ back.entropies() == pytest.approx(found.value, abs=1e-9)


@given(seed=st.integers(0, 10**6), k=st.integers(0, len(NOTIONS) - 1))
@settings(max_examples=scaled(30))
def test_outputs_that_are_not_cut_are_divided_in_proportion(seed, k):
    """Of tables whose cuts would fill the memory: as private, and with the mean of the table."""
    joint, notion = duplicated(seed, types=3, n=9), NOTIONS[k]
    reduced = classes(joint)
    found = lower_envelope(
        posteriors(reduced.joint, notion, margin=1e-12), reduced.joint.p_x, gap=1e-8
    )
    with mock.patch("mechdesign.mechanisms.classes.MOST_ENTRIES", 1):
        weights, points = reduced.split(found.weights, found.points)
    assert len(points) == len(found.points)
    np.testing.assert_allclose(points.combine(weights), joint.p_x, rtol=1e-7)
    assert posteriors(joint, notion).residual(points.toarray()).max() < 1e-9
    back = reduced.merged(points).toarray()
    np.testing.assert_allclose(back, found.points.toarray(), rtol=1e-9, atol=1e-12)


def test_classes_are_decided_in_integers():
    """Columns that agree to 16 digits are two classes, and huge ones that are proportional are one."""
    big = 10**20
    joint = Joint.from_counts([[big, 2 * big, big + 1, 3], [big, 2 * big, big, 1]])
    assert classes(joint).group.tolist() == [0, 0, 1, 2]
    assert classes(joint).joint.counts == ((3 * big, big + 1, 3), (3 * big, big, 1))


@given(
    rows=st.integers(1, 6).flatmap(
        lambda n: st.lists(
            st.lists(st.integers(0, 3), min_size=n, max_size=n), min_size=1, max_size=5
        )
    ),
    first=st.integers(1, 5),
)
def test_columns_are_told_apart_by_their_first_rows(rows, first):
    with mock.patch.object(of_classes, "FIRST_ROWS", first):
        assert proportional_columns(rows) == proportional(zip(*rows, strict=True))


def test_only_columns_that_look_alike_are_compared_as_a_whole(monkeypatch):
    """After an earlier release 2,000 columns of 28,000 rows took 6 s."""
    compared = []
    direction = of_classes._direction

    def counted(vector):
        compared.append(len(vector))
        return direction(vector)

    monkeypatch.setattr(of_classes, "_direction", counted)
    rows = [[x + 2 for x in range(20)] for _ in range(500)]
    rows[1] = [5] * 20
    # The last column is like the first one but in the last row.
    for row in rows:
        row[-1] = row[0]
    rows[-1][-1] += 1
    assert proportional_columns(rows) == list(range(20))
    assert sorted(compared) == [of_classes.FIRST_ROWS] * 20 + [500] * 2


def test_names_are_those_of_first_members():
    joint = Joint.from_counts(
        [[1, 5, 2, 0], [3, 1, 6, 2], [6, 2, 12, 4]], useful_labels=["a", "b", "c", "d"]
    )
    reduced = classes(joint)
    assert reduced.joint.useful.names == ("a", "b", "d")
    assert reduced.joint.sensitive.names == ("s0", "s1")
    assert reduced.joint.counts == ((3, 5, 0), (27, 3, 6))
    assert reduced.joint.total == joint.total


def test_nothing_to_reduce():
    joint = Joint.from_counts([[1, 2, 3], [3, 2, 2]])
    reduced = classes(joint)
    assert reduced.joint is joint
    assert not reduced.is_reduced
    points = Points.from_dense(np.eye(3))
    assert reduced.merged(points) is points
    assert reduced.split(joint.p_x, points)[1] is points


@pytest.mark.parametrize(
    "counts", [[[1, 2], [2, 4]], [[2**255, 2**255, 1], [2**255, 2**255, 2]]]
)
def test_no_reduction_to_one_symbol_or_beyond_the_largest_entry(counts):
    """All columns alike is a table that is released as it is; and sums must fit the file."""
    joint = Joint.from_counts(counts)
    assert classes(joint).joint is joint


def test_a_class_of_many_members_and_shares_of_any_size():
    """Weights of outputs over fifteen orders of magnitude: still at most |X| pieces that sum to P(x)."""
    rng = np.random.default_rng(0)
    counts = np.column_stack(
        [np.outer([1, 2], rng.integers(1, 10**6, 200)), [[5], [1]]]
    )
    joint = Joint.from_counts(counts.tolist())
    reduced = classes(joint)
    assert len(reduced.joint.useful) == 2
    tiny = 10.0 ** -rng.uniform(0.0, 15.0, 40)
    weights = tiny / tiny.sum()
    points = Points.from_dense(np.tile(reduced.joint.p_x, (40, 1)))
    split, pieces = reduced.split(weights, points)
    assert len(pieces) <= 40 + 199
    np.testing.assert_allclose(pieces.combine(split), joint.p_x, rtol=1e-6)
    assert (np.diff(pieces.indptr) == 2).all()


@pytest.mark.parametrize("notion", [LIP(0.4), LDP(0.5), MinLift(0.6)])
def test_designs_on_duplicated_tables(notion):
    """Verified, certified, and within the gap of the exhaustive optimum of the table as it is."""
    for seed in range(3):
        joint = duplicated(seed)
        made = design(joint, notion, gap=1e-5)
        assert is_private(made, joint)
        truth = (
            1.0
            - exact(posteriors(joint, notion).explicit).envelope(joint.p_x)
            / made.entropy
        )
        assert made.certificate.upper_bound_nmi is not None
        assert made.certificate.upper_bound_nmi >= truth - 1e-9
        assert made.nmi >= truth - 2e-5


def test_classes_of_a_real_column_crossing():
    """Sparse crossings have few types: 40 symbols of which most were seen once."""
    rng = np.random.default_rng(1)
    counts = (rng.random((2, 40)) < 0.4) * rng.integers(1, 3, (2, 40))
    counts[0] += counts.sum(axis=0) == 0
    joint = Joint.from_counts(counts.tolist())
    reduced = classes(joint)
    assert isinstance(reduced, Classes)
    assert len(reduced.joint.useful) <= 6
    made = design(joint, LIP(0.8), gap=1e-6)
    assert made.certificate.gap_nmi is not None
    assert made.certificate.gap_nmi <= 1e-6
    assert made.outputs <= 40
