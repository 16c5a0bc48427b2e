"""Grids as people type them, and the cases they make."""

from __future__ import annotations

import math

import pytest

from mechdesign.comparison.rows import (
    Case,
    ascending,
    check_names,
    curves,
    notion_labels,
    parse_grid,
    takes_lam,
)
from mechdesign.core.errors import InputError
from mechdesign.notions import ALIP, LDP, LIP, NOTIONS, MaxLift, MinLift


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1", (1.0,)),
        ("0.5,1,2", (0.5, 1.0, 2.0)),
        ("0.25:1:0.25", (0.25, 0.5, 0.75, 1.0)),
        ("1:1:1", (1.0,)),
        ("1:2:0.3", (1.0, 1.3, 1.6, 1.9)),
        ("0.1, 1:3:1", (0.1, 1.0, 2.0, 3.0)),
        ("1e-1:3e-1:1e-1", (0.1, 0.2, 0.3)),
    ],
)
def test_grids(text, values):
    assert parse_grid("--epsilons", text) == values


def test_grid_points_are_the_nearest_doubles():
    """0.1 added up thirty times would not be 3."""
    assert parse_grid("--epsilons", "0.1:7:0.1") == tuple(k / 10 for k in range(1, 71))


def test_the_grid_of_the_paper_has_32_budgets_with_both_ends():
    grid = parse_grid("--epsilons", "0.25:8:0.25")
    assert (len(grid), grid[0], grid[-1]) == (32, 0.25, 8.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1:0:0.5", r"'1:0:0.5': the grid ends \(0\) before it begins \(1\)"),
        ("1:2:0", r"the step \(0\) must be positive"),
        ("1:2:-1", r"the step \(-1\) must be positive"),
        ("1:2", "'1:2' must be a number or START:STOP:STEP"),
        ("1:2:3:4", "'1:2:3:4' must be a number or START:STOP:STEP"),
        ("few", "'few' is not a number"),
        ("1,,2", "'' is not a number"),
        ("", "'' is not a number"),
        ("nan", "'nan' is not a number"),
        ("1:inf:1", "'inf' is not a number"),
        ("1:2:1e-9", "more than 10,000 values"),
    ],
)
def test_bad_grids(text, words):
    with pytest.raises(InputError, match=words):
        parse_grid("--epsilons", text)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([], "no epsilon is given"),
        ([0.0, 1.0], r"epsilon \(0\) must be positive"),
        ([-1.0], r"epsilon \(-1\) must be positive"),
        ([math.nan], "epsilon .*nan"),
        ([math.inf], "must be finite"),
        ([800.0], "at most 700"),
        ([1.0, 2.0, 1.0], r"epsilon \(1\) is given twice"),
        (["x"], "'x'"),
    ],
)
def test_bad_budgets(values, words):
    with pytest.raises(InputError, match=words):
        ascending("epsilon", values)


def test_budgets_are_put_in_order():
    assert ascending("epsilon", [2, 0.5, 1]) == (0.5, 1.0, 2.0)


@pytest.mark.parametrize(
    ("lams", "words"),
    [
        ([0.0], "strictly between"),
        ([1.0], "strictly between"),
        ([0.5, 0.5], "twice"),
        ([], "no lam"),
    ],
)
def test_bad_lams(lams, words):
    with pytest.raises(InputError, match=words):
        ascending("lam", lams)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([], "no mechanism is given; use one of a, b"),
        (["a", "c"], "mechanism 'c' is not known; use one of a, b"),
        (["a", "a"], "mechanism 'a' is given twice"),
        ("a", r"must be a list of names, as in \['a'\]"),
    ],
)
def test_bad_names(names, words):
    with pytest.raises(InputError, match=words):
        check_names("mechanism", names, ("a", "b"))


def test_labels_of_alpha_carry_the_order():
    assert notion_labels(["alip", "alpha", "alpha:10", "alpha:1.5", "alpha:1e2"]) == (
        "alip",
        "alpha:2",
        "alpha:10",
        "alpha:1.5",
        "alpha:100",
    )


@pytest.mark.parametrize(
    ("notions", "words"),
    [
        (["privacy"], "notion 'privacy' is not known"),
        (["alip:2"], "notion 'alip:2' is not known"),
        (["alpha:"], "'' is no order"),
        (["alpha:two"], "'two' is no order"),
        (["alpha:1"], r"alpha \(1\) must be above 1"),
        (["alpha:nan"], r"alpha \(nan\) must be above 1"),
        (["alpha", "alpha:2.0"], "'alpha:2' is given twice"),
        ([], "no notion is given"),
        ("alip", r"must be a list of names"),
    ],
)
def test_bad_notions(notions, words):
    with pytest.raises(InputError, match=words):
        notion_labels(notions)


@pytest.mark.parametrize(
    ("case", "notion", "sides"),
    [
        (Case("m", "alip", 2.0, 0.65), ALIP.from_epsilon(2.0, 0.65), (1.3, 0.7)),
        (Case("m", "lip", 2.0, None), LIP(2.0), (2.0, 2.0)),
        (Case("m", "ldp", 2.0, None), LDP(2.0), (None, None)),
        (Case("m", "max-lift", 2.0, None), MaxLift(2.0), (math.inf, 2.0)),
        (Case("m", "min-lift", 2.0, None), MinLift(2.0), (2.0, math.inf)),
        (Case("m", "l1", 2.0, 0.5), NOTIONS["l1"](eps_l=1.0, eps_u=1.0), (1.0, 1.0)),
        (
            Case("m", "alpha:10", 2.0, 0.5),
            NOTIONS["alpha"](eps_l=1.0, eps_u=1.0, alpha=10.0),
            (1.0, 1.0),
        ),
    ],
)
def test_the_notion_of_a_case(case, notion, sides):
    assert case.promise() == notion
    found = case.promise().sides
    assert found == (sides if None in sides else pytest.approx(sides))


def test_notions_that_take_their_budget_whole_have_one_curve():
    made = curves(("a", "b"), ("alip", "ldp"), (1.0, 2.0), (0.35, 0.5))
    assert [(c[0].mechanism, c[0].notion, c[0].lam) for c in made] == [
        (m, *rest)
        for m in "ab"
        for rest in (("alip", 0.35), ("alip", 0.5), ("ldp", None))
    ]
    assert all([case.epsilon for case in curve] == [1.0, 2.0] for curve in made)


def test_lam_is_a_half_unless_told_otherwise():
    assert [curve[0].lam for curve in curves(("a",), ("alip",), (1.0,), None)] == [0.5]


def test_lams_without_a_notion_that_takes_one_are_refused():
    with pytest.raises(
        InputError,
        match="lams splits a budget in two; ldp, lip takes it whole: drop lams",
    ):
        curves(("a",), ("ldp", "lip"), (1.0,), (0.5,))


def test_which_notions_take_lam():
    whole = {"lip", "ldp", "max-lift", "min-lift"}
    assert {name for name in NOTIONS if not takes_lam(name)} == whole
