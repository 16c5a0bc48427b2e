"""`export`: the file, standard output, JSON, and refusals."""

from __future__ import annotations

import pytest

import mechdesign as md
from tests.cases.meters import BASIC


@pytest.mark.parametrize(
    ("form", "begin"),
    [
        (
            ("--to", "sql"),
            "-- Draws releases through a channel of mechdesign, in DuckDB.",
        ),
        (
            ("--dialect", "postgres"),
            "-- Draws releases through a channel of mechdesign, in PostgreSQL.",
        ),
        (
            ("--dialect", "spark"),
            "-- Draws releases through a channel of mechdesign, in Spark SQL.",
        ),
        (("--to", "r"), "# Draws releases from a lookup table of mechdesign."),
        (("--to", "csv"), "low,high,input job,output job\n"),
    ],
    ids=str,
)
def test_a_channel_is_printed_or_written(run, channel, folder, form, begin):
    printed = run("export", channel, *form)
    assert printed.code == 0, printed.err
    assert printed.out.startswith(begin)
    written = run("export", channel, *form, "-o", "draw.txt")
    assert written.code == 0, written.err
    assert (folder / "draw.txt").read_text(encoding="utf-8") == printed.out
    assert "but no ledger: nothing stops a second release" in written.err
    assert written.out.startswith("draw.txt: ")


def test_the_table_and_the_identifier_have_the_names_given(run, channel):
    printed = run("export", channel, "--from", "hr.people", "--identity", "staff no")
    assert 'FROM "hr"."people"' in printed.out
    assert 'CAST("staff no" AS VARCHAR) AS id' in printed.out


def test_json_has_the_size_and_the_text(run, channel, folder):
    record = run("export", channel, "--json", "--quiet").record
    exported = md.export(md.load(channel))
    assert record == {
        "to": "sql",
        "dialect": "duckdb",
        "intervals": exported.lookup.size,
        "columns": ["job"],
        "output": None,
        "text": exported.text,
    }
    record = run("export", channel, "--to", "csv", "--json", "-o", "w.csv").record
    assert record["output"] == "w.csv"
    assert record["dialect"] is None
    assert "text" not in record


def test_what_cannot_be_exported_is_refused(refused, channel, folder):
    (folder / "there.sql").write_text("mine", encoding="utf-8")
    error = refused("export", channel, "-o", "there.sql")
    assert "there.sql exists; choose another name, or overwrite it" in error
    assert "to ('excel') must be one of" in refused("export", channel, "--to", "excel")
    assert "dialect ('oracle') must be" in refused(
        "export", channel, "--dialect", "oracle"
    )
    assert "there is no such file" in refused("export", "nowhere.json")
    assert "is the input file itself" in refused(
        "export", channel, "-o", channel, "--force"
    )


def test_a_mechanism_file_is_refused(run, refused, meters):
    released = run("quantize", "meters.csv", "o.csv", *BASIC)
    assert released.code == 0, released.err
    error = refused("export", "o.csv.mechanism.json")
    assert "is a mechanism file of `quantize`: export takes channel files" in error
