"""Optimal channels for averages: against dense grids of posteriors, published values and an exact oracle."""

from __future__ import annotations

import csv
import json
import math
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.core.errors import InputError
from mechdesign.core.limits import MeanLimits
from mechdesign.mechanisms import design
from mechdesign.mechanisms.convex_means import allowed_set
from mechdesign.mechanisms.posteriors import lift_interval
from mechdesign.notions import KL, AlphaLift, Chi2Lift, L1Lift
from mechdesign.tables.joint import Joint
from solvers import Points
from tests.ending import ends_by_itself
from tests.oracles import means as mean_oracle
from tests.oracles.lifts import smallest_budget
from tests.oracles.simplex_grid import simplex_grid
from tests.profiles import scaled

INF = math.inf

CONVEX = {
    "chi2": lambda e: Chi2Lift(INF, e),
    "alpha 2": lambda e: AlphaLift(INF, e, 2.0),
    "alpha 10": lambda e: AlphaLift(INF, e, 10.0),
    "alpha 1.01": lambda e: AlphaLift(INF, e, 1.01),
    "alpha inverse": lambda e: AlphaLift(e, INF, 2.0),
    "alpha both": lambda e: AlphaLift(e, e, 3.0),
    "kl": lambda e: KL(INF, e),
    "kl inverse": lambda e: KL(e, INF),
    "kl both": lambda e: KL(e, e),
}

# With two secrets the inverses that are not convex are intervals, too.
ANY = CONVEX | {
    "l1 both": lambda e: L1Lift(e, e),
    "l1 inverse": lambda e: L1Lift(e, INF),
    "chi2 both": lambda e: Chi2Lift(e, e),
    "chi2 inverse": lambda e: Chi2Lift(e, INF),
}

TABLES = [
    [[8, 1, 3], [2, 9, 3], [2, 2, 6]],
    [[30, 5, 1], [3, 20, 9], [1, 2, 7], [6, 6, 6]],
    [[4, 1, 0, 3], [1, 5, 2, 2], [0, 1, 6, 3]],
]
TWO_SECRETS = [[[9, 2, 4, 1], [1, 8, 3, 6]], [[40, 2, 7], [1, 3, 2]]]


def use_of_budget(notion, p_s, lifts):
    """The share of the budgets that the lifts (|S|, k) use, from the definitions; inf allowed."""
    kind = notion.limits.mean.name

    def mean(values):
        if kind == "l1":
            return np.log1p(p_s @ np.abs(values - 1.0))
        if kind == "chi2":
            return np.log1p(np.sqrt(p_s @ (values - 1.0) ** 2))
        return np.log(p_s @ values**notion.alpha) / notion.alpha

    with np.errstate(all="ignore"):
        if kind == "kl":
            upper = np.nansum(p_s[:, None] * lifts * np.log(lifts), axis=0)
            lower = -(p_s @ np.log(lifts))
        else:
            upper = mean(lifts)
            lower = mean(1.0 / lifts)
            lower = np.where(np.isnan(lower), np.inf, lower)
    use = np.zeros(lifts.shape[1])
    if math.isfinite(notion.eps_u):
        use = np.maximum(use, upper / notion.eps_u)
    if math.isfinite(notion.eps_l):
        use = np.maximum(use, lower / notion.eps_l)
    return use


def grid_nmi(joint, notion, steps):
    """The best channel with posteriors from a dense grid: what some private channel keeps.

    Points of the grid outside the set are pulled to P_X. The edges between two symbols have a grid of
    their own, without pulling, for optimal posteriors have few symbols.
    """
    import highspy

    n = len(joint.useful)
    grid = simplex_grid(n, steps)
    counts = np.array(joint.counts, dtype=np.float64)
    p = counts / counts.sum()
    p_x, p_s = p.sum(axis=0), p.sum(axis=1)
    matrix = p / p_x / p_s[:, None]
    low, high = np.zeros(len(grid)), np.ones(len(grid))
    for _ in range(32):
        middle = 0.5 * (low + high)
        moved = p_x + middle[:, None] * (grid - p_x)
        inside = use_of_budget(notion, p_s, matrix @ moved.T) <= 1.0
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    whole = use_of_budget(notion, p_s, matrix @ grid.T) <= 1.0
    low = np.where(whole, 1.0, low)
    members = p_x + low[:, None] * (grid - p_x)
    along = np.linspace(0.0, 1.0, 2001)
    for first, second in combinations(range(n), 2):
        edge = np.zeros((len(along), n))
        edge[:, first] = along
        edge[:, second] = 1.0 - along
        inside = use_of_budget(notion, p_s, matrix @ edge.T) <= 1.0
        members = np.vstack([members, edge[inside]])
    logs = np.log(np.where(members > 0.0, members, 1.0))
    highs = highspy.Highs()
    highs.silent()
    program = highspy.HighsLp()
    program.num_col_ = len(members)
    program.num_row_ = n
    program.col_cost_ = -(members * logs).sum(axis=1)
    program.col_lower_ = np.zeros(len(members))
    program.col_upper_ = np.full(len(members), np.inf)
    program.row_lower_ = p_x
    program.row_upper_ = p_x
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_ = np.arange(len(members) + 1) * n
    program.a_matrix_.index_ = np.tile(np.arange(n), len(members))
    program.a_matrix_.value_ = members.ravel()
    highs.passModel(program)
    highs.run()
    entropy = -float(p_x @ np.log(p_x))
    return 1.0 - highs.getObjectiveValue() / entropy


def exactly_private(result, joint):
    """The verdict of an oracle with 80 digits."""
    return mean_oracle.satisfies(
        joint.counts, result.channel.rows, result.notion.limits
    )


@pytest.mark.parametrize(
    "epsilon",
    [
        pytest.param(0.02, marks=pytest.mark.slow),
        0.1,
        pytest.param(0.4, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", sorted(CONVEX))
def test_the_optimum_against_dense_grids_of_posteriors(name, epsilon):
    for counts in TABLES:
        joint = Joint.from_counts(counts)
        notion = CONVEX[name](epsilon)
        result = design(joint, notion)
        best = grid_nmi(joint, notion, steps=24)
        assert exactly_private(result, joint)
        assert result.fallback_from is None
        assert result.certificate.upper_bound_nmi >= best - 1e-9
        assert result.nmi >= best - 1e-4
        assert result.certificate.gap_nmi <= 1e-4


@pytest.mark.parametrize(
    "epsilon",
    [
        0.01,
        pytest.param(0.1, marks=pytest.mark.slow),
        pytest.param(0.5, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", sorted(ANY))
def test_two_secrets_against_dense_grids_of_posteriors(name, epsilon):
    for counts in TWO_SECRETS:
        joint = Joint.from_counts(counts)
        notion = ANY[name](epsilon)
        result = design(joint, notion)
        best = grid_nmi(joint, notion, steps=20)
        assert exactly_private(result, joint)
        assert result.certificate.upper_bound_nmi >= best - 1e-9
        assert result.nmi >= best - 1e-4


@pytest.mark.parametrize(
    ("notion", "nmi"),
    [
        # Measured with an independent prototype, to the digits that are given.
        (Chi2Lift(INF, 0.02), 0.5595),
        (KL(INF, 0.05), 0.8892),
        (AlphaLift.from_epsilon(0.5), 0.9248),
        (AlphaLift.from_epsilon(1.0), 0.9835),
    ],
)
def test_adult(notion, nmi):
    from tests.conftest import ROOT

    path = ROOT / "examples" / "adult_relationship_by_occupation.csv"
    with open(path, newline="", encoding="utf-8") as stream:
        _, *rows = csv.reader(stream)
    joint = Joint.from_counts([[int(cell) for cell in row[1:]] for row in rows])
    result = design(joint, notion)
    assert result.nmi == pytest.approx(nmi, abs=1.5e-4)
    assert result.certificate.gap_nmi <= 1e-4
    assert exactly_private(result, joint)
    merged = design(joint, notion, mechanism="subset-merging")
    assert result.nmi > merged.nmi


@settings(max_examples=scaled(15), deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(sorted(CONVEX)),
    st.floats(1e-6, 2.0),
)
def test_every_channel_is_private_and_below_its_bound(seed, name, epsilon):
    """Value <= bound, no heuristic above the bound, and the oracle's verdict is yes."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(2, 6)), int(rng.integers(2, 9))
    counts = rng.integers(0, int(rng.choice([5, 1000])), (m, n))
    counts[rng.integers(0, m, n), np.arange(n)] += 1
    counts[np.arange(m), rng.integers(0, n, m)] += 1
    joint = Joint.from_counts(counts)
    notion = CONVEX[name](epsilon)
    result = design(joint, notion, time_limit=5.0)
    bound = result.certificate.upper_bound_nmi
    assert result.verified
    assert exactly_private(result, joint)
    assert result.nmi <= bound
    for mechanism in ("subset-merging", "complete-merging", "subset-response"):
        other = design(joint, notion, mechanism=mechanism)
        assert exactly_private(other, joint)
        assert other.nmi <= bound + 1e-15
    assert result.nmi >= design(joint, notion, mechanism="subset-merging").nmi - 1e-4


@settings(max_examples=scaled(60), deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(
        [*sorted(CONVEX), "alpha 1e5", "alpha 1e5 inverse", "alpha 1.00001"]
    ),
    st.floats(1e-8, 3.0),
)
def test_cuts_hold_for_all_members_whatever_their_normal(seed, name, epsilon):
    extreme = {
        "alpha 1e5": AlphaLift(INF, epsilon, 1e5),
        "alpha 1e5 inverse": AlphaLift(epsilon, INF, 1e5),
        "alpha 1.00001": AlphaLift(INF, epsilon, 1.00001),
    }
    notion = extreme.get(name) or CONVEX[name](epsilon)
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(2, 6)), int(rng.integers(2, 7))
    joint = Joint.from_counts(rng.integers(1, 100, (m, n)))
    limits = notion.limits
    assert isinstance(limits, MeanLimits)
    allowed = allowed_set(joint, limits)
    outside = rng.dirichlet(np.full(n, 0.3), 60)
    center = (joint.lift @ joint.p_x)[:, None]
    shares = allowed.shares_inside(center, joint.lift @ outside.T, 0.0)
    members = joint.p_x + shares[:, None] * (outside - joint.p_x)
    images = joint.lift @ members.T
    # Cuts where the set ends, and the inequalities with normals from anywhere else.
    anywhere = joint.lift @ rng.dirichlet(np.ones(n), 5).T
    for image in np.hstack([images[:, :10], anywhere]).T:
        for function in allowed.functions:
            cut = function.cut(image)
            if cut is None:
                continue
            slack = allowed.roundoff * (cut.size + np.abs(cut.normal) @ images.max(1))
            assert (cut.normal @ images <= cut.offset + slack).all()


@settings(max_examples=scaled(60), deadline=None)
@given(
    st.integers(1, 1000),
    st.integers(1, 1000),
    st.sampled_from(sorted(ANY)),
    st.floats(1e-6, 3.0),
)
def test_intervals_of_two_secrets_end_between_neighbouring_doubles(
    first, second, name, epsilon
):
    joint = Joint.from_counts([[first, 1], [1, second]])
    limits = ANY[name](epsilon).limits
    interval = lift_interval(joint, limits)
    total = joint.total
    sums = joint.sensitive_counts
    assert sums[interval.secret] == min(sums)
    p_s = [Fraction(count, total) for count in sums]

    def allows(lift):
        lifts = [Fraction(0), Fraction(0)]
        lifts[interval.secret] = Fraction(lift)
        rest = 1 - p_s[interval.secret] * Fraction(lift)
        other = 1 - interval.secret
        lifts[other] = rest / p_s[other]
        order = getattr(limits.mean, "order", math.nan)
        kind = limits.mean.name
        if kind == "kl":
            upper = mean_oracle.divergence(p_s, lifts, inverse=False)
            lower = mean_oracle.divergence(p_s, lifts, inverse=True)
        else:
            inverses = [1 / value if value else None for value in lifts]
            upper = mean_oracle.budget_of(p_s, lifts, kind, order)
            lower = mean_oracle.budget_of(p_s, inverses, kind, order)
        return mean_oracle.keeps(upper, limits.upper) and mean_oracle.keeps(
            lower, limits.lower
        )

    for inside, outside in zip(interval.inside, interval.outside, strict=True):
        assert allows(inside)
        if inside != outside:
            assert not allows(outside)
            assert math.nextafter(inside, outside) == outside


def test_an_interval_done_by_hand():
    """P(s) = 1/2: chi2 = (l - 1)^2, so that eps_u = log 2 allows every lift; l1 likewise."""
    joint = Joint.from_counts([[3, 1], [1, 3]])
    assert lift_interval(joint, Chi2Lift(INF, math.log(2) + 1e-9).limits).inside == (
        0,
        2,
    )
    interval = lift_interval(joint, L1Lift(INF, smallest_budget(Fraction(5, 4))).limits)
    assert interval.inside[1] == pytest.approx(1.25, abs=1e-15)
    assert interval.inside[0] == pytest.approx(0.75, abs=1e-15)


def test_more_budget_keeps_no_less(adult):
    for make in (CONVEX["kl"], CONVEX["chi2"], CONVEX["alpha both"]):
        kept = [design(adult, make(epsilon)) for epsilon in (0.05, 0.1, 0.2, 0.4)]
        for smaller, larger in pairwise(kept):
            assert larger.certificate.upper_bound_nmi >= smaller.nmi - 1e-12
            assert larger.nmi >= smaller.nmi - 1e-4


def test_a_warm_start_changes_nothing_but_the_time(adult):
    before = design(adult, KL(INF, 0.06))
    warm = design(adult, KL(INF, 0.05), start=before)
    assert warm.nmi == pytest.approx(design(adult, KL(INF, 0.05)).nmi, abs=1e-4)
    assert warm.certificate.gap_nmi <= 1e-4


def test_subset_response_is_between_merging_and_the_optimum(adult):
    notion = Chi2Lift(INF, 0.1)
    merged = design(adult, notion, mechanism="subset-merging").nmi
    response = design(adult, notion, mechanism="subset-response")
    best = design(adult, notion)
    assert merged < response.nmi <= best.certificate.upper_bound_nmi
    assert exactly_private(response, adult)


def test_the_time_limit_is_kept():
    rng = np.random.default_rng(0)
    joint = Joint.from_counts(rng.integers(1, 50, (6, 300)))
    with ends_by_itself():
        result = design(joint, Chi2Lift(INF, 0.1), time_limit=0.4)
    assert result.verified
    assert result.nmi <= result.certificate.upper_bound_nmi


def test_only_a_sharper_envelope_over_the_same_cuts_can_help(adult):
    """A large order: no column leaves the cuts although the gap is open at first."""
    result = design(adult, AlphaLift(INF, 0.25, 1e6))
    assert result.certificate.gap_nmi <= 1e-4


def test_least_cost_works_for_two_secrets_and_convex_costs_are_refused_for_more(adult):
    joint = Joint.from_counts(TWO_SECRETS[0])
    result = design(joint, Chi2Lift(0.2, 0.2), objective="truth")
    assert exactly_private(result, joint)
    with pytest.raises(
        InputError, match="kl is a notion without polytope, which convex costs and"
    ):
        design(
            adult,
            KL(INF, 0.1),
            objective="truth",
            constraints=lambda w, _: [w[0, 0] >= 0.1],
        )


def test_columns_outside_come_back_as_members(adult):
    limits = KL(0.05, 0.05).limits
    assert isinstance(limits, MeanLimits)
    allowed = allowed_set(adult, limits)
    rng = np.random.default_rng(3)
    points = rng.dirichlet(np.full(len(adult.useful), 0.5), 50)
    moved = allowed.repaired(points, 1e-12)
    inside = allowed.excess(Points.from_dense(moved), 1e-12) <= 0.0
    assert inside.mean() > 0.9


def test_cuts_that_move_no_bound_for_long_are_no_stall():
    """A hundred symbols take more than sixty rounds of cuts before the bound moves (0.6 s)."""
    random = np.random.default_rng(0)
    weights = random.dirichlet(np.full(5, 3.0))
    shares = weights[:, None] * random.dirichlet(np.ones(100), size=5)
    counts = random.multinomial(20_000, shares.ravel()).reshape(shares.shape)
    found = design(Joint.from_counts(counts), Chi2Lift(INF, 0.05), time_limit=1.2)
    assert found.certificate.details["status"] == "time_limit"


def test_the_command_line(tmp_path, capsys, monkeypatch):
    from mechdesign.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("g,x,y,z\na,8,1,3\nb,2,9,3\nc,2,2,6\n")
    table = ["t.csv", "--contingency", "--notion", "kl", "--epsilon", "0.2"]
    assert main(["design", *table, "--json", "--output", "c.json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["notion"] == {"name": "kl", "eps_l": 0.1, "eps_u": 0.1}
    assert record["method"] == "cuts"
    assert record["gap_nmi"] <= 1e-4
    assert main(["audit", "c.json"]) == 0
    assert "kl (eps_l 0.1, eps_u 0.1)" in capsys.readouterr().out
    assert main(["audit", "c.json", "--notion", "kl", "--epsilon", "0.1"]) == 1
