"""`compare --release`: a row channel beside the ways of today."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.core.errors import NAMES_OPTIONS


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
    assert "Three ways to release a, b; secret is protected by alip" in text
    for start in (
        "  row channel            kept",
        "  each column by itself  BROKEN",
        "  randomised response    kept",
    ):
        assert start in text
    assert "as if the others were not there. The released row breaks" in " ".join(
        text.split()
    )


def test_the_record_is_what_python_returns(table, run):
    record = run(*ROWS, "--json").record
    token = NAMES_OPTIONS.set(False)
    result = md.compare_rows(
        table, sensitive="secret", release=["a", "b"], notion=md.ALIP(0.5, 0.5)
    )
    NAMES_OPTIONS.reset(token)
    assert [way["mechanism"] for way in record["ways"]] == ["rows", "alone", "response"]
    for way, other in zip(record["ways"], result.ways, strict=True):
        assert way["kept"] == other.kept
        assert way["satisfied"] is other.satisfied
        assert way["truth"] == other.truth
        assert way["complete"] is True
        assert way["worst"]["row"] == list(other.worst.row)
    assert record["release"] == [["a"], ["b"]]
    assert record["promise"] == "total"


def test_given_crossed_and_binned_columns(table, run):
    record = run(
        *COMPARE,
        *("--release", "a*b,n", "--bin", "n=0,10,inf", "--given", "k"),
        *("--promise", "relative", "--objectives", "information"),
        *("--at-most-times", "1.6", "--at-least-times", "0.6", "--json"),
    ).record
    assert record["given"] == [["k"]]
    assert record["release"] == [["a", "b"], ["n"]]
    assert record["objective"] == "information"
    assert record["ways"][1]["truth"] is None
    assert record["ways"][2]["satisfied"] is True


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
        (("--order", "best"), "belong to a release of rows"),
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


def test_ldp_names_both_values(table, run):
    done = run(*ROWS, "--notion", "ldp")
    assert done.code == 0
    assert "changes the odds of" in " ".join(done.out.split())
