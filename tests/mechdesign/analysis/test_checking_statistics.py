"""The tests of counts hold their level exactly: all outcomes are enumerated."""

from __future__ import annotations

from itertools import product
from math import comb, exp, lgamma, log

import numpy as np
import pytest
from scipy.stats import binomtest, chi2

from mechdesign.analysis import checking as p_values_module
from mechdesign.analysis.checking import (
    binomial_p_values,
    divergence_p_value,
    enumerated_test,
    fisher,
    holm,
    multinomial_test,
    share_p_value,
    tree_p_values,
)
from tests.profiles import slow

ROUNDING = 1e-9


def outcomes(n, k):
    if k == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in outcomes(n - first, k - 1):
            yield (first, *rest)


def chance(counts, masses):
    logs = lgamma(sum(counts) + 1) - sum(lgamma(c + 1) for c in counts)
    return exp(logs + sum(c * log(p) for c, p in zip(counts, masses, strict=True)))


def holds_its_level(p_values, chances):
    """P(p <= a) <= a for every a that occurs."""
    order = np.argsort(p_values)
    cumulated = np.cumsum(np.array(chances)[order])
    sorted_p = np.array(p_values)[order]
    last_of_ties = np.append(np.diff(sorted_p) > ROUNDING, True)
    return bool((cumulated[last_of_ties] <= sorted_p[last_of_ties] + 1e-7).all())


MASSES = [
    (0.5, 0.5),
    (0.9, 0.1),
    (0.6, 0.3, 0.1),
    (0.25, 0.25, 0.25, 0.25),
    (0.94, 0.03, 0.02, 0.01),
]


@pytest.mark.parametrize("masses", MASSES)
@pytest.mark.parametrize("n", [1, 3, 8, slow(15)])
@pytest.mark.parametrize("most", [0, 5_000])
def test_the_multinomial_test_is_valid_for_every_level(monkeypatch, masses, n, most):
    """By enumeration, whether it enumerates itself or takes the multinomial apart."""
    monkeypatch.setattr(p_values_module, "MOST_OUTCOMES", most)
    monkeypatch.setattr(p_values_module, "SPLIT_FROM", 1.0)
    all_counts = list(outcomes(n, len(masses)))
    parts = [multinomial_test(np.array(c), np.array(masses)) for c in all_counts]
    assert {part.method for part in parts} == {
        "exact multinomial" if most else "exact binomials"
    }
    chances = [chance(c, masses) for c in all_counts]
    assert sum(chances) == pytest.approx(1.0)
    assert holds_its_level([part.p_value for part in parts], chances)
    assert holds_its_level([fisher(part.pieces) for part in parts], chances)


def test_a_test_that_is_too_bold_would_be_noticed():
    """The oracle of this file rejects the chi-square approximation for few records."""
    masses = np.array([0.94, 0.03, 0.02, 0.01])
    all_counts = list(outcomes(8, 4))
    statistics = [
        ((np.array(c) - 8 * masses) ** 2 / (8 * masses)).sum() for c in all_counts
    ]
    bold = [float(chi2.sf(s, 3)) for s in statistics]
    assert not holds_its_level(bold, [chance(c, masses) for c in all_counts])


def test_the_enumerated_p_value_is_the_mass_of_outcomes_at_least_as_unlikely_a_ratio():
    masses = (0.5, 0.3, 0.2)
    observed = (0, 1, 4)
    n = 5

    def ratio(counts):
        return sum(
            c * log(c / (n * p)) for c, p in zip(counts, masses, strict=True) if c
        )

    expected = sum(
        chance(c, masses) for c in outcomes(n, 3) if ratio(c) >= ratio(observed) - 1e-12
    )
    assert enumerated_test(np.array(observed), np.array(masses)) == pytest.approx(
        expected, rel=1e-12
    )
    assert enumerated_test(np.array([5, 5]), np.array([0.5, 0.5])) == pytest.approx(1.0)


def test_two_labels_agree_with_the_symmetric_binomial_test():
    for hits in range(11):
        ours = enumerated_test(np.array([hits, 10 - hits]), np.array([0.5, 0.5]))
        assert ours == pytest.approx(binomtest(hits, 10, 0.5).pvalue, rel=1e-9)


def test_the_number_of_outcomes_decides_the_method():
    assert comb(4 + 14, 14) <= p_values_module.MOST_OUTCOMES < comb(5 + 14, 14)
    masses = np.full(15, 1 / 15)
    assert (
        multinomial_test(np.array([4] + [0] * 14), masses).method == "exact multinomial"
    )
    assert (
        multinomial_test(np.array([5] + [0] * 14), masses).method == "exact binomials"
    )


def test_nothing_to_test_is_plausible():
    assert multinomial_test(np.array([0, 0]), np.array([0.5, 0.5])).p_value == 1.0
    assert multinomial_test(np.array([7]), np.array([1.0])).p_value == 1.0
    assert fisher(np.empty(0)) == 1.0


def test_pieces_of_the_tree_do_not_depend_on_the_draw():
    rng = np.random.default_rng(0)
    masses = np.array([0.4, 0.3, 0.2, 0.06, 0.03, 0.007, 0.003])
    sizes = {
        len(tree_p_values(rng.multinomial(1000, masses), masses)) for _ in range(20)
    }
    assert sizes == {
        5
    }  # the two rarest are not split (10 expected): six classes, five binomials
    assert len(tree_p_values(np.array([1, 0]), np.array([0.5, 0.5]))) == 1


def test_two_sided_binomials_are_twice_the_smaller_tail():
    values = binomial_p_values(
        np.array([0, 5, 10]), np.array([10, 10, 10]), np.array([0.5, 0.5, 0.5])
    )
    np.testing.assert_allclose(values, [2 / 1024, 1.0, 2 / 1024])


def test_power_is_that_of_the_chi_square_test_where_that_is_right():
    """A shift that chi-square rejects in most runs is rejected about as often by the exact pieces."""
    rng = np.random.default_rng(1)
    masses = np.full(10, 0.1)
    shifted = masses * np.array([1.06, 0.94] * 5)
    exact = chi = 0
    for _ in range(200):
        counts = rng.multinomial(10_000, shifted / shifted.sum())
        chi += chi2.sf(((counts - 1000) ** 2 / 1000).sum(), 9) <= 0.01
        exact += multinomial_test(counts, masses).p_value <= 0.01
    assert chi > 150
    assert exact > 0.9 * chi


def test_holm_is_the_step_down_of_bonferroni():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def poisson_binomial(chances):
    masses = np.array([1.0])
    for p in chances:
        masses = np.convolve(masses, [1 - p, p])
    return masses


@pytest.mark.parametrize(
    "chances",
    [(0.3,) * 12, (0.0, 1.0) * 6, (0.1, 0.2, 0.9, 0.5) * 4, (0.01,) * 20, (1.0,) * 9],
)
def test_the_share_of_a_label_is_tested_validly_whatever_the_records_are(chances):
    """Records with different chances: the exact distribution of their count, by convolution."""
    masses = poisson_binomial(chances)
    n = len(chances)
    mean = float(np.mean(chances))
    p_values = [share_p_value(c, n, mean, mean) for c in range(n + 1)]
    assert holds_its_level(p_values, masses)
    wider = [
        share_p_value(c, n, max(0.0, mean - 0.1), min(1.0, mean + 0.1))
        for c in range(n + 1)
    ]
    assert all(w >= p for w, p in zip(wider, p_values, strict=True))


def test_a_share_far_outside_its_range_is_found():
    assert share_p_value(700, 1000, 0.2, 0.6) < 1e-8
    assert share_p_value(120, 1000, 0.2, 0.6) < 1e-8
    assert share_p_value(400, 1000, 0.2, 0.6) == 1.0
    assert share_p_value(601, 1000, 0.2, 0.6) > 0.5


@pytest.mark.parametrize(
    "rows",
    [
        ((0.5, 0.3, 0.2),),
        ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
        ((0.8, 0.2, 0), (0.1, 0.1, 0.8)),
    ],
)
def test_the_bound_on_the_divergence_is_valid_for_records_of_any_kind(rows):
    """Six records with their own chances: enumeration of all outcomes against their mean
    distribution.
    """
    records = [rows[i % len(rows)] for i in range(6)]
    mean = np.mean(records, axis=0)
    p_values = []
    chances = []
    for labels in product(range(3), repeat=6):
        counts = np.bincount(labels, minlength=3)
        seen = counts > 0
        divergence = (
            float((counts[seen] * np.log(counts[seen] / (6 * mean[seen]))).sum())
            if (mean[seen] > 0).all()
            else np.inf
        )
        p_values.append(divergence_p_value(divergence, 3))
        chances.append(
            float(np.prod([row[y] for row, y in zip(records, labels, strict=True)]))
        )
    assert sum(chances) == pytest.approx(1.0)
    assert holds_its_level(p_values, chances)


def test_the_bound_on_the_divergence_is_the_chernoff_bound_of_a_gamma_variable():
    for shape, d in ((1, 8.0), (4, 20.0), (14, 60.0)):
        grid = np.linspace(0, 0.999, 10_000)
        chernoff = np.exp(-grid * d) * (1 - grid) ** -shape
        assert divergence_p_value(d, shape + 1) == pytest.approx(
            chernoff.min(), rel=1e-4
        )
    assert divergence_p_value(3.0, 5) == 1.0
    assert divergence_p_value(50.0, 1) == 1.0
    assert divergence_p_value(float("inf"), 4) == p_values_module.SMALLEST
