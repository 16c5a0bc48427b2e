"""Designs within an average budget: against grids of posteriors, beside a notion, and refusals."""

import numpy as np
import pytest
from scipy.optimize import linprog

import mechdesign as md
from mechdesign.mechanisms.average_budgets import NO_PROMISE
from mechdesign.mechanisms.averages import for_average
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.search_options import Search
from solvers import Points
from tests.oracles.simplex_grid import simplex_grid

COUNTS = np.array([[8, 3, 1], [2, 6, 4], [1, 1, 9]])

MEASURES = ("mi", "tv", "chi2", "maximal-leakage")

STEPS = 40
"""Of the grid of posteriors."""


def joint():
    return md.Joint.from_counts(COUNTS)


def best_on_a_grid(table, budgets):
    """The largest share of H(X) that posteriors on a grid keep: a lower bound of the optimum."""
    v = np.vstack([simplex_grid(3, STEPS), table.p_x])
    lifts = (v / table.p_x) @ table.p.T / table.p_s
    entropies = -np.where(v > 0, v * np.log(np.where(v > 0, v, 1)), 0).sum(axis=1)
    rows = []
    ends = []
    for measure, budget in budgets.items():
        if measure == "mi":
            logs = np.log(np.where(lifts > 0, lifts, 1))
            rows.append((lifts * logs) @ table.p_s)
        elif measure == "tv":
            rows.append(abs(lifts - 1) @ table.p_s / 2)
        elif measure == "chi2":
            rows.append((lifts - 1) ** 2 @ table.p_s)
        else:
            rows.append(lifts.max(axis=1) - 1)
            budget = np.expm1(budget)
        ends.append(budget)
    solved = linprog(entropies, A_ub=rows, b_ub=ends, A_eq=v.T, b_eq=table.p_x)
    return 1 - solved.fun / float(-(table.p_x @ np.log(table.p_x)))


@pytest.mark.parametrize("measure", MEASURES)
def test_the_optimum_is_at_least_the_best_of_a_grid(measure):
    table = joint()
    design = md.design(table, average={measure: "25%"})
    (average,) = design.channel.record.averages
    assert average.achieved <= average.budget
    on_grid = best_on_a_grid(table, {measure: average.budget})
    assert design.certificate.upper_bound_nmi >= on_grid - 1e-9
    assert design.nmi >= on_grid - 1e-4
    assert design.nmi <= on_grid + 0.02  # the grid is dense
    assert design.certificate.gap_nmi <= 1e-4


SPLIT_CONSTANT = [[0, 50, 50], [50, 50, 10], [200, 50, 1], [0, 10, 3]]
"""A table whose best channel for a small total variation is a constant and two outputs that mix to
it, so that least squares sees any weight of the constant as nearly as good."""


@pytest.mark.parametrize("budget", [0.02, 0.0296, 0.03])
def test_rounding_keeps_the_weight_of_a_constant_output(budget):
    table = md.Joint.from_counts(SPLIT_CONSTANT)
    design = md.design(table, average={"tv": budget})
    assert design.nmi >= best_on_a_grid(table, {"tv": budget}) - 1e-4
    assert design.certificate.gap_nmi <= 1e-4


@pytest.mark.parametrize(
    "measures", [("mi", "tv"), ("chi2", "maximal-leakage"), MEASURES]
)
def test_several_budgets_hold_at_once(measures):
    """The optimum within all of them is that of a dense grid, and is kept by every single one."""
    table = joint()
    # Shares at which each of the budgets costs something.
    shares = {"mi": "20%", "tv": "40%", "chi2": "25%", "maximal-leakage": "45%"}
    asked = {measure: shares[measure] for measure in measures}
    design = md.design(table, average=asked)
    averages = design.channel.record.averages
    assert [average.measure for average in averages] == list(measures)
    assert all(average.achieved <= average.budget for average in averages)
    budgets = {average.measure: average.budget for average in averages}
    on_grid = best_on_a_grid(table, budgets)
    assert design.certificate.upper_bound_nmi >= on_grid - 1e-9
    assert design.nmi >= on_grid - 1e-4
    assert design.nmi <= on_grid + 0.02
    assert design.certificate.gap_nmi <= 1e-4
    for measure, share in asked.items():
        alone = md.design(table, average={measure: share})
        assert design.nmi <= alone.certificate.upper_bound_nmi


def test_two_secrets_have_several_budgets():
    """Pairs of symbols are priced with both multipliers."""
    table = md.Joint.from_counts(COUNTS[:2])
    design = md.design(table, average={"mi": "30%", "tv": "50%"})
    budgets = {a.measure: a.budget for a in design.channel.record.averages}
    on_grid = best_on_a_grid(table, budgets)
    assert design.certificate.upper_bound_nmi >= on_grid - 1e-9
    assert on_grid - 1e-4 <= design.nmi <= on_grid + 0.02
    assert design.certificate.gap_nmi <= 1e-4


def test_an_average_alone_has_the_extreme_lifts_as_its_notion():
    table = joint()
    design = md.design(table, average={"mi": 0.05})
    assert md.audit(design.channel, table, design.notion).satisfied
    assert design.notion.eps_u == design.achieved.eps_u


def test_a_notion_beside_it_is_kept_and_costs():
    table = joint()
    notion = md.LIP(0.2)
    both = md.design(table, notion, average={"mi": "25%"})
    assert both.notion == notion
    assert md.audit(both.channel, table, notion).satisfied
    assert both.nmi < md.design(table, average={"mi": "25%"}).nmi
    assert both.nmi <= md.design(table, notion).certificate.upper_bound_nmi + 1e-9


@pytest.mark.parametrize(
    ("average", "message"),
    [
        (0.05, "must be a mapping"),
        ({}, "must be a mapping"),
        ({"mi": 0.1, "tv": 0.0}, "average tv .* above 0 and at most 700"),
        ({"kl": 0.1}, "is not known; use one of mi, tv, chi2, maximal-leakage"),
        ({"mi": 0.0}, "above 0 and at most 700"),
        ({"mi": "nan"}, "above 0 and at most 700"),
        ({"mi": "a"}, "a per cent such as 25%"),
        ({"mi": "101%"}, "at most 100 %"),
    ],
)
def test_a_bad_budget_is_refused(average, message):
    with pytest.raises(md.InputError, match=message):
        md.design(joint(), average=average)


def test_per_cent_of_nothing_is_refused():
    table = md.Joint.from_counts(np.array([[1, 2], [2, 4]]))
    with pytest.raises(md.InputError, match="says nothing about the sensitive one"):
        md.design(table, average={"mi": "25%"})


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ({"confidence": 0.95}, "confidence"),
        ({"protect_each": True}, "protect_each"),
        ({"budgets": {"s0": (1.0, 1.0)}}, "budgets of single symbols"),
        ({"objective": "truth", "constraints": print}, "constraints or a convex cost"),
        ({"mechanism": "subset-merging"}, "mechanism subset-merging"),
        ({"bins": "auto"}, "bins"),
        ({"method": "vertices"}, "method"),
    ],
)
def test_options_that_do_not_go_together_are_refused(option, name):
    with pytest.raises(md.InputError, match=f"not built with {name}: leave one"):
        md.design(joint(), average={"mi": 0.05}, **option)


def test_earlier_releases_and_a_start_are_refused():
    table = joint()
    first = md.design(table, md.LIP(0.1))
    for option in ({"after": [first.channel]}, {"start": first}):
        with pytest.raises(md.InputError, match="not built with"):
            md.design(table, average={"mi": 0.05}, **option)


def test_a_notion_without_lifts_is_refused():
    with pytest.raises(md.InputError, match="beside a notion on single lifts"):
        md.design(joint(), md.KL(0.1, 0.1), average={"mi": 0.05})


def test_known_channels_are_never_lost():
    """Without time to search, the channel that it is given is what it finds."""
    random = np.random.default_rng(3)
    table = md.Joint.from_counts(random.integers(1, 40, (4, 25)))
    rules = Rules(table, NO_PROMISE)
    asked = {"mi": "10%"}
    known = for_average(rules, asked, Search(), 0.0, alone=True)
    joint_of_xy = table.p_x[:, None] * known.channel.matrix
    start = Points.from_dense((joint_of_xy / joint_of_xy.sum(axis=0)).T)
    hurried = Search(time_limit=1e-6)
    bare = for_average(rules, asked, hurried, 0.0, alone=True)
    started = for_average(rules, asked, hurried, 0.0, alone=True, start=[start])
    assert bare.nmi < known.nmi - 1e-4
    assert started.nmi >= known.nmi - 1e-7
