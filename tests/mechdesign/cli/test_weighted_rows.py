"""Rows of a table of weights: what is said of them, and that they are not estimated unweighted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mechdesign as md

HALF = 0.5


@pytest.fixture
def weighted(folder):
    """Records of which one half has nine times the weight of the other, by what is released."""
    rng = np.random.default_rng(11)
    x = np.repeat(["p", "q"], 1500)
    frame = pd.DataFrame(
        {
            "s": np.where(rng.random(3000) < np.where(x == "p", 0.9, 0.1), "a", "b"),
            "x": x,
            "y": rng.choice(["1", "2"], 3000),
            "n": np.where(x == "p", 9.25, 1.25),
        }
    )
    frame.sample(frac=1.0, random_state=1).to_csv("w.csv", index=False)
    return frame


def release(run, columns):
    told = run(
        *("design", "w.csv", "--sensitive", "s", "--release", columns),
        *("--weight", "n", "--epsilon", "1", "--output", "c.json"),
    )
    draws = ("--keep", "n", "--insecure-seed", "1")
    applied = run("apply", "c.json", "w.csv", "out.csv", *draws)
    return " ".join(told.out.split()), " ".join(applied.out.split())


@pytest.mark.parametrize("columns", ["x", "x,y"])
def test_design_and_apply_say_that_the_values_are_weighted(weighted, run, columns):
    told, applied = release(run, columns)
    assert "Population: unknown, because the table has no numbers of records." in told
    assert "--confidence 0.95 protects" not in told
    assert "where each record counts with its weight." in told
    assert "where each record counts with its weight there." in applied
    assert "estimate" not in applied
    # And it is true: weighted shares come back, unweighted ones do not.
    out = pd.read_csv("out.csv")
    shares = out.groupby("x")["n"].sum() / out["n"].sum()
    table = weighted.groupby("x")["n"].sum() / weighted["n"].sum()
    assert shares["p"] == pytest.approx(table["p"], abs=0.02)
    assert (out["x"] == "p").mean() > HALF + 0.2


def test_a_column_is_estimated_without_its_weights(weighted, run):
    release(run, "x")
    record = run("estimate", "out.csv", "--channel", "c.json", "--json").record
    (p,) = [row for row in record["frequencies"] if row["name"] == "p"]
    assert p["lower"] < HALF < p["upper"]
    channel = md.Channel.load("c.json")
    found = md.estimate(channel, "out.csv").as_dict()
    assert found["p"] == pytest.approx(p["estimate"])


@pytest.mark.parametrize("question", [(), ("--mean", "y"), ("--of", "x")])
def test_unweighted_rows_are_no_estimate(weighted, run, question):
    release(run, "x,y")
    refused = run("estimate", "out.csv", "--channel", "c.json", *question)
    assert refused.code == 2
    assert "weights or probabilities and no numbers of records" in refused.err
    with pytest.raises(md.InputError, match="Keep the weights beside the rows"):
        md.estimate(md.Channel.load("c.json"), "out.csv")


def test_public_channels_say_that_their_table_has_weights(weighted, run):
    table = ("design", "w.csv", "--sensitive", "s", "--weight", "n", "--epsilon", "1")
    written = ("--public", "--public-report", "r.md", "--output", "p.json")
    run(*table, "--release", "x", *written)
    channel = md.Channel.load("p.json")
    assert channel.joint is None
    assert not channel.has_counts
    applied = run("apply", "p.json", "w.csv", "out.csv", "--insecure-seed", "1")
    assert "where each record counts with its weight there." in " ".join(
        applied.out.split()
    )
    with open("r.md", encoding="utf-8") as report:
        assert "where each record counts with its weight" in " ".join(
            report.read().split()
        )
    record = run("estimate", "out.csv", "--channel", "p.json", "--json").record
    (p,) = [row for row in record["frequencies"] if row["name"] == "p"]
    assert p["lower"] < HALF < p["upper"]
    # Rows are refused, as with the table.
    run(*table, "--release", "x,y", *written, "--force")
    run("apply", "p.json", "w.csv", "out.csv", "--force")
    refused = run("estimate", "out.csv", "--channel", "p.json")
    assert "weights or probabilities and no numbers of records" in refused.err


def test_apply_promises_no_estimate_that_is_refused(folder, run):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {
            "s": rng.choice(["a", "b"], 400),
            "x": rng.choice(["p", "q"], 400),
            "y": np.where(rng.random(400) < 0.2, "", rng.choice(["1", "2"], 400)),
        }
    )
    frame.to_csv("t.csv", index=False)
    run(
        *("design", "t.csv", "--sensitive", "s", "--release", "x,y"),
        *("--epsilon", "1", "--missing", "marginal", "--output", "c.json"),
    )
    told = run("apply", "c.json", "t.csv", "out.csv")
    assert "the table's in expectation." in " ".join(told.out.split())
    assert run("estimate", "out.csv", "--channel", "c.json").code == 2
