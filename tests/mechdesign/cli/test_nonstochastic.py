"""`mechdesign nonstochastic measure`: records, texts, exit codes, bad input."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

RELEASE = """\
name,age,zip,released,old
a,030,1,lo,no
b,040,1,lo,no
c,060,2,hi,yes
d,070,2,hi,yes
e,050,2,lo,no
f,055,1,hi,yes
f,055,1,hi,yes
"""

MEASURE = (
    "nonstochastic",
    "measure",
    "release.csv",
    "--x",
    "age,zip",
    "--y",
    "released",
)


@pytest.fixture
def release(folder):
    (folder / "release.csv").write_text(RELEASE, encoding="utf-8")
    return folder


def test_the_best_test_of_a_hypothesis(release, run):
    """It says yes where only the hypothesis is possible, no where only its contrary is (Farokhi 2020, Theorem 2)."""
    asked = (
        "nonstochastic",
        "hypothesis",
        "release.csv",
        "--y",
        "zip,released",
        "--hypothesis",
        "name=b",
    )
    record = run(*asked, "--json").record
    assert (record["outputs"], record["telling"], record["yes"]) == (4, 3, [])
    assert record["no"] == ["(1, hi)", "(2, hi)", "(2, lo)"]
    assert (record["epsilon"], record["performance_bound"]) == (
        pytest.approx(1 / 3),
        pytest.approx(math.log2(3)),
    )
    measured = run(*MEASURE[:3], "--x", "age", *asked[3:], "--json").record[
        "hypothesis"
    ]
    assert measured == record
    told = " ".join(run(*asked).out.split())
    assert "3 of 4 outputs settle it; epsilon-private for epsilon up to 0.33333" in told
    assert "the best test answers no at (1, hi), (2, hi), (2, lo)" in told
    assert "says yes" not in told
    missing = run(*asked[:3], "--y", "zip")
    assert (
        missing.code,
        "--y COL and --hypothesis COL=VALUE are needed" in missing.err,
    ) == (2, True)
    for wrong, message in (
        ("zip", "must be COL=VALUE"),
        ("zip=9", "'zip' = '9' never holds"),
        ("no=1", "'no'"),
    ):
        found = run(*asked[:5], "--hypothesis", wrong)
        assert (found.code, message in found.err) == (2, True)


def test_the_policy_that_moves_values_least(release, run):
    """Six ages, three of them old: with epsilon 1 half of the reports tell nothing; `hypothesis` counts them again."""
    asked = (
        "nonstochastic",
        "policy",
        "release.csv",
        "--x",
        "age",
        "--hypothesis",
        "old=yes",
        "--epsilon",
        "1",
    )
    record = run(*asked, "--within", "10", "--json").record
    assert [record[key] for key in ("values", "moved", "optimal")] == [6, 4, True]
    assert [record["test"][key] for key in ("outputs", "telling", "epsilon")] == [
        4,
        2,
        1,
    ]
    assert record["distortion"] == pytest.approx((10**2 + 3 * 5**2) / 6)
    reports = {row["from"][0]: row["to"][0] for row in record["policy"]}
    old = {55, 60, 70}
    rows = "".join(
        f"{out},{'yes' if age in old else 'no'}\n" for age, out in reports.items()
    )
    (release / "out.csv").write_text("out,old\n" + rows, encoding="utf-8")
    counted = run(
        "nonstochastic",
        "hypothesis",
        "out.csv",
        "--y",
        "out",
        "--hypothesis",
        "old=yes",
        "--json",
    ).record
    assert [counted[key] for key in ("outputs", "telling", "privacy")] == [4, 2, 1]
    told = " ".join(run(*asked).out.split())
    assert "2 of 4 outputs settle it; epsilon-private for epsilon up to 1." in told
    refused = run(*asked, "--within", "1")
    assert (
        refused.code,
        "no policy within 1 is 1-private; lower epsilon" in refused.err,
    ) == (1, True)
    for wrong, message in (
        (("--within", "-1"), "must not be negative"),
        (("--within", "far"), "within: 'far' is not a number"),
        (("--missing", "zero"), "must be one of refuse"),
    ):
        found = run(*asked, *wrong)
        assert (found.code, message in found.err) == (2, True)
    for option, message in (
        ("--epsilon", "--epsilon E are needed"),
        ("--x", "--x COL"),
    ):
        at = asked.index(option)
        assert message in run(*asked[:at], *asked[at + 2 :]).err


def test_the_identifiable_partition_of_least_error(release, run):
    """Against all contiguous partitions of the six ages; `measure` counts the cells again."""
    asked = (
        "nonstochastic",
        "partition",
        "release.csv",
        "--x",
        "age",
        "--epsilon",
        "1",
    )
    record = run(*asked, "--json").record
    assert (record["values"], record["smallest_cell"], record["identifiability"]) == (
        6,
        3,
        1,
    )
    assert record["cells"] == [
        {"from": 30, "to": 50, "values": 3, "released": 40},
        {"from": 55, "to": 70, "values": 3, "released": pytest.approx(185 / 3)},
    ]
    rows = [
        (age, cell["released"])
        for cell in record["cells"]
        for age in (30, 40, 50, 55, 60, 70)
    ]
    own = [f"{age},{out}\n" for age, out in rows if (age <= 50) == (out == 40)]
    (release / "cells.csv").write_text("age,out\n" + "".join(own), encoding="utf-8")
    names = ("cells.csv", "--x", "age", "--y", "out", "--epsilon", "1", "--json")
    measured = run("nonstochastic", "measure", *names)
    assert (measured.code, measured.record["identifiability"]) == (0, 1)
    assert measured.record["maximal_leakage"] == record["maximal_leakage"] == 2
    assert (
        "6 values in 2 cells of at least 3, so epsilon-identifiable" in run(*asked).out
    )
    for column, epsilon, message in (
        ("name", "1", "'name' must hold a finite number in every record"),
        ("nobody", "1", "nobody"),
        ("age", "-1", "fewer than one output"),
    ):
        found = run(*asked[:3], "--x", column, "--epsilon", epsilon)
        assert (found.code, message in found.err) == (2, True)
    assert (
        run(*asked[:3], "--x", "age").err
        == "mechdesign: error: --epsilon BITS is missing\n"
    )


def test_the_record_has_every_measure_in_bits(release, run):
    result = run(
        *MEASURE,
        "--feature",
        "old",
        "--hypothesis",
        "zip=1",
        "--zero-error",
        "--epsilon",
        "1",
        "--json",
    )
    assert result.code == 0, result.err
    record = result.record
    assert (record["unit"], record["records"], record["pairs"], record["x_values"]) == (
        "bits",
        7,
        6,
        6,
    )
    assert record["entropy"] == pytest.approx(math.log2(6))
    assert record["conditional_entropy"] == pytest.approx(math.log2(3))
    assert record["information"] == record["leakage"] == record["maximin"] == 1
    assert record["maximal_leakage"] == 2
    assert record["worst_attribute"] == {
        "output": "lo",
        "merged": 3,
        "some": ["(030, 1)", "(040, 1)", "(050, 2)"],
        "values": 4,
    }
    assert (record["identifiability"], record["identifiable"]) == (1, True)
    assert record["feature"] == {
        "columns": ["old"],
        "values": 2,
        "leakage": 1,
        "one_shot": True,
    }
    assert record["hypothesis"]["epsilon"] == "inf"
    assert record["hypothesis"]["performance_bound"] == "-inf"
    assert record["zero_error"] == {
        "lower": 1,
        "upper": 1,
        "uses": 1,
        "theta": None,
        "codewords": 2,
        "codewords_upper_bound": 2,
        "proof": "cover",
    }


def test_parquet_gives_the_same(release, run):
    columns = list(
        zip(*(line.split(",") for line in RELEASE.splitlines()), strict=True)
    )
    pq.write_table(
        pa.table({c[0]: list(c[1:]) for c in columns}), release / "release.parquet"
    )
    from_csv = run(*MEASURE, "--json").record
    assert (
        run(*MEASURE[:2], "release.parquet", *MEASURE[3:], "--json").record == from_csv
    )


def test_the_report_says_what_it_is_about(release, run):
    result = run(
        *MEASURE, "--feature", "zip", "--hypothesis", "old=yes", "--zero-error"
    )
    assert result.code == 0
    assert (
        "X = age x zip (6 values) and Y = released (2 values): 6 pairs in 7 records"
        in result.out
    )
    assert (
        "brute-force leakage of zip (2 values): 0; not always right at once"
        in result.out
    )
    assert "2 of 2 outputs settle it" in result.out
    assert "the largest set of inputs that never share an output: 2" in result.out
    assert "A range is what occurs in this file" in result.out
    blind = run(*MEASURE, "--hypothesis", "zip=1")
    assert "none of 2 outputs settles it" in blind.out


def test_a_release_that_identifies_more_exits_1(release, run):
    result = run(*MEASURE, "--epsilon", "0.9")
    assert result.code == 1
    assert "epsilon-identifiable at the budget given: NO" in result.out


@pytest.mark.filterwarnings("default::mechdesign.core.errors.Notice")
def test_empty_cells_are_a_question(release, run):
    (release / "release.csv").write_text(RELEASE + "g,,1,hi,yes\n", encoding="utf-8")
    refused = run(*MEASURE)
    assert refused.code == 2
    assert "line 9: the column 'age' is empty there" in refused.err
    dropped = run(*MEASURE, "--missing", "drop", "--json")
    assert dropped.record["records"] == 7
    assert "release.csv: dropped 1 of 8 record(s) with an empty cell" in dropped.err
    assert run(*MEASURE, "--missing", "symbol", "--json").record["x_values"] == 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("measure", "release.csv", "--y", "released"), "--x COL is missing"),
        (("measure", "release.csv", "--x", "age"), "--y COL is missing"),
        (("measure", "release.csv", "--x", "age", "--y", "nope"), "no column 'nope'"),
        (("measure", "absent.csv", "--x", "age", "--y", "released"), "absent.csv"),
        (
            (
                "measure",
                "release.csv",
                "--x",
                "age",
                "--y",
                "released",
                "--hypothesis",
                "old",
            ),
            "must be COL=VALUE",
        ),
        (
            (
                "measure",
                "release.csv",
                "--x",
                "age",
                "--y",
                "released",
                "--hypothesis",
                "old=x",
            ),
            "never holds",
        ),
        (
            (
                "measure",
                "release.csv",
                "--x",
                "age",
                "--y",
                "released",
                "--missing",
                "ignore",
            ),
            "must be one of",
        ),
        (
            (
                "measure",
                "release.csv",
                "--x",
                "age",
                "--y",
                "released",
                "--epsilon",
                "-1",
            ),
            "fewer than one output",
        ),
        (
            (
                "measure",
                "release.csv",
                "--x",
                "age",
                "--y",
                "released",
                "--epsilon",
                "nan",
            ),
            "epsilon",
        ),
        (
            (
                "measure",
                "release.csv",
                "--x",
                "zip",
                "--y",
                "released",
                "--feature",
                "old",
            ),
            "the feature old is no function of zip: '2' occurs with 'yes' and 'no'",
        ),
        ((), "Missing command"),
    ],
)
def test_bad_input_exits_2_and_names_the_culprit(release, run, arguments, message):
    result = run("nonstochastic", *arguments)
    assert result.code == 2
    assert message in result.err
    assert len(result.err.strip().splitlines()) <= 2
    assert not result.out


def test_a_file_without_records_has_no_range(release, run):
    (release / "release.csv").write_text("age,zip,released\n", encoding="utf-8")
    result = run(*MEASURE)
    assert result.code == 2
    assert "no records are left; a range needs at least one value" in result.err


def test_ranges_are_measured_and_released_whatever_the_delimiter(folder, run):
    (folder / "a.csv").write_text("x,y\n1,u\n2,v\n3,v\n")
    (folder / "b.csv").write_text("x|y\n1|u\n2|v\n3|v\n", encoding="utf-16")
    how = ("--delimiter", "|", "--encoding", "utf-16")
    measured = run("nonstochastic", "measure", "a.csv", "--x", "x", "--y", "y")
    again = run("nonstochastic", "measure", "b.csv", "--x", "x", "--y", "y", *how)
    assert (measured.code, again.code) == (0, 0), again.err
    assert again.out == measured.out
    typed = ("--column", "x", "--epsilon", "1", "--range", "0,4")
    assert run("quantize", "a.csv", "qa.csv", *typed).code == 0
    result = run("quantize", "b.csv", "qb.csv", *typed, *how)
    assert result.code == 0, result.err
    released = (folder / "qb.csv").read_text(encoding="utf-16")
    assert released.replace("|", ",") == (folder / "qa.csv").read_text()


def test_the_pentagon_is_known_exactly(tmp_path, monkeypatch, run):
    """log2 sqrt(5) from five words of two uses, and from the theta number sqrt(5)."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{x},{(x + k) % 5}\n" for x in range(5) for k in (0, 1))
    (tmp_path / "t.csv").write_text("x,y\n" + rows, encoding="utf-8")
    asked = (
        "nonstochastic",
        "measure",
        "t.csv",
        "--x",
        "x",
        "--y",
        "y",
        "--zero-error",
    )
    said = run(*asked).out
    assert (
        "zero-error capacity between 1.1609 and 1.161 (theta number at most 2.2361)"
        in said
    )
    assert (
        "the largest set of words of 2 inputs, for 2 uses, that never share an output: 5"
        in said
    )
    bounds = run(*asked, "--json").record["zero_error"]
    assert (bounds["uses"], bounds["codewords"]) == (2, 5)
    assert (
        bounds["lower"] <= math.log2(5) / 2 <= bounds["upper"] <= bounds["lower"] + 1e-6
    )
    assert bounds["theta"] == pytest.approx(math.sqrt(5), rel=1e-7)
