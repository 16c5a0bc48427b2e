"""Columns that name records are kept as hashes, and nothing that is said of them changes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mechdesign.core.errors import InputError
from mechdesign.formats import csv_blocks, distinct
from mechdesign.leaks import coded_table as module
from mechdesign.leaks import disclosure, learners
from mechdesign.leaks.assessment import assess
from mechdesign.leaks.coded_table import HashedValues, coded_table
from tests.cases.growth import assert_linear, cost_of


def written(path, identifiers):
    rng = np.random.default_rng(2)
    size = len(identifiers)
    frame = pd.DataFrame(
        {
            "id": identifiers,
            "job": rng.choice([*"abc"], size),
            "town": rng.integers(0, 400, size),
            "ill": rng.choice(["yes", "no"], size),
        }
    )
    frame.to_csv(path, index=False)
    return frame


def sort_in_parts(monkeypatch, limit):
    for where in (distinct, disclosure):
        monkeypatch.setattr(where, "SORTED_TOGETHER", limit)
        monkeypatch.setattr(where, "DENSE_LIMIT", limit)


@pytest.fixture
def small(monkeypatch):
    """Small batches and limits, so that a few records do what millions would."""
    monkeypatch.setattr(csv_blocks, "BLOCK", 1 << 10)
    monkeypatch.setattr(module, "MOST_TEXTS", 50)
    monkeypatch.setattr(learners, "find_spec", lambda name: None)


@pytest.mark.parametrize("missing", ["symbol", "drop"])
@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_hashes_change_no_figure(tmp_path, small, missing, gap, kind):
    """Against the same table as a frame, whose texts are all kept."""
    names = [f"name {k}" for k in range(2000)]
    if gap:
        names[7] = names[1500] = None
    frame = written(tmp_path / "in.csv", names)
    if kind == "parquet":
        frame.to_parquet(tmp_path / "in.parquet")
    path = tmp_path / f"in.{kind}"
    coded = coded_table(path, hashing=True)
    assert isinstance(coded.columns["id"].values, HashedValues)
    assert ("" in coded.columns["id"].values) == gap
    assert not isinstance(coded.columns["town"].values, HashedValues)
    ours = assess(path, sensitive="ill", missing=missing)
    assert vars(ours) == vars(assess(frame, sensitive="ill", missing=missing))
    assert next(c for c in ours.columns if c.name == "id").identifier
    if gap:
        with pytest.raises(InputError, match=r"'id' has an empty cell, in record 8"):
            assess(path, sensitive="ill", missing="refuse")


def test_a_column_that_names_records_at_first_alone_is_read_again(tmp_path, small):
    frame = written(tmp_path / "in.csv", [*range(1500)] * 2)
    coded = coded_table(tmp_path / "in.csv", hashing=True)
    assert list(coded.columns["id"].values) == list(map(str, range(1500)))
    ours = assess(tmp_path / "in.csv", sensitive="ill")
    assert vars(ours) == vars(assess(frame, sensitive="ill"))


def test_a_sensitive_column_that_names_records_is_refused(tmp_path, small):
    written(tmp_path / "in.csv", [f"name {k}" for k in range(2000)])
    with pytest.raises(InputError, match="nearly every record has a value of its own"):
        assess(tmp_path / "in.csv", sensitive="id")


def test_texts_of_hashes_are_not_made_up():
    values = HashedValues(3)
    with pytest.raises(LookupError, match="are not kept"):
        _ = values[0]
    with pytest.raises(ValueError, match="only the empty text"):
        values.index("")


def test_parts_change_no_figure(tmp_path, small, monkeypatch):
    """Tables too large to be sorted at once are counted in parts of their values."""
    frame = written(tmp_path / "in.csv", [f"name {k}" for k in range(2000)])
    whole = assess(frame, sensitive="ill")
    sort_in_parts(monkeypatch, 100)
    parts = assess(tmp_path / "in.csv", sensitive="ill")
    for ours, theirs in zip(
        [*parts.columns, *parts.pairs, parts.row],
        [*whole.columns, *whole.pairs, whole.row],
        strict=True,
    ):
        ours = vars(getattr(ours, "disclosure", ours)) | {}
        theirs = vars(getattr(theirs, "disclosure", theirs)) | {}
        # The sum of logarithms is rounded in another order.
        assert ours.pop("information") == pytest.approx(theirs.pop("information"))
        assert ours == theirs
    assert parts.unique_rows == whole.unique_rows


def test_an_assessment_costs_what_its_records_cost(tmp_path, monkeypatch):
    """Identifiers in the order of their hashes, and a column of many numbers, among them."""
    monkeypatch.setattr(csv_blocks, "BLOCK", 1 << 14)
    monkeypatch.setattr(module, "MOST_TEXTS", 1_000)
    sort_in_parts(monkeypatch, 1_000)
    # The model learns from as many records whatever the file has, if it has enough.
    monkeypatch.setattr(learners, "MOST_RECORDS", 500)
    monkeypatch.setattr(learners, "find_spec", lambda name: None)
    costs = []
    for size in (10_000, 20_000, 40_000):
        written(tmp_path / "in.csv", [f"name {k}" for k in range(size)])
        costs.append(cost_of(lambda: assess(tmp_path / "in.csv", sensitive="ill")))
    assert_linear([cost.calls for cost in costs])
    assert_linear([cost.elements for cost in costs])
    assert_linear([cost.peak for cost in costs])
    # Eight bytes of hash and a few bytes of codes for each record, and arrays of some of them.
    added = (costs[2].peak - costs[1].peak) / 20_000
    assert added < 100, costs
