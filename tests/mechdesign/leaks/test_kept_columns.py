"""What kept columns disclose together, measured on a sample of the file."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from mechdesign.leaks import inspection
from mechdesign.leaks.coded_table import TableBuilder
from mechdesign.leaks.inspection import guess_from_kept, kept_note


@pytest.fixture
def people(tmp_path):
    """S is the sum of two bits modulo 2 for nine in ten: neither column by itself says anything."""
    draw = random.Random(5)
    lines = ["id,s,a,b,noise"]
    for number in range(4000):
        a = draw.randrange(2)
        b = draw.randrange(2)
        s = (a + b) % 2 if draw.random() < 0.9 else draw.randrange(2)
        lines.append(f"{number},s{s},{a},{b},{draw.randrange(5)}")
    path = tmp_path / "people.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_what_columns_say_only_together_is_found(people):
    pytest.importorskip("sklearn")
    together = guess_from_kept(people, sensitive=["s"], kept=["id", "a", "b"])
    assert together.right == pytest.approx(0.95, abs=0.02)
    assert together.auc > 0.9
    alone = guess_from_kept(people, sensitive=["s"], kept=["a", "noise"])
    assert alone.auc == pytest.approx(0.5, abs=0.05)
    note = kept_note(together, sensitive=["s"])
    assert "guess 's' right for 9" in note
    assert "no budget bounds this" in note


def test_nothing_to_guess_from_is_none(people):
    assert guess_from_kept(people, sensitive=["income"], kept=["a"]) is None
    assert guess_from_kept(people, sensitive=["s"], kept=["id"]) is None
    assert guess_from_kept(people, sensitive=["s"], kept=[]) is None


def test_long_files_are_sampled_evenly(people, monkeypatch):
    monkeypatch.setattr(inspection, "MOST_RECORDS", 300)
    guess = guess_from_kept(people, sensitive=["s"], kept=["a", "b"])
    # 4,000 records are halved until at most 600 are left.
    assert guess.records == 500


def test_halving_keeps_every_second_record_and_no_unused_value():
    builder = TableBuilder(["a"])
    builder.add("a", pa.array(["x", "only", "y", "x", "z"]))
    builder.records = 5
    builder.halve()
    table = builder.table()
    column = table.columns["a"]
    assert table.records == 3
    assert [column.values[code] for code in column.codes] == ["x", "y", "z"]
    assert set(column.values) == {"x", "y", "z"}


@pytest.mark.slow
def test_crossed_secrets_are_guessed_together(people):
    guess = guess_from_kept(people, sensitive=["s", "noise"], kept=["a", "b"])
    assert guess.right_without == pytest.approx(0.1, abs=0.03)
    assert guess.right > guess.right_without
