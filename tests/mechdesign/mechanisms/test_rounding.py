from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from mechdesign.auditing.measures import utility
from mechdesign.auditing.verdict import audit_on_table
from mechdesign.channel.channel import DENOMINATOR as D
from mechdesign.core.errors import SolverFailure
from mechdesign.mechanisms import rounding
from mechdesign.mechanisms.rounding import (
    GOLDEN,
    LARGEST_MIXING,
    RoundingFailure,
    partition_channel,
    round_channel,
)
from mechdesign.mechanisms.rules import Rules
from mechdesign.notions import ALIP, LDP, LIP, MaxLift, MinLift
from mechdesign.tables.joint import Joint
from solvers import Points
from tests.oracles.float_designs import boundary, optimal, random_table
from tests.oracles.measures import mutual_information


@pytest.fixture
def joint() -> Joint:
    return Joint.from_counts(
        [[1, 2, 3, 4], [4, 3, 2, 1]], useful_labels=["a", "b", "c", "d"]
    )


def released(joint: Joint):
    return joint.p_x, np.eye(len(joint.useful))


def test_releasing_x_gives_zeros_and_ones_and_keeps_the_names(joint):
    rounded = round_channel(*released(joint), Rules(joint, LIP(5.0)))
    assert rounded.channel.rows == tuple(
        tuple(D * int(i == j) for j in range(4)) for i in range(4)
    )
    assert rounded.channel.outputs == ("a", "b", "c", "d")
    assert rounded.channel.joint is joint
    assert (rounded.mixing, rounded.merged) == (0.0, 0)
    assert rounded.audit == audit_on_table(rounded.channel, joint, LIP(5.0))


def test_merging_is_exact_and_named_in_braces(joint):
    p = joint.p_x
    posteriors = [
        [p[0] / (p[0] + p[3]), 0, 0, p[3] / (p[0] + p[3])],
        [0, 1, 0, 0],
        [0, 0, 1, 0],
    ]
    rounded = round_channel(
        [p[0] + p[3], p[1], p[2]], posteriors, Rules(joint, LIP(5.0))
    )
    assert rounded.channel.outputs == ("{a, d}", "b", "c")
    assert rounded.channel.rows == ((D, 0, 0), (0, D, 0), (0, 0, D), (D, 0, 0))


def test_sparse_posteriors_give_the_same_channel(joint):
    rng = np.random.default_rng(3)
    weights, points = boundary(joint, LIP(0.5).limits, rng)
    dense = round_channel(weights, points, Rules(joint, LIP(0.5)))
    assert (
        round_channel(weights, Points.from_dense(points), Rules(joint, LIP(0.5)))
        == dense
    )


def test_the_order_of_the_solver_does_not_matter(joint):
    weights, points = optimal(joint, LIP(0.5).limits)
    order = np.random.default_rng(0).permutation(len(weights))
    one, other = (
        round_channel(w, v, Rules(joint, LIP(0.5)))
        for w, v in ((weights, points), (weights[order], points[order]))
    )
    assert one.channel == other.channel


def test_outputs_without_weight_are_dropped_and_twins_merged(joint):
    weights = np.array([*joint.p_x, 0.0])
    points = np.vstack([np.eye(4), joint.p_x])
    assert round_channel(weights, points, Rules(joint, LIP(5.0))).channel.outputs == (
        "a",
        "b",
        "c",
        "d",
    )
    weights = np.array([joint.p_x[0] / 2, *joint.p_x[1:], joint.p_x[0] / 2])
    points = np.vstack([np.eye(4), np.eye(4)[0]])
    rounded = round_channel(weights, points, Rules(joint, LIP(5.0)))
    assert rounded.merged == 1
    assert rounded.channel.outputs == ("a", "b", "c", "d")


def test_an_output_of_negligible_mass_joins_the_one_of_its_heaviest_symbol(joint):
    tiny = 1e-15
    q = np.diag(joint.p_x)
    stray = np.zeros(4)
    stray[1] = stray[2] = tiny  # b and c, but b was taken more from
    stray[1] *= 3
    q = np.vstack([q - np.diag(stray), stray])
    weights = q.sum(axis=1)
    rounded = round_channel(weights, q / weights[:, None], Rules(joint, LIP(5.0)))
    assert rounded.merged == 1
    assert rounded.channel.outputs == ("a", "b", "c", "d")
    assert utility(rounded.channel, joint).nmi > 1 - 1e-12
    rows = np.asarray(rounded.channel.rows)
    rows[2, 1] -= (given_away := rows[2, 1])
    rows[2, 2] += given_away
    assert 0 < given_away < 100
    assert (rows == D * np.eye(4, dtype=int)).all()


def test_outputs_that_only_look_alike_are_kept_apart():
    # Twins are sought by projection; these two different posteriors have the same one.
    joint = Joint.from_counts([[1, 2, 3, 4], [4, 3, 2, 1]])
    line = np.arange(1, 5) * GOLDEN % 1.0
    share = (line[2] - line[0]) / (line[2] - line[3])
    alike = np.array([0.0, 0.0, 1.0 - share, share])
    assert alike @ line == pytest.approx(line[0], abs=1e-15)
    rest = joint.p_x - 0.25 * np.eye(4)[0] - 0.3 * alike
    points = np.stack([np.eye(4)[0], alike, rest / rest.sum()])
    rounded = round_channel([0.25, 0.3, rest.sum()], points, Rules(joint, LIP(5.0)))
    assert rounded.merged == 0
    assert len(rounded.channel.outputs) == 3


def test_weights_that_are_off_are_recomputed(joint):
    weights, points = optimal(joint, LIP(0.5).limits)
    off = weights * (1 + 1e-6 * np.arange(1, len(weights) + 1))
    exact = round_channel(weights, points, Rules(joint, LIP(0.5)))
    repaired = round_channel(off, points, Rules(joint, LIP(0.5)))
    assert repaired.audit.satisfied
    assert utility(repaired.channel, joint).nmi == pytest.approx(
        utility(exact.channel, joint).nmi, abs=1e-11
    )


@pytest.mark.parametrize("error", [1e-14, 1e-13, 1e-12, 1e-10, 1e-8])
def test_nearly_dependent_posteriors_keep_their_weights(joint, error):
    # P_X is the mean of the other two but for an error, and is missed by about as much.
    p = joint.p_x
    way = np.array([0.1, -0.1, 0.05, -0.05])
    off = error * np.array([1.0, 0.0, 0.0, -1.0])
    posteriors = np.array([p, p + way + off, p - way])
    weights = np.array([0.4, 0.3, 0.3])
    rounded = round_channel(weights, posteriors, Rules(joint, LIP(5.0)))
    w = np.array([list(row) for row in rounded.channel.rows]) / D
    # Outputs come in the order of their weights: the constant is the first.
    assert p @ w == pytest.approx(weights, abs=1e-5)


def test_a_design_that_breaks_the_budget_by_rounding_errors_is_mixed_back(joint):
    notion = LIP(0.5)
    weights, points = optimal(
        joint, notion.limits, margin=-1e-12
    )  # a polytope that is too large
    rounded = round_channel(weights, points, Rules(joint, notion))
    assert rounded.audit.satisfied
    assert 0.0 < rounded.mixing < 1e-11
    q = weights[:, None] * points
    assert (
        mutual_information(q / q.sum())
        - utility(rounded.channel, joint).mutual_information
        < 1e-9
    )


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 10.0])
@pytest.mark.parametrize("kind", [LIP, LDP, MaxLift, MinLift])
def test_one_round_of_repair_is_enough(joint, monkeypatch, kind, epsilon):
    """The repair asks for what is missing, not for ten times more until it works."""
    monkeypatch.setattr(rounding, "MOST_REPAIRS", 1)
    rng = np.random.default_rng(7)
    for _ in range(20):
        joint = random_table(rng)
        weights, points = boundary(joint, kind(epsilon).limits, rng)
        assert round_channel(
            weights, points, Rules(joint, kind(epsilon))
        ).audit.satisfied


def test_mixing_touches_only_the_outputs_that_fail():
    joint = Joint.from_counts([[10, 20, 30, 40], [12, 19, 31, 38]])
    # x1, x2 and x3 are published as they are; only x0 (lift up to 12/11) breaks the budget, by one part in 1e13.
    budget = math.log(12 * 200 / (22 * 100)) * (1 - 1e-12)
    rounded = round_channel(*released(joint), Rules(joint, MaxLift(budget)))
    assert 0.0 < rounded.mixing < 1e-11
    rows = np.asarray(rounded.channel.rows)
    assert (rows[:, 0] > 0).all()
    assert (rows[:, 1:] > 0).sum() == 3
    assert rounded.channel.outputs == ("x0", "x1", "x2", "x3")


def test_a_design_far_outside_its_budget_is_refused_with_its_worst_lift(joint):
    with pytest.raises(
        RoundingFailure,
        match=r"breaks its budget by more than rounding can repair .*margin",
    ) as e:
        round_channel(*released(joint), Rules(joint, LIP(0.5)))
    assert isinstance(e.value, SolverFailure)
    assert e.value.exit_code == 3


def test_the_price_of_a_repair_is_limited(joint):
    notion = LIP(0.5)
    reached = 0.0
    for margin in (1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7):
        weights, points = optimal(joint, notion.limits, margin=-margin)
        try:
            reached = round_channel(weights, points, Rules(joint, notion)).mixing
        except RoundingFailure:
            break
        assert reached <= LARGEST_MIXING
    else:
        pytest.fail("a design that misses by 1e-7 was repaired")
    assert reached > 1e-12


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w, v: (w[:-1], v), r"returned 3 weights for 4 posteriors"),
        (
            lambda w, v: (w, v[:, :-1]),
            r"posteriors have shape \(4, 3\), not \(outputs, 4\)",
        ),
        (lambda w, v: (w, v[0]), r"returned 4 weights for 1 posteriors"),
        (
            lambda w, v: (np.where(w == w[0], np.nan, w), v),
            r"contains NaN or infinities",
        ),
        (lambda w, v: (w, np.where(v > 0, np.inf, v)), r"contains NaN or infinities"),
        (lambda w, v: (w - 0.3, v), r"negative weight or probability"),
        (lambda w, v: (w, v - 0.01), r"negative weight or probability"),
        (lambda w, v: (w, 0.5 * v), r"posteriors do not sum to 1"),
        (lambda w, v: (0.0 * w, v), r"no output of positive weight"),
        (lambda w, v: (w, 0.0 * v), r"no output of positive weight"),
        (lambda w, v: (w[:0], v[:0]), r"no output of positive weight"),
        (lambda w, v: (w * [0, 1, 1, 1], v), r"misses the distribution of X by 0.125"),
    ],
)
def test_a_solver_that_returns_nonsense_is_refused(joint, change, message):
    weights, points = change(*released(joint))
    with pytest.raises(RoundingFailure, match=message):
        round_channel(weights, points, Rules(joint, LIP(5.0)))


def test_a_symbol_that_no_output_covers_is_refused_unless_it_is_next_to_nothing():
    joint = Joint.from_counts([[1, 2, 10**5], [2, 1, 10**5]])
    q = np.diag(joint.p_x)[1:]
    with pytest.raises(
        RoundingFailure,
        match=r"no output of the solver's design covers the useful symbol number 1",
    ):
        round_channel(q.sum(axis=1), q / q.sum(axis=1)[:, None], Rules(joint, LIP(5.0)))
    joint = Joint.from_counts([[1, 2 * 10**12, 10**12], [1, 10**12, 2 * 10**12]])
    q = np.diag(joint.p_x)[1:]
    rounded = round_channel(
        q.sum(axis=1), q / q.sum(axis=1)[:, None], Rules(joint, LIP(5.0))
    )
    assert rounded.audit.satisfied
    assert rounded.channel.matrix[0] == pytest.approx([0.5, 0.5], abs=1e-9)


def test_rows_keep_their_zeros_and_sum_exactly():
    rng = np.random.default_rng(11)
    joint = Joint.from_counts(rng.integers(1, 1000, (4, 40)))
    w = rng.random((40, 50)) * (rng.random((40, 50)) < 0.3)
    w /= w.sum(axis=1, keepdims=True)
    q = joint.p_x[:, None] * w
    p_y = q.sum(axis=0)
    rounded = round_channel(p_y, (q / p_y).T, Rules(joint, ALIP(math.inf, 700.0)))
    rows = np.asarray(rounded.channel.rows)
    assert (rows.sum(axis=1) == D).all()
    assert (rows > 0).sum() == (w > 0).sum()
    assert np.sort(np.abs(rows / D).ravel()) == pytest.approx(
        np.sort(w.ravel()), abs=2 / D
    )


def test_large_sparse_designs_stay_sparse():
    rng = np.random.default_rng(4)
    n = 1000
    joint = Joint.from_counts(rng.integers(1, 50, (5, n)))
    w = sparse.random_array((n, n), density=4 / n, rng=rng) + sparse.eye_array(n)
    w = sparse.diags_array(1 / w.sum(axis=1)) @ w
    q = sparse.diags_array(joint.p_x) @ w
    p_y = q.sum(axis=0)
    points = (sparse.diags_array(1 / p_y) @ q.T).tocsr()
    lifts = points @ joint.lift.T
    budget = float(np.log(lifts.max())) * (1 - 1e-13)
    compressed = Points(points.indptr, points.indices, points.data, points.shape)
    rounded = round_channel(p_y, compressed, Rules(joint, MaxLift(budget)))
    assert 0.0 < rounded.mixing < 1e-12
    assert len(rounded.channel.integers.values) <= points.nnz + 3 * n


def test_partitions_are_exact(joint):
    rounded = partition_channel([[2], [3, 0], [1]], Rules(joint, LIP(5.0)))
    assert rounded.channel.outputs == ("{a, d}", "b", "c")
    assert rounded.channel.rows == ((D, 0, 0), (0, D, 0), (0, 0, D), (D, 0, 0))
    assert rounded.audit.satisfied


@pytest.mark.parametrize(
    "groups", [[[0, 1]], [[0, 1], [1, 2, 3]], [[0, 1, 2, 3], []], [[0, 1, 2, 4]], []]
)
def test_what_is_no_partition_is_refused(joint, groups):
    with pytest.raises(
        RoundingFailure, match="the groups are no partition of the 4 useful symbols"
    ):
        partition_channel(groups, Rules(joint, LIP(5.0)))


def test_a_partition_outside_the_budget_is_refused(joint):
    with pytest.raises(
        RoundingFailure, match=r"merging leaves the output 'd' outside the budget"
    ):
        partition_channel([[0, 1, 2], [3]], Rules(joint, LIP(0.5)))


@pytest.mark.parametrize("places", [20, 400])
def test_entries_at_the_same_place_add_up(places, monkeypatch):
    """In an array of all places, or by a sort where these are many more than the entries."""
    rng = np.random.default_rng(0)
    major, minor = np.divmod(rng.integers(0, places, 60), 5)
    values = rng.random(60)
    sorts = []
    unique = np.unique
    monkeypatch.setattr(
        rounding.np, "unique", lambda *a, **k: sorts.append(1) or unique(*a, **k)
    )
    x, y, sums = rounding.added_up(major, minor, 5, values)
    expected = {}
    for place, value in zip(
        zip(major.tolist(), minor.tolist(), strict=True), values.tolist(), strict=True
    ):
        expected[place] = expected.get(place, 0.0) + value
    assert list(zip(x.tolist(), y.tolist(), strict=True)) == sorted(expected)
    assert sums.tolist() == [expected[place] for place in sorted(expected)]
    assert len(sorts) == (places > 4 * 60)


def test_a_dense_design_is_rounded_without_a_sort_of_all_entries(monkeypatch):
    """Of 25 million entries three such sorts took 30 s of 110."""
    rng = np.random.default_rng(0)
    k = rounding.LONG_ROWS
    # Equal entries have equal remainders, of which the first ones get the units.
    shares = rng.integers(1, 4, (k, k)).astype(float)
    weights = shares.sum(axis=1) / shares.sum()
    posteriors = shares / shares.sum(axis=1, keepdims=True)
    p_x = weights @ posteriors

    def rounded():
        design = rounding.read_design(weights, posteriors, p_x)
        return rounding._integer_rows(design, np.zeros(design.k))

    monkeypatch.setattr(rounding, "LONG_ROWS", k + 1)
    monkeypatch.setattr(rounding, "GRID_TIMES", 0)
    by_sorts, outputs = rounded()
    monkeypatch.undo()
    for sort in ("unique", "lexsort"):
        known = getattr(np, sort)

        def of_few(keys, *args, known=known, **options):
            assert np.size(keys) < k * k
            return known(keys, *args, **options)

        monkeypatch.setattr(rounding.np, sort, of_few)
    rows, found = rounded()
    assert rows == by_sorts
    assert found.tolist() == outputs.tolist() == list(range(k))
    assert rows.row_sums() == [D] * k


def kept_or_drawn(joint, share):
    """The design that keeps each symbol with this share, and draws it anew otherwise."""
    p = joint.p_x
    return p, Points.from_dense((1.0 - share) * p + share * np.eye(len(p)))


def test_rows_of_a_design_that_keeps_or_draws_anew_differ_in_two_places(monkeypatch):
    """Its 25 million integers of 5,000 symbols are not rounded one by one."""
    joint = Joint.from_counts(np.random.default_rng(0).integers(1, 3000, (3, 12)))
    rules = Rules(joint, LIP(1.0))
    one_by_one = round_channel(*kept_or_drawn(joint, 0.3), rules).channel
    monkeypatch.setattr(rounding, "MANY_ENTRIES", 1)
    monkeypatch.setattr(rounding, "read_design", None)
    rounded = round_channel(*kept_or_drawn(joint, 0.3), rules)
    rows = rounded.channel.integers.dense
    assert (np.count_nonzero(rows - rows[0], axis=1) <= 2).all()
    assert np.abs(rows - one_by_one.integers.dense).max() <= len(rows)
    assert rounded.audit == audit_on_table(rounded.channel, joint, LIP(1.0))
    # In the order of the other way, but for labels: more likely outputs come first.
    assert (np.diff(rounded.channel.output_masses) <= 0.0).all()


def test_other_large_designs_are_rounded_one_by_one(monkeypatch):
    monkeypatch.setattr(rounding, "MANY_ENTRIES", 1)
    joint = Joint.from_counts(np.random.default_rng(0).integers(1, 3000, (3, 12)))
    p, points = kept_or_drawn(joint, 0.3)
    dense = points.toarray()
    swapped = dense.copy()
    swapped[[0, 1]] = swapped[[1, 0]]
    tilted = dense * np.linspace(1.0, 1.1, len(p))
    tilted /= tilted.sum(axis=1, keepdims=True)
    for other in (dense[:-1], swapped, tilted, np.where(dense < 0.03, 0.0, dense)):
        weights = p[: len(other)]
        assert rounding._rows_of_own(weights, Points.from_dense(other), p) is None
    # Where the budget is broken the usual way says so.
    with pytest.raises(RoundingFailure, match="rounding can repair"):
        round_channel(p, points, Rules(joint, LIP(0.01)))
