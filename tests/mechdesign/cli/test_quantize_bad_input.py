"""`mechdesign quantize`: every refusal is one clear line, and nothing is written."""

from __future__ import annotations

import pytest

from tests.cases.meters import BASIC


def given(*changes):
    """BASIC with options replaced: pairs of an option and its value (None: left out)."""
    options = {BASIC[k]: BASIC[k + 1] for k in range(0, len(BASIC), 2)}
    for option, value in changes:
        options.pop(option, None)
        if value is not None:
            options[option] = value
    return [part for pair in options.items() for part in pair]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (given(("--column", None)), "--column COL is missing"),
        (given(("--epsilon", None)), "--epsilon BITS is missing"),
        (
            given(("--range", None)),
            "sensitivity of the identity of 'kwh' cannot be bounded: --range lo,hi is missing",
        ),
        (given(("--range", "10,0")), "reversed"),
        (given(("--range", "0")), "must be two numbers"),
        (given(("--range", "0,nan")), "is not a finite number"),
        (given(("--range", "0,1e999")), "is not a finite number"),
        (
            given(("--range", "1,5")),
            "meters.csv, line 3: the value lies outside the range 1 to 5; clip, mark or drop",
        ),
        (given(("--epsilon", "-1")), "allows fewer than one output"),
        (given(("--epsilon", "nan")), "must be a number of bits"),
        (given(("--epsilon", "two")), "must be a number of bits"),
        (given(("--epsilon", "1e9")), "must be at most"),
        (given(("--column", "watt")), "meters.csv: there is no column 'watt'"),
        (
            given(("--query", "mean"), ("--group-by", "town")),
            "meters.csv: there is no column 'town'",
        ),
        (
            given(("--individual", "person")),
            "meters.csv: there is no column 'person'",
        ),
        (
            given(("--column", "house")),
            "line 2: the column 'house' holds no finite number there; write numbers as 1800.5",
        ),
        (
            given(("--column", "note")),
            "line 3: the column 'note' is empty there; say --missing drop, or in a column of names --missing symbol",
        ),
        (
            given(("--query", "mode")),
            "query ('mode') must be identity, mean, sum, count, median",
        ),
        (given(("--query", "quantile:1.5")), "or quantile:P with 0 < P < 1"),
        (
            given(("--outside", "wrap")),
            "outside ('wrap') must be one of refuse, clip, mark, drop",
        ),
        (
            given(("--outside", "mark"), ("--epsilon", "0.5")),
            "is one output, and epsilon allows no other",
        ),
        (
            given(("--outside", "drop"), ("--query", "count"), ("--range", None)),
            "a record counts as 0 or 1: there is nothing outside to drop",
        ),
        (given(("--layout", "best")), "error: --layout ('best') must be one of"),
        (
            given(("--missing", "zero")),
            "--missing ('zero') must be one of refuse, symbol, drop",
        ),
        (
            given(("--missing", "symbol"), ("--column", "note")),
            "line 2: the column 'note' holds no finite number there",
        ),
        (given(("--group-by", "day")), "--group-by needs a --query of groups"),
        (
            given(("--query", "mean"), ("--group-by", "kwh")),
            "cannot be released and be a group",
        ),
        (given(("--query", "mean"), ("--group-by", "year")), "year"),
        (
            given(("--query", "mean"), ("--individual", "day")),
            "meters.csv: by the column 'day' an individual has several records in one group",
        ),
        (
            given(("--query", "mean"), ("--equals", "a")),
            "--equals is for --query count",
        ),
        (given(("--query", "count")), "--range is not for --query count"),
        (given(("--query", "count"), ("--range", None)), "is neither 0 nor 1"),
    ],
)
def test_bad_input_is_one_clear_line(meters, run, arguments, message):
    done = run("quantize", "meters.csv", "out.csv", *arguments)
    assert done.code == 2
    assert done.out == ""
    assert message in done.err
    assert done.err.count("\n") <= 2
    assert [path.name for path in meters.parent.iterdir()] == ["meters.csv"]


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("none.csv", "o.csv", "no such file"),
        ("meters.csv", "meters.csv", "is the input file itself"),
        ("meters.csv", ".", "is a folder"),
        ("meters.csv", "no/o.csv", "there is no folder"),
        ("meters.csv", "o.parquet", "the output is a CSV file"),
        ("empty.csv", "o.csv", "is empty"),
        ("header.csv", "o.csv", "header.csv: no records; an answer needs at least one"),
        (
            "nan.csv",
            "o.csv",
            "nan.csv, line 3: the column 'kwh' holds no finite number there",
        ),
        ("huge.csv", "o.csv", "holds no finite number there"),
        ("short.csv", "o.csv", "cell(s) where the header has"),
    ],
)
def test_bad_files(meters, run, source, target, message):
    for name, text in (
        ("empty.csv", ""),
        ("header.csv", "kwh\n"),
        ("nan.csv", "kwh\n1\nNaN\n"),
        ("huge.csv", "kwh\n1e999\n"),
        ("short.csv", "kwh,b\n1\n"),
    ):
        (meters.parent / name).write_text(text, encoding="utf-8")
    done = run("quantize", source, target, *BASIC)
    assert done.code == 2
    assert message in done.err
    assert not (meters.parent / "o.csv").exists()


def test_clip_and_outside_agree(meters, run):
    done = run(
        "quantize", "meters.csv", "out.csv", *BASIC, "--clip", "--outside", "mark"
    )
    assert (
        done.code,
        "--clip and --outside mark say different things" in done.err,
    ) == (2, True)
