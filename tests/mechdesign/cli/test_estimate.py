"""`mechdesign estimate`: text, CSV, JSON and options."""

from __future__ import annotations

import csv
import io
import json
import random

import numpy as np
import pytest

import mechdesign as md
from mechdesign.analysis import estimate_joint

JOBS = random.Random(1).sample(
    ["clerk", "clerk", "baker", "smith", "smith", "weaver"] * 200, 1200
)
PEOPLE = "id,job,town\n" + "".join(
    f"{i},{job},T{i % 2}\n" for i, job in enumerate(JOBS)
)


@pytest.fixture
def released(folder, run, channel):
    (folder / "people.csv").write_text(PEOPLE, encoding="utf-8")
    assert (
        run(
            "apply",
            channel,
            "people.csv",
            "out.csv",
            "--insecure-seed",
            "1",
            "--keep",
            "all",
        ).code
        == 0
    )
    return folder / "out.csv"


@pytest.fixture
def labels(released):
    with open(released, newline="", encoding="utf-8") as stream:
        return [row["job"] for row in csv.DictReader(stream)]


@pytest.mark.parametrize(
    "options", [{}, {"method": "ml"}, {"target": "records"}, {"level": 0.8}]
)
def test_the_numbers_are_those_of_the_library(run, channel, labels, options):
    expected = md.estimate_frequencies(md.Channel.load(channel), labels, **options)
    typed = [part for key, value in options.items() for part in (f"--{key}", value)]
    record = run("estimate", "out.csv", "--channel", channel, "--json", *typed).record
    assert [row["name"] for row in record["frequencies"]] == list(expected.names)
    for row, estimate, error in zip(
        record["frequencies"], expected.estimates, expected.standard_errors, strict=True
    ):
        assert row["estimate"] == pytest.approx(estimate)
        assert row["standard_error"] == pytest.approx(error)
        assert row["lower"] <= row["estimate"] <= row["upper"]
    assert record["records"] == 1200
    assert record["column"] == "job"
    assert record["by"] is None
    assert ("log_likelihood" in record) == (options.get("method") == "ml")


def test_the_text_is_a_table(run, channel, labels):
    result = run("estimate", "out.csv", "--channel", channel)
    assert result.code == 0, result.err
    assert result.out.startswith(
        "Frequencies of job from 1,200 released records, unbiased; 95 % intervals\n"
    )
    assert "for the population that the records are a sample of." in result.out
    expected = md.estimate_frequencies(md.Channel.load(channel), labels)
    for name, estimate in expected.as_dict().items():
        assert f"{name} " in result.out
        assert f"{estimate:#.3g}" in result.out


def test_csv_has_all_digits_and_notes_go_to_standard_error(run, channel, labels):
    result = run("estimate", "out.csv", "--channel", channel, "--csv", "--method", "ml")
    rows = [*csv.DictReader(io.StringIO(result.out))]
    assert [*rows[0]] == [
        "job",
        "estimate",
        "standard_error",
        "lower",
        "upper",
        "unbiased",
    ]
    expected = md.estimate_frequencies(md.Channel.load(channel), labels, method="ml")
    assert [float(row["estimate"]) for row in rows] == pytest.approx(
        expected.estimates.tolist()
    )
    assert all(
        line.startswith("mechdesign: note: ") for line in result.err.splitlines()
    )


def test_by_a_kept_column(run, channel, labels):
    with open("out.csv", newline="", encoding="utf-8") as stream:
        towns = [row["town"] for row in csv.DictReader(stream)]
    expected = estimate_joint(md.Channel.load(channel), labels, towns)
    result = run("estimate", "out.csv", "--channel", channel, "--by", "town", "--csv")
    rows = [*csv.DictReader(io.StringIO(result.out))]
    assert [*rows[0]][:3] == ["job", "town", "estimate"]
    assert [float(row["estimate"]) for row in rows] == pytest.approx(
        expected.estimates.ravel().tolist()
    )
    text = run("estimate", "out.csv", "--channel", channel, "--by", "town").out
    assert text.startswith(
        "Joint frequencies of job and town from 1,200 released records"
    )
    record = run(
        "estimate", "out.csv", "--channel", channel, "--by", "town", "--json"
    ).record
    assert record["by"] == "town"
    assert record["frequencies"][0]["other"] == "T0"


def test_what_cannot_be_told_apart_is_said(run, folder, released, channel):
    design = (
        "design",
        "records.csv",
        "--sensitive",
        "group",
        "--useful",
        "job",
        "--epsilon",
        "0.1",
    )
    assert (
        run(*design, "--mechanism", "complete-merging", "--output", "merge.json").code
        == 0
    )
    assert (
        run(
            "apply", "merge.json", "people.csv", "merged.csv", "--insecure-seed", "1"
        ).code
        == 0
    )
    result = run("estimate", "merged.csv", "--channel", "merge.json")
    assert result.code == 0, result.err
    assert "cannot tell apart" in result.out
    assert "{" in result.out


def test_posterior_draws_and_parquet(run, folder, channel, released):
    import pyarrow.csv as arrow_csv
    import pyarrow.parquet as pq

    pq.write_table(arrow_csv.read_csv("people.csv"), "people.parquet")
    assert (
        run(
            "apply", channel, "people.parquet", "out.parquet", "--insecure-seed", "1"
        ).code
        == 0
    )
    one = run("estimate", "out.parquet", "--channel", channel, "--json").record
    other = run("estimate", "out.csv", "--channel", channel, "--json").record
    assert one["frequencies"] == other["frequencies"]
    assert (
        run(
            "apply",
            channel,
            "people.csv",
            "draws.csv",
            "--as",
            "posterior-draw",
            "--insecure-seed",
            "1",
        ).code
        == 0
    )
    draws = run(
        "estimate",
        "draws.csv",
        "--channel",
        channel,
        "--as",
        "posterior-draw",
        "--json",
    )
    assert draws.code == 0
    assert len(draws.record["frequencies"]) == 4


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (("--method", "bayes"), "the method ('bayes') must be unbiased or ml"),
        (
            ("--method", "bayes", "--by", "town"),
            "the method ('bayes') must be unbiased or ml",
        ),
        (("--target", "all"), "the target ('all') must be population or records"),
        (("--level", "95"), "the level (95) must be strictly between 0 and 1"),
        (("--level", "x"), "--level ('x') must be a positive number"),
        (("--by", "job"), "--by 'job' is the released column itself"),
        (("--by", "street"), "there is no column 'street'"),
        (("--by", "town,street"), "there is no column 'street'"),
        (("--by", "town,id"), "--by 'town,id' names 2 columns"),
        (("--by", "town", "--identity", "id"), "leave the identity (--identity) out"),
        (("--identity", "town"), "its identifier had another symbol"),
        (("--csv", "--json"), "--csv and --json both claim standard output"),
        (("--column", "town=t"), "the channel has no column 'town' to rename"),
    ],
)
def test_bad_usage_exits_2_with_one_line(run, channel, released, options, match):
    result = run("estimate", "out.csv", "--channel", channel, *options)
    assert result.code == 2
    assert match in result.err
    assert result.out == ""


def test_a_label_that_is_not_the_channels_names_its_line(run, channel, released):
    for options in ((), ("--by", "town")):
        result = run("estimate", "people.csv", "--channel", channel, *options)
        assert result.code == 2
        assert "people.csv, line " in result.err


def test_records_that_share_an_identifier_count_once(run, folder, channel):
    """Each person stands there twice, with one draw."""
    lines = PEOPLE.splitlines()
    (folder / "twice.csv").write_text(
        "\n".join([*lines, *lines[1:]]) + "\n", encoding="utf-8"
    )
    done = run(
        "apply",
        channel,
        "twice.csv",
        "out.csv",
        "--identity",
        "id",
        "--insecure-seed",
        "1",
        "--keep",
        "all",
    )
    assert done.code == 0, done.err
    once = run(
        "estimate", "out.csv", "--channel", channel, "--identity", "id", "--json"
    ).record
    both = run("estimate", "out.csv", "--channel", channel, "--json").record
    assert (once["records"], both["records"]) == (1200, 2400)
    for one, two in zip(once["frequencies"], both["frequencies"], strict=True):
        assert one["estimate"] == pytest.approx(two["estimate"])
        assert one["standard_error"] > 1.4 * two["standard_error"]


def test_too_few_records(run, folder, channel):
    (folder / "one.csv").write_text("id,job\n", encoding="utf-8")
    result = run("estimate", "one.csv", "--channel", channel)
    assert result.code == 2
    assert "at least two released records, not 0" in result.err


def test_logs_are_json_lines(run, channel, released):
    result = run("estimate", "out.csv", "--channel", channel, "--log-json", "--csv")
    events = [json.loads(line) for line in result.err.splitlines()]
    assert any(
        event["event"] == "estimated" and event["records"] == 1200 for event in events
    )


def test_help_has_an_example(run):
    result = run("estimate", "--help")
    assert result.code == 0
    assert "mechdesign estimate released.csv --channel channel.json" in " ".join(
        result.out.split()
    )


def test_queries_of_a_file_are_answered_with_their_own_errors(released, run, channel):
    lines = "query,clerk,smith,weaver\ncraft,0,1,1\ndifference,1,-1,0\n"
    (released.parent / "queries.csv").write_text(lines, encoding="utf-8")
    asked = ("estimate", "out.csv", "--channel", channel)
    record = run(*asked, "--queries", "queries.csv", "--json").record
    craft, difference = record["frequencies"]
    assert (craft["name"], difference["name"]) == ("craft", "difference")
    with open(released, newline="", encoding="utf-8") as stream:
        jobs = [row["job"] for row in csv.DictReader(stream)]
    whole = md.estimate_frequencies(md.Channel.load(channel), jobs)
    place = {name: number for number, name in enumerate(whole.names)}
    for entry, terms in (
        (craft, {"smith": 1.0, "weaver": 1.0}),
        (difference, {"clerk": 1.0, "smith": -1.0}),
    ):
        weights = np.zeros(len(whole.names))
        for name, weight in terms.items():
            weights[place[name]] = weight
        assert entry["unbiased"] == pytest.approx(weights @ whole.unbiased)
        variance = weights @ whole.covariance @ weights
        assert entry["standard_error"] == pytest.approx(variance**0.5)
        assert entry["lower"] <= entry["estimate"] <= entry["upper"]
    assert "craft  " in run(*asked, "--queries", "queries.csv").out
    assert run(*asked, "--queries", "queries.csv", "--csv").out.count("\n") == 3


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        (
            "query,pilot\nq,1\n",
            (),
            "queries.csv: the queries name 'pilot', which is no symbol",
        ),
        (
            "query,clerk\nq,1\nq,2\n",
            (),
            "queries.csv: two queries are called 'q'; rename one",
        ),
        (
            "job,clerk\nq,1\n",
            (),
            "queries.csv is no file of queries: its first column must be",
        ),
        (
            "query,clerk\nq,one\n",
            (),
            "the coefficient of 'clerk' in the query 'q' must be a number",
        ),
        (
            "query,clerk\nq,1\n",
            ("--by", "town"),
            "--queries asks for its own answers: leave --of",
        ),
        (
            "query,clerk\nq,1\n",
            ("--mean", "job"),
            "--queries asks for its own answers: leave --of",
        ),
        (None, (), "queries.csv: there is no such file"),
    ],
)
def test_queries_that_cannot_be_answered(
    released, run, channel, lines, options, message
):
    if lines is not None:
        (released.parent / "queries.csv").write_text(lines, encoding="utf-8")
    asked = ("estimate", "out.csv", "--channel", channel, "--queries", "queries.csv")
    refused = run(*asked, *options)
    assert refused.code == 2
    assert message in refused.err
