"""Least cost where digits end: huge budgets, tables with zeros, symbols of next to no share."""

from __future__ import annotations

import itertools

import pytest

import mechdesign as md
from mechdesign.auditing.population import lift_limits
from mechdesign.mechanisms.least_cost_program import LeastCostProgram
from mechdesign.mechanisms.population import PopulationRules
from mechdesign.tables.confidence import confidence_set
from solvers.errors import EmptyPolytope

SPARSE = (
    [[5, 7, 0], [9, 1, 100]],
    [[5, 0, 0], [0, 1, 100]],
    [[0, 7, 0, 3], [9, 1, 100, 0], [4, 4, 0, 9]],
)


@pytest.mark.parametrize(
    "way",
    [
        {"keep_frequencies": False},
        {},
        {"keep_frequencies": False, "forbid": [("1", "2")]},
        {"keep_frequencies": False, "confidence": 0.9},
    ],
)
@pytest.mark.parametrize(
    "counts",
    [
        pytest.param(counts, marks=[] if counts == SPARSE[-1] else [pytest.mark.slow])
        for counts in SPARSE
    ],
)
def test_budgets_whose_exponentials_have_no_digits(counts, way):
    """exp(-700) is nothing to a linear program: larger budgets cost no more, no bound is above a cheaper channel."""
    joint = md.Joint.from_counts(
        counts, useful_labels=[str(x + 1) for x in range(len(counts[0]))]
    )
    for notion in (
        lambda e: md.LDP(e),
        lambda e: md.LIP(e),
        lambda e: md.MaxLift(e),
        lambda e: md.MinLift(e),
        lambda e: md.ALIP(eps_l=e, eps_u=1.0),
        lambda e: md.ALIP(eps_l=0.7, eps_u=e),
    ):
        found = []
        for budget in (8.0, 19.0, 21.0, 34.0, 700.0):
            made = md.design(joint, notion(budget), objective="truth", **way)
            assert made.verified
            assert made.least.cost - made.least.cost_lower_bound <= 1e-6
            found.append(made.least)
        loose = not isinstance(notion(1.0), md.ALIP) and "forbid" not in way
        # The identity with a share of exp(-700) of constant outputs is private then, and costs as good as nothing.
        assert not loose or found[-1].cost_lower_bound <= 1e-15
        for less, more in itertools.pairwise(found):
            assert more.cost_lower_bound <= less.cost
            assert more.cost <= less.cost + 1e-8


def test_an_output_that_forbidden_pairs_leave_to_one_sensitive_symbol_cannot_stay():
    joint = md.Joint.from_counts(
        [[5, 0, 0], [0, 1, 100]], useful_labels=["1", "2", "3"]
    )
    with pytest.raises(
        md.NotPrivate,
        match=r"'2' as it is with probability 0\.1; the largest value that works",
    ):
        md.design(
            joint,
            md.LDP(40.0),
            objective="truth",
            forbid=[("1", "2")],
            stay={"2": 0.1},
            keep_frequencies=False,
        )


DIAGONAL = ([[3, 0, 0], [0, 2, 0], [0, 2, 2]], "a b c")
TELLING = ([[0, 0, 0, 0, 3], [1, 2, 2, 1, 0]], "x0 x1 x2 x3 x4")


@pytest.mark.parametrize(
    ("table", "notion", "options", "message"),
    [
        (
            DIAGONAL,
            md.LDP(1.0),
            {"forbid": [("a", "b"), ("a", "c"), ("b", "a"), ("c", "a")]},
            "does without the forbidden pairs",
        ),
        (
            DIAGONAL,
            md.LDP(1.0),
            {
                "forbid": [("a", "b"), ("a", "c"), ("b", "a"), ("c", "a")],
                "stay": {"a": 0.5},
            },
            "does without the forbidden pairs",
        ),
        (
            TELLING,
            md.LDP(1.0),
            {"stay": {"x4": 1, "x0": 1}},
            "each of these shares works alone",
        ),
        (
            TELLING,
            md.ALIP(eps_l=25.0, eps_u=3.0),
            {"stay": {"x4": 1, "x0": 1, "x2": 1}},
            "each of these shares works alone",
        ),
    ],
)
def test_what_no_channel_can_do_on_tables_with_zeros(table, notion, options, message):
    counts, names = table
    joint = md.Joint.from_counts(counts, useful_labels=names.split())
    with pytest.raises(md.NotPrivate, match=message):
        md.design(joint, notion, objective="truth", keep_frequencies=False, **options)


def test_forbidden_pairs_do_not_hide_the_shares_that_work_together():
    joint = md.Joint.from_counts([[90, 70, 30, 10], [50, 80, 20, 15], [40, 30, 35, 16]])
    asked = {
        "objective": "truth",
        "keep_frequencies": False,
        "forbid": [("x0", "x3")],
    }
    with pytest.raises(
        md.NotPrivate, match=r"works for all of them is 0\.\d+$"
    ) as refused:
        md.design(joint, md.LDP(0.5), stay=0.999, **asked)
    most = float(str(refused.value).rsplit(" ", 1)[1])
    md.design(joint, md.LDP(0.5), stay=most, **asked)


def test_a_symbol_that_always_stays_may_take_all_of_its_frequency():
    """Nothing else becomes x4 then, and x4 alone tells the sensitive symbol."""
    joint = md.Joint.from_counts(TELLING[0], useful_labels=TELLING[1].split())
    with pytest.raises(
        md.NotPrivate,
        match=r"that keeps the frequencies releases 'x4' as it is with probability 1; the "
        r"largest value that works for it is 0\.\d+$",
    ) as refused:
        md.design(joint, md.LDP(1.0), objective="truth", stay={"x4": 1, "x0": 1})
    most = float(str(refused.value).rsplit(" ", 1)[1])
    md.design(joint, md.LDP(1.0), objective="truth", stay={"x4": most})


@pytest.mark.parametrize("stay", ["x0", "x4"])
def test_a_symbol_may_always_stay(stay):
    """Shares of 1 leave nothing to others, whatever the tolerance of the program was."""
    joint = md.Joint.from_counts(TELLING[0], useful_labels=TELLING[1].split())
    made = md.design(
        joint,
        md.ALIP(eps_l=25.0, eps_u=3.0),
        objective="truth",
        stay={stay: 1},
        keep_frequencies=False,
    )
    x = joint.useful.names.index(stay)
    assert list(made.channel.integers.entries())[x] == [
        (made.channel.outputs.index(stay), made.channel.denominator)
    ]


def test_symbols_of_a_share_of_a_millionth_keep_their_lifts():
    """Rare symbols hang on shares far below the noise of an interior point method."""
    counts = [
        [0, 10, 0, 20, 3, 0],
        [9, 0, 200_000_000, 1, 0, 50_000_000],
        [1, 1, 7, 0, 4, 90_000_000],
    ]
    joint = md.Joint.from_counts(counts)
    for notion in (md.MinLift(10.0), md.ALIP(eps_l=100.0, eps_u=float("inf"))):
        for way in ({"keep_frequencies": True}, {"stay": 0.1}):
            least = md.design(joint, notion, objective="truth", **way).least
            assert least is not None
            assert least.cost - least.cost_lower_bound <= 1e-8


def test_what_a_large_budget_allows_is_not_denied_for_a_smaller_one():
    """Budgets count as 20 nats in the program: what that rules out need not be impossible."""
    joint = md.Joint.from_counts([[10, 0], [0, 10]])
    free = {"objective": "truth", "keep_frequencies": False}
    made = md.design(joint, md.LDP(25.0), stay=1 - 1e-10, **free)
    assert made.verified
    assert made.least is not None
    assert made.least.truth >= 1 - 1e-10
    with pytest.raises(
        md.SolverFailure,
        match="no channel was found; of budgets of at most 20 nats is known: stay: ",
    ):
        md.design(joint, md.LDP(600.0), stay=1 - 1e-12, **free)
    with pytest.raises(md.NotPrivate, match="stay: each of these shares works alone"):
        md.design(joint, md.LDP(19.0), stay=1 - 1e-10, **free)


def test_an_empty_program_after_one_with_channels_proves_nothing(monkeypatch):
    """Margins and smaller budgets leave channels out: where integers failed before, there may be one."""
    honest, calls = LeastCostProgram._solution, []

    def solved(plan, margin):
        calls.append(margin)
        if len(calls) > 1:
            raise EmptyPolytope("no assignment")
        return honest(plan, margin)

    monkeypatch.setattr(LeastCostProgram, "_solution", solved)
    monkeypatch.setattr(LeastCostProgram, "keeps_limits", lambda plan, channel: False)
    joint = md.Joint.from_counts([[10, 3], [2, 10]])
    with pytest.raises(md.SolverFailure, match="no verified channel came out"):
        md.design(joint, md.LDP(1.0), objective="truth", stay=0.2)
    assert len(calls) > 2


@pytest.mark.parametrize("counts", SPARSE)
def test_after_another_release_a_huge_budget_costs_as_good_as_nothing(counts):
    """Rows of several tables are moved until they hold for every column, too."""
    joint = md.Joint.from_counts(counts)
    first = md.design(joint, md.LDP(0.5), objective="truth").channel
    for notion in (md.LDP(700.0), md.LIP(700.0), md.MaxLift(700.0), md.MinLift(700.0)):
        least = md.design(joint, notion, objective="truth", after=[first]).least
        assert least is not None
        assert least.cost_lower_bound <= 1e-15
        assert least.cost <= 1e-6


@pytest.mark.parametrize("notion", [md.LDP(3.0), md.LIP(3.0), md.MinLift(3.0)])
def test_rows_of_smaller_budgets_hold_with_their_slack_for_larger_ones(notion):
    """(a + row_error) . w >= 0 for every row a of the set within the reach, and every w of the whole set."""
    joint = md.Joint.from_counts([[500, 70, 30], [90, 100, 900]])
    chosen = confidence_set(joint, 0.9, estimate_shares=lift_limits(notion).need_shares)
    rules = PopulationRules(joint, notion, populations=chosen)
    whole, near = rules.uncertain, rules.uncertain_within(1.0)
    broken = []
    for v in whole.pulled(0.0):
        w = v / whole.point
        rows = near.cuts(w)
        assert ((rows + near.row_error) @ w).min() >= -1e-12
        broken.append((rows @ w).min())
    assert min(broken) < -1e-3  # without the slack they do not
    assert rules.uncertain_within(20.0).slack == 0.0
