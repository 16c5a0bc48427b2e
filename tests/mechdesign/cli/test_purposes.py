"""`design --objective` for queries and tasks: figures, files of queries, and what is refused."""

import io
import json
import sys

import pandas as pd
import pytest

import mechdesign as md

RECORDS = "s,x,t\n" + "".join(
    f"{s},{x},{t}\n" * times
    for s, x, t, times in [
        ("a", "1", "u", 9),
        ("a", "2", "v", 4),
        ("a", "3", "u", 2),
        ("b", "1", "v", 3),
        ("b", "2", "u", 6),
        ("b", "3", "v", 7),
        ("b", "10", "u", 5),
        ("a", "10", "v", 4),
    ]
)


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.csv").write_text(RECORDS)
    return ("in.csv", "--sensitive", "s", "--useful", "x", "--epsilon", "1")


@pytest.mark.parametrize("objective", ["frequencies", "prefix", "ranges"])
def test_queries_by_name(table, run, objective):
    done = run("design", *table, "--objective", objective, "--json")
    assert done.code == 0, done.err
    record = done.record
    assert record["objective"] == objective
    assert record["verified"] is True
    low = record["variance_lower_bound"]
    assert record["noise_free"] <= low <= record["variance"] <= low * 1.001
    shown = run("design", *table, "--objective", objective)
    assert "total variance is" in " ".join(shown.out.split())
    assert len(shown.out.splitlines()) <= 25


def test_a_file_of_queries(table, run, tmp_path):
    (tmp_path / "q.csv").write_text("query,1,10\nlow,1,0\nboth,1,1\n")
    done = run("design", *table, "--objective", "q.csv", "--json")
    assert done.code == 0, done.err
    assert done.record["objective"] == "queries"
    every = run("design", *table, "--objective", "frequencies", "--json").record
    assert done.record["variance"] < every["variance"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("query,1,99\nlow,1,0\n", "name '99', which is no symbol of the table"),
        ("query,1,1\nlow,1,0\n", "the symbol '1' has two columns"),
        ("query,1\n", "the file has no query"),
        (
            "query,1\nlow,some\n",
            "the coefficient of '1' in the query 'low' must be a number",
        ),
        ("query,1\nlow,0\n", "all coefficients of the queries are zero"),
    ],
)
def test_files_that_hold_no_queries(table, run, tmp_path, text, message):
    (tmp_path / "q.csv").write_text(text)
    done = run("design", *table, "--objective", "q.csv", "--output", "c.json")
    assert done.code == 2
    assert message in done.err
    assert "q.csv" in done.err
    assert not (tmp_path / "c.json").exists()


def test_a_task_and_its_file(table, run, tmp_path):
    options = ("--objective", "task", "--task", "t")
    done = run("design", *table, *options, "--json", "--output", "c.json")
    assert done.code == 0, done.err
    assert 0.0 < done.record["task_kept"] <= done.record["task_upper_bound"] <= 1.0
    assert json.loads((tmp_path / "c.json").read_text())["provenance"]["task"] == "t"
    assert run("audit", "c.json").code == 0
    assert run("report", "c.json", "--report", "r.html").code == 0
    page = (tmp_path / "r.html").read_text()
    assert "Made to tell about t" in page
    done = run("apply", "c.json", "in.csv", "out.csv", "--shuffle")
    assert done.code == 0, done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--objective", "task"), "--objective task --task COL"),
        (("--task", "t"), "--objective task --task COL"),
        (
            ("--objective", "task", "--task", "s"),
            "the task 's' is the sensitive column",
        ),
        (("--objective", "task", "--task", "nobody"), "nobody"),
        (
            ("--objective", "frequencies", "--keep-frequencies"),
            "channels on the column's own symbols",
        ),
    ],
)
def test_what_does_not_fit_is_refused(table, run, options, message):
    done = run("design", *table, *options)
    assert done.code == 2
    assert message in done.err
    assert len(done.err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "columns",
    [
        {"useful": "x"},
        {"useful": ["x", "t"]},
        {"release": ["x", "t"]},
        {"release": ["t"], "given": ["x"], "promise": "relative"},
    ],
)
def test_a_task_that_is_released_is_refused(table, run, columns):
    words = "the task 'x' is released itself: leave the task out, or release other"
    options = ["--objective", "task", "--task", "x"]
    for name, value in columns.items():
        text = value if isinstance(value, str) else ",".join(value)
        options += [f"--{name}", text]
    done = run("design", "in.csv", "--sensitive", "s", "--epsilon", "1", *options)
    assert done.code == 2
    assert words in done.err
    frame = pd.read_csv("in.csv", dtype=str)
    with pytest.raises(md.InputError, match=words):
        md.design(
            frame, md.LIP(1), sensitive="s", objective="task", task="x", **columns
        )


def test_a_task_reads_the_table_twice(table, run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(RECORDS.encode())))
    done = run("design", "-", *table[1:], "--objective", "task", "--task", "t")
    assert done.code == 2
    assert "reads the table twice" in done.err
