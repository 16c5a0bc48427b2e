"""`design --release`, `audit` and `show` on channels of rows."""

from __future__ import annotations

import io
import math
import re

import numpy as np
import pandas as pd
import pytest

import mechdesign as md


@pytest.fixture
def table(folder):
    chance = np.random.default_rng(3)
    secret = chance.choice(["s", "t"], 800, p=[0.4, 0.6])
    a = np.where(chance.random(800) < 0.6, secret, chance.choice(["x", "y"], 800))
    b = np.where(chance.random(800) < 0.5, a, chance.choice(["u", "v"], 800))
    k = np.where(chance.random(800) < 0.2, secret, "m")
    frame = pd.DataFrame({"secret": secret, "a": a, "b": b, "k": k})
    frame.to_csv("people.csv", index=False)
    return frame


DESIGN = ("design", "people.csv", "--sensitive", "secret")


def test_a_row_channel_is_designed_audited_and_shown(table, run):
    arguments = (
        *DESIGN,
        "--release",
        "a,b",
        "--epsilon",
        "0.8",
        "--output",
        "row.json",
    )
    record = run(*arguments, "--json").record
    assert record["verified"] is True
    assert record["promise"] == "total"
    assert record["objective"] == "truth"
    assert [level["columns"] for level in record["levels"]] == [["a"], ["b"]]
    assert set(record["truth"]) == {"a", "b"}
    assert record["achieved"]["eps_u"] <= 0.4
    assert 0.0 < record["nmi"] <= record["upper_bound_nmi"]
    assert isinstance(md.load("row.json"), md.Channel)
    verdict = run("audit", "row.json", "--json").record
    assert verdict["satisfied"] is True
    assert verdict["achieved"] == record["achieved"]
    assert run("audit", "row.json", "--table", "people.csv", "--json").record == verdict
    violated = run("audit", "row.json", "--notion", "lip", "--epsilon", "0.01")
    assert violated.code == 1
    assert "VIOLATED" in violated.out
    shown = run("show", "row.json").out
    assert "a, b are released together; secret is protected." in shown
    assert run("show", "row.json", "--json").record["promise"] == "total"


def test_the_text_says_what_is_promised_and_kept(table, run):
    asked = ("--at-most-times", "1.5", "--at-least-times", "0.6", "--full")
    text = run(*DESIGN, "--release", "a*b", *asked).out
    assert (
        "changes the probability of every value of secret by a factor between" in text
    )
    assert "no mechanism with this promise keeps more than" in " ".join(text.split())
    assert "Nothing was written" in text


def test_what_the_columns_add_sums_to_the_information_kept(table, run):
    asked = (*DESIGN, "--release", "a,b", "--epsilon", "0.4")
    text = run(*asked, "--full").out
    record = run(*asked, "--json").record
    added = sum(level["kept"] for level in record["levels"])
    assert added == pytest.approx(record["nmi"])
    # What the most frequent symbol alone would leave unchanged.
    for level, name in zip(record["levels"], ("a", "b"), strict=True):
        assert level["constant"] == {
            name: pytest.approx(table[name].value_counts(normalize=True).max())
        }
    header = next(line for line in text.splitlines() if "factor so far" in line)
    assert header.split() == [
        "column",
        "unchanged",
        "cells",
        "if",
        "constant",
        "adds",
        "factor",
        "so",
        "far",
    ]


SCREENS = [
    ("--release", "a,b", "--epsilon", "0.8"),
    ("--release", "a,b", "--epsilon", "0.8", "--objective", "information"),
    ("--release", "a*b", "--at-most-times", "2", "--output", "row.json"),
    ("--release", "b", "--given", "k", "--promise", "relative", "--epsilon", "0.8"),
    ("--release", "a,b", "--notion", "ldp", "--epsilon", "0.8"),
]


@pytest.mark.parametrize("asked", SCREENS, ids=" ".join)
def test_a_design_of_rows_fits_a_screen(table, run, asked):
    """The promise for the table and what holds for the population stand in the first three lines."""
    lines = run(*DESIGN, *asked).out.rstrip("\n").split("\n")
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 96
    first = "\n".join(lines[:4])
    assert "\nTable: " in first
    assert "(verified)." in first
    assert "\nPopulation: not promised" in first
    assert "--confidence 0.95" in first
    assert any(line.startswith("Kept: ") for line in lines)
    assert "All sections:  --full" in lines
    assert ("unchanged cells" in "\n".join(lines)) == ("information" not in asked)


def test_many_levels_are_cut_to_a_screen_and_full_has_them(folder, run):
    """Thirty columns of two values: the screen counts the levels that it leaves out."""
    names = [f"c{k}" for k in range(30)]
    generator = np.random.default_rng(4)
    cells = generator.integers(0, 2, size=(300, 31))
    frame = pd.DataFrame(cells, columns=["secret", *names])
    frame.to_csv("wide.csv", index=False)
    asked = ("design", "wide.csv", "--sensitive", "secret", "--release")
    asked = (*asked, ",".join(names), "--epsilon", "1", "--time-limit", "2")
    lines = run(*asked).out.rstrip("\n").split("\n")
    assert len(lines) <= 25
    (left,) = [line for line in lines if "more levels:  --full" in line]
    hidden = int(left.split()[1])
    shown = [line for line in lines if line.startswith("  c")][1:]
    assert len(shown) + hidden == 30
    whole = run(*asked, "--full").out
    assert all(f"\n  {name} " in whole for name in names)


def test_the_screen_promises_no_more_than_was_verified(table, run):
    asked = (*DESIGN, "--release", "a,b", "--epsilon", "0.8")
    line = run(*asked).out.split("\n")[1]
    achieved = run(*asked, "--json").record["achieved"]
    low, high = re.search(r"([\d.]+) to ([\d.]+) times", line).groups()
    assert math.log(float(high)) >= achieved["eps_u"]
    assert math.log(float(low)) <= -achieved["eps_l"]
    assert math.log(float(high)) - achieved["eps_u"] < 0.02


@pytest.mark.parametrize(
    ("budget", "said", "free"),
    [
        (
            ("--at-most-times", "2"),
            "makes no value of secret more than 2 times as probable as before.",
            "may make a value of secret much less likely, or rule it out.",
        ),
        (
            ("--at-least-times", "0.5"),
            "makes no value of secret less than 0.5 times as probable as before.",
            "may make a value of secret much more likely, or give it away.",
        ),
    ],
)
def test_one_bound_is_said_as_one_bound(table, run, budget, said, free):
    text = run(*DESIGN, "--release", "a,b", *budget, "--full").out
    words = " ".join(text.split())
    assert said in words
    assert free in words
    assert "inf" not in words.replace("information", "")


def test_given_columns_that_break_the_promise_are_answered_with_no(table, run):
    arguments = (*DESIGN, "--release", "a", "--given", "k", "--epsilon", "0.8")
    refused = run(*arguments)
    assert refused.code == 1
    assert "promise relative" in refused.err
    assert run(*arguments, "--promise", "relative", "--json").record["given_lift"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--release", "a,a"), "'a' is released twice"),
        (("--release", "a", "--given", "a"), "'a' is released twice"),
        (("--release", "a,secret"), "column 'secret' cannot be released or given"),
        (("--release", "a", "--given", "secret"), "leave it out of --release and"),
        (("--release", "a,,b"), "has an empty column name"),
        (("--release", "a", "--given", "k,"), "--given has an empty column name"),
        (("--release", "zz"), "there is no column 'zz'"),
        (("--release", "a", "--useful", "b"), "leave --useful out"),
        (("--release", "a", "--least-mass", "much"), "must be a share of the records"),
        (("--release", "a", "--promise", "some"), "promise ('some')"),
        (("--release", "a", "--order", "any"), "order ('any')"),
        (
            ("--release", "a", "--objective", "distance"),
            "must be truth, information or task",
        ),
        (("--release", "a", "--cells", "4"), "give a confidence level too"),
        (
            ("--release", "a", "--confidence", "0.9", "--rare", "auto"),
            "--rare auto is for one column (--merge-rare)",
        ),
        (("--release", "a", "--after", "c.json"), "--after is not built"),
        (("--release", "a", "--keep", "0.8"), "leave out every other budget"),
        (("--useful", "a", "--given", "k"), "belong to a release of rows"),
    ],
)
def test_refusals(table, run, options, message):
    refused = run(*DESIGN, "--epsilon", "1", *options)
    assert refused.code == 2
    assert message in refused.err


def test_the_smallest_budget_that_keeps_a_share(table, run):
    keep = ("--release", "a,b", "--notion", "lip", "--keep", "80%")
    # The search ends by itself long before this limit.
    whole = run(*DESIGN, *keep, "--time-limit", "600", "--output", "row.json", "--json")
    record = whole.record
    assert record["nmi"] >= 0.8
    channel = md.load("row.json")
    found = channel.record.certificate["kept_at"]
    assert channel.notion == md.LIP(found)
    assert record["notion"] == {"name": "lip", "epsilon": found}
    assert record["messages"][-1].startswith(f"epsilon {found:g} keeps 80 %")
    assert run("audit", "row.json").code == 0
    refused = run(*DESIGN, *keep, "--confidence", "0.9")
    assert refused.code == 2
    assert "--keep with --confidence is not built for a release of rows" in refused.err


def test_all_measures_of_a_row_channel(table, run):
    given = ("--given", "k", "--promise", "relative", "--epsilon", "1")
    text = run(
        *DESIGN, "--release", "a", *given, "--output", "row.json", "--all-measures"
    ).out
    assert "its given columns are part of what it reveals" in " ".join(text.split())
    record = run("audit", "row.json", "--all-measures", "--order", "3", "--json").record
    assert record["satisfied"] is True
    measures = record["measures"]
    assert measures["utility"]["nmi"] > 0.0
    assert "sibson_information[3]" in measures["leakage"]
    # Against the whole table the given columns leak beside the promise, which is relative to them.
    assert measures["achieved"]["eps_u"] > record["achieved"]["eps_u"]
    told = run("audit", "row.json", "--all-measures", "--per-output").out
    assert "Output by output" in told
    assert "maximal_leakage" in told
    alone = run("measure", "row.json", "--alpha", "2", "--alpha", "3", "--order", "3")
    assert "sibson_information[3]" in alone.out
    table.to_csv("other.csv", index=False)
    other = run("measure", "row.json", "--table", "other.csv", "--json").record
    assert other["utility"] == measures["utility"]


def test_a_terminal_shows_the_first_of_many_outputs(table, run, monkeypatch):
    monkeypatch.setattr("mechdesign.report.blocks.MOST_ROWS", 2)
    run(*DESIGN, "--release", "a,b", "--epsilon", "3", "--output", "row.json")
    told = run("audit", "row.json", "--all-measures", "--per-output").out
    assert "The first 2 of " in told
    assert "outputs are shown; all are in --json." in told


def test_boxes_have_no_measures(table, run):
    options = ("--confidence", "0.9", "--cells", "2", "--epsilon", "3")
    run(*DESIGN, "--release", "a,b", *options, "--output", "box.json")
    refused = run("audit", "box.json", "--all-measures")
    assert refused.code == 2
    assert "not for a channel for boxes of rows: leave it out" in refused.err


def test_boxes_fit_a_screen_that_puts_the_population_first(table, run):
    options = ("--confidence", "0.9", "--cells", "2", "--epsilon", "3")
    screen = run(*DESIGN, "--release", "a,b", *options, "--output", "box.json").out
    lines = screen.rstrip("\n").split("\n")
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 96
    assert lines[0].startswith("a, b are released together in boxes of values")
    assert lines[1].startswith("Population (90 % confidence): a released row makes")
    assert lines[3].startswith("Table (the records of the proof): a released row makes")
    # Budgets in nats and numbers of propositions are for `audit` and --full.
    assert "eps_" not in screen
    assert "nats" not in screen
    whole = run(*DESIGN, "--release", "a,b", *options, "--full").out
    assert "nats" in whole
    verdict = run("audit", "box.json").out
    assert "for the population: satisfied, decided in exact arithmetic." in verdict


def test_records_of_silent_strata_are_not_of_the_proof(table, run):
    # The stratum of k = t has records of a single sensitive value.
    table = table.assign(k=np.where(table["k"] == "t", "t", "m"))
    table.loc[table["k"] == "t", "secret"] = "t"
    table.to_csv("people.csv", index=False)
    options = ("--confidence", "0.9", "--cells", "2", "--epsilon", "3")
    given = ("--given", "k", "--promise", "relative")
    screen = run(*DESIGN, "--release", "a,b", *given, *options).out
    assert "1 of 2 strata of the given columns has too few records" in screen
    whole = run(*DESIGN, "--release", "a,b", *given, *options, "--full").out
    text = " ".join(whole.split())
    assert "1 of 2 strata of the given columns has too few records" in text
    proof, others = re.findall(r"the proof uses (\d+) of the other (\d+)", text)[0]
    assert int(others) == 720
    assert 0 < int(proof) < 720


def test_show_prints_the_matrices_of_all_nodes_as_one_table(table, run):
    run(*DESIGN, "--release", "a,b", "--epsilon", "1", "--output", "row.json")
    text = run("show", "row.json", "--csv").out
    shown = pd.read_csv(io.StringIO(text), keep_default_na=False)
    nodes = shown.groupby(["level", "given_and_released", "symbol"])
    sums = nodes["p_output_given_symbol"].sum()
    assert sums.to_numpy() == pytest.approx(np.ones(len(sums)))
    channel = md.load("row.json")
    law = channel.distribution({"a": "x", "b": "u"})
    first = shown[(shown["level"] == "a") & (shown["symbol"] == "x")]
    for output, share in first[["output", "p_output_given_symbol"]].to_numpy():
        expected = sum(mass for row, mass in law.items() if row[0] == output)
        assert share == pytest.approx(float(expected))
    later = run("audit", "row.json", "--after", "row.json")
    assert later.code == 2
    assert "--after belongs to channels of one column" in later.err


def test_show_prints_the_boxes_of_all_outputs_as_one_table(table, run):
    options = ("--confidence", "0.9", "--cells", "2", "--epsilon", "3")
    run(*DESIGN, "--release", "a,b", *options, "--output", "box.json")
    text = run("show", "box.json", "--csv").out
    assert text.startswith("given,output,box,rows,p_output_given_box\n")


def test_frequencies_of_released_rows(table, run):
    run(
        *DESIGN,
        "--release",
        "a,b",
        "--given",
        "k",
        "--promise",
        "relative",
        "--epsilon",
        "2",
        "--output",
        "row.json",
    )
    channel = md.Channel.load("row.json")
    released = channel.apply(table[["k", "a", "b"]], insecure_seed=1)
    released.to_csv("out.csv", index=False)
    single = run("estimate", "out.csv", "--channel", "row.json", "--json").record
    assert [part["columns"] for part in single["frequencies"]] == [["k"], ["a"], ["b"]]
    for part in single["frequencies"]:
        for row in part["rows"]:
            assert 0.0 <= row["lower"] <= row["estimate"] <= row["upper"] <= 1.0
    pair = run(
        "estimate", "out.csv", "--channel", "row.json", "--of", "a", "--by", "k"
    ).out
    assert "Frequencies of a by k from 800 released rows; 95 % intervals" in pair
    parts = run("estimate", "out.csv", "--channel", "row.json", "--json").record
    for part in parts["frequencies"]:
        for row in part["rows"]:
            assert row["unresolved"] <= row["upper"] - row["lower"] or row["lower"] == 0
    refused = run("estimate", "out.csv", "--channel", "row.json", "--method", "ml")
    assert refused.code == 2
    assert "leave --method and --target out" in refused.err
    run(*DESIGN, "--useful", "a", "--epsilon", "1", "--output", "c.json")
    single_column = run("estimate", "out.csv", "--channel", "c.json", "--of", "a")
    assert single_column.code == 2
    assert "--of names columns of released rows" in single_column.err


def test_values_that_are_never_told_apart_have_an_open_part(folder, run):
    """One output for everything: no number of records narrows the intervals."""
    secret = ["s", "t"] * 200
    frame = pd.DataFrame({"secret": secret, "a": secret})
    frame.to_csv("people.csv", index=False)
    run(*DESIGN, "--release", "a", "--epsilon", "1e-9", "--output", "row.json")
    channel = md.Channel.load("row.json")
    channel.apply(frame[["a"]], insecure_seed=1).to_csv("out.csv", index=False)
    arguments = ("estimate", "out.csv", "--channel", "row.json")
    (part,) = run(*arguments, "--json").record["frequencies"]
    assert [row["unresolved"] for row in part["rows"]] == pytest.approx([1.0, 1.0])
    text = run(*arguments).out
    assert "not told apart" in text
    assert "a is released; secret is protected." in run("show", "row.json").out
    assert "do not tell this value from others" in " ".join(text.split())


def test_a_terminal_shows_the_largest_of_many_estimates(folder, run):
    chance = np.random.default_rng(5)
    columns = {name: chance.integers(0, 12, 3000).astype(str) for name in ("a", "b")}
    frame = pd.DataFrame({"secret": chance.choice(["s", "t"], 3000), **columns})
    frame.to_csv("people.csv", index=False)
    run(*DESIGN, "--release", "a,b", "--epsilon", "1", "--output", "row.json")
    channel = md.Channel.load("row.json")
    channel.apply(frame[["a", "b"]], insecure_seed=1).to_csv("out.csv", index=False)
    arguments = ("estimate", "out.csv", "--channel", "row.json", "--of", "a,b")
    text = run(*arguments).out
    assert "Shown are the 100 largest of 144 estimates; all are in --json." in text
    estimates = [
        row["estimate"]
        for row in run(*arguments, "--json").record["frequencies"][0]["rows"]
    ]
    assert len(estimates) == 144
    assert f"{max(estimates):.5f}" in text
    assert text.count(" to ") == 100
