"""The columns that may name people, by how often their values occur."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

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


def test_too_many_records_of_one_value_name_nobody():
    sizes = np.full(100, 3)
    assert may_name_people(sizes, 300)
    assert may_name_people(sizes, 400)
    assert not may_name_people(sizes, 401)
    assert not may_name_people(np.append(sizes, MOST_RECORDS + 1), 351)
    assert not may_name_people(sizes[:19], 57)
