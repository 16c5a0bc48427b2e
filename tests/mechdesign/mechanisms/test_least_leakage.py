"""The least average leakage that keeps a share: against dense grids of posteriors, and refusals."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

import mechdesign as md
from mechdesign.mechanisms import least_leakage as module
from mechdesign.mechanisms.average_budgets import own_leakage
from tests.oracles.simplex_grid import simplex_grid
from tests.profiles import slow

MEASURES = ("mi", "tv", "chi2", "maximal-leakage")


def table(symbols, seed):
    random = np.random.default_rng(seed)
    return md.Joint.from_counts(random.integers(1, 30, (2, symbols)))


def least_on_a_grid(joint, measure, keep, steps, notion=None):
    """The least average leakage of a channel whose posteriors lie on a grid: one linear program."""
    n = len(joint.p_x)
    v = np.vstack([simplex_grid(n, steps), joint.p_x])
    lifts = (v / joint.p_x) @ joint.p.T / joint.p_s
    if notion is not None:
        low, high = np.exp(-notion.eps_l), np.exp(notion.eps_u)
        inside = (lifts >= low).all(axis=1) & (lifts <= high).all(axis=1)
        v, lifts = v[inside], lifts[inside]
    entropies = -np.where(v > 0, v * np.log(np.where(v > 0, v, 1)), 0).sum(axis=1)
    if measure == "mi":
        leaks = (lifts * np.log(np.where(lifts > 0, lifts, 1))) @ joint.p_s
    elif measure == "tv":
        leaks = abs(lifts - 1) @ joint.p_s / 2
    elif measure == "chi2":
        leaks = (lifts - 1) ** 2 @ joint.p_s
    else:
        leaks = lifts.max(axis=1) - 1
    entropy = -(joint.p_x @ np.log(joint.p_x))
    solved = linprog(
        leaks,
        A_ub=[entropies],
        b_ub=[(1 - keep) * entropy],
        A_eq=v.T,
        b_eq=joint.p_x,
    )
    assert solved.status == 0
    least = max(0.0, solved.fun)
    return np.log1p(least) if measure == "maximal-leakage" else least


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    ("symbols", "steps", "cases"),
    [
        (3, 80, [(0, 0.3), (1, 0.8)]),
        slow(3, 80, [(0, 0.8), (1, 0.3)]),
        slow(2, 600, [*itertools.product(range(2), (0.3, 0.8))]),
    ],
)
def test_no_grid_leaks_less_and_the_channel_leaks_no_more(
    measure, symbols, steps, cases
):
    for seed, keep in cases:
        joint = table(symbols, seed)
        full = own_leakage(joint, measure)
        design = md.design(joint, average={measure: None}, keep=keep)
        (average,) = design.channel.record.averages
        grid = least_on_a_grid(joint, measure, keep, steps)
        assert average.lower_bound <= grid + 1e-9
        assert average.achieved <= grid + 1e-4 * full
        assert average.lower_bound <= average.achieved
        assert average.achieved - average.lower_bound <= 1e-4 * full
        assert grid - average.achieved <= 0.02 * full  # the grid is dense
        assert design.nmi >= keep
        assert design.nmi <= design.certificate.upper_bound_nmi


def test_a_notion_beside_it_is_kept():
    joint = table(3, 1)
    notion = md.ALIP(0.4, 0.3)
    best = md.design(joint, notion)
    keep = round(0.8 * best.nmi, 3)
    design = md.design(joint, notion, average={"mi": None}, keep=keep)
    (average,) = design.channel.record.averages
    assert design.notion == notion
    assert md.audit(design.channel, joint, notion).satisfied
    grid = least_on_a_grid(joint, "mi", keep, 120, notion)
    assert average.lower_bound <= grid + 1e-9
    assert average.achieved <= grid + 1e-4 * own_leakage(joint, "mi")


def test_it_is_the_inverse_of_the_budget():
    random = np.random.default_rng(5)
    joint = md.Joint.from_counts(random.integers(1, 30, (3, 6)))
    for measure in MEASURES:
        design = md.design(joint, average={measure: None}, keep=0.6)
        (average,) = design.channel.record.averages
        back = md.design(joint, average={measure: average.achieved})
        assert back.certificate.upper_bound_nmi >= design.nmi
        assert back.nmi >= 0.6 - 1e-4
        assert back.nmi <= design.certificate.upper_bound_nmi + 1e-9
        below = 0.98 * average.lower_bound
        less = md.design(joint, average={measure: below})
        assert less.certificate.upper_bound_nmi < 0.6


def test_what_is_not_found_is_no_proof(monkeypatch):
    """A search that finds nothing falls back on the best channel with the notion."""
    joint = table(3, 2)
    notion = md.ALIP(0.4, 0.3)
    keep = round(0.9 * md.design(joint, notion).nmi, 3)
    found = md.design(joint, notion, average={"mi": None}, keep=keep)
    starts = []
    solve = module.least_leakage

    def blind(*arguments, start=None, **options):
        starts.append(start)
        if start is None:
            raise module.EmptyPolytope("nothing found")
        return solve(*arguments, start=start, **options)

    monkeypatch.setattr(module, "least_leakage", blind)
    design = md.design(joint, notion, average={"mi": None}, keep=keep)
    assert starts[0] is None
    assert starts[1] is not None
    assert design.nmi >= keep
    (average,) = design.channel.record.averages
    (other,) = found.channel.record.averages
    assert average.achieved == pytest.approx(other.achieved, rel=1e-3)


def test_a_share_beyond_the_notion_is_a_proven_no():
    joint = table(3, 2)
    notion = md.ALIP(0.05, 0.05)
    with pytest.raises(md.NotPrivate, match=r"none keeps above .* % \(proven\)"):
        md.design(joint, notion, average={"mi": None}, keep=0.95)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"average": {"mi": 0.1}, "keep": 0.5}, "leave the budget of mi out"),
        ({"average": {"kl": None}, "keep": 0.5}, "'kl' is not known"),
        ({"average": {}, "keep": 0.5}, "must name one measure"),
        ({"average": {"mi": None}, "keep": 1.0}, "strictly between 0 and 1"),
        ({"average": {"mi": None}}, "the average mi"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(md.InputError, match=message):
        md.design(table(3, 0), **options)


def test_a_share_without_an_average_is_refused():
    with pytest.raises(md.InputError, match="budget_for"):
        md.design(table(3, 0), md.LIP(1.0), keep=0.5)


def test_nothing_to_limit_is_refused():
    joint = md.Joint.from_counts(np.array([[1, 2], [2, 4]]))
    with pytest.raises(md.InputError, match="says nothing about the sensitive one"):
        md.design(joint, average={"mi": None}, keep=0.5)
