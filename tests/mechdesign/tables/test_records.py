"""Distinct rows of many columns: counts, codes, bins, and what is refused."""

from __future__ import annotations

import pandas as pd
import pytest

import mechdesign as md
from mechdesign.tables.records import Records


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "s": ["n", "y", "n", "n", "y"],
            "a": ["p", "p", "q", "p", "q"],
            "b": [1, 5, 12, 1, 12],
            "w": ["0.5", "1", "2", "0.5", "1"],
        }
    )


def as_set(records):
    rows = set()
    for place, count in enumerate(records.counts):
        texts = [records.sensitive.names[records.secrets[place]]]
        for group, variable in enumerate(records.groups):
            texts.append(variable.names[records.codes[place, group]])
        rows.add((*texts, count))
    return rows


def test_rows_with_counts(frame):
    records = Records.from_table(frame, sensitive="s", groups=["a", "b"])
    assert as_set(records) == {
        ("n", "p", "1", 2),
        ("y", "p", "5", 1),
        ("n", "q", "12", 1),
        ("y", "q", "12", 1),
    }
    assert records.total == 5
    assert records.is_counts
    assert records.masses.sum() == pytest.approx(1.0)
    assert records.sensitive_counts() == [3, 2]


def test_crossed_columns_are_one_group(frame):
    records = Records.from_table(frame, sensitive="s", groups=[("a", "b")])
    assert records.groups[0].columns == ("a", "b")
    assert len(records.groups[0]) == 3


def test_numbers_in_bins(frame):
    records = Records.from_table(
        frame, sensitive="s", groups=["a", "b"], bins={"b": "0,10,20"}
    )
    assert records.groups[1].names == ("[0, 10)", "[10, 20]")
    assert sorted(records.counts) == [1, 1, 1, 2]


def test_weights_are_exact(frame):
    records = Records.from_table(frame, sensitive="s", groups=["a"], weight="w")
    assert not records.is_counts
    assert as_set(records) == {
        ("n", "p", 1),
        ("y", "p", 1),
        ("n", "q", 2),
        ("y", "q", 1),
    }


def test_codes_of_another_variable(frame):
    one = Records.from_table(frame, sensitive="s", groups=["a", "b"])
    part = Records.from_table(frame[:2], sensitive="s", groups=["a", "b"])
    moved = part.on(one.sensitive, one.groups)
    assert moved.groups == one.groups
    assert as_set(moved) == as_set(part)
    with pytest.raises(md.InputError, match="has the symbol 'q'"):
        one.on(part.sensitive, part.groups)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([], "at least one column"),
        ([()], "at least one column"),
        (["a", "a"], "'a' is released twice"),
        ("a", "must be a list"),
        (["z"], "z"),
        (["s"], r"the released columns are the sensitive ones \('s'\)"),
    ],
)
def test_bad_groups(frame, groups, message):
    with pytest.raises(md.InputError, match=message):
        Records.from_table(frame, sensitive="s", groups=groups)


def test_rows_are_checked(frame):
    records = Records.from_table(frame, sensitive="s", groups=["a"])
    for change, message in (
        ({"counts": (0,) * len(records)}, "positive count"),
        ({"codes": records.codes + 9}, "without a symbol"),
        ({"codes": records.codes * 0, "secrets": records.secrets * 0}, "twice"),
        ({"secrets": records.secrets[:1]}, "one secret for each"),
    ):
        with pytest.raises(md.InputError, match=message):
            Records(**{**vars_of(records), **change})


def vars_of(records):
    names = ("sensitive", "groups", "secrets", "codes", "counts")
    return {name: getattr(records, name) for name in names}
