"""Intervals of the shares of released rows hold, for rare and absent values, too."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.analysis.law_estimates import (
    estimate_shares,
    of_shares,
    shares_of_people,
    shares_of_rows,
)
from mechdesign.channel.row_law import RowLaw
from mechdesign.report.releases import column_frequencies_text
from mechdesign.tables.people import People
from tests.profiles import slow

SAMPLES = 150
LEAST = 0.91
"""A coverage of 95 % is below it in one of fifty studies of 150 samples."""


def redrawn(cells, masses, share, columns):
    """Each row is drawn anew from the table with this probability, which keeps the law."""
    size = len(cells)
    matrix = (1.0 - share) * np.eye(size) + share * masses
    return RowLaw(
        columns,
        cells,
        cells,
        masses,
        masses,
        np.repeat(np.arange(size), size),
        np.tile(np.arange(size), size),
        matrix.ravel(),
        is_kept=True,
    ), matrix


def released(rng, table, matrix):
    """How often each row comes out of so many records of each."""
    drawn = [rng.multinomial(n, w) for n, w in zip(table, matrix, strict=True)]
    return np.sum(drawn, axis=0)


def interval_of(found, symbol):
    """The interval of a symbol, also of one that is not listed."""
    if symbol not in found.symbols:
        return 0.0, found.upper_of_others
    place = found.symbols.index(symbol)
    return found.lower[place], found.upper[place]


CELLS = [("a", "u"), ("a", "v"), ("b", "u"), ("b", "v"), ("c", "u"), ("d", "v")]
POPULATION = np.array([0.5, 0.3, 0.165, 0.025, 0.0075, 0.0025])
GROUPS = [("x", "y"), ("x",)]


@pytest.mark.parametrize("share", [slow(None), 0.3, slow(1.0)])
def test_intervals_for_the_population_hold(share):
    """Rows with .5 to 100 expected records in a sample of 200, and the columns by themselves."""
    rng = np.random.default_rng(5)
    hits: dict[tuple[str, ...], list[bool]] = {}
    for _ in range(SAMPLES):
        sample = rng.multinomial(200, POPULATION)
        (present,) = np.nonzero(sample)
        cells = [CELLS[row] for row in present]
        table = sample[present]
        law, matrix = redrawn(cells, table / 200, share or 0.0, ("x", "y"))
        counts = table
        if share:
            counts = released(rng, table, matrix)
        for group in GROUPS:
            found = shares_of_rows(
                law, counts, group, level=0.95, of_population=True, fixed=share is None
            )
            true: dict[tuple[str, ...], float] = {}
            for row, mass in zip(CELLS, POPULATION, strict=True):
                symbol = row[: len(group)]
                true[symbol] = true.get(symbol, 0.0) + mass
            for symbol, mass in true.items():
                lower, upper = interval_of(found, symbol)
                assert lower < upper
                hits.setdefault(symbol, []).append(lower <= mass <= upper)
    assert len(hits) == 10
    for symbol, held in hits.items():
        assert np.mean(held) >= LEAST, symbol


@pytest.mark.parametrize("share", [slow(None), 0.5])
def test_intervals_of_records_of_people_hold(share):
    """A rare value that few people have, in all of their records."""
    rng = np.random.default_rng(6)
    people = People(person=("id",), wave=None, columns=("x",), given=(), longest=3)
    hits: dict[float, list[bool]] = {}
    for expected in (0.5, 4.0):
        for _ in range(SAMPLES):
            sequences: dict[tuple[str, ...], int] = {}
            for kind in rng.random(80):
                value = "rare" if kind < expected / 80 else "usual"
                records = [[value]] * int(rng.integers(1, 4))
                symbol = people.symbol(records)
                sequences[symbol] = sequences.get(symbol, 0) + 1
            cells = list(sequences)
            table = np.array([*sequences.values()])
            counts = table
            law, _ = redrawn(cells, table / 80, 0.0, people.folded_columns)
            if share:
                law, counts = _redrawn_by_length(rng, people, cells, table, share)
            found = shares_of_people(
                law,
                people,
                counts,
                ("x",),
                level=0.95,
                of_population=True,
                fixed=share is None,
            )
            lower, upper = interval_of(found, ("rare",))
            hits.setdefault(expected, []).append(lower <= expected / 80 <= upper)
    for expected, held in hits.items():
        assert np.mean(held) >= LEAST, expected


def test_a_value_that_no_person_has_may_be_that_of_a_whole_person():
    """In each of the three records: its interval is that of a third as many records."""
    people = People(person=("id",), wave=None, columns=("x",), given=(), longest=3)
    cells = [people.symbol([["usual"]] * 3), people.symbol([["other"]] * 3)]
    table = np.array([90, 10])
    law, _ = redrawn(cells, table / 100, 0.0, people.folded_columns)
    found = shares_of_people(
        law, people, table, ("x",), level=0.95, of_population=True, fixed=True
    )
    single, _ = redrawn([("a",), ("b",)], table / 100, 0.0, ("x",))
    alone = shares_of_rows(
        single, table, ("x",), level=0.95, of_population=True, fixed=True
    )
    assert found.records == 300
    assert found.upper_of_others == pytest.approx(alone.upper_of_others, rel=1e-9)


def _redrawn_by_length(rng, people, cells, table, share):
    """Half of the people get the sequence of somebody with as many records."""
    lengths = np.array([len(people.records(symbol)) for symbol in cells])
    matrix = np.zeros((len(cells), len(cells)))
    for length in np.unique(lengths):
        alike = lengths == length
        matrix[np.ix_(alike, alike)] = share * table[alike] / table[alike].sum()
    matrix += (1.0 - share) * np.eye(len(cells))
    law, _ = redrawn(cells, table / table.sum(), 0.0, people.folded_columns)
    classes, outputs = np.nonzero(matrix)
    law = RowLaw(
        law.columns,
        cells,
        cells,
        law.masses,
        law.masses,
        classes,
        outputs,
        matrix[classes, outputs],
        is_kept=True,
    )
    return law, released(rng, table, matrix)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(3)
    x = rng.choice(["a", "b", "c", "d"], 600, p=[0.6, 0.38, 0.015, 0.005])
    y = np.where(x == "d", "u", rng.choice(["u", "v"], 600))
    s = np.where(rng.random(600) < 0.3 + 0.2 * (y == "u"), "high", "low")
    return pd.DataFrame({"x": x, "y": y, "s": s})


@pytest.fixture(scope="module")
def rows(frame):
    return md.design(
        frame, md.LIP(0.4), sensitive="s", release=["x", "y"], smallest_group=1
    ).channel


def test_intervals_for_the_records_hold(frame, rows):
    """200 releases of one table: each share lies in at least about 95 % of its intervals."""
    true = frame.groupby(["x", "y"]).size() / len(frame)
    order = [*rows.useful.symbols]
    table = np.array([round(float(true[cells]) * len(frame)) for cells in order])
    rng = np.random.default_rng(8)
    hits = dict.fromkeys(order, 0)
    for _ in range(200):
        counts = released(rng, table, rows.matrix)
        found = shares_of_rows(
            rows.row_law,
            counts,
            ("x", "y"),
            level=0.95,
            of_population=False,
            fixed=False,
        )
        for symbol in order:
            lower, upper = interval_of(found, symbol)
            hits[symbol] += lower - 1e-12 <= true[symbol] <= upper + 1e-12
    assert min(hits.values()) >= LEAST * 200


def test_a_row_without_a_record_has_a_width(frame, rows):
    """All records of 'd' may be drawn as others; the population may still have some."""
    file = frame[["x", "y"]].assign(x=frame["x"].replace("d", "a"))
    (found,) = estimate_shares(rows, file, ["x", "y"])
    place = found.symbols.index(("d", "u"))
    assert found.estimates[place] == found.lower[place] == 0.0
    # The sample alone gives 4.8 / 600.
    assert found.upper[place] >= 4.7 / 600
    (records,) = estimate_shares(rows, file, ["x", "y"], target="records", fixed=True)
    # The file has the very shares of its table.
    assert (records.lower == records.upper).all()
    assert records.upper_of_others == 0.0


def test_combinations_that_are_not_listed_have_an_interval(frame, rows):
    file = frame[["x", "y"]]
    (found,) = estimate_shares(rows, file, ["x", "y"], fixed=True)
    assert ("d", "v") not in found.symbols
    assert found.has_others
    assert found.upper_of_others == pytest.approx(4.79 / 600, rel=0.01)
    text = column_frequencies_text(found)
    assert "that the table does not have are not listed" in text
    assert "is 0 to 0.00794" in " ".join(text.split())
    assert "for the population of the records" in text
    (one,) = estimate_shares(rows, file, ["x"], fixed=True)
    assert not one.has_others
    assert "not listed" not in column_frequencies_text(one)
    (records,) = estimate_shares(rows, file, ["x", "y"], target="records")
    text = column_frequencies_text(records)
    assert "for the records of the table" in text
    assert "not listed" not in text


def test_a_half_of_many_records_has_the_normal_interval():
    found = of_shares(
        ("x",),
        (("a",), ("b",)),
        np.array([0.5, 0.5]),
        1_000_000,
        drawn=np.full(2, 0.25),
        sampled=np.full(2, 0.25),
        level=0.95,
    )
    width = 1.959964 * np.sqrt(0.5 / 1_000_000)
    assert found.upper - found.estimates == pytest.approx(np.full(2, width), rel=1e-3)
