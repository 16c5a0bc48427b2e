"""`check`, `report`, `compose`, `inspect`, `measure` and `compare` on channels of rows."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.channel.channel import Channel
from tests.cases.people import people
from tests.oracles import released_rows as oracle

RELATIVE = ("--release", "a", "--given", "b", "--promise", "relative")
DESIGN = ("design", "people.csv", "--sensitive", "secret", "--epsilon", "0.8")


@pytest.fixture
def table(folder, run):
    frame = people()
    frame.to_csv("people.csv", index=False)
    run(*DESIGN, "--release", "a,b", "--output", "row.json")
    return frame


@pytest.fixture
def released(table):
    channel = md.load("row.json")
    frame = channel.apply(table[["a", "b"]], insecure_seed=1)
    frame.to_csv("out.csv", index=False)
    return frame


def test_check_of_released_rows(released, run):
    arguments = ("check", "out.csv", "--channel", "row.json")
    assert run(*arguments).code == 0
    record = run(*arguments, "--original", "people.csv", "--json").record
    assert record["plausible"] is True
    assert record["frequencies"]["against"] == "originals"
    shuffled = released["b"].sample(frac=1, random_state=2).to_numpy()
    released.assign(b=shuffled).to_csv("out.csv", index=False)
    answer = run(*arguments, "--original", "people.csv")
    assert answer.code == 1
    assert "does NOT look like" in answer.out


def test_a_shuffled_release_is_checked_without_its_original(table, run):
    applied = run(
        "apply",
        "row.json",
        "people.csv",
        "mixed.csv",
        "--shuffle",
        "--insecure-seed",
        "1",
    )
    assert applied.code == 0
    options = ("mixed.csv", "--channel", "row.json", "--original", "people.csv")
    record = run("check", *options, "--json").record
    assert record["plausible"] is True
    assert record["frequencies"]["against"] != "originals"
    assert "checked without the original" in " ".join(record["notices"])
    channel = md.load("row.json")
    check = md.check(channel, "mixed.csv", original="people.csv")
    assert check.plausible
    assert not md.check(channel, "people.csv").plausible


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--identity", "k"), "there is no column 'k'"),
        (("--as", "posterior-draw"), "leave the form (--as) out"),
        (("--column", "a=A"), "there is no column 'A'"),
        (("--original", "none.csv"), "none.csv"),
    ],
)
def test_refusals_of_check(released, run, options, message):
    refused = run("check", "out.csv", "--channel", "row.json", *options)
    assert refused.code == 2
    assert message in refused.err


def test_a_release_without_a_column_is_refused(released, run):
    pd.DataFrame({"a": ["x"]}).to_csv("short.csv", index=False)
    refused = run("check", "short.csv", "--channel", "row.json")
    assert refused.code == 2
    assert "'b'" in refused.err


def test_a_column_after_rows_keeps_the_promise_together(table, run):
    design = ("design", "people.csv", "--sensitive", "secret")
    first = (*design, "--release", "b", "--epsilon", "0.4", "--output", "b.json")
    assert run(*first).code == 0
    later = (*design, "--useful", "a", "--epsilon", "1", "--after", "b.json")
    done = run(*later, "--output", "later.json")
    assert done.code == 0, done.err
    both = ("compose", "b.json", "later.json", "--table", "people.csv", "--json")
    record = run(*both).record
    assert record["eps_u"] <= 0.5
    assert record["eps_l"] <= 0.5


def test_two_releases_of_rows_together(table, run):
    told = run("compose", "row.json", "row.json")
    assert told.code == 0
    lines = told.out.splitlines()
    assert lines[0].startswith("A record released once through each")
    record = run("compose", "row.json", "row.json", "--json").record
    assert record["exact"] is True
    alone = run("audit", "row.json", "--json").record["achieved"]
    assert record["alone"] == [alone, alone]
    assert record["eps_u"] > alone["eps_u"]
    # A channel of one column of the same table goes with it.
    run(*DESIGN, "--useful", "a", "--output", "one.json")
    mixed = run("compose", "row.json", "one.json", "--json").record
    assert mixed["exact"] is True
    assert len(mixed["worst"]["outputs"]) == 2


def test_releases_of_different_columns_need_the_table(table, run):
    run(*DESIGN, "--useful", "b", "--output", "b.json")
    run(*DESIGN, "--release", "a", "--output", "a.json")
    refused = run("compose", "a.json", "b.json")
    assert refused.code == 2
    assert "different columns" in refused.err
    together = run("compose", "a.json", "b.json", "--table", "people.csv", "--json")
    assert together.record["exact"] is True


def test_relative_releases_name_what_they_are_relative_to(table, run):
    run(*DESIGN, *RELATIVE, "--output", "given.json")
    told = run("compose", "given.json", "given.json")
    assert "Relative to somebody who knows b, which tells eps_l" in told.out
    mixed = run("compose", "given.json", "row.json")
    assert "Everything is measured against the whole table" in mixed.out


def test_no_belief_above_a_share(table, run):
    """The upper budget of the most frequent value; judged here in fractions, on every released row."""
    design = ("design", "people.csv", "--sensitive", "secret", "--release", "a,b")
    made = run(*design, "--max-posterior", "0.62", "--output", "most.json", "--json")
    assert made.code == 0, made.err
    law = oracle.joint_law(md.load("most.json"))
    by_row = oracle.summed(law, lambda entry: entry[2])
    both = oracle.summed(law, lambda entry: (entry[0], entry[2]))
    beliefs = [mass / by_row[released] for (_, released), mass in both.items()]
    assert max(beliefs) <= Fraction(62, 100)
    assert max(beliefs) > Fraction(61, 100)
    frequent = table["secret"].value_counts(normalize=True).max()
    impossible = run(*design, "--max-posterior", str(round(frequent - 0.01, 4)))
    assert impossible.code == 1
    assert "before anything is released" in impossible.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--release", "a,b", "--keep", "0.8", "--average", "mi"),
            "an average budget is not built with keep and an objective",
        ),
        (
            ("--release", "a,b", "--max-posterior", "0.8", "--confidence", "0.9"),
            "--max-posterior with --confidence is not built for boxes",
        ),
        (("--release", "a,b", "--max-posterior", "2"), "--max-posterior"),
    ],
)
def test_budgets_that_rows_do_not_have(table, run, options, message):
    refused = run("design", "people.csv", "--sensitive", "secret", *options)
    assert refused.code == 2
    assert message in refused.err


def test_boxes_are_not_composed(table, run):
    run(*DESIGN, "--release", "a,b", "--confidence", "0.9", "--output", "boxes.json")
    refused = run("compose", "boxes.json", "row.json")
    assert refused.code == 2
    assert "boxes.json is a channel for boxes of rows" in refused.err


def test_channels_with_different_bins_are_not_composed(folder, run):
    frame = pd.DataFrame({"secret": list("uvuv") * 50, "n": list(range(8)) * 25})
    frame.to_csv("people.csv", index=False)
    for name, bins in (("one", "0,3,inf"), ("two", "0,5,inf")):
        run(*DESIGN, "--release", "n", "--bin", f"n={bins}", "--output", f"{name}.json")
    refused = run("compose", "one.json", "two.json")
    assert refused.code == 2
    assert "sort 'n' into different bins" in refused.err


def test_a_file_is_released_by_the_command_that_the_design_names(table, run):
    written = run(*DESIGN, "--release", "a,b", "--output", "again.json", "--force")
    assert "mechdesign apply again.json IN.csv OUT.csv" in written.out
    run("apply", "again.json", "people.csv", "released.csv", "--shuffle")
    assert list(pd.read_csv("released.csv").columns) == ["a", "b"]
    assert run("check", "released.csv", "--channel", "again.json").code == 0


def test_commands_refuse_boxes_of_rows_and_name_what_takes_them(table, run):
    run(*DESIGN, "--release", "a,b", "--confidence", "0.9", "--output", "boxes.json")
    assert run("audit", "boxes.json").code == 0
    assert run("show", "boxes.json").code == 0
    refused = run("export", "boxes.json")
    assert refused.code == 2
    assert "is a channel for boxes of rows, and this command" in refused.err


def test_reports_on_rows(table, run):
    run("report", "row.json", "--report", "r.html")
    page = Path("r.html").read_text(encoding="utf-8")
    assert "Before: lift of every value of" in page
    assert "What is promised" in page
    written = run(
        *DESIGN, "--release", "a,b", "--report", "d.md", "--output", "again.json"
    )
    assert "Internal report: d.md." in written.out
    text = Path("d.md").read_text(encoding="utf-8")
    for heading in (
        "What is promised",
        "What is kept",
        "When the promise does not hold",
    ):
        assert heading in text
    record = run("report", "row.json", "--report", "r.json", "--json").record
    assert record["report"] == "r.json"
    channel = md.load("row.json")
    channel.save("public.json", public=True)
    refused = run("report", "public.json", "--report", "p.html")
    assert refused.code == 2
    assert "public channel without its table" in refused.err


def test_public_reports_on_rows(table, run):
    written = run("report", "row.json", "--public-report", "p.html", "--report", "r.md")
    assert written.code == 0
    assert "The promise holds.\n" in written.out
    page = Path("p.html").read_text(encoding="utf-8")
    assert "Verified" in page
    # The holder of the public file alone has the same page, but for the verdict.
    md.load("row.json").save("public.json", public=True)
    assert run("report", "public.json", "--public-report", "q.json").code == 0
    record = json.loads(Path("q.json").read_text(encoding="utf-8"))
    assert not record["promise"]["beliefs"]
    assert record["promise"]["satisfied"] is None
    assert record["promise"]["achieved"] is None
    designed = run(*DESIGN, "--release", "a,b", "--public-report", "d.md", "--json")
    assert designed.record["public_report"] == "d.md"
    md.report(md.load("row.json"), "python.md", public=True)
    assert Path("python.md").read_text(encoding="utf-8").count("#") > 3
    run(*DESIGN, "--release", "a,b", "--confidence", "0.9", "--output", "boxes.json")
    assert run("report", "boxes.json", "--public-report", "b.md").code == 0
    assert "in the population (90 % confidence)" in Path("b.md").read_text(
        encoding="utf-8"
    )


JOB = """\
channel = "boxes.json"
ledger = "ledger.db"

[design]
table = "people.csv"
sensitive = ["secret"]
release = "a,b"
epsilon = 0.8
confidence = 0.9
cells = 4
slice-seed = 3

[[apply]]
in = "people.csv"
out = "released.csv"
"""


def test_a_job_designs_and_applies_a_channel_for_boxes(table, run):
    Path("job.toml").write_text(JOB, encoding="utf-8")
    assert run("run", "job.toml").code == 0
    released = Path("released.csv").read_bytes()
    assert released.splitlines()[0] == b"box"
    for written in Path().glob("released.csv*"):
        written.unlink()
    # The channel is there, is the one that the section asks for, and keeps its promise.
    assert run("run", "job.toml").code == 0
    assert Path("released.csv").read_bytes() == released
    changed = JOB.replace("epsilon = 0.8", "epsilon = 0.7")
    Path("job.toml").write_text(changed, encoding="utf-8")
    refused = run("run", "job.toml")
    assert refused.code == 2
    assert "was not designed with the options of this section" in refused.err


def test_check_and_estimate_of_released_boxes(table, run):
    boxed = ("--release", "a,b", "--confidence", "0.9", "--cells", "3")
    run(*DESIGN, *boxed, "--slice-seed", "3", "--output", "boxes.json")
    draws = ("--shuffle", "--insecure-seed", "4")
    run("apply", "boxes.json", "people.csv", "out.csv", *draws)
    checked = run("check", "out.csv", "--channel", "boxes.json", "--json").record
    assert checked["plausible"] is True
    released = pd.read_csv("out.csv")
    released.loc[:9, "box"] = "box 99"
    released.to_csv("bad.csv", index=False)
    assert run("check", "bad.csv", "--channel", "boxes.json").code == 1
    # The intervals hold the shares of the boxes in the table, which the channel tells exactly.
    level = ("--level", "0.9999", "--json")
    record = run("estimate", "out.csv", "--channel", "boxes.json", *level).record
    channel = md.load("boxes.json")
    assert isinstance(channel, Channel)
    symbols = [
        [list(v.names).index(x) for x in table[v.columns[0]].astype(str)]
        for v in channel.coder.columns
    ]
    boxes = channel.parts[0].boxes.of(np.array(symbols).T)
    shares = np.bincount(boxes, minlength=3) / len(table)
    found = {entry["name"]: entry for entry in record["frequencies"]}
    assert set(found) == {"box 1", "box 2", "box 3"}
    for box, share in enumerate(shares):
        entry = found[f"box {box + 1}"]
        assert entry["lower"] <= share <= entry["upper"]
        assert entry["upper"] - entry["lower"] < 1.0


@pytest.mark.parametrize(
    ("design", "command", "message"),
    [
        (
            ("--fill",),
            ("estimate", "out.csv", "--csv"),
            "--by, --queries and --csv are not for rows",
        ),
        (
            ("--fill",),
            ("check", "out.csv", "--original", "people.csv"),
            "filled boxes is checked by its rows alone: leave --original out",
        ),
        (
            (),
            ("check", "out.csv", "--original", "people.csv"),
            "leave --original out",
        ),
    ],
)
def test_what_check_and_estimate_have_not_for_boxes(
    table, run, design, command, message
):
    boxed = ("--release", "a,b", "--confidence", "0.9", *design)
    run(*DESIGN, *boxed, "--output", "boxes.json")
    run("apply", "boxes.json", "people.csv", "out.csv", "--shuffle")
    refused = run(*command, "--channel", "boxes.json")
    assert refused.code == 2
    assert message in refused.err


def rarest_row_of_a_shared_box(released: pd.DataFrame) -> tuple[str, str]:
    """The least frequent row of the largest box of ``boxes.json``.

    The boxes are drawn, and some are of one row: a file of that row alone is plausible.
    """
    coder = md.load("boxes.json").coder
    counts = released.value_counts()
    rows = list(counts.index)
    codes = [
        [
            variable.symbols.index((cell,))
            for variable, cell in zip(coder.columns, row, strict=True)
        ]
        for row in rows
    ]
    boxes = coder.numbers_of(np.zeros(len(rows), dtype=np.int64), np.array(codes))
    largest = np.bincount(boxes).argmax()
    assert np.bincount(boxes)[largest] > 1
    # The rows stand from the most frequent to the least.
    return rows[np.flatnonzero(boxes == largest)[-1]]


def test_releases_of_filled_boxes_are_plausible_and_others_are_not(table, run):
    filled = ("--release", "a,b", "--confidence", "0.9", "--fill")
    run(*DESIGN, *filled, "--slice-seed", "3", "--output", "boxes.json")
    run("apply", "boxes.json", "people.csv", "out.csv", "--insecure-seed", "4")
    checked = ("check", "--channel", "boxes.json")
    assert (
        "looks like a faithful release of its channel" in run(*checked, "out.csv").out
    )
    assert run(*checked, "out.csv", "--any-data").code == 0
    released = pd.read_csv("out.csv", dtype=str)
    row = rarest_row_of_a_shared_box(released[["a", "b"]])
    released.assign(a=row[0], b=row[1]).to_csv("constant.csv", index=False)
    assert run(*checked, "constant.csv").code == 1
    # No box is filled by the rarest of its rows alone.
    assert run(*checked, "constant.csv", "--any-data").code == 1
    released.assign(a="nobody has this").to_csv("other.csv", index=False)
    other = run(*checked, "other.csv", "--any-data")
    assert other.code == 1
    # The line says which record it is, and the value may stand in a log.
    assert "other.csv, line 2" in other.out
    assert "nobody has this" not in other.out


def test_estimates_of_filled_boxes_are_those_of_the_file(table, run):
    filled = ("--release", "a,b", "--confidence", "0.9", "--fill")
    run(*DESIGN, *filled, "--output", "boxes.json")
    run("apply", "boxes.json", "people.csv", "out.csv", "--shuffle")
    asked = ("estimate", "out.csv", "--channel", "boxes.json", "--of", "a,b", "--json")
    (column,) = run(*asked).record["frequencies"]
    cells = pd.read_csv("out.csv", dtype=str)
    shares = cells.groupby(["a", "b"]).size() / len(cells)
    found = {(row["a"], row["b"]): row["estimate"] for row in column["rows"]}
    assert found == pytest.approx(shares.to_dict())


def test_estimates_say_that_nothing_is_known_of_empty_cells(table, run):
    how = ("--insecure-seed", "1", "--manifest", "out.csv.manifest.json")
    run("apply", "row.json", "people.csv", "out.csv", *how)
    arguments = ("estimate", "out.csv", "--channel", "row.json")
    told = "no valid manifest of it says whether draws stand in place of empty or unknown cells"
    answer = run(*arguments)
    assert (answer.code, told in answer.err) == (0, False)
    Path("out.csv.manifest.json").unlink()
    answer = run(*arguments)
    assert (answer.code, told in answer.err) == (0, True)
    answer = run(*arguments, "--missing", "refuse", "--unknown", "refuse")
    assert (answer.code, told in answer.err) == (0, False)
    answer = run(*arguments, "--missing", "marginal")
    assert (answer.code, "cannot be corrected for them" in answer.err) == (2, True)
