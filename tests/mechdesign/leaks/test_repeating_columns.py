"""The columns that may name people, by how often their values occur."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.formats.csv_text import TextOptions
from mechdesign.leaks import people_notice
from mechdesign.leaks.person_columns import may_name_people
from mechdesign.tables.people import MOST_RECORDS


@pytest.mark.parametrize("seed", range(20))
def test_repeated_values_are_counted(seed):
    chance = np.random.default_rng(seed)
    size = int(chance.integers(0, 60))
    values = chance.integers(0, int(chance.integers(1, 60)), size).astype(np.uint64)
    counts = np.unique(values, return_counts=True)[1]
    found = people_notice._repeated(values.copy())
    assert sorted(found.tolist()) == sorted(counts[counts > 1].tolist())


def table(people=200, waves=4):
    """One wave after the other, so that nobody comes again in the first quarter."""
    person = np.tile(np.arange(people), waves)
    chance = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "person": [f"p{k}" for k in person],
            "number": np.arange(len(person)),
            "job": chance.choice([*"abc"], len(person)),
            "ill": np.where(person % 3 == 0, "yes", "no"),
        }
    )


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_column_whose_values_come_again_is_found(tmp_path, kind):
    path = tmp_path / f"t.{kind}"
    frame = table()
    getattr(frame, f"to_{kind}")(path, index=False)
    asked = (str(path), TextOptions() if kind == "csv" else None)
    assert people_notice.possible_columns(*asked, None, {"ill"}) == ["person"]
    assert people_notice.possible_columns(*asked, ["job"], ()) == []
    assert people_notice.possible_columns(*asked, None, {"person"}) == []


def test_too_many_records_of_many_values_name_nobody():
    sizes = np.full(100, 3)
    assert may_name_people(sizes, 300)
    assert may_name_people(sizes, 400)
    assert not may_name_people(sizes, 401)
    assert not may_name_people(sizes[:19], 57)
    # A few values may have very many records: the records of the others count.
    large = MOST_RECORDS + 1
    assert may_name_people(np.append(sizes, large), 300 + large)
    assert not may_name_people(np.append(sizes, large), 401 + large)
    assert not may_name_people(np.append(sizes[:19], large), 57 + large)
    many = np.full(100, 30)
    assert may_name_people(np.append(many, [large] * 5), 3_000 + 5 * large)
    assert not may_name_people(np.append(many, [large] * 6), 3_000 + 6 * large)


def test_amounts_that_are_mostly_zero_name_nobody():
    """As the gains of a census are, whose other values a few records share."""
    others = np.full(100, 30)
    assert may_name_people(np.append(others, 1_400), 4_400)
    assert not may_name_people(np.append(others, 1_600), 4_600)
    assert not may_name_people(np.append(others, 30_000), 33_000)


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame", "lazy"])
def test_a_person_with_very_many_records_hides_no_others(tmp_path, kind):
    frame = table()
    extra = pd.DataFrame(
        {
            "person": "tester",
            "number": range(len(frame), len(frame) + 3 * MOST_RECORDS),
            "job": "a",
            "ill": "yes",
        }
    )
    frame = pd.concat([frame, extra]).sample(frac=1.0, random_state=3)
    frame = frame.drop(columns="number")
    path = tmp_path / "t.parquet"
    frame.to_parquet(path, index=False)
    channel = md.design(
        frame[["ill", "job"]], md.LIP(1.0), sensitive="ill", useful="job"
    )
    if kind == "csv":
        path = tmp_path / "t.csv"
        frame.to_csv(path, index=False)
    if kind in ("csv", "parquet"):
        found = people_notice.people_in(path, ["ill"])
        assert found is not None
        assert (found.column.name, found.column.most) == ("person", 3 * MOST_RECORDS)
        asked = (str(path), TextOptions() if kind == "csv" else None)
        assert people_notice.possible_columns(*asked, None, {"ill"}) == ["person"]
        return
    given = pl.scan_parquet(path) if kind == "lazy" else frame
    with pytest.raises(md.InputError, match="the column 'person' names 201 people"):
        md.sanitise(given, channel.channel, keep=["person"])


@given(
    st.lists(
        st.dictionaries(st.integers(0, 6), st.integers(1, 40), max_size=7), max_size=6
    )
)
def test_values_are_counted_over_batches(batches):
    hashes = people_notice.ColumnHashes()
    total = Counter()
    for batch in batches:
        total.update(batch)
        values = np.array(list(batch), dtype=np.uint64)
        cells = np.repeat(values, np.array(list(batch.values()), dtype=np.int64))
        np.random.default_rng(1).shuffle(cells)
        hashes.add(cells)
    repeated = [count for count in total.values() if count > 1]
    assert hashes.records == total.total()
    assert sorted(hashes.repeated().tolist()) == sorted(repeated)
