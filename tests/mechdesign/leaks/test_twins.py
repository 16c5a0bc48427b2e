"""Copies of many values, pairs of columns, and columns that bring an order back."""

from __future__ import annotations

import numpy as np
import pytest

from mechdesign.formats.cells import Encoded
from mechdesign.leaks import twins
from mechdesign.leaks.sorted_order import RisingColumns
from mechdesign.leaks.twins import MOST_COLUMNS, Twins


def encoded(numbers) -> Encoded:
    texts, codes = np.unique(np.asarray(numbers), return_inverse=True)
    return Encoded(codes, tuple(f"v{text}" for text in texts.tolist()))


def fed(collector, columns, batch=65_536):
    """Give the columns to a collector batch by batch, as files do."""
    records = len(next(iter(columns.values())))
    for first in range(0, records, batch):
        end = min(records, first + batch)

        def every(step, first=first, end=end):
            def cells(name):
                column = columns[name]
                if isinstance(column, list):
                    part = column[first:end:step]
                    texts = tuple(dict.fromkeys(part))
                    numbers = {text: i for i, text in enumerate(texts)}
                    return Encoded(np.array([numbers[text] for text in part]), texts)
                return encoded(column[first:end:step])

            return cells

        collector.add(end - first, every)
    return collector


@pytest.mark.parametrize("values", [300, 600, 2000, 4000])
@pytest.mark.parametrize("batch", [4096, 65_536])
def test_copies_of_up_to_4096_values_are_found(values, batch):
    """Each value has 10 records, so that no sample of 4,096 has enough of them."""
    chance = np.random.default_rng(5)
    codes = chance.permutation(np.arange(10 * values) % values)
    columns = {"code": codes, "x": codes % 15}
    kept = fed(Twins(["code"], ["x"]), columns, batch)
    assert kept.copies() == [("code", "x")]
    shuffled = {"code": codes, "x": chance.permutation(codes % 15)}
    assert fed(Twins(["code"], ["x"]), shuffled, batch).copies() == []


SYMBOLS = np.random.default_rng(6).integers(0, 15, 20_000)
PAD = np.random.default_rng(7).integers(0, 15, 20_000)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (PAD, (SYMBOLS + PAD) % 15),
        (SYMBOLS // 4, SYMBOLS % 4),
        (SYMBOLS < 8, SYMBOLS % 8),
    ],
    ids=["sum", "digits", "bits"],
)
def test_two_columns_that_stand_for_the_useful_one_together(first, second):
    columns = {"u": first * 1, "v": second, "x": SYMBOLS, "w": PAD % 3}
    kept = fed(Twins(["u", "w", "v"], ["x"]), columns, 5000)
    assert kept.copies() == []
    assert kept.copying_pairs() == [(("u", "v"), "x")]
    # One of them named: the other one still must not complete it.
    kept = fed(Twins(["v"], ["x"], ["u"]), columns, 5000)
    assert kept.copying_pairs() == [(("v", "u"), "x")]
    # Both named: kept knowingly.
    kept = fed(Twins(["w"], ["x"], ["u", "v"]), columns, 5000)
    assert kept.copying_pairs() == []


def test_pairs_are_tested_for_thirty_columns_and_not_for_more():
    chance = np.random.default_rng(8)
    names = [f"c{i}" for i in range(MOST_COLUMNS)]
    columns = {name: chance.integers(0, 9, 20_000) for name in names}
    columns["x"] = SYMBOLS
    columns["c3"] = PAD
    columns["c28"] = (SYMBOLS + PAD) % 15
    kept = fed(Twins(names, ["x"]), columns)
    assert kept.copying_pairs() == [(("c3", "c28"), "x")]
    assert not kept.pairs_left_out
    columns["more"] = PAD
    kept = fed(Twins([*names, "more"], ["x"]), columns)
    assert kept.copying_pairs() == []
    assert kept.pairs_left_out


def test_pairs_dealt_out_by_chance_stand_for_nothing():
    chance = np.random.default_rng(9)
    for records in (10, 40, 200, 3000):
        columns = {name: chance.integers(0, 4, records) for name in "abcdefgh"}
        columns["x"] = chance.integers(0, 3, records)
        assert fed(Twins([*"abcdefgh"], ["x"]), columns).copying_pairs() == []


def test_a_pair_of_identifiers_stands_for_nothing():
    """Half an identifier each: no two records share both."""
    columns = {
        "u": np.arange(20_000) // 141,
        "v": np.arange(20_000) % 141,
        "x": SYMBOLS,
    }
    assert fed(Twins(["u", "v"], ["x"]), columns).copying_pairs() == []


def test_the_sample_of_pairs_is_bounded(monkeypatch):
    monkeypatch.setattr(twins, "SAMPLED", 1000)
    monkeypatch.setattr(twins, "LATER", 10)
    columns = {"u": PAD, "v": (SYMBOLS + PAD) % 15, "x": SYMBOLS}
    kept = fed(Twins(["u", "v"], ["x"]), columns, 500)
    sample = kept._pairs._columns["u"].codes
    assert len(sample) < 3000


RECORDS = 5000
MIXED = np.random.default_rng(10).permutation(RECORDS)


@pytest.mark.parametrize(
    ("texts", "rises"),
    [
        ([str(i) for i in range(RECORDS)], True),
        ([f"id{i}" for i in range(RECORDS)], True),
        ([f"id{RECORDS - i}" for i in range(RECORDS)], True),
        (
            [f"2026-{1 + i // 500:02}-{1 + i % 500 // 20:02}" for i in range(RECORDS)],
            False,
        ),
        (
            [
                f"2026-01-01T{i // 3600:02}:{i // 60 % 60:02}:{i % 60:02}"
                for i in range(RECORDS)
            ],
            True,
        ),
        ([str(i + 40 * (i % 7)) for i in range(RECORDS)], True),
        (["" if i % 3 else str(i) for i in range(RECORDS)], True),
        ([str(i) for i in MIXED], False),
        ([str(i // 1000) for i in range(RECORDS)], False),
        (["same"] * RECORDS, False),
        ([""] * RECORDS, False),
    ],
)
@pytest.mark.parametrize("batch", [97, 5000])
def test_columns_that_bring_the_order_back(texts, rises, batch):
    """A day has 20 records here, whose order sorting by it leaves open."""
    collected = fed(RisingColumns(["n"]), {"n": texts}, batch)
    assert collected.rising() == (["n"] if rises else [])


def test_few_records_bring_nothing_back():
    assert fed(RisingColumns(["n"]), {"n": [str(i) for i in range(19)]}).rising() == []
