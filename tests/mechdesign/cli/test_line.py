"""Options declared once: what typer reads of them, and the lines that do the same again."""

from __future__ import annotations

import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.cli.design_options import DesignOptions, OutputOptions
from mechdesign.cli.line import command_line, recorded_line
from mechdesign.cli.options import BudgetOptions
from mechdesign.cli.table_options import InputTable

COLUMN = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1).filter(
    lambda text: not text.startswith("-")
)


def lines(folder, name):
    record = json.loads((folder / name).read_text(encoding="utf-8"))
    return [command["line"] for command in record["commands"]]


@given(
    COLUMN,
    COLUMN,
    st.booleans(),
    st.sampled_from(["refuse", "drop"]),
    st.sampled_from(["30", "3", "0.5"]),
)
def test_a_line_holds_what_differs_from_its_default_and_nothing_else(
    useful, weight, wide, missing, seconds
):
    """Whatever was typed: shlex.split(command_line(options)) lists each option once, with its value."""
    table = InputTable(
        table="a b.csv", useful=useful, weight=weight, contingency=wide, missing=missing
    )
    words = shlex.split(
        command_line("design", table, DesignOptions(time_limit=seconds))
    )
    expected = [
        "mechdesign",
        "design",
        "a b.csv",
        "--useful",
        useful,
        "--weight",
        weight,
    ]
    expected += ["--contingency"] * wide + ["--missing", missing] * (
        missing != "refuse"
    )
    assert words == expected + ["--time-limit", seconds] * (seconds != "30")


def test_a_public_line_names_no_file_of_its_maker():
    groups = (
        InputTable(table="secret/patients.csv", sensitive="s", useful="u"),
        OutputOptions(output="secret/c.json", public=True),
    )
    assert command_line("design", *groups) == (
        "mechdesign design secret/patients.csv --sensitive s --useful u --output secret/c.json --public"
    )
    assert command_line("design", *groups, public=True) == (
        "mechdesign design TABLE.csv --sensitive s --useful u --output CHANNEL.json"
    )


def test_groups_of_defaults_make_no_words():
    assert command_line("x", BudgetOptions(), DesignOptions()) == "mechdesign x"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "mechdesign design T.csv --output A.json",
            "mechdesign design T.csv --output c.json",
        ),
        (
            "mechdesign design 'a;b' --output A.json; rm x",
            "mechdesign design 'a;b' --output c.json rm x",
        ),
        ("mechdesign design $(rm x)", "mechdesign design '$(rm' 'x)'"),
        ("mechdesign design a\nrm x", "mechdesign design a rm x"),
        ("mechdesign design 'a\nrm x'", None),
        ("rm x", None),
        ("mechdesign 'open", None),
        ("", None),
        (7, None),
        (None, None),
    ],
)
def test_a_line_from_a_file_starts_nothing_else(line, expected):
    assert recorded_line(line, {"--output": "c.json"}) == expected


@pytest.mark.parametrize(
    "words",
    [
        ("counts.csv", "--contingency", "--useful", "job", "--epsilon", "1"),
        (
            "counts.csv",
            "--contingency",
            "--notion",
            "ldp",
            "--epsilon",
            "0.7",
            "--gap",
            "0.01",
        ),
        (
            "long.csv",
            "--sensitive",
            "group",
            "--useful",
            "job",
            "--weight",
            "n",
            "--epsilon",
            "1",
        ),
        (
            "gaps.csv",
            "--sensitive",
            "group",
            "--useful",
            "job",
            "--missing",
            "symbol",
            "--epsilon",
            "1",
        ),
    ],
)
def test_every_line_of_both_reports_runs_and_makes_the_same_channel(folder, run, words):
    (folder / "long.csv").write_text("group,job,n\na,x,3\na,y,1\nb,x,1\nb,y,3\n")
    (folder / "gaps.csv").write_text("group,job\na,x\na,\nb,x\nb,y\nb,y\n")
    files = (
        "--output",
        "c.json",
        "--report",
        "r.json",
        "--public-report",
        "p.json",
        "--public",
    )
    assert run("design", *words, *files).code == 0
    assert run("report", "c.json", "--public-report", "q.json").code == 0
    (folder / "TABLE.csv").write_bytes((folder / words[0]).read_bytes())
    first = json.loads((folder / "c.json").read_text())
    (folder / "IN.csv").write_text("job\n")
    for name in ("r.json", "p.json", "q.json"):
        shown = lines(folder, name)
        assert ("--contingency" in shown[0]) == ("--contingency" in words)
        for place in (folder / "c.json", folder / "CHANNEL.json"):
            place.unlink(missing_ok=True)
        again = run(*shlex.split(shown[0])[1:])
        assert again.code == 0, again.err
        made = next(
            place
            for place in (folder / "c.json", folder / "CHANNEL.json")
            if place.exists()
        )
        assert {
            key: json.loads(made.read_text())[key]
            for key in ("rows", "outputs", "notion")
        } == {key: first[key] for key in ("rows", "outputs", "notion")}
        (folder / "CHANNEL.json").write_bytes(made.read_bytes())
        show = run(*shlex.split(shown[-1])[1:])
        assert show.code == 0, show.err
