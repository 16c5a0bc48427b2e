"""`design --release`, `audit` and `show` on channels of rows."""

from __future__ import annotations

import io
import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.auditing.measures import best_guess
from mechdesign.release.drawing import channel_digest
from mechdesign.report.releases import statistics_note


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


PICKED = "wrong for records that were picked by what they hold"
DESIGN = ("design", "people.csv", "--sensitive", "secret")
MERGED = ("--useful", "a", "--confidence", "0.9", "--merge-rare")


def test_a_release_of_rows_is_designed_audited_and_shown(table, run):
    asked = (*DESIGN, "--release", "a,b", "--epsilon", "0.8", "--output", "row.json")
    record = run(*asked, "--json").record
    assert record["verified"] is True
    assert record["promise"] == "total"
    assert record["objective"] == "truth"
    assert record["method"] == "plan"
    assert record["asked"]["keep_frequencies"] is True
    assert set(record["truth"]) == {"a", "b"}
    assert record["smallest_group"] == 5
    assert record["law"]["kept"] is True
    assert record["achieved"]["eps_u"] <= 0.4
    assert 0.0 < record["cost_lower_bound"] <= record["cost"] < 1.0
    mean = sum(record["truth"].values()) / 2
    assert 1.0 - record["cost"] == pytest.approx(mean, abs=1e-6)
    channel = md.load("row.json")
    assert isinstance(channel, md.Channel)
    assert channel.output_columns == ("a", "b")
    verdict = run("audit", "row.json", "--json").record
    assert verdict["satisfied"] is True
    assert verdict["achieved"] == record["achieved"]
    other = run("audit", "row.json", "--table", "people.csv", "--json").record
    assert other["achieved"] == verdict["achieved"]
    violated = run("audit", "row.json", "--notion", "lip", "--epsilon", "0.01")
    assert violated.code == 1
    assert "VIOLATED" in violated.out
    shown = run("show", "row.json")
    assert shown.code == 0
    assert "rows with sums of their own" in shown.out
    assert "verified on its own table" in shown.out


def test_the_line_in_the_file_makes_the_same_channel_again(table, run):
    asked = ("--release", "a,b", "--epsilon", "0.8", "--column-weight", "a=2")
    run(*DESIGN, *asked, "--never", "a=s,b=t", "--output", "row.json")
    channel = md.load("row.json")
    line = channel.record.provenance["command"]
    assert "--release a,b" in line
    assert "--column-weight a=2" in line
    words = line.replace("TABLE.csv", "people.csv").split()[1:]
    words[words.index("--output") + 1] = "again.json"
    assert run(*words).code == 0
    assert channel_digest(md.load("again.json")) == channel_digest(channel)


SCREENS = {
    "truth": ("--release", "a,b", "--epsilon", "0.8"),
    "one side": ("--release", "a,b", "--at-most-times", "2", "--output", "row.json"),
    "ldp": ("--release", "a,b", "--notion", "ldp", "--epsilon", "0.8"),
    "given": (
        *("--release", "b", "--given", "k"),
        *("--promise", "relative", "--epsilon", "0.8"),
    ),
    "free law": ("--release", "a,b", "--epsilon", "0.8", "--free-frequencies"),
    "stay": ("--release", "a,b", "--epsilon", "2", "--stay", "0.3"),
    "all": ("--release", "all", "--leave-out", "k", "--epsilon", "0.8"),
    "information": (
        *("--release", "a,b", "--epsilon", "0.8"),
        *("--objective", "information"),
    ),
}


def test_all_sections_say_how_often_a_guess_from_a_row_is_right(table, run):
    options = (*SCREENS["given"], "--output", "row.json")
    text = " ".join(run(*DESIGN, *options, "--full").out.split())
    channel = md.load("row.json")
    after, before = best_guess(channel, channel.joint)
    assert before < after
    most = math.ceil(1000 * after) / 10
    sentence = f"from a released row is right more often than {most:.1f} %"
    assert (
        f"Guesses: no guess of secret {sentence} ({100 * float(before):.1f} %" in text
    )
    assert sentence in " ".join(run("audit", "row.json").out.split())


@pytest.mark.parametrize("kind", SCREENS)
def test_a_design_of_rows_fits_a_screen(table, run, kind):
    """What is promised, for the table and for the population, comes first."""
    done = run(*DESIGN, *SCREENS[kind])
    assert done.code == 0, done.err
    lines = done.out.rstrip("\n").split("\n")
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 96
    assert any(line.startswith("Table: ") for line in lines[:5])
    words = " ".join(done.out.split())
    assert "verified" in words
    assert "Population" in words
    # Beside limits on single symbols it is refused, and not advised.
    assert ("--confidence 0.95" in words) == (kind != "stay")
    assert "All sections: --full" in words
    if kind != "information":
        assert "column unchanged" in words
        assert "What an analyst reads" in words


def test_what_the_terminal_says_is_rounded_against_the_release(table, run):
    asked = (*DESIGN, "--release", "a,b", "--epsilon", "0.8")
    text = run(*asked).out
    record = run(*asked, "--json").record
    for name, share in record["truth"].items():
        shown = re.search(rf"^  {name} +([\d.]+) %", text, re.MULTILINE)
        assert shown is not None
        assert float(shown[1]) / 100 <= share < float(shown[1]) / 100 + 0.001
        constant = re.search(rf"^  {name} +[\d.]+ % +([\d.]+) %", text, re.MULTILINE)
        frequent = table[name].value_counts(normalize=True).max()
        assert float(constant[1]) == pytest.approx(100 * frequent, abs=0.06)


def test_many_columns_are_cut_to_a_screen_and_full_has_them(folder, run):
    """Thirty columns of two values: the screen counts the columns that it leaves out."""
    names = [f"c{k}" for k in range(30)]
    generator = np.random.default_rng(4)
    cells = generator.integers(0, 2, size=(50, 31))
    frame = pd.DataFrame(cells, columns=["secret", *names])
    frame.to_csv("wide.csv", index=False)
    asked = ("design", "wide.csv", "--sensitive", "secret", "--release")
    asked = (*asked, "all", "--epsilon", "1", "--time-limit", "10")
    done = run(*asked)
    assert done.code == 0, done.err
    lines = done.out.rstrip("\n").split("\n")
    # Ten of the columns are shown, whatever room there is.
    assert len(lines) <= 25 + 10
    assert "  and 21 more columns:  --full" in lines
    record = run(*asked, "--json").record
    assert set(record["truth"]) == {*names}


def test_the_screen_promises_no_more_than_was_verified(table, run):
    asked = (*DESIGN, "--release", "a,b", "--epsilon", "0.8")
    text = " ".join(run(*asked).out.split())
    achieved = run(*asked, "--json").record["achieved"]
    low, high = re.search(r"([\d.]+) to ([\d.]+) times", text).groups()
    assert math.log(float(high)) >= achieved["eps_u"]
    assert math.log(float(low)) <= -achieved["eps_l"]
    assert math.log(float(high)) - achieved["eps_u"] < 0.03


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (("--at-most-times", "2"), "at most 2 times as probable"),
        (("--at-least-times", "0.5"), "at least 0.5 times as probable"),
    ],
)
def test_one_bound_is_said_as_one_bound(table, run, budget, said):
    text = run(*DESIGN, "--release", "a,b", *budget).out
    words = " ".join(text.split())
    assert said in words
    assert " inf" not in words


def test_given_columns_that_break_the_promise_are_answered_with_no(table, run):
    arguments = (*DESIGN, "--release", "a", "--given", "k", "--epsilon", "0.8")
    refused = run(*arguments)
    assert refused.code == 1
    assert "--promise relative" in refused.err
    record = run(*arguments, "--promise", "relative", "--json").record
    assert record["given"] == ["k"]
    assert record["given_lift"]


def test_all_columns_but_secret_given_and_left_out_ones_are_released(table, run):
    asked = ("--release", "all", "--leave-out", "b", "--given", "k", "--epsilon", "0.8")
    run(*DESIGN, *asked, "--promise", "relative", "--output", "row.json")
    channel = md.load("row.json")
    assert channel.useful.columns == ("k", "a")
    assert channel.given == ("k",)
    run(*DESIGN, "--release", "all", "--epsilon", "0.8", "--output", "all.json")
    assert md.load("all.json").useful.columns == ("a", "b", "k")


def test_a_weight_column_is_not_released_with_all(table, run):
    table.assign(w=1).to_csv("people.csv", index=False)
    asked = ("--release", "all", "--weight", "w", "--epsilon", "0.8")
    run(*DESIGN, *asked, "--output", "all.json")
    assert md.load("all.json").useful.columns == ("a", "b", "k")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_is_released_row_by_row(table, run, ending):
    asked = ("--release", "a,b", "--given", "k", "--promise", "relative")
    run(*DESIGN, *asked, "--epsilon", "0.8", "--output", "row.json")
    source = "people.csv"
    if ending == "parquet":
        source = "people.parquet"
        table.to_parquet(source)
    target = f"out.{ending}"
    done = run("apply", "row.json", source, target, "--insecure-seed", "1")
    assert done.code == 0, done.err
    released = pd.read_csv(target) if ending == "csv" else pd.read_parquet(target)
    # The columns stay in the order of the file.
    assert list(released.columns) == ["a", "b", "k"]
    released = released[["k", "a", "b"]]
    assert released["k"].tolist() == table["k"].tolist()
    rows = {*map(tuple, table[["k", "a", "b"]].to_numpy())}
    assert {*map(tuple, released.to_numpy())} <= rows


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--release", "a,a"), "--release 'a,a' names a column twice"),
        (("--release", "a", "--release", "a"), "'a' is released twice"),
        (("--release", "a", "--given", "a"), "'a' is released twice"),
        (("--release", "a,secret"), "column 'secret' cannot be released or given"),
        (("--release", "a", "--given", "secret"), "leave it out of --release and"),
        (("--release", "a,,b"), "contains an empty column name"),
        (
            ("--release", "a", "--given", "k,"),
            "--given 'k,' contains an empty column name",
        ),
        (("--release", "zz"), "there is no column 'zz'"),
        (("--release", "a", "--useful", "b"), "leave --useful out"),
        (
            ("--release", "a", "--leave-out", "b"),
            "--leave-out belongs to --release all",
        ),
        (("--release", "all", "--leave-out", "zz"), "the table has no column 'zz'"),
        (("--release", "all", "--leave-out", "a,b,k"), "leaves no column to release"),
        (("--release", "a", "--never", "a"), "must be COL=TEXT pairs with commas"),
        (("--release", "a", "--column-weight", "a"), "must be COL=TEXT pairs with"),
        (("--release", "a", "--smallest-group", "few"), "must be a whole number"),
        (("--release", "a", "--smallest-group", "0"), "--smallest-group ('0') must be"),
        (("--release", "a", "--keep-frequencies", "--free-frequencies"), "contradict"),
        (("--release", "a", "--promise", "some"), "--promise ('some')"),
        (("--release", "a", "--method", "columns"), "leave method (--method) out"),
        (
            ("--release", "a", "--objective", "distance"),
            "error: --objective distance needs a released column of numbers",
        ),
        (
            ("--release", "a,b", "--stay", "x=0.5"),
            "--stay: the table has no useful symbol 'x'; a symbol has a cell of each of 'a', 'b'",
        ),
        (("--release", "a", "--forbid", "q:y"), "error: --forbid: the table has no"),
        (("--release", "a", "--never", "z=1"), "error: --never: 'z' is not released"),
        (
            ("--release", "a", "--smallest-group", "2", "--known", "z"),
            "error: --known: 'z' is not released",
        ),
        (
            ("--release", "a", "--confidence", "0.9", "--cells", "1"),
            "error: --cells (1) must be a number of boxes",
        ),
        (("--useful", "a", "--unknown", "x"), "error: --unknown ('x') must be refuse"),
        (("--useful", "a", "--objective", "x"), "error: --objective 'x' is neither"),
        (("--release", "a", "--cells", "4"), "give a confidence level too"),
        (
            ("--release", "a", "--confidence", "0.9", "--rare", "auto"),
            "rare auto is for one column (--merge-rare)",
        ),
        (
            ("--release", "a", "--after", "c.json", "--confidence", "0.9"),
            "--after is not built for boxes",
        ),
        (
            ("--release", "a", "--confidence", "0.9", "--stay", "0.1"),
            "error: --stay is not built for boxes",
        ),
        (
            ("--release", "a", "--merge-rare", "auto", "--confidence", "0.9"),
            "--merge-rare is for one column (--useful)",
        ),
        (("--useful", "a", "--merge-rare", "9"), "give a confidence level too"),
        (
            (*MERGED, "-9"),
            "--merge-rare ('-9') must be auto, or a number of records",
        ),
        (
            (*MERGED, "9", "--bin", "auto"),
            "--bin auto is not built for boxes",
        ),
        (("--release", "a", "--keep", "0.8"), "leave out every other budget"),
        (("--useful", "a", "--given", "k"), "belong to a release of rows"),
    ],
)
def test_refusals(table, run, options, message):
    refused = run(*DESIGN, "--epsilon", "1", *options)
    assert refused.code == 2
    assert message in refused.err


def test_a_plan_that_is_impossible_names_the_options_that_were_given(table, run):
    refused = run(*DESIGN, "--epsilon", "1", "--release", "a,b", "--stay", "1")
    assert refused.code == 1
    assert "no plan keeps the promise with --stay: give a larger budget" in refused.err


def test_the_smallest_budget_that_keeps_a_share(table, run):
    keep = ("--release", "a,b", "--notion", "lip", "--keep", "80%")
    # The search ends by itself long before this limit.
    whole = run(*DESIGN, *keep, "--time-limit", "600", "--output", "row.json", "--json")
    record = whole.record
    # Of rows the unchanged cells count.
    assert sum(record["truth"].values()) / 2 >= 0.8
    channel = md.load("row.json")
    found = record["certificate"]["kept_at"]
    assert record["notion"] == {"name": "lip", "epsilon": found}
    assert channel.record.notion == record["notion"]
    assert record["messages"][-1].startswith(f"epsilon {found:g} keeps 80 %")
    assert run("audit", "row.json").code == 0
    refused = run(*DESIGN, *keep, "--confidence", "0.9")
    assert refused.code == 2
    assert "--keep with --confidence is not built for boxes" in refused.err


def test_all_measures_of_a_release_of_rows(table, run):
    given = ("--given", "k", "--promise", "relative", "--epsilon", "1")
    asked = (*DESIGN, "--release", "a", *given, "--output", "row.json")
    text = " ".join(run(*asked, "--all-measures").out.split())
    assert "its given columns are part of what it reveals" in text
    assert "compared with records of the same given columns" in text
    designed = run(*asked, "--force", "--json").record
    assert designed["guarantees"] is None
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
    verdict = " ".join(run("audit", "box.json").out.split())
    assert (
        "in the population (90 % confidence). Decided in exact arithmetic." in verdict
    )


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


def test_public_boxes_that_release_nothing_have_a_public_report(table, run):
    table.head(60).to_csv("people.csv", index=False)
    options = ("--confidence", "0.99", "--cells", "2", "--epsilon", "0.01", "--public")
    run(*DESIGN, "--release", "a,b", *options, "--output", "box.json")
    assert md.load("box.json").channels == ()
    report = ("report", "box.json", "--curve", "0")
    assert run(*report, "--public-report", "p.md").code == 0
    refused = run(*report, "--report", "r.md")
    assert refused.code == 2
    assert "is a public channel without its table" in refused.err


def test_show_prints_the_matrix_with_exact_shares(table, run):
    run(*DESIGN, "--release", "a,b", "--epsilon", "1", "--output", "row.json")
    text = run("show", "row.json", "--csv").out
    shown = pd.read_csv(io.StringIO(text), index_col=0, dtype=str)
    channel = md.load("row.json")
    assert list(shown.index) == list(channel.useful.names)
    for symbol, name in zip(channel.useful.symbols, channel.useful.names, strict=True):
        law = channel.distribution(symbol)
        for y, cells in zip(channel.outputs, channel.output_cells, strict=True):
            share = Fraction(shown.loc[name, y])
            assert share == pytest.approx(law.get(cells, 0), abs=1e-50)
    record = run("show", "row.json", "--json").record
    assert record["totals"] == list(channel.totals)
    assert record["published"]["columns"] == ["a", "b"]


def test_rows_after_rows_keep_the_promise_together(table, run):
    run(*DESIGN, "--release", "a", "--epsilon", "0.4", "--output", "a.json")
    asked = ("--release", "b", "--epsilon", "1.4", "--after", "a.json")
    done = run(*DESIGN, *asked, "--output", "b.json")
    assert done.code == 0, done.err
    together = run("audit", "b.json", "--after", "a.json", "--table", "people.csv")
    assert together.code in (0, 2), together.err
    joint = md.Joint.from_table(table, sensitive="secret", useful=["a", "b"])
    both = md.compose([md.load("a.json"), md.load("b.json")], joint)
    assert both.eps_u <= 0.7
    assert both.eps_l <= 0.7


def test_show_prints_the_boxes_of_all_outputs_as_one_table(table, run):
    options = ("--confidence", "0.9", "--cells", "2", "--epsilon", "3")
    run(*DESIGN, "--release", "a,b", *options, "--output", "box.json")
    text = run("show", "box.json", "--csv").out
    assert text.startswith(
        "output,box,rows,p_output_given_symbol,p_symbol_given_output\n"
    )


def test_frequencies_of_released_rows(table, run):
    asked = ("--release", "a,b", "--given", "k", "--promise", "relative")
    run(*DESIGN, *asked, "--epsilon", "2", "--output", "row.json")
    channel = md.load("row.json")
    released = channel.apply(table[["k", "a", "b"]], insecure_seed=1)
    released.to_csv("out.csv", index=False)
    whole = run("estimate", "out.csv", "--channel", "row.json", "--json")
    assert whole.code == 0, whole.err
    text = run("estimate", "out.csv", "--channel", "row.json")
    assert text.code == 0, text.err


def test_groups_that_move_the_law_are_not_said_to_keep_it(table, run):
    """The design was to keep the frequencies, and the channel does not: the channel counts."""
    asked = ("--release", "a,b", "--smallest-group", "60", "--epsilon", "2")
    record = run(*DESIGN, *asked, "--output", "row.json", "--json").record
    assert record["law"]["kept"] is False
    assert record["asked"]["keep_frequencies"] is True
    run("apply", "row.json", "people.csv", "out.csv", "--shuffle")
    estimate = ("estimate", "out.csv", "--channel", "row.json")
    done = run(*estimate)
    assert done.code == 0, done.err
    assert "moves the frequencies of its table, by an amount" in done.out
    assert "keeps the frequencies" not in done.out
    assert "keeps expected frequencies" not in done.out
    single = run(*estimate, "--of", "a")
    assert single.code == 0, single.err
    assert "exactly the table's" not in single.out


def test_a_part_of_a_release_that_moves_the_law_is_not_promised_right_shares(
    table, run, tmp_path
):
    """Rows of one group were corrected as if they were all: 13.6 % with 11 to 16 % for 23.1 %."""
    asked = ("--release", "a,b", "--smallest-group", "60", "--epsilon", "2")
    run(*DESIGN, *asked, "--output", "row.json")
    run("apply", "row.json", "people.csv", "out.csv", "--shuffle")
    header, *rows = (tmp_path / "out.csv").read_text().splitlines()
    group = rows[0].split(",")[0]
    part = [row for row in rows if row.startswith(group + ",")]
    assert 2 < len(part) < len(rows)
    (tmp_path / "part.csv").write_text("\n".join([header, *part, ""]))
    for file, is_part in (("part.csv", True), ("out.csv", False)):
        done = run("estimate", file, "--channel", "row.json", "--of", "b")
        assert done.code == 0, done.err
        assert (PICKED in " ".join(done.out.split())) == is_part
    assert PICKED in " ".join(statistics_note(fixed=False, kept=False).split())
    assert PICKED not in " ".join(statistics_note(fixed=True, kept=False).split())


def test_columns_of_free_labels_are_not_estimated(table, run):
    """Each label stands for several rows of the table."""
    asked = ("--release", "a,b", "--objective", "information", "--epsilon", "2")
    assert run(*DESIGN, *asked, "--output", "row.json").code == 0
    run("apply", "row.json", "people.csv", "out.csv", "--shuffle")
    refused = run("estimate", "out.csv", "--channel", "row.json", "--of", "a")
    assert refused.code == 2
    assert "this channel releases labels in their place" in refused.err


@pytest.mark.parametrize("released", ["b", "a,b"])
def test_free_labels_beside_given_cells_are_said_to_be_labels(table, run, released):
    """A single released column lends its name to the column of the labels."""
    asked = ("--release", released, "--given", "k", "--promise", "relative")
    free = ("--objective", "information", "--epsilon", "1", "--output", "c.json")
    table[["secret", "k", "a", "b"]].to_csv("people.csv", index=False)
    screen = run(*DESIGN, *asked, *free).out
    assert "Kept: " in screen
    assert "labels such as 'm, mix-1'" in screen
    assert "is released as a row of the table" not in screen
    verdict = run("audit", "c.json").out
    assert "labels, such as 'm, mix-1', are released in the place" in verdict
    run("apply", "c.json", "people.csv", "out.csv")
    estimates = run("estimate", "out.csv", "--channel", "c.json").out
    assert "mix" not in estimates
    assert "unbiased" in estimates
    assert run("report", "c.json", "--report", "r.html", "--curve", "0").code == 0
    assert "combinations that no record has" not in Path("r.html").read_text()


def test_releases_of_rows_are_in_the_ledger(table, run):
    run(*DESIGN, "--release", "a,b", "--epsilon", "0.8", "--output", "row.json")
    ledger = ("--ledger", "ledger.db")
    done = run("apply", "row.json", "people.csv", "out.csv", *ledger, "--shuffle")
    assert done.code == 0, done.err
    entries = run("releases", *ledger, "--json").record["releases"]
    assert len(entries) == 1
    assert entries[0]["records"] == 800
    total = run("releases", "total", "people.csv", "--channel", "row.json", *ledger)
    assert total.code == 0, total.err
    # The same file again is the same release: no further draw.
    again = run("apply", "row.json", "people.csv", "again.csv", *ledger, "--shuffle")
    assert again.code == 0, again.err
    texts = [
        Path(name).read_text(encoding="utf-8") for name in ("out.csv", "again.csv")
    ]
    assert sorted(texts[0].split()) == sorted(texts[1].split())


def test_other_columns_are_inspected_before_a_release_of_rows(table, run):
    run(*DESIGN, "--release", "a,b", "--epsilon", "0.8", "--output", "row.json")
    done = run("inspect", "people.csv", "--channel", "row.json", "--json")
    assert done.code == 0, done.err
    assert any("k" in str(entry) for entry in done.record.values())


def test_long_rows_are_shortened_on_the_terminal_and_whole_in_json(folder, run):
    chance = np.random.default_rng(2)
    names = [f"question {number}" for number in range(60)]
    kinds = chance.integers(0, 4, (6, len(names)))
    kind = chance.integers(0, 6, 300)
    frame = pd.DataFrame(kinds[kind], columns=names)
    frame["secret"] = np.where(chance.random(300) < 0.2 + 0.1 * kind, "yes", "no")
    frame.to_csv("people.csv", index=False)
    asked = ("--release", "all", "--epsilon", "0.8", "--output", "row.json")
    design = run(*DESIGN, *asked, "--full")
    seeded = ("--insecure-seed", "1")
    applied = run("apply", "row.json", "people.csv", "out.csv", *seeded)
    audit = run("audit", "row.json")
    shown = run("show", "row.json")
    composed = run("compose", "row.json", "row.json")
    whole = ", ".join(map(str, kinds[0]))
    for result in (design, applied, audit, shown, composed):
        assert result.code == 0, result.err
        assert whole[:100] not in result.out
        # A column may have a line of its own in a table.
        sentences = [line for line in result.out.splitlines() if "%" not in line]
        assert "question 40" not in " ".join(sentences)
    assert "question 19 and 40 more are released" in applied.out
    assert "question 11 and 48 other columns" in shown.out
    assert re.search("Worst: the output .*,…, ", audit.out)
    largest = run("audit", "row.json", "--json").record["population"]["largest"]
    assert len(largest["output"].split(", ")) == len(names)


def test_apply_says_that_groups_are_not_kept_where_counts_are_not_fixed(table, run):
    """One empty cell makes the file another one than the table, whose counts alone are fixed."""
    table.loc[[3], "a"] = None
    table.to_csv("people.csv", index=False)
    rows = ("--release", "a,b", "--epsilon", "1", "--smallest-group", "5")
    asked = (*DESIGN, *rows, "--missing", "marginal", "--output", "c.json")
    screen = " ".join(run(*asked).out.split())
    assert "5 times where the counts are fixed, which they are not in a file" in screen
    drawn = run("apply", "c.json", "people.csv", "drawn.csv")
    assert "Counts are not fixed, so that a released row may occur less" in drawn.out
    table.drop(3).to_csv("whole.csv", index=False)
    fixed = run("apply", "c.json", "whole.csv", "o.csv", "--ledger", "other.db")
    assert "Counts are fixed" in fixed.out
    assert "Counts are not fixed" not in fixed.out


def test_boxes_of_no_use_say_so_first(table, run):
    merged = (*DESIGN, *MERGED, "10000", "--slice-seed", "1", "--epsilon", "1")
    screen = " ".join(run(*merged).out.split())
    assert screen.startswith("Of little use: only 0 % of the information is kept.")
    assert "Nothing is released: no part of the table has enough records" in screen
    assert "The one box of rows was learned on 80 records" in screen
    given = ("--release", "a", "--given", "k", "--promise", "relative", "--fill")
    few = (*DESIGN, *given, "--confidence", "0.9", "--epsilon", "0.01")
    table.head(44).to_csv("people.csv", index=False)
    screen = " ".join(run(*few, "--slice-seed", "1").out.split())
    assert screen.startswith("Of little use")
    assert "Nothing but the given columns is released: no part of" in screen
