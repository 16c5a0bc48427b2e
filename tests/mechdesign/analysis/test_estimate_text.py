"""Texts of estimates and checks beyond what the commands show every day."""

from __future__ import annotations

import csv
import io
import json

import mechdesign as md
from mechdesign.analysis.checking import Finding, FrequencyTest, ReleaseCheck, Suspect
from mechdesign.core.wording import at_least
from mechdesign.report.plain_values import to_json
from mechdesign.report.releases import (
    MOST_SHOWN,
    check_record,
    check_text,
    estimate_csv,
    estimate_record,
    estimate_text,
)
from tests.cases.releases import channel_of

MERGING = channel_of(((1, 0), (0, 1), (0, 1)), [[30, 20, 10], [10, 20, 30]])


def test_symbols_known_together_only_are_one_row():
    found = md.estimate_frequencies(MERGING, {"y0": 25, "y1": 75})
    line = next(
        line
        for line in estimate_text(found, "x").splitlines()
        if line.startswith("  {b, c} ")
    )
    assert line.split()[2] == "0.750"
    rows = [*csv.DictReader(io.StringIO(estimate_csv(found, "x")))]
    assert (rows[1]["x"], round(float(rows[1]["estimate"]), 12)) == ("{b, c}", 0.75)
    record = json.loads(to_json(estimate_record(found, "x")))
    assert record["frequencies"][1]["lower"] == found.lower[1]


def test_the_text_never_shows_an_estimate_outside_of_its_interval():
    channel = channel_of(((8, 1, 1), (1, 8, 1), (2, 2, 6)))
    counts = {"y0": 900, "y1": 50, "y2": 50}
    found = md.estimate_frequencies(channel, counts)
    lines = estimate_text(found, "x").splitlines()
    numbers = [line.split() for line in lines if line.startswith(("  a ", "  b "))]
    assert [(row[1], row[3]) for row in numbers] == [
        ("1.00", at_least(found.lower[0], 3)),
        ("0.00", "0"),
    ]
    assert "3 of 3 unbiased estimates are impossible" in " ".join(lines)
    record = json.loads(to_json(estimate_record(found, "x")))
    assert [row["estimate"] for row in record["frequencies"]] == [1.0, 0.0, 0.0]
    assert record["frequencies"][1]["unbiased"] == found.unbiased[1] < 0.0


def test_labels_cannot_move_the_cursor():
    hostile = channel_of(((1, 0), (0, 1)), names=("a\x1b[2J", "b\n"))
    text = estimate_text(md.estimate_frequencies(hostile, {"y0": 50, "y1": 50}), "x")
    assert "\x1b" not in text
    assert "a\\x1b[2J" in text
    assert "b\\n" in text


def check_of(suspects, findings=()):
    test = FrequencyTest(
        "originals", 1e-9, 0.001, tuple(suspects), 5000, {"exact binomials": 30}
    )
    return ReleaseCheck(5000, tuple(findings), test, None, ("one thing to know",))


def test_many_suspects_are_cut_in_the_text_and_whole_in_json():
    check = check_of(
        [Suspect(f"x{i}", 100 + i, 2.0**-30 * (i + 1)) for i in range(MOST_SHOWN + 5)]
    )
    text = check_text(check, "out.csv")
    assert "x0: 100 records, adjusted p-value at most 9.3133e-10" in text
    assert "and 5 more" in text
    assert len(check_record(check)["frequencies"]["suspects"]) == MOST_SHOWN + 5
    assert "Note\n  - one thing to know" in text


def test_findings_say_how_many_records_they_concern():
    findings = [
        Finding("label", "out.csv, line 3: '\x07' is wrong", 12),
        Finding("cells", "other", 2),
    ]
    text = check_text(check_of((), findings), "out\x1b.csv")
    assert "\x07" not in text
    assert "\x1b" not in text
    assert "(12 records in all)" in text
    assert "(2 records" not in text  # cells are compared up to the first of each batch


def test_nothing_to_test_is_said():
    test = FrequencyTest("originals", 1.0, 0.001, (), 0, {})
    text = check_text(ReleaseCheck(0, (), test, None, ()), "out.csv")
    assert text.startswith("out.csv has no records, so that nothing could be tested.")
    assert "nothing to test" in text
    assert "faithful" not in text.splitlines()[0]
