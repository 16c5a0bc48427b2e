"""Points that separate thousands are noticed, and decimal points are not."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

import mechdesign as md
from mechdesign.analysis.law_statistics import estimate_means
from mechdesign.report.releases import statistics_text
from mechdesign.tables.thousands import (
    ThousandsPoints,
    has_decimal_commas,
    thousands_remedy,
)

NOTICED = "points that look like separators of thousands"


@pytest.mark.parametrize(
    "texts",
    [
        ["850", "1.200", "12.345"],
        ["0", "-1.230", "+950", "12.345", "", "NA"],
        ["1.234", "12.345.678"],
        [" 850 ", "1.200", "2.400"],
    ],
)
def test_separators_of_thousands_are_noticed(texts):
    assert NOTICED in (thousands_remedy(texts) or "")


@pytest.mark.parametrize(
    "texts",
    [
        ["1.234", "12.345", "850.120"],  # three decimals, always written
        ["0.250", "1.200", "3"],  # a zero stands before no separator
        ["1.5", "1.200", "3"],
        ["1.2345", "1.200", "3"],
        ["1200", "1.200", "3"],  # would be 1.200
        ["3", "1.200"],  # one number may be chance
        ["1.234", "2.345", "3"],  # decimals without zeros at the end
        ["192.168.100.7", "192.168.100.120", "3"],
        ["2024-01-31", "1.200", "1.300", "3"],
        ["3", "4"],
        [],
    ],
)
def test_decimal_points_are_none(texts):
    assert thousands_remedy(texts) is None


def test_decimal_commas_elsewhere_decide():
    texts = ["1.234", "12.345"]
    assert thousands_remedy(texts, [["a", "b"], ["1,2,3", "4,5"]]) is None
    assert thousands_remedy(texts, [["a"], ["3,5", "1.200,25", "7"]]) is not None
    assert thousands_remedy(["1.5", "12.345"], [["3,5", "4,5"]]) is None
    assert not has_decimal_commas(["3,5", "7"])


def test_parts_of_a_column_count_together():
    points = ThousandsPoints()
    points.add(["850", "1.200"])
    assert points.remedy() is None
    points.add(["2.300"])
    assert points.remedy() is not None
    other = ThousandsPoints()
    other.add(["1.5"])
    points.join(other)
    assert points.remedy() is None


PAY = ["850", "920", "1.200", "2.350", "1.800"]


@pytest.fixture
def frame():
    return pa.table(
        {
            "pay": [PAY[k % 5] for k in range(120)],
            "job": [["a", "b", "c"][k % 3] for k in range(120)],
            "ill": [["yes", "no"][(k // 7) % 2] for k in range(120)],
        }
    )


def test_bins_note_it(frame):
    joint = md.Joint.from_table(frame, sensitive="ill", useful="pay").binned("500")
    assert any(NOTICED in notice for notice in joint.notices)
    right = frame.set_column(
        0, "pay", [[PAY[k % 5].replace(".", "") for k in range(120)]]
    )
    joint = md.Joint.from_table(right, sensitive="ill", useful="pay").binned("500")
    assert not any(NOTICED in notice for notice in joint.notices)


def test_estimated_means_note_it(frame):
    channel = md.design(
        frame, md.LIP(0.5), sensitive="ill", release=["pay", "job"]
    ).channel
    found = estimate_means(channel, frame.select(["pay", "job"]), "pay", ["job"])
    assert NOTICED in " ".join(statistics_text(found, fixed=True, kept=True).split())


def test_no_column_of_the_real_tables_is_noticed(data):
    """Adult, taxi trips, meters and a survey, all of whose points are decimal ones."""
    looked_at = 0
    for path in sorted(data.rglob("*.csv")):
        table = pd.read_csv(path, dtype=str, keep_default_na=False, nrows=5_000)
        columns = [table[name].unique() for name in table.columns]
        has_commas = any(map(has_decimal_commas, columns))
        for texts in columns:
            points = ThousandsPoints()
            points.add(texts)
            assert points.remedy(has_decimal_commas=has_commas) is None, path.name
            looked_at += 1
    assert looked_at > 100
