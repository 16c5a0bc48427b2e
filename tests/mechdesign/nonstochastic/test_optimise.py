"""Optimal thresholds against brute force over all of them."""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.nonstochastic import thresholds_by_levels
from mechdesign.nonstochastic.noiseless import design_quantizer
from mechdesign.nonstochastic.queries import (
    OrderStatistic,
    finite,
    identity_query,
    integers,
    interval,
    linear_query,
    mean_query,
    median_query,
    sum_query,
)
from mechdesign.nonstochastic.thresholds_by_error import (
    CellLoss,
    edges_of,
    least_distortion,
    thresholds_for,
)
from mechdesign.nonstochastic.thresholds_by_levels import (
    GapProblem,
    gap_problem,
    most_levels,
)

BUDGETS = ((1, 0), (2, 1), (3, 1.6), (4, 2))


def random_problems(count, seed, largest=10):
    """Queries with few answers and fibres that skip some, with the rank of the answer on every
    dataset.
    """
    rng = np.random.default_rng(seed)
    while count:
        members = []
        for _ in range(rng.integers(1, 4)):
            members.append(rng.choice(6, size=rng.integers(1, 4), replace=False))
        weights = rng.integers(1, 5, size=len(members))
        domains = [finite(values.tolist()) for values in members]
        problem = gap_problem(linear_query(weights.tolist(), domains))
        if problem.gaps <= largest:
            count -= 1
            parts = [w * values for w, values in zip(weights, members, strict=True)]
            yield problem, ranks(problem, parts)


def ranks(problem, parts):
    answers = functools.reduce(np.add.outer, parts)
    return np.searchsorted([float(value) for value in problem.values], answers)


def lines(table):
    for axis in range(table.ndim):
        yield from np.moveaxis(table, axis, -1).reshape(-1, table.shape[axis]).tolist()


def brute(problem, table):
    """For every set of gaps: (gaps, outputs counted, thresholds spanned)."""
    for mask in itertools.product((0, 1), repeat=problem.gaps):
        gaps = [g for g, chosen in enumerate(mask) if chosen]
        cells = np.searchsorted(np.array(gaps), table)
        counted = max(len(set(line)) for line in lines(cells))
        spanned = max(max(line) - min(line) + 1 for line in lines(cells))
        yield gaps, counted, spanned


def test_most_levels_on_random_finite_domains():
    for problem, table in random_problems(40, seed=0):
        choices = list(brute(problem, table))
        for outputs, epsilon in BUDGETS:
            exact = max(len(g) for g, counted, _ in choices if counted <= outputs) + 1
            enough = max(len(g) for g, _, spanned in choices if spanned <= outputs) + 1
            best = most_levels(problem, epsilon)
            assert best.optimal
            assert best.levels == exact == best.bound
            assert best.certificate.outputs <= outputs
            assert most_levels(problem, epsilon, method="earliest").levels == enough


def test_where_counting_thresholds_loses_levels():
    """f = 10a + b, epsilon 1: counting every threshold finds 3 levels, the MILP 4
    (docs/explanation/ranges-theory.md, 'Programs for thresholds').
    """
    query = linear_query([10, 1], [integers(0, 1), integers(0, 9)])
    sufficient = most_levels(query, 1, method="earliest")
    assert sufficient.levels == 3
    assert not sufficient.optimal
    assert "sufficient only" in sufficient.because
    exact = most_levels(query, 1)
    assert exact.levels == 4
    assert exact.optimal
    assert exact.method == "milp"
    assert exact.certificate.outputs <= 2


def test_runs_are_solved_from_left_to_right():
    best = most_levels(mean_query(10, integers(0, 20)), 2)
    assert best.method == "earliest"
    assert best.levels == 31
    assert best.optimal


@pytest.mark.parametrize("epsilon", [0, 1, 2, 2.5, 3])
def test_at_least_as_many_levels_as_uniform(epsilon):
    """On finite domains the optimum has at least as many used levels, and mostly more."""
    more = 0
    rng = np.random.default_rng(9)
    for _ in range(12):
        people = int(rng.integers(1, 4))
        domain = finite(rng.choice(12, size=rng.integers(2, 5), replace=False).tolist())
        query = linear_query(rng.integers(1, 4, size=people).tolist(), domain)
        uniform = design_quantizer(query, epsilon, layout="uniform").quantizer
        problem = gap_problem(query)
        best = most_levels(problem, epsilon)
        used = len({uniform.cell(value) for value in problem.values})
        assert best.optimal
        assert best.levels >= used
        more += best.levels > used
    assert more or epsilon in (0, 3)


def test_order_statistics_become_gap_problems():
    """The thresholds keep the budget on every dataset, and no others are more: brute force over all
    of them.
    """
    values = np.arange(5)
    data = np.stack(np.meshgrid(*[values] * 4, indexing="ij"), axis=-1)
    second_of_three = np.sort(data[0, ..., 1:], axis=-1)[..., 1]
    median_of_four = np.sort(data, axis=-1)[..., 1:3].mean(axis=-1)
    for query, answers in (
        (OrderStatistic(2, 3, integers(0, 4)), second_of_three),
        (median_query(4, integers(0, 4)), median_of_four),
    ):
        problem = gap_problem(query)
        table = np.searchsorted([float(value) for value in problem.values], answers)
        choices = list(brute(problem, table))
        for outputs, epsilon in ((2, 1), (4, 2)):
            most = max(len(gaps) for gaps, counted, _ in choices if counted <= outputs)
            assert most_levels(query, epsilon).levels == most + 1


def test_least_distortion_on_random_finite_domains():
    rng = np.random.default_rng(3)
    for problem, table in random_problems(12, seed=2):
        choices = list(brute(problem, table))
        size = len(problem.values)
        weights = rng.integers(0, 4, size=size).tolist()
        weights[0] += 1
        loss = CellLoss(problem.values, [Fraction(w) for w in weights])
        losses = [loss.total(edges_of(gaps, size)) for gaps, *_ in choices]
        for outputs, epsilon in ((1, 0), (2, 1), (3, 1.6)):
            allowed = []
            for (_, counted, _), total in zip(choices, losses, strict=True):
                if counted <= outputs:
                    allowed.append(total)
            exact = float(min(allowed))
            best = least_distortion(problem, epsilon, weights=weights)
            assert best.optimal
            assert best.distortion == pytest.approx(exact, abs=1e-7)
            assert best.bound <= exact + 1e-7
            assert best.certificate.outputs <= outputs


@pytest.mark.parametrize(
    ("count", "values", "epsilon", "weights"),
    [
        (2, [7, 69, 83, 84], 2, [10, 1, 0.001, 0.001]),
        (3, [18, 63, 88], 1.6, [10, 1, 1e-9]),
        (2, [4254, 5163, 8460], 1, [1e-9, 1e-9, 1]),
        (2, [12, 584, 727, 827], 1.6, [0.001, 10, 10, 10]),
    ],
)
def test_losses_of_unlikely_answers_count(count, values, epsilon, weights):
    """bound <= min over all thresholds = distortion, where the least loss is far below the solver's
    tolerances: cells of likely answers lose a billion times as much.
    """
    problem = gap_problem(sum_query(count, finite(values)))
    table = ranks(problem, [np.array(values)] * count)
    chances = [Fraction(0)] * len(problem.values)
    for drawn in itertools.product(range(len(values)), repeat=count):
        chances[table[drawn]] += math.prod(Fraction(weights[k]) for k in drawn)
    loss = CellLoss(problem.values, chances)
    best = thresholds_for(problem.query, epsilon, weights)
    least = min(
        float(loss.total(edges_of(gaps, len(chances))))
        for gaps, counted, _ in brute(problem, table)
        if counted <= best.outputs_allowed
    )
    assert best.optimal
    assert best.distortion == pytest.approx(least, rel=1e-9, abs=0)
    assert best.bound <= least


def test_no_more_distortion_than_uniform():
    """Uniform thresholds are gaps too, so the optimum is at least as good, with the same kind of
    release.
    """
    problem = gap_problem(mean_query(4, integers(0, 9)))
    exact = CellLoss(problem.values, [Fraction(1)] * len(problem.values))
    for epsilon in (1, 2):
        uniform = design_quantizer(problem.query, epsilon, layout="uniform").quantizer
        cells = [uniform.cell(v) for v in problem.values]
        gaps = [g for g in range(problem.gaps) if cells[g] != cells[g + 1]]
        uniform_loss = float(exact.total(edges_of(gaps, len(cells))))
        assert least_distortion(problem, epsilon).distortion <= uniform_loss


def test_nothing_unproven_is_returned(monkeypatch):
    """The count exposes thresholds that do not keep the budget."""
    monkeypatch.setattr(
        thresholds_by_levels, "earliest", lambda problem, _: list(range(problem.gaps))
    )
    with pytest.raises(SolverFailure, match="nothing is returned"):
        most_levels(mean_query(3, integers(0, 5)), 1)


def test_values_far_apart_are_cut_as_well_as_near_ones():
    """bound <= min over all partitions into four cells <= distortion; squares take more digits than
    doubles have.
    """
    rng = np.random.default_rng(0)
    for scale in (1.0, 1e6, 1e11, 1e100):
        near = rng.integers(0, 20, 4).astype(float)
        far = scale + rng.integers(0, 20, 4)
        values = np.unique([*near, *far]).tolist()
        best = least_distortion(identity_query(finite(values)), 2)
        size = len(values)
        loss = CellLoss([Fraction(v) for v in values], [Fraction(1)] * size)
        cuts = itertools.combinations(range(1, size), min(3, size - 1))
        exact = min(loss.total([0, *inner, size]) for inner in cuts)
        assert best.bound <= exact <= best.distortion * (1 + 1e-15)
        assert best.distortion == pytest.approx(float(exact), rel=1e-15)
        assert best.optimal


def test_a_time_limit_leaves_a_proven_bound():
    query = linear_query([3, 5, 7, 11], integers(0, 4))
    best = most_levels(query, 2, time_limit=0.1)
    assert best.certificate.outputs <= 4
    assert best.levels <= best.bound
    assert best.optimal or "time limit" in best.because


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: most_levels(mean_query(2, interval(0, 1)), 1), "need finite domains"),
        (
            lambda: most_levels(sum_query(2, integers(0, 2)), 1, method="magic"),
            "method",
        ),
        (
            lambda: most_levels(sum_query(2, integers(0, 2)), -1),
            "fewer than one output",
        ),
        (
            lambda: least_distortion(sum_query(2, integers(0, 2)), 1, weights=[1]),
            "5 values need 5 weights",
        ),
        (
            lambda: least_distortion(sum_query(2, integers(0, 2)), 1, weights=[0] * 5),
            "all weights are zero",
        ),
        (
            lambda: least_distortion(
                sum_query(2, integers(0, 2)), 1, weights=[1, -1, 1, 1, 1]
            ),
            "must not be negative",
        ),
        (
            lambda: least_distortion(sum_query(2, integers(0, 300)), 1),
            "too many to price",
        ),
        (
            lambda: gap_problem(linear_query([1, 10**12], integers(0, 3000))),
            "too many to list",
        ),
        (
            lambda: gap_problem(sum_query(2, finite([0, 1, 1e100]))),
            "more than 18 digits in their common unit",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_one_answer_is_one_level():
    problem = gap_problem(sum_query(3, finite([7])))
    assert isinstance(problem, GapProblem)
    assert most_levels(problem, 0).levels == 1
    assert least_distortion(problem, 0).distortion == 0
