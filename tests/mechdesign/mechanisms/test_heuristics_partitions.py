"""Subset and complete merging on plain arrays, against a slow reading of the paper's Algorithm 1."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.mechanisms.merged_sets import (
    RISKS,
    merge_all,
    merge_subsets,
    merged_sets,
)
from mechdesign.notions import ALIP, LDP, LIP, MaxLift, MinLift
from tests.profiles import scaled, slow

NOTIONS = [
    ALIP(0.3, 0.6),
    ALIP.from_epsilon(1.0, 0.65),
    ALIP(math.inf, 0.5),
    ALIP(0.5, math.inf),
    LIP(0.4),
    LDP(1.0),
    MaxLift(0.3),
    MinLift(0.7),
]


def random_table(seed, *, zeros=0.0, shape=None):
    rng = np.random.default_rng(seed)
    m, n = shape or (int(rng.integers(2, 6)), int(rng.integers(2, 14)))
    p = rng.random((m, n)) * (rng.random((m, n)) >= zeros)
    p[rng.integers(0, m, n), np.arange(n)] += (
        0.01  # no column, and below no row, without mass
    )
    p[np.arange(m), rng.integers(0, n, m)] += 0.01
    return p / p.sum()


def lifts_of(p, members):
    joined = p[:, members].sum(axis=1)
    return joined / p.sum(axis=1) / joined.sum()


def obeys(p, members, limits):
    if len(members) == p.shape[1]:
        return True
    lift = lifts_of(p, members)
    return (
        lift.min() >= math.exp(-limits.lower)
        and lift.max() <= math.exp(limits.upper)
        and (
            math.isinf(limits.ratio)
            or lift.max() <= math.exp(limits.ratio) * lift.min()
        )
    )


def omega(p, members, risk):
    lift = lifts_of(p, members)
    with np.errstate(divide="ignore"):
        low, high = -np.log(lift.min()), np.log(lift.max())
    return {
        "log-max": max(low, high),
        "log-ratio": high + low,
        "sum": lift.max() + lift.min(),
    }[risk]


def algorithm_1(p, limits, risk):
    """The paper's listing, word for word, as sets of symbols; None if its last subset violates."""
    n = p.shape[1]
    kept = [[x] for x in range(n) if obeys(p, [x], limits)]
    left = [x for x in range(n) if not obeys(p, [x], limits)]
    groups = []
    while left:
        group = [max(left, key=lambda x: omega(p, [x], risk))]
        left.remove(group[0])
        while not obeys(p, group, limits) and left:
            best = min(left, key=lambda x: omega(p, [*group, x], risk))
            group.append(best)
            left.remove(best)
        groups.append(group)
    while groups and not obeys(p, groups[-1], limits) and len(groups) > 1:
        last = groups.pop()
        joins = min(groups, key=lambda g: omega(p, last + g, risk))
        groups.remove(joins)
        groups.append(last + joins)
    if groups and not obeys(p, groups[-1], limits):
        return None
    return sorted(tuple(sorted(g)) for g in groups + kept)


def nmi(p, groups):
    p_x = p.sum(axis=0)
    masses = np.array([p_x[list(g)].sum() for g in groups])
    return float((masses @ np.log(masses)) / (p_x @ np.log(p_x)))


@settings(max_examples=scaled(200))
@given(
    st.integers(0, 10**6),
    st.sampled_from([0.0, 0.3]),
    st.sampled_from(NOTIONS),
    st.floats(0.1, 8.0),
)
def test_every_group_of_every_partition_obeys_the_notion(seed, zeros, notion, scale):
    """Whatever the table, the notion and the budget: a partition of all symbols, each group within the limits."""
    p = random_table(seed, zeros=zeros)
    limits = type(notion)(*(scale * value for value in notion.values().values())).limits
    for merge, end in itertools.product(
        (merge_subsets, merge_all), (math.inf, -math.inf)
    ):
        result = merge(
            merged_sets(p, limits), end=end
        )  # without time the quickest repair is as private
        assert sorted(x for g in result.groups for x in g) == list(range(p.shape[1]))
        assert all(obeys(p, list(g), limits) for g in result.groups)
        borrowed = set(result.borrowed)
        assert all(obeys(p, [x], limits) for x in borrowed)
        assert all(len(g) > 1 for g in result.groups if borrowed & set(g))


@pytest.mark.parametrize("risk", ["log-max", "log-ratio", "sum"])
@pytest.mark.parametrize("epsilon", [slow(0.3), 1.0, 2.5, slow(5.0)])
def test_subset_merging_is_the_published_algorithm_where_that_succeeds(risk, epsilon):
    succeeded = 0
    for seed in range(40):
        p = random_table(seed, shape=(5, 12))
        limits = ALIP.from_epsilon(epsilon).limits
        published = algorithm_1(p, limits, risk)
        result = merge_subsets(merged_sets(p, limits, risk))
        assert result.repaired == (published is None)
        if published is not None:
            succeeded += 1
            assert list(result.groups) == published
    assert succeeded >= 10


def test_ldp_is_ordered_by_the_ratio_of_lifts():
    for seed in range(20):
        p = random_table(seed, shape=(4, 10))
        published = algorithm_1(p, LDP(0.8).limits, "log-ratio")
        assert list(merge_subsets(merged_sets(p, LDP(0.8).limits)).groups) == published


def test_risk_names_are_those_offered():
    assert RISKS == ("auto", "log-max", "log-ratio", "sum")


@pytest.mark.parametrize("merge", [merge_subsets, merge_all])
def test_the_repair_loses_no_more_than_merging_everything_and_needs_all_that_it_borrows(
    merge,
):
    repaired = 0
    for seed in range(120):
        p = random_table(seed, shape=(5, 17))
        limits = ALIP.from_epsilon(5.0).limits
        result = merge(merged_sets(p, limits))
        if not result.repaired:
            continue
        repaired += 1
        group = next(
            list(g)
            for g in result.groups
            if len(g) > 1 and set(result.borrowed) & set(g)
        )
        assert nmi(p, result.groups) >= 0.0
        for x in result.borrowed:
            without = [y for y in group if y != x]
            assert not obeys(p, without, limits), (
                f"seed {seed}: {x} was borrowed for nothing"
            )
    assert repaired >= 20


def best_borrowing(p, limits):
    """Fewest nats lost by merging all risky symbols with any set of harmless ones: every set is tried."""
    n = p.shape[1]
    risky = [x for x in range(n) if not obeys(p, [x], limits)]
    harmless = [x for x in range(n) if obeys(p, [x], limits)]
    best = -1.0
    for mask in range(2 ** len(harmless)):
        taken = [x for k, x in enumerate(harmless) if mask >> k & 1]
        if obeys(p, risky + taken, limits):
            groups = [risky + taken, *([x] for x in harmless if x not in taken)]
            best = max(best, nmi(p, groups))
    return best


def test_the_repair_is_near_the_best_repair():
    """Means over small tables whose repair can be found by trying every set of symbols."""
    found, best = [], []
    for seed in range(150):
        p = random_table(seed, shape=(4, 9))
        limits = ALIP.from_epsilon(4.0).limits
        result = merge_all(merged_sets(p, limits))
        if result.repaired:
            found.append(nmi(p, result.groups))
            best.append(best_borrowing(p, limits))
    assert len(found) >= 20
    assert all(f <= b + 1e-12 for f, b in zip(found, best, strict=True))
    assert np.mean(found) >= np.mean(best) - 0.002


def test_tiny_budgets_publish_a_constant_without_calling_it_a_repair():
    p = random_table(3, shape=(4, 9))
    for merge in (merge_subsets, merge_all):
        result = merge(merged_sets(p, ALIP(1e-15, 1e-15).limits))
        assert result.groups == (tuple(range(9)),)
        assert not result.repaired


def test_loose_budgets_publish_every_symbol():
    p = random_table(4, shape=(3, 8))
    for merge in (merge_subsets, merge_all):
        assert merge(merged_sets(p, ALIP(600.0, 600.0).limits)).groups == tuple(
            (x,) for x in range(8)
        )


def test_sets_with_fewer_zero_lifts_come_first():
    """Two symbols that fill each other's zero cells are merged, whatever the order of the columns."""
    p = np.array([[0.3, 0.0, 0.3, 0.0], [0.0, 0.2, 0.0, 0.2]])
    groups = merge_subsets(merged_sets(p, ALIP(0.5, 0.5).limits)).groups
    assert groups == ((0, 1), (2, 3))


@pytest.mark.parametrize(
    ("lam", "epsilon", "complete", "subset"),
    [(0.5, 1.0, 0.176, 0.736), (0.5, 2.0, 0.515, None)],
)
def test_published_means_on_random_tables(lam, epsilon, complete, subset):
    """Zarrabian et al. 2023, Figures 2a and 6a, as rebuilt: means over random 5 x 17 tables."""
    tables = [random_table_of_the_paper(seed) for seed in range(400)]
    limits = ALIP.from_epsilon(epsilon, lam).limits
    assert np.mean(
        [nmi(p, merge_all(merged_sets(p, limits)).groups) for p in tables]
    ) == pytest.approx(complete, abs=0.01)
    if subset is not None:
        merged = [nmi(p, merge_subsets(merged_sets(p, limits)).groups) for p in tables]
        assert np.mean(merged) == pytest.approx(subset, abs=0.01)
        printed = [
            nmi(p, merge_subsets(merged_sets(p, limits, "sum")).groups) for p in tables
        ]
        assert np.mean(printed) == pytest.approx(0.358, abs=0.01)


def random_table_of_the_paper(seed):
    p = np.random.default_rng(seed).random((5, 17))
    return p / p.sum()


def test_a_repair_that_takes_in_another_risky_set_does_not_call_that_borrowed():
    """The cheapest repair of this table joins the failing set with a finished one and with a harmless symbol."""
    p = random_table(4155, zeros=0.3, shape=(3, 8))
    limits = ALIP.from_epsilon(4.0).limits
    result = merge_subsets(merged_sets(p, limits))
    harmless = {x for x in range(8) if obeys(p, [x], limits)}
    assert result.repaired
    assert set(result.borrowed) <= harmless
    (merged,) = [set(g) for g in result.groups if set(result.borrowed) & set(g)]
    assert merged - harmless - set(result.borrowed)


def test_a_merged_lift_on_the_edge_is_refused():
    """{a, b} has a lift of exactly 2, allowed or not by less than a rounding error: {a, c} costs the same."""
    p = np.array([[3.0, 1.0, 0.0, 0.0], [1.0, 3.0, 4.0, 4.0]]) / 16.0
    for budget in (
        math.log(2.0),
        math.nextafter(math.log(2.0), 0.0),
        math.nextafter(math.log(2.0), 1.0),
    ):
        assert merge_all(merged_sets(p, MaxLift(budget).limits)).groups == (
            (0, 2),
            (1,),
            (3,),
        )
