"""`compare --release`: rows of the table, with free frequencies, and randomised response."""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.comparison.rows import read_rows


@pytest.fixture
def table(folder):
    chance = np.random.default_rng(5)
    secret = chance.choice(["s", "t"], 900, p=[0.4, 0.6])
    a = np.where(chance.random(900) < 0.5, secret, chance.choice(["x", "y"], 900))
    b = np.where(chance.random(900) < 0.5, a, chance.choice(["u", "v"], 900))
    k = np.where(chance.random(900) < 0.4 + 0.1 * (secret == "s"), "m", "n")
    n = chance.integers(0, 40, 900)
    frame = pd.DataFrame({"secret": secret, "a": a, "b": b, "k": k, "n": n})
    frame.to_csv("people.csv", index=False)
    return frame


COMPARE = ("compare", "people.csv", "--sensitive", "secret")
ROWS = (*COMPARE, "--release", "a,b", "--epsilon", "1")


def test_three_ways_stand_beside_each_other(table, run):
    done = run(*ROWS)
    assert done.code == 0
    text = done.out
    assert "alip (eps_l 0.5, eps_u 0.5)" in text
    for start in (
        "  truth                kept",
        "  truth-free           kept",
        "  randomised-response  kept",
    ):
        assert start in text
    assert max(map(len, text.splitlines())) <= 96


def test_a_level_adds_boxes_of_rows(table, run):
    done = run(*ROWS, "--confidence", "0.9")
    assert done.code == 0
    for start in ("  truth  ", "  truth@0.9  ", "  truth-free@0.9  "):
        assert start in done.out
    assert "not in boxes, with a confidence level: randomised-response" in done.err


def test_the_record_is_what_python_computes(table, run):
    record = run(*ROWS, "--json").record
    result = md.compare(table, sensitive="secret", release=["a", "b"], epsilons=[1.0])
    for row, other in zip(record["rows"], result.rows, strict=True):
        assert row | {"seconds": 0.0} == asdict(other) | {"seconds": 0.0}


def test_a_grid_is_written_and_gone_on_with(table, run):
    asked = (*COMPARE, "--release", "a,b", "--lams", "0.5,0.6", "--output", "ways.csv")
    first = run(*asked, "--epsilons", "0.5", "--json").record
    second = run(*asked, "--epsilons", "0.5,1", "--json").record
    assert (first["kept"], second["kept"]) == (0, 6)
    rows = read_rows("ways.csv")
    assert len(rows) == 12
    assert all(row.satisfied and row.total_variation is not None for row in rows)
    # The same columns with another role are another run.
    other = run(
        *COMPARE, "--release", "a", "--given", "b", *asked[-2:], "--lams", "0.5"
    )
    assert other.code == 2
    text = run(*asked, "--epsilons", "0.5,1").out
    assert "alip, lam 0.6:\n  epsilon  way " in text


def test_given_and_binned_columns(table, run):
    record = run(
        *COMPARE,
        *("--release", "a,n", "--bin", "n=0,10,inf", "--given", "k"),
        *("--promise", "relative"),
        *("--at-most-times", "1.6", "--at-least-times", "0.6", "--json"),
    ).record
    assert len(record["rows"]) == 3
    for row in record["rows"]:
        assert row["satisfied"]
        # Budgets of words are kept, and not exceeded by rounding.
        assert row["eps_u"] <= math.log(1.6)
        assert row["eps_u"] == pytest.approx(math.log(1.6), abs=1e-15)
        assert row["eps_l"] == pytest.approx(-math.log(0.6), abs=1e-15)


def test_all_columns_are_compared(table, run):
    left_out = ("--release", "all", "--leave-out", "n,k")
    record = run(*COMPARE, *left_out, "--epsilon", "1", "--json").record
    named = run(*ROWS, "--json").record
    for row, other in zip(record["rows"], named["rows"], strict=True):
        assert row["nmi"] == other["nmi"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--epsilons", "1"), "exclude each other"),
        (("--lams", "0.6"), "exclude each other"),
        (("--notions", "lip"), "exclude each other"),
        (("--average", "mi=0.1"), "has no epsilons (--epsilons)"),
        (("--recommend",), "--recommend is for channels of one column"),
        (("--as-published",), "are for channels of one column"),
        (("--risk", "sum"), "are for channels of one column"),
        (("--free-frequencies",), "are for channels of one column"),
        (("--method", "columns"), "leave method (--method) out"),
        (("--distance", "ranks"), "is for the objective distance"),
        (("--mechanisms", "subset-merging"), "use one of truth, distance"),
        (("--mechanisms", "truth", "--objectives", "truth"), "give one of them"),
        (("--useful", "a"), "leave --useful out"),
    ],
)
def test_what_rows_do_not_have_is_refused(table, run, arguments, message):
    done = run(*ROWS, *arguments)
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--epsilon", "1"), "a single budget is compared with --release"),
        (("--at-most-times", "2"), "a single budget is compared with --release"),
        (("--given", "k"), "belong to a release of rows"),
        (("--leave-out", "k"), "belong to a release of rows"),
    ],
)
def test_what_curves_do_not_have_is_refused(table, run, arguments, message):
    done = run(*COMPARE, "--useful", "a", *arguments)
    assert done.code == 2
    assert message in done.err


def test_a_budget_is_needed_and_averages_are_refused(table, run):
    assert run(*COMPARE, "--release", "a,b").code == 2
    done = run(*ROWS, "--notion", "l1")
    assert done.code == 2
    assert "bounds averages" in done.err


def test_ldp_is_compared_too(table, run):
    done = run(*ROWS, "--notion", "ldp", "--json")
    assert done.code == 0
    for row in done.record["rows"]:
        assert row["satisfied"]
        assert row["notion"] == "ldp"
