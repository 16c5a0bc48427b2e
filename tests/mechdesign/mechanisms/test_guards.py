"""Columns that name records, and constant ones, are refused on both sides, at once."""

from __future__ import annotations

import random
import time

import pytest

import mechdesign as md
from mechdesign.core.errors import InputError

SIZE = 2000

QUICK = 5.0
"""Seconds of processor time; the search that is refused had no end in a minute."""


@pytest.fixture(scope="module")
def frame():
    pa = pytest.importorskip("pyarrow")
    draw = random.Random(1)
    return pa.table(
        {
            "id": [str(i) for i in range(SIZE)],
            "job": [draw.choice("abc") for _ in range(SIZE)],
            "town": [draw.choice("xyz") for _ in range(SIZE)],
            "same": ["one"] * SIZE,
        }
    )


NAMES = (
    r"the sensitive column 'id' has 2,000 symbols in 2,000 records, so it names them"
)
ALONE = r"the sensitive column 'same' has a single symbol .*there is nothing to protect"


@pytest.mark.parametrize(("sensitive", "message"), [("id", NAMES), ("same", ALONE)])
@pytest.mark.parametrize("objective", ["information", "truth", "prefix"])
def test_a_sensitive_column_that_is_no_category(frame, sensitive, message, objective):
    began = time.process_time()
    joint = md.Joint.from_table(frame, sensitive=sensitive, useful="job")
    with pytest.raises(InputError, match=message):
        md.design(joint, md.LIP(0.5), objective=objective)
    assert time.process_time() - began < QUICK


def test_curves_are_refused_too(frame):
    joint = md.Joint.from_table(frame, sensitive="id", useful="job")
    with pytest.raises(InputError, match=NAMES):
        md.compare(joint, epsilons=[1.0])


def test_averages_and_confidence(frame):
    joint = md.Joint.from_table(frame, sensitive="id", useful="job")
    with pytest.raises(InputError, match=NAMES):
        md.design(joint, average={"mi": 0.02})
    with pytest.raises(InputError, match=NAMES):
        md.design(joint, md.LIP(0.5), confidence=0.95)


def test_rows(frame):
    for options in ({}, {"confidence": 0.9}):
        with pytest.raises(InputError, match=NAMES):
            md.design(
                frame,
                md.LIP(0.5),
                sensitive="id",
                release=["job", "town"],
                **options,
            )


def test_one_of_several_protected_columns(frame):
    joint = md.Joint.from_table(frame, sensitive=["town", "id"], useful="job")
    with pytest.raises(InputError, match=NAMES):
        md.design(joint, md.LIP(0.5), protect_each=True)


def test_many_combinations_of_columns_that_are_protected_each_are_no_identifier():
    """Only the columns by themselves are looked at: a town and a street may name a record."""
    pa = pytest.importorskip("pyarrow")
    frame = pa.table(
        {
            "town": [str(i // 10) for i in range(100)],
            "street": [str(i % 10) for i in range(100)],
            "job": ["ab"[i % 7 % 2] for i in range(100)],
        }
    )
    joint = md.Joint.from_table(frame, sensitive=["town", "street"], useful="job")
    with pytest.raises(
        InputError, match=r"'town,street' has 100 symbols in 100 records"
    ):
        md.design(joint, md.LIP(0.5))
    assert md.design(joint, md.LIP(0.5), protect_each=True).achieved


def test_weights_and_small_tables_are_let_through():
    counts = [[1, 0], [0, 1]] * 60
    weighted = md.Joint.from_counts(counts, weights=True)
    assert md.design(weighted, md.LIP(0.5), mechanism="complete-merging").achieved
    small = md.Joint.from_counts(counts[:20])
    assert md.design(small, md.LIP(0.5), mechanism="complete-merging").achieved
