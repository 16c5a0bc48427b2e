from __future__ import annotations

import datetime as dt
import decimal
import random
import uuid
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.formats import cells, parquet
from mechdesign.jobs.release_file import sanitise_file
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable

D = 2**53

OTHERS = {
    "text": pa.array(["x", None, "", "é"]),
    "big": pa.array([2**63 - 1, None, -(2**63), 0], pa.int64()),
    "small": pa.array([1, 2, None, 255], pa.uint8()),
    "float": pa.array([0.1, float("nan"), None, -0.0]),
    "money": pa.array(
        [
            decimal.Decimal("1.10"),
            None,
            decimal.Decimal("0.01"),
            decimal.Decimal("9.99"),
        ]
    ),
    "flag": pa.array([True, None, False, True]),
    "day": pa.array(
        [dt.date(2024, 1, 31), None, dt.date(1900, 1, 1), dt.date(2100, 1, 1)]
    ),
    "moment": pa.array([1, None, 3, 4], pa.timestamp("ns", "Europe/Berlin")),
    "span": pa.array([1, None, 3, 4], pa.duration("ms")),
    "bytes": pa.array([b"\x00", None, b"", b"\xff"]),
    "kind": pa.array(["u", None, "v", "u"]).dictionary_encode(),
    "list": pa.array([[1], None, [], [2, None]]),
    "record": pa.array([{"k": 1}, None, {"k": None}, {"k": 2}]),
    "nothing": pa.nulls(4),
}


@pytest.mark.parametrize(
    "job",
    [
        pa.array([*"acba"]),
        pa.array([*"acba"], pa.large_string()),
        pa.array([*"acba"]).dictionary_encode(),
    ],
    ids=lambda column: str(column.type)[:12],
)
def test_other_columns_keep_type_values_and_nulls(channel, tmp_path, job):
    names = [*list(OTHERS)[:3], "job", *list(OTHERS)[3:]]
    table = pa.table({name: job if name == "job" else OTHERS[name] for name in names})
    table = table.replace_schema_metadata({"about": "people"})
    pq.write_table(table, tmp_path / "in.parquet")
    applied = sanitise_file(
        channel, tmp_path / "in.parquet", tmp_path / "out.parquet", keep="all"
    )
    before, after = (
        pq.read_table(tmp_path / "in.parquet"),
        pq.read_table(tmp_path / "out.parquet"),
    )
    assert applied.records == 4
    assert after.column_names == names
    assert after.schema.metadata == {b"about": b"people"}
    assert after["job"].type == pa.string()
    assert after["job"].to_pylist() == ["{a, b}", "c", "{a, b}", "{a, b}"]
    for name in OTHERS:
        assert after.schema.field(name) == before.schema.field(name)
        assert str(after[name].to_pylist()) == str(
            before[name].to_pylist()
        )  # as text, since NaN differs from NaN


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2, 1]),
        pa.array([1.0, 2.0, 1.0]),
        pa.array([decimal.Decimal("1"), decimal.Decimal("2"), decimal.Decimal("1")]),
        pa.array([1, 2, 1]).dictionary_encode(),
        pa.array(["1", "2", "1"]),
    ],
    ids=lambda column: str(column.type)[:12],
)
def test_symbols_are_found_by_their_text(channel, tmp_path, column):
    numbers = replace(channel, useful=Variable(("job",), (("1",), ("7",), ("2",))))
    pq.write_table(pa.table({"job": column}), tmp_path / "in.parquet")
    sanitise_file(numbers, tmp_path / "in.parquet", tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet")["job"].to_pylist() == [
        "{a, b}",
        "c",
        "{a, b}",
    ]


def test_batches_do_not_show(coin, tmp_path, monkeypatch):
    table = pa.table(
        {"id": list(range(1000)), "job": random.Random(1).choices("ab", k=1000)}
    )
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=300)
    sanitise_file(
        coin,
        tmp_path / "in.parquet",
        tmp_path / "whole.parquet",
        insecure_seed=1,
        keep="all",
    )
    monkeypatch.setattr(parquet, "ROWS_PER_BATCH", 7)
    sanitise_file(
        coin,
        tmp_path / "in.parquet",
        tmp_path / "parts.parquet",
        insecure_seed=1,
        keep="all",
    )
    whole, parts = (
        pq.read_table(tmp_path / f"{name}.parquet") for name in ("whole", "parts")
    )
    assert whole.equals(parts)
    assert whole["id"].to_pylist() == list(range(1000))
    assert 400 < whole["job"].to_pylist().count("head") < 600


@pytest.mark.parametrize("dtype", ["int64", "Int64", "category"])
def test_a_pandas_file_is_read_back_by_pandas(channel, tmp_path, dtype):
    """pandas leaves notes on its types in the file; the released column is text now."""
    numbers = replace(channel, useful=Variable(("job",), (("1",), ("2",), ("3",))))
    frame = pd.DataFrame(
        {"job": [3, 1, 2], "n": pd.array([1, None, 3], dtype="Int64")}, index=[5, 6, 9]
    )
    frame = frame.astype({"job": dtype})
    frame.to_parquet(tmp_path / "in.parquet")
    sanitise_file(
        numbers, tmp_path / "in.parquet", tmp_path / "out.parquet", keep="all"
    )
    after = pd.read_parquet(tmp_path / "out.parquet")
    expected = frame.assign(job=pd.Series(["c", "{a, b}", "{a, b}"], index=[5, 6, 9]))
    pd.testing.assert_frame_equal(after, expected, check_dtype=True)


def test_crossed_columns_become_one_in_the_place_of_the_first(crossed, tmp_path):
    frame = pd.DataFrame(
        {"id": [1, 2], "job": ["a", "b"], "city": ["p", "p"], "y": [0.5, 1.5]}
    )
    frame.to_parquet(tmp_path / "in.parquet")
    sanitise_file(
        crossed, tmp_path / "in.parquet", tmp_path / "out.parquet", keep="all"
    )
    after = pd.read_parquet(tmp_path / "out.parquet")
    pd.testing.assert_frame_equal(
        after,
        pd.DataFrame({"id": [1, 2], "city,job": ["p, a", "rest"], "y": [0.5, 1.5]}),
    )


def test_a_null_can_be_a_symbol(channel, tmp_path):
    knows = replace(channel, useful=Variable(("job",), (("",), ("b",), ("c",))))
    pq.write_table(pa.table({"job": ["c", None, ""]}), tmp_path / "in.parquet")
    sanitise_file(knows, tmp_path / "in.parquet", tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet")["job"].to_pylist() == [
        "c",
        "{a, b}",
        "{a, b}",
    ]


def test_a_file_without_records_stays_one(channel, tmp_path):
    pq.write_table(
        pa.table({"job": pa.array([], pa.string()), "n": pa.array([], pa.int8())}),
        tmp_path / "in.parquet",
    )
    assert (
        sanitise_file(
            channel, tmp_path / "in.parquet", tmp_path / "out.parquet", keep="all"
        ).records
        == 0
    )
    after = pq.read_table(tmp_path / "out.parquet")
    assert after.schema.types == [pa.string(), pa.int8()]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            ["a", "c", "d"],
            r"in\.parquet, row 3: the channel does not know the symbol of 'job'",
        ),
        (
            ["a", None, "b"],
            r"in\.parquet, row 2: the column 'job' has an empty cell, which the channel has no row for",
        ),
        ([b"a"], r"in\.parquet: the column 'job' holds binary, which is no symbol"),
    ],
)
def test_refusals_name_the_row_and_leave_nothing(
    channel, tmp_path, monkeypatch, values, message
):
    monkeypatch.setattr(parquet, "ROWS_PER_BATCH", 1)
    pq.write_table(pa.table({"job": values}), tmp_path / "in.parquet")
    with pytest.raises(InputError, match=message):
        sanitise_file(channel, tmp_path / "in.parquet", tmp_path / "out.parquet")
    assert [p.name for p in tmp_path.iterdir()] == ["in.parquet"]


def test_a_damaged_file_leaves_nothing(channel, tmp_path):
    pq.write_table(
        pa.table({"job": ["a"] * 5000, "id": list(range(5000))}),
        tmp_path / "in.parquet",
    )
    whole = (tmp_path / "in.parquet").read_bytes()
    middle = len(whole) // 2
    (tmp_path / "in.parquet").write_bytes(
        whole[:40] + bytes(middle) + whole[40 + middle :]
    )
    with pytest.raises(InputError, match=r"in\.parquet cannot be read as Parquet"):
        sanitise_file(channel, tmp_path / "in.parquet", tmp_path / "out.parquet")
    assert [p.name for p in tmp_path.iterdir()] == ["in.parquet"]


def test_posterior_draws_keep_the_type_of_numbers(tmp_path):
    counts, labels = np.array([[3, 1, 4], [1, 5, 2]]), ["10", "20", "30"]
    joint = Joint.from_counts(counts, useful_labels=labels, useful="n", sensitive="s")
    channel = Channel(
        joint.useful, ("u", "v"), ((D, 0), (D // 2, D // 2), (0, D)), D, joint=joint
    )
    numbers = random.Random(1).choices([10, 20, 30], k=150)
    frame = pd.DataFrame({"n": numbers, "k": range(150)}, index=range(5, 155))
    for name, kind in (("in", "int64"), ("nullable", "Int16")):
        frame.astype({"n": kind}).to_parquet(tmp_path / f"{name}.parquet")
        source, target = tmp_path / f"{name}.parquet", tmp_path / "out.parquet"
        sanitise_file(channel, source, target, form="posterior-draw", force=True)
        released = pd.read_parquet(tmp_path / "out.parquet")
        assert released["n"].dtype == kind
        assert set(released["n"]) == {10, 20, 30}
        # The range of a part of a larger table is a note, and left out.
        assert released.index.equals(pd.RangeIndex(150))
    sanitise_file(
        channel,
        tmp_path / "in.parquet",
        tmp_path / "more.parquet",
        form="posterior-draw",
        into="drawn",
    )
    added = pd.read_parquet(tmp_path / "more.parquet")
    assert added["n"].tolist() == frame["n"].tolist()
    assert added["drawn"].dtype == "int64"


@pytest.mark.skipif(not hasattr(pa, "uuid"), reason="pyarrow reads them as bytes")
def test_uuids_name_records_as_their_texts_do(channel, tmp_path):
    """DuckDB writes its type UUID into Parquet so."""
    names = [uuid.UUID(int=number * 7**40 % 2**128) for number in range(1, 61)]
    jobs = pa.array([*"abc"] * 20)
    kinds = {"text": pa.array(map(str, names)), "uuid": pa.array(names, pa.uuid())}
    released = {}
    for kind, ids in kinds.items():
        pq.write_table(pa.table({"id": ids, "job": jobs}), tmp_path / "in.parquet")
        target = tmp_path / f"{kind}.parquet"
        ledger = tmp_path / "l.db"
        options = {"identity": "id", "keep": "id", "keep_order": True}
        sanitise_file(
            channel, tmp_path / "in.parquet", target, ledger=ledger, **options
        )
        released[kind] = pq.read_table(target)
    assert released["uuid"]["id"].type == pa.uuid()
    assert released["uuid"]["id"].to_pylist() == names
    assert released["uuid"]["job"].equals(released["text"]["job"])
    codes = cells.encode(pa.chunked_array([[names[0], None], []], pa.uuid()), "id")
    assert codes.codes.tolist() == [0, -1]
    assert codes.texts == (str(names[0]),)
