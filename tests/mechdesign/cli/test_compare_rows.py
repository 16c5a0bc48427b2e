"""`compare --release`: rows of the table, with free frequencies, and randomised response."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.comparison.row_ways import FREE, PLAN, RESPONSE, compare_rows


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
        "  rows of the table      kept",
        "  with free frequencies  kept",
        "  randomised response    kept",
    ):
        assert start in text
    assert max(map(len, text.splitlines())) <= 96


def test_the_record_is_what_python_computes(table, run):
    record = run(*ROWS, "--json").record
    joint = md.Joint.from_table(table, sensitive="secret", useful=["a", "b"])
    request = md.DesignRequest(joint, md.ALIP(0.5, 0.5), release=["a", "b"])
    result = compare_rows(request)
    names = [PLAN, FREE, RESPONSE]
    assert [way["name"] for way in record["ways"]] == names
    for way, other in zip(record["ways"], result.ways, strict=True):
        assert way["nmi"] == pytest.approx(other.nmi)
        assert way["satisfied"] is other.satisfied
        assert way["unchanged"] == pytest.approx(other.unchanged)
    assert record["columns"] == ["a", "b"]


def test_given_and_binned_columns(table, run):
    record = run(
        *COMPARE,
        *("--release", "a,n", "--bin", "n=0,10,inf", "--given", "k"),
        *("--promise", "relative"),
        *("--at-most-times", "1.6", "--at-least-times", "0.6", "--json"),
    ).record
    assert record["columns"] == ["a", "n"]
    assert all(way["satisfied"] for way in record["ways"])


def test_all_columns_are_compared(table, run):
    left_out = ("--release", "all", "--leave-out", "n,k")
    record = run(*COMPARE, *left_out, "--epsilon", "1", "--json").record
    assert record["columns"] == ["a", "b"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--epsilons", "1"), "compare channels of one column"),
        (("--lams", "0.5"), "compare channels of one column"),
        (("--confidence", "0.9"), "not built for a comparison of rows"),
        (("--workers", "2"), "are for channels of one column"),
        (("--plot", "x.png"), "a comparison of rows has one budget"),
        (("--output", "x.csv"), "a comparison of rows has one budget"),
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
    for way in done.record["ways"]:
        assert way["achieved"]["eps_ldp"] <= 1.0
