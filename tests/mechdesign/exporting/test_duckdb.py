"""The statements run in DuckDB, and draw what the obvious way draws from the channel's file."""

from __future__ import annotations

from collections import Counter

import pandas as pd
import pytest

import mechdesign as md
from tests.cases.exported_draws import (
    KEY,
    OTHER_KEY,
    ROW_OPTIONS,
    drawn,
    drawn_rows,
    look_alikes,
    odd_channel,
    odd_records,
    row_channel,
    row_records,
)

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
stats = pytest.importorskip("scipy.stats")

RARE = 5
"""Least expected count of a cell in a chi-square test."""

FALSE_ALARM = 1e-3
"""The keys are fixed, so a test that passes once passes always."""


@pytest.fixture
def database():
    with duckdb.connect() as connection:
        yield connection


def released(database, channel, records, key=KEY, **names):
    exported = md.export(channel, **{"table": "people", "identity": "person", **names})
    database.register("people", records)
    for statement in exported.statements:
        database.execute(statement)
    return database.execute(exported.query, {"key": key}).fetchall()


def test_draws_are_those_by_hand(database):
    channel = odd_channel()
    records = odd_records(2000)
    rows = released(database, channel, records)
    assert database.description[0][0] == "the job"
    assert rows == drawn(channel, records, "person", KEY)


def test_a_line_break_in_the_name_of_a_column_stays(database):
    name = "the\njob"
    records = odd_records(200)
    rows = released(
        database, odd_channel(name), records.rename(columns={"the job": name})
    )
    assert database.description[0][0] == name
    assert len(rows) == 200


@pytest.mark.parametrize("collation", ["nocase", "noaccent"])
def test_a_collation_takes_no_symbol_or_identifier_for_another(database, collation):
    channel, records = look_alikes()
    database.execute(f"SET default_collation = '{collation}'")
    rows = released(database, channel, records)
    assert rows == drawn(channel, records, "person", KEY)


@pytest.mark.parametrize("kind", ROW_OPTIONS)
def test_draws_of_rows_are_those_by_hand(database, tmp_path, kind):
    channel = row_channel(kind)
    records = row_records(400)
    rows = released(database, channel, records, identity="n")
    assert rows == drawn_rows(channel, tmp_path / "rows.json", records, "n", KEY)
    names = [column[0] for column in database.description]
    assert tuple(names) == channel.output_columns


def test_draws_follow_the_channel(database):
    """Chi-square of released outputs for every symbol, against the integers of the channel."""
    channel = odd_channel()
    records = odd_records(60_000).drop(columns="other")
    texts = records["the job"].fillna("").tolist()
    for x, symbol in enumerate(channel.useful.names):
        part = records[[text == symbol for text in texts]]
        counts = Counter(released(database, channel, part))
        expected = []
        observed = []
        for output, weight in zip(channel.outputs, channel.rows[x], strict=True):
            mean = len(part) * int(weight) / channel.denominator
            if mean < RARE:
                assert counts[(output,)] <= RARE
                continue
            expected.append(mean)
            observed.append(counts[(output,)])
        assert sum(observed) > 9000
        if len(expected) > 1:
            scaled = [mean * sum(observed) / sum(expected) for mean in expected]
            assert stats.chisquare(observed, scaled).pvalue > FALSE_ALARM


def test_draws_of_rows_follow_their_law(database):
    """Chi-square over whole released rows of one record's texts, under many identifiers."""
    channel = row_channel("given")
    count = 40_000
    records = row_records(count).drop(columns="s")

    def law_of(row):
        return channel.distribution({**row, "b": str(row["b"])})

    # Of the first rows, one whose law has the most released rows.
    row = max(
        records.drop(columns="n").head(50).to_dict("records"),
        key=lambda r: len(law_of(r)),
    )
    law = law_of(row)
    records = records.assign(**row)
    counts = Counter(released(database, channel, records, identity="n"))
    assert set(counts) <= set(law)
    expected = [0.0]
    observed = [0]
    for texts, share in law.items():
        mean = float(share) * count
        if mean < RARE:
            # Rare rows are one cell together.
            expected[0] += mean
            observed[0] += counts[texts]
        else:
            expected.append(mean)
            observed.append(counts[texts])
    if expected[0] < RARE:
        assert observed.pop(0) <= 4 * RARE
        del expected[0]
        expected = [mean * sum(observed) / sum(expected) for mean in expected]
    assert len(expected) >= 3
    assert stats.chisquare(observed, expected).pvalue > FALSE_ALARM


def test_the_same_key_draws_the_same_and_another_key_does_not(database):
    channel = odd_channel()
    records = odd_records(500)
    rows = released(database, channel, records)
    assert released(database, channel, records) == rows
    assert released(database, channel, records.sample(frac=1, random_state=1)) == rows
    other = released(database, channel, records, OTHER_KEY)
    assert sorted(other) != sorted(rows)


def test_the_whole_file_runs_as_a_script(database):
    channel = odd_channel()
    records = odd_records(300)
    database.register("people", records)
    exported = md.export(channel, table="people", identity="person")
    database.execute(exported.text)
    database.execute(f"SET VARIABLE release_key = '{KEY}'")
    rows = database.execute(
        "EXECUTE mechdesign_release(key := getvariable('release_key'))"
    ).fetchall()
    assert rows == drawn(channel, records, "person", KEY)
    assert KEY not in exported.text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"the job": "astronaut"}, "does not know a symbol of the job"),
        ({"person": None}, "a record has no identifier"),
        ({"person": ""}, "a record has no identifier"),
        ({"person": "n° 1"}, "two records have the same identifier"),
    ],
    ids=str,
)
def test_records_that_cannot_be_drawn_are_refused(database, change, message):
    records = odd_records(20).astype(object)
    for column, cell in change.items():
        records.loc[7, column] = cell
    with pytest.raises(duckdb.Error, match=message) as refusal:
        released(database, odd_channel(), records)
    # An error may be logged: it must not hold the cell of an individual.
    assert "astronaut" not in str(refusal.value)


def test_a_missing_cell_is_refused_unless_it_is_a_symbol(database):
    records = row_records(20).astype({"d": object})
    records.loc[3, "d"] = None
    with pytest.raises(duckdb.Error, match="does not know a symbol of c,d,b"):
        released(database, row_channel("plain"), records, identity="n")


@pytest.mark.parametrize("number", [-1, 60.5, float("nan"), None])
def test_numbers_outside_of_the_bins_are_refused(database, number):
    records = row_records(20).astype({"b": float})
    records.loc[3, "b"] = number
    with pytest.raises(duckdb.Error, match="does not know a symbol of c,d,b"):
        released(database, row_channel("plain"), records, identity="n")


def test_an_unknown_stratum_is_refused(database):
    records = row_records(20)
    records.loc[3, "k"] = "w"
    with pytest.raises(duckdb.Error, match="does not know a symbol of k,c,d,b"):
        released(database, row_channel("given"), records, identity="n")


@pytest.mark.parametrize("key", [None, "", KEY[1:], KEY.upper(), "x" * 64])
def test_what_is_no_key_is_refused(database, key):
    with pytest.raises(duckdb.Error, match="the key must be 64 lower-case hex"):
        released(database, odd_channel(), odd_records(3), key)


def test_bins_of_dates_are_refused():
    frame = pd.DataFrame({"day": ["2024-01-01", "2024-01-09"] * 4, "s": [*"aabbabab"]})
    joint = md.Joint.from_table(
        frame,
        sensitive="s",
        useful="day",
        bins="7d",
    )
    channel = md.design(joint, md.LIP(1)).channel
    with pytest.raises(md.InputError, match="'day' is released in bins of dates"):
        md.export(channel)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("clinic.people", '"clinic"."people"'),
        ('"My Clinic"."People"', '"My Clinic"."People"'),
        ('"a.b".people', '"a.b"."people"'),
        ("`a.b`.people", '"a.b"."people"'),
        ('clinic."x""y"', '"clinic"."x""y"'),
        ('x"y', '"x""y"'),
    ],
)
def test_a_table_may_be_named_in_quotes(name, expected):
    text = md.export(odd_channel(), table=name).text
    assert f"FROM {expected}\n" in text


@pytest.mark.parametrize(
    ("useful", "identity", "names"),
    [("A,a", "n", "'A' and 'a'"), ("a", "A", "'A' and 'a'")],
)
def test_names_that_differ_in_case_alone_are_refused(useful, identity, names):
    """DuckDB would read the first column twice, and release rows that no record has."""
    frame = pd.DataFrame({"A": [*"uvuv"], "a": [*"uuvv"], "s": [*"cdcd"]})
    frame = pd.concat([frame] * 5)
    joint = md.Joint.from_table(frame, sensitive="s", useful=useful.split(","))
    channel = md.design(joint, md.LIP(1)).channel
    message = f"takes the columns {names} for one; rename one in the table"
    for dialect in ("duckdb", "spark"):
        with pytest.raises(md.InputError, match=message):
            md.export(channel, dialect=dialect, identity=identity)
    assert '"A"' in md.export(channel, dialect="postgres", identity=identity).text
