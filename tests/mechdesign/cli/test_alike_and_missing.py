"""One word for empty cells, and one form of cells, from `design` to `estimate`."""

from __future__ import annotations

import json

import pytest

ALIKE = (
    "job,income\n" + "clerk ,low\nclerk,high\nnurse,low\nnurse,high\nsmith,low\n" * 8
)
GAPS = "job,income\n" + 'clerk,low\nclerk,high\nnurse,low\n"",high\nnurse,low\n' * 8
DESIGN = ("--sensitive", "income", "--useful", "job", "--epsilon", "1")
SEED = ("--insecure-seed", "1")


def design(run, table, *options):
    return run("design", table, *DESIGN, "--output", "c.json", "--force", *options)


@pytest.fixture
def alike(folder):
    (folder / "alike.csv").write_text(ALIKE, encoding="utf-8")
    (folder / "gaps.csv").write_text(GAPS, encoding="utf-8")
    return folder


def test_alike_symbols_are_noted_and_escaped(alike, run):
    result = design(run, "alike.csv")
    assert (
        "symbols that look alike and are different ones: 'clerk' and 'clerk\\x20'"
        in (result.err)
    )
    assert "--trim" in result.err
    shown = run("show", "c.json")
    assert "clerk\\x20: " in shown.out


def test_an_assessment_escapes_a_symbol_once(alike, run):
    shown = run("assess", "alike.csv", "--sensitive", "job").out
    assert "(clerk\\x20 20.0 %, clerk 20.0 %, nurse 40.0 %" in shown
    assert "The column income alone guesses job right for" in shown
    long = "job,income\n" + f"{'c' * 5000},low\nnurse,high\n" * 8
    (alike / "long.csv").write_text(long)
    shown = run("assess", "long.csv", "--sensitive", "job").out
    assert "ccc 50.0 %,\nnurse 50.0 %" in shown
    assert "c" * 300 not in shown


def test_apply_check_audit_and_estimate_follow_the_form_of_the_design(alike, run):
    assert "look alike" not in design(run, "alike.csv", "--trim").err
    assert run("apply", "c.json", "alike.csv", "out.csv", *SEED).code == 0
    manifest = json.loads((alike / "out.csv.manifest.json").read_text())
    assert manifest["released"][0]["trim"] is True
    (alike / "out.csv.manifest.json").unlink()
    command = ("check", "out.csv", "--channel", "c.json", "--original", "alike.csv")
    assert run(*command).code == 0
    assert run("audit", "c.json", "--table", "alike.csv").code == 0
    estimate = run("estimate", "out.csv", "--channel", "c.json", "--json").record
    assert [row["name"] for row in estimate["frequencies"]] == [
        "clerk",
        "nurse",
        "smith",
    ]


def test_an_option_overrules_the_channel(alike, run):
    design(run, "alike.csv", "--trim")
    refused = run(
        "apply", "c.json", "alike.csv", "out.csv", *SEED, "--normalise", "NFC"
    )
    # Only what was said is changed: blanks are still taken off.
    assert refused.code == 0
    assert (
        json.loads((alike / "out.csv.manifest.json").read_text())["released"][0][
            "normalise"
        ]
        == "NFC"
    )


def test_missing_is_one_word_from_design_to_estimate(alike, run):
    result = design(run, "gaps.csv", "--missing", "marginal")
    assert "dropped 8 of 40 record(s) with an empty cell" in result.err
    # No option: the channel says what was meant.
    assert run("apply", "c.json", "gaps.csv", "out.csv", *SEED).code == 0
    manifest = json.loads((alike / "out.csv.manifest.json").read_text())
    assert manifest["released"][0]["missing"] == "marginal"
    bounds = run("estimate", "out.csv", "--channel", "c.json")
    assert "bounds alone" in bounds.out
    assert run("estimate", "out.csv", "--channel", "c.json", "--csv").code == 0
    command = ("estimate", "out.csv", "--channel", "c.json", "--json")
    known = run(*command, "--missing-share", "0.2").record
    assert known["method"] == "unbiased"
    assert "the estimates are corrected" in " ".join(known["notices"])
    assert run(*command, "--missing", "refuse").record["method"] == "unbiased"


def test_the_older_name_still_works(alike, run):
    design(run, "gaps.csv", "--missing", "drop")
    assert run("apply", "c.json", "gaps.csv", "out.csv", *SEED).code == 2
    assert (
        run("apply", "c.json", "gaps.csv", "out.csv", *SEED, "--null", "marginal").code
        == 0
    )


def test_a_long_symbol_does_not_widen_every_line(alike, run):
    (alike / "long.csv").write_text(ALIKE.replace("smith", "s" * 200_000))
    shown = run("assess", "long.csv", "--sensitive", "job", "--columns", "income")
    assert max(map(len, shown.out.splitlines())) < 1000
    design(run, "long.csv", "--trim")
    run("apply", "c.json", "long.csv", "out.csv", *SEED)
    estimate = run("estimate", "out.csv", "--channel", "c.json")
    assert max(map(len, estimate.out.splitlines())) < 1000
    matrix = run("show", "c.json")
    assert max(map(len, matrix.out.splitlines())) < 1000


def test_missing_codes_are_empty_cells_from_design_to_estimate(alike, run):
    (alike / "codes.csv").write_text(GAPS.replace('""', "?"), encoding="utf-8")
    options = ("--missing-codes", "?,-9", "--missing", "marginal")
    assert "dropped 8 of 40" in design(run, "codes.csv", *options).err
    assert run("apply", "c.json", "codes.csv", "out.csv", *SEED).code == 0
    manifest = json.loads((alike / "out.csv.manifest.json").read_text())
    released = manifest["released"][0]
    assert (released["missing"], released["missing_codes"]) == ("marginal", ["?", "-9"])
    assert "bounds alone" in run("estimate", "out.csv", "--channel", "c.json").out
    check = ("check", "out.csv", "--channel", "c.json", "--original", "codes.csv")
    assert run(*check).code == 0
    assert run("audit", "c.json", "--table", "codes.csv", "--missing", "drop").code == 0


def test_assess_takes_the_same_words(alike, run):
    result = run("assess", "gaps.csv", "--sensitive", "income")
    assert result.out.startswith(
        "To settle first:\n  - 'job' has 8 empty cells (20.0 %"
    )
    left = run(
        "assess", "gaps.csv", "--sensitive", "income", "--missing", "drop", "--json"
    )
    assert left.record["records"] == 32
    refused = run("assess", "gaps.csv", "--sensitive", "income", "--missing", "refuse")
    assert refused.code == 2
    assert "'job' has an empty cell, in record 4" in refused.err


def test_show_and_reports_say_how_cells_are_read(alike, run):
    (alike / "codes.csv").write_text(GAPS.replace('""', "?"), encoding="utf-8")
    options = ("--missing-codes", "?", "--missing", "output:mix-1", "--trim")
    assert design(run, "codes.csv", *options, "--report", "r.md").code == 0
    for text in (run("show", "c.json").out, (alike / "r.md").read_text("utf-8")):
        assert "Cells are compared without blanks at their ends." in text
        assert "'?' count as empty cells." in text
        assert "8 records with an empty cell were left out of the table." in text
        assert "In place of an empty cell, the output mix-1 is released." in text
    rules = run("show", "c.json", "--json").record["rules"]
    assert (rules["missing"], rules["left_out"]) == ("output:mix-1", 8)
    # How many records have an empty cell is a figure of the table.
    design(run, "codes.csv", *options, "--public", "--force")
    assert run("show", "c.json", "--json").record["rules"]["left_out"] == 0
    plain = design(run, "alike.csv")
    assert plain.code == 0
    assert "Cells are compared" not in run("show", "c.json").out


def test_an_audit_counts_empty_cells_as_the_design_did(alike, run):
    for missing, code in (("drop", 0), ("symbol", 0), ("marginal", 0)):
        design(run, "gaps.csv", "--missing", missing)
        audit = run("audit", "c.json", "--table", "gaps.csv", "--json")
        assert audit.code == code, (missing, audit.err)


def test_an_export_says_that_cells_must_be_prepared(alike, run):
    design(run, "alike.csv", "--trim")
    result = run("export", "c.json", "--to", "csv")
    assert "Cells are compared without blanks at their ends." in result.err
    design(run, "alike.csv")
    assert "bring them into this form" not in run("export", "c.json", "--to", "csv").err


def test_columns_of_rows_are_not_estimated_through_draws_for_empty_cells(alike, run):
    rows = ["job,town,income"]
    for job, town, income in (
        ("clerk", "n", "low"),
        ("", "s", "high"),
        ("nurse", "n", "high"),
        ("nurse", "s", "low"),
    ):
        rows += [f"{job},{town},{income}"] * 20
    (alike / "rows.csv").write_text("\n".join(rows) + "\n")
    options = ("--sensitive", "income", "--release", "job,town", "--epsilon", "1")
    options += ("--missing", "marginal", "--output", "c.json")
    assert run("design", "rows.csv", *options).code == 0
    assert run("apply", "c.json", "rows.csv", "out.csv", *SEED, "--shuffle").code == 0
    for _ in range(2):
        refused = run("estimate", "out.csv", "--channel", "c.json")
        assert refused.code == 2
        assert "draws in place of empty or unknown cells" in refused.err
        # The channel knows it as well as the manifest.
        (alike / "out.csv.manifest.json").unlink(missing_ok=True)
    known = run("estimate", "out.csv", "--channel", "c.json", "--missing", "refuse")
    assert known.code == 0


def test_a_column_whose_law_is_kept_is_corrected_like_any_other(alike, run):
    options = ("--objective", "truth", "--missing", "marginal")
    assert design(run, "gaps.csv", *options).code == 0
    assert run("apply", "c.json", "gaps.csv", "out.csv", *SEED, "--shuffle").code == 0
    command = ("estimate", "out.csv", "--channel", "c.json", "--json")
    assert run(*command).record["method"] == "bounds"
    known = run(*command, "--missing-share", "0.2").record
    assert known["method"] == "unbiased"
    assert "20 % of the records had empty cells" in " ".join(known["notices"])


def test_rows_with_a_title_are_checked_beside_their_original(alike, run):
    rows = ["Survey 2024", "job,town,income"]
    for job, town, income in (
        ("clerk ", "n", "low"),
        ("clerk", "s", "high"),
        ("nurse", "n", "high"),
        ("nurse", "s", "low"),
    ):
        rows += [f"{job},{town},{income}"] * 20
    (alike / "rows.csv").write_text("\n".join(rows) + "\n")
    options = ("--sensitive", "income", "--release", "job,town", "--epsilon", "1")
    options += ("--trim", "--skip-lines", "1", "--output", "c.json")
    assert run("design", "rows.csv", *options).code == 0
    skip = ("--skip-lines", "1")
    release = ("apply", "c.json", "rows.csv", "out.csv", *SEED, "--keep-order", *skip)
    assert run(*release).code == 0
    check = ("check", "out.csv", "--channel", "c.json", "--original", "rows.csv")
    result = run(*check, *skip, "--ignore", "income")
    assert result.code == 0, (result.out, result.err)


READERS = [
    ("design", "t.csv", "--sensitive", "income", "--useful", "job"),
    ("assess", "t.csv", "--sensitive", "income"),
    ("assess", "t.csv"),
    ("apply", "c.json", "t.csv", "out.csv", *SEED),
    ("apply", "r.json", "t.csv", "out.csv", *SEED),
    ("check", "t.csv", "--channel", "c.json"),
    ("estimate", "t.csv", "--channel", "c.json"),
    ("estimate", "t.csv", "--channel", "r.json"),
    ("inspect", "t.csv", "--channel", "c.json"),
    ("audit", "c.json", "--table", "t.csv"),
    ("judge", "t.csv", "--original", "t.csv", "--sensitive", "income"),
]


@pytest.mark.parametrize("title", ["Survey 2024", "# exported\n# on Monday"])
def test_every_command_names_the_remedy_of_a_title(alike, run, title):
    rows = ["job,town,income"]
    for job, town, income in (("a", "n", "low"), ("b", "s", "high")):
        rows += [f"{job},{town},{income}", f"{job},{town},low"] * 10
    (alike / "plain.csv").write_text("\n".join(rows) + "\n")
    (alike / "t.csv").write_text("\n".join([title, *rows]) + "\n")
    design = ("design", "plain.csv", "--sensitive", "income", "--epsilon", "1")
    assert run(*design, "--useful", "job", "--output", "c.json").code == 0
    assert run(*design, "--release", "job,town", "--output", "r.json").code == 0
    for command in READERS:
        result = run(*command)
        assert result.code == 2, command
        remedy = f"--skip-lines {len(title.splitlines())}"
        assert result.err.count(remedy) == 1, command


@pytest.mark.parametrize(
    ("missing", "form"), [("marginal", ()), ("drop", ()), ("drop", ("--public",))]
)
def test_a_record_that_the_design_left_out_is_refused_with_the_cause(
    alike, run, missing, form
):
    # The only pilot has no income, so the channel has no row for a pilot.
    (alike / "in.csv").write_text(ALIKE + 'pilot,""\n', encoding="utf-8")
    assert design(run, "in.csv", "--missing", missing, *form).code == 0
    refused = run("apply", "c.json", "in.csv", "out.csv", *SEED)
    assert refused.code == 2
    cause = "the design left out 1 record with an empty cell"
    if form:
        cause = "the design may have left out records with an empty cell"
    assert (
        f"in.csv, line 42: the channel does not know the symbol of 'job', which is none of its 4; "
        f"{cause}, of which this may be one: say what to publish for it (--unknown), or design "
        "the channel with missing cells as a symbol (--missing symbol)"
    ) in refused.err
    # Where the design left nothing out, that is no cause.
    (alike / "whole.csv").write_text(ALIKE, encoding="utf-8")
    assert design(run, "whole.csv", "--missing", missing).code == 0
    refused = run("apply", "c.json", "in.csv", "out.csv", *SEED)
    assert "none of its 4; correct it, or say what to publish" in refused.err
    assert "left out" not in refused.err


TWO = "job,town,income\n" + (
    "clerk,x,low\nclerk,y,high\nnurse,x,low\nnurse,y,high\nsmith,x,low\n" * 20
)


@pytest.mark.parametrize("columns", [("--useful", "job"), ("--release", "job,town")])
@pytest.mark.parametrize("option", ["--missing", "--unknown"])
def test_a_label_that_is_no_output_is_refused_by_the_design(
    alike, run, columns, option
):
    """Every release with it would be refused."""
    (alike / "two.csv").write_text(f"{TWO},x,low\n", encoding="utf-8")
    asked = ("design", "two.csv", "--sensitive", "income", *columns, "--epsilon", "1")
    dropped = () if option == "--missing" else ("--missing", "drop")
    refused = run(*asked, *dropped, option, "output:none", "-o", "c.json")
    assert refused.code == 2
    assert f"{option} output:none: 'none' is no output of the channel" in refused.err
    assert not (alike / "c.json").exists()


def test_rules_that_differ_are_settled_by_the_options_named(alike, run):
    (alike / "two.csv").write_text(TWO, encoding="utf-8")
    table = ("design", "two.csv", "--sensitive", "income", "--epsilon", "1")
    first = ("--useful", "job", "--unknown", "marginal", "--trim")
    assert run(*table, *first, "--output", "job.json").code == 0
    second = ("--useful", "town", "--after", "job.json", "--epsilon", "2", "--trim")
    designed = run(*table[:4], *second, "--output", "town.json")
    assert designed.code == 0, designed.err
    release = (
        "apply",
        "job.json",
        "two.csv",
        "out.csv",
        "--also",
        "town.json",
        *SEED,
        "--keep-order",
    )
    refused = run(*release)
    assert refused.code == 2
    assert "different rules" in refused.err
    assert "say which ones hold here (--unknown), or take the channels" in refused.err
    settled = run(*release, "--unknown", "refuse")
    assert settled.code == 0, settled.err
    # What is released for a symbol of no record does not matter to a table.
    together = ("audit", "town.json", "--after", "job.json", "--table", "two.csv")
    assert run(*together).code == 0


def test_a_table_is_read_by_one_form(alike, run):
    (alike / "two.csv").write_text(TWO, encoding="utf-8")
    table = ("design", "two.csv", "--sensitive", "income", "--epsilon", "1")
    run(*table, "--useful", "job", "--normalise", "NFC", "--output", "job.json")
    run(*table, "--useful", "town", "--output", "town.json")
    together = ("compose", "job.json", "town.json", "--table", "two.csv")
    refused = run(*together)
    assert refused.code == 2
    assert "say which ones hold here (--normalise), or take" in refused.err
    assert run(*together, "--normalise", "NFC").code == 0
